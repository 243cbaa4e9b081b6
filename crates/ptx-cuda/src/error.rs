//! The error codes of both APIs. Since CUDA 10.1 a condition has one number in both.

use std::ffi::CStr;

/// A failed call, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Error(pub(crate) u32);

pub(crate) type Result<T = ()> = std::result::Result<T, Error>;

macro_rules! codes {
    (
        given { $($constant:ident = $code:literal, $driver:literal, $runtime:literal, $text:literal;)+ }
        named { $($other:literal, $other_driver:literal, $other_runtime:literal, $other_text:literal;)+ }
    ) => {
        impl Error {
            $(pub(crate) const $constant: Self = Self($code);)+
        }

        const CODES: &[(u32, &CStr, &CStr, &CStr)] = &[
            $(($code, $driver, $runtime, $text),)+
            $(($other, $other_driver, $other_runtime, $other_text),)+
        ];
    };
}

codes! {
    given {
        INVALID_VALUE = 1, c"CUDA_ERROR_INVALID_VALUE", c"cudaErrorInvalidValue", c"invalid argument";
        OUT_OF_MEMORY = 2, c"CUDA_ERROR_OUT_OF_MEMORY", c"cudaErrorMemoryAllocation", c"out of memory";
        NOT_INITIALIZED = 3, c"CUDA_ERROR_NOT_INITIALIZED", c"cudaErrorInitializationError", c"initialization error";
        INVALID_CONFIGURATION = 9, c"CUDA_ERROR_INVALID_VALUE", c"cudaErrorInvalidConfiguration", c"invalid configuration argument";
        INVALID_PITCH = 12, c"CUDA_ERROR_INVALID_VALUE", c"cudaErrorInvalidPitchValue", c"invalid pitch argument";
        INVALID_SYMBOL = 13, c"CUDA_ERROR_NOT_FOUND", c"cudaErrorInvalidSymbol", c"invalid device symbol";
        INVALID_CHANNEL = 20, c"CUDA_ERROR_INVALID_VALUE", c"cudaErrorInvalidChannelDescriptor", c"invalid channel descriptor";
        INVALID_DIRECTION = 21, c"CUDA_ERROR_INVALID_VALUE", c"cudaErrorInvalidMemcpyDirection", c"invalid copy direction for memcpy";
        MISSING_CONFIGURATION = 52, c"CUDA_ERROR_INVALID_VALUE", c"cudaErrorMissingConfiguration", c"__global__ function call is not configured";
        INVALID_FUNCTION = 98, c"CUDA_ERROR_INVALID_HANDLE", c"cudaErrorInvalidDeviceFunction", c"invalid device function";
        INVALID_DEVICE = 101, c"CUDA_ERROR_INVALID_DEVICE", c"cudaErrorInvalidDevice", c"invalid device ordinal";
        INVALID_IMAGE = 200, c"CUDA_ERROR_INVALID_IMAGE", c"cudaErrorInvalidKernelImage", c"device kernel image is invalid";
        INVALID_CONTEXT = 201, c"CUDA_ERROR_INVALID_CONTEXT", c"cudaErrorDeviceUninitialized", c"invalid device context";
        NO_BINARY = 209, c"CUDA_ERROR_NO_BINARY_FOR_GPU", c"cudaErrorNoKernelImageForDevice", c"no kernel image is available for execution on the device";
        UNSUPPORTED_LIMIT = 215, c"CUDA_ERROR_UNSUPPORTED_LIMIT", c"cudaErrorUnsupportedLimit", c"limit is not supported on this architecture";
        PEER_UNSUPPORTED = 217, c"CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", c"cudaErrorPeerAccessUnsupported", c"peer access is not supported between these two devices";
        INVALID_PTX = 218, c"CUDA_ERROR_INVALID_PTX", c"cudaErrorInvalidPtx", c"a PTX JIT compilation failed";
        FILE_NOT_FOUND = 301, c"CUDA_ERROR_FILE_NOT_FOUND", c"cudaErrorFileNotFound", c"file not found";
        INVALID_HANDLE = 400, c"CUDA_ERROR_INVALID_HANDLE", c"cudaErrorInvalidResourceHandle", c"invalid resource handle";
        ILLEGAL_STATE = 401, c"CUDA_ERROR_ILLEGAL_STATE", c"cudaErrorIllegalState", c"the operation cannot be performed in the present state";
        NOT_FOUND = 500, c"CUDA_ERROR_NOT_FOUND", c"cudaErrorSymbolNotFound", c"named symbol not found";
        NOT_READY = 600, c"CUDA_ERROR_NOT_READY", c"cudaErrorNotReady", c"device not ready";
        ILLEGAL_ADDRESS = 700, c"CUDA_ERROR_ILLEGAL_ADDRESS", c"cudaErrorIllegalAddress", c"an illegal memory access was encountered";
        OUT_OF_RESOURCES = 701, c"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", c"cudaErrorLaunchOutOfResources", c"too many resources requested for launch";
        LAUNCH_TIMEOUT = 702, c"CUDA_ERROR_LAUNCH_TIMEOUT", c"cudaErrorLaunchTimeout", c"the launch timed out and was terminated";
        CONTEXT_DESTROYED = 709, c"CUDA_ERROR_CONTEXT_IS_DESTROYED", c"cudaErrorContextIsDestroyed", c"context is destroyed";
        ASSERT = 710, c"CUDA_ERROR_ASSERT", c"cudaErrorAssert", c"device-side assert triggered";
        ALREADY_REGISTERED = 712, c"CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", c"cudaErrorHostMemoryAlreadyRegistered", c"part or all of the requested memory range is already mapped";
        NOT_REGISTERED = 713, c"CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", c"cudaErrorHostMemoryNotRegistered", c"pointer does not correspond to a registered memory region";
        ILLEGAL_INSTRUCTION = 715, c"CUDA_ERROR_ILLEGAL_INSTRUCTION", c"cudaErrorIllegalInstruction", c"an illegal instruction was encountered";
        MISALIGNED = 716, c"CUDA_ERROR_MISALIGNED_ADDRESS", c"cudaErrorMisalignedAddress", c"misaligned address";
        LAUNCH_FAILED = 719, c"CUDA_ERROR_LAUNCH_FAILED", c"cudaErrorLaunchFailure", c"unspecified launch failure";
        TOO_LARGE_TO_COOPERATE = 720, c"CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", c"cudaErrorCooperativeLaunchTooLarge", c"too many blocks in cooperative launch";
        NOT_PERMITTED = 800, c"CUDA_ERROR_NOT_PERMITTED", c"cudaErrorNotPermitted", c"operation not permitted";
        NOT_SUPPORTED = 801, c"CUDA_ERROR_NOT_SUPPORTED", c"cudaErrorNotSupported", c"operation not supported";
        CAPTURE_UNSUPPORTED = 900, c"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", c"cudaErrorStreamCaptureUnsupported", c"operation not permitted when stream is capturing";
        CAPTURE_INVALIDATED = 901, c"CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", c"cudaErrorStreamCaptureInvalidated", c"operation failed due to a previous error during capture";
        CAPTURE_MERGE = 902, c"CUDA_ERROR_STREAM_CAPTURE_MERGE", c"cudaErrorStreamCaptureMerge", c"operation would result in a merge of separate capture sequences";
        CAPTURE_UNMATCHED = 903, c"CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", c"cudaErrorStreamCaptureUnmatched", c"capture was not ended in the same stream as it began";
        CAPTURE_UNJOINED = 904, c"CUDA_ERROR_STREAM_CAPTURE_UNJOINED", c"cudaErrorStreamCaptureUnjoined", c"capturing stream has unjoined work";
        CAPTURE_ISOLATION = 905, c"CUDA_ERROR_STREAM_CAPTURE_ISOLATION", c"cudaErrorStreamCaptureIsolation", c"dependency created on uncaptured work in another stream";
        CAPTURE_IMPLICIT = 906, c"CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", c"cudaErrorStreamCaptureImplicit", c"operation would make the legacy stream depend on a capturing blocking stream";
        CAPTURED_EVENT = 907, c"CUDA_ERROR_CAPTURED_EVENT", c"cudaErrorCapturedEvent", c"operation not permitted on an event last recorded in a capturing stream";
        WRONG_THREAD = 908, c"CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", c"cudaErrorStreamCaptureWrongThread", c"attempt to terminate a thread-local capture sequence from another thread";
        UPDATE_FAILURE = 910, c"CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE", c"cudaErrorGraphExecUpdateFailure", c"the graph update was not performed because it included changes which violated constraints specific to instantiated graph update";
        INVALID_CLUSTER = 912, c"CUDA_ERROR_INVALID_CLUSTER_SIZE", c"cudaErrorInvalidClusterSize", c"cluster misconfiguration";
        UNKNOWN = 999, c"CUDA_ERROR_UNKNOWN", c"cudaErrorUnknown", c"unknown error";
    }
    // No call returns these; a program may query their names.
    named {
        0, c"CUDA_SUCCESS", c"cudaSuccess", c"no error";
        100, c"CUDA_ERROR_NO_DEVICE", c"cudaErrorNoDevice", c"no CUDA-capable device is detected";
        222, c"CUDA_ERROR_UNSUPPORTED_PTX_VERSION", c"cudaErrorUnsupportedPtxVersion", c"the provided PTX was compiled with an unsupported toolchain.";
        708, c"CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE", c"cudaErrorSetOnActiveProcess", c"cannot set while device is active in this process";
    }
}

impl Error {
    fn entry(self) -> Option<&'static (u32, &'static CStr, &'static CStr, &'static CStr)> {
        CODES.iter().find(|(code, ..)| *code == self.0)
    }

    /// `CUDA_ERROR_…`
    pub(crate) fn driver_name(self) -> Option<&'static CStr> {
        self.entry().map(|(_, name, ..)| *name)
    }

    /// `cudaError…`
    pub(crate) fn runtime_name(self) -> Option<&'static CStr> {
        self.entry().map(|(_, _, name, _)| *name)
    }

    /// Its description.
    pub(crate) fn text(self) -> Option<&'static CStr> {
        self.entry().map(|(.., text)| *text)
    }

    /// Its number in the driver API: the runtime has some codes of its own.
    pub(crate) fn for_driver(self) -> u32 {
        let known = match self {
            Self::INVALID_CONFIGURATION
            | Self::INVALID_PITCH
            | Self::INVALID_CHANNEL
            | Self::INVALID_DIRECTION
            | Self::MISSING_CONFIGURATION => Self::INVALID_VALUE,
            Self::INVALID_SYMBOL => Self::NOT_FOUND,
            Self::INVALID_FUNCTION => Self::INVALID_HANDLE,
            other => other,
        };
        known.0
    }

    /// Whether the context is lost after it: every later call fails with it.
    pub(crate) fn sticks(self) -> bool {
        matches!(self.0, 700 | 702 | 710 | 714..=719)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_the_runtime_alone_become_those_of_the_driver() {
        assert_eq!(Error::INVALID_CONFIGURATION.for_driver(), 1);
        assert_eq!(Error::INVALID_SYMBOL.for_driver(), 500);
        assert_eq!(Error::ILLEGAL_ADDRESS.for_driver(), 700);
        assert_eq!(Error(12345).for_driver(), 12345);
    }
}
