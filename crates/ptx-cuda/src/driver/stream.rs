//! Streams and their capture.

use std::ffi::{c_int, c_uint, c_void};

use crate::c::{offer, put};
use crate::call::{driver, in_host_function};
use crate::capture::{Answers, capture_info, exchange_mode};
use crate::context::{current, in_context};
use crate::error::Error;

driver! {
    fn cuStreamCreate(stream: *mut usize, flags: c_uint) {
        put(stream, in_context()?.streams.make(flags, 0)?)
    }

    fn cuStreamCreateWithPriority(stream: *mut usize, flags: c_uint, priority: c_int) {
        put(stream, in_context()?.streams.make(flags, priority)?)
    }

    fn cuStreamDestroy_v2(stream: usize) {
        in_context()?.streams.destroy(stream)
    }

    fn cuStreamSynchronize | cuStreamSynchronize_ptsz(stream: usize) {
        in_context()?.wait_for_stream(stream)
    }

    fn cuStreamQuery | cuStreamQuery_ptsz(stream: usize) {
        in_context()?.wait_for_stream(stream)
    }

    fn cuStreamWaitEvent | cuStreamWaitEvent_ptsz(stream: usize, event: usize, flags: c_uint) {
        in_context()?.wait_in(stream, event, flags)
    }

    fn cuStreamGetFlags | cuStreamGetFlags_ptsz(stream: usize, flags: *mut c_uint) {
        put(flags, in_context()?.streams.get(stream)?.flags)
    }

    fn cuStreamGetPriority | cuStreamGetPriority_ptsz(stream: usize, priority: *mut c_int) {
        put(priority, in_context()?.streams.get(stream)?.priority)
    }

    fn cuStreamGetId | cuStreamGetId_ptsz(stream: usize, id: *mut u64) {
        in_context()?.streams.get(stream)?;
        put(id, stream as u64)
    }

    fn cuStreamGetCtx | cuStreamGetCtx_ptsz(stream: usize, context: *mut usize) {
        in_context()?.streams.get(stream)?;
        put(context, current())
    }

    fn cuStreamGetDevice | cuStreamGetDevice_ptsz(stream: usize, device: *mut c_int) {
        in_context()?.streams.get(stream)?;
        put(device, 0)
    }

    fn cuStreamAttachMemAsync | cuStreamAttachMemAsync_ptsz(
        stream: usize,
        ptr: u64,
        _bytes: usize,
        _flags: c_uint,
    ) {
        let device = in_context()?;
        device.streams.get(stream)?;
        device.block(ptr).map(drop).ok_or(Error::INVALID_VALUE)
    }

    fn cuStreamAddCallback | cuStreamAddCallback_ptsz(
        stream: usize,
        function: Option<unsafe extern "C" fn(usize, c_int, *mut c_void)>,
        data: *mut c_void,
        _flags: c_uint,
    ) {
        let function = function.ok_or(Error::INVALID_VALUE)?;
        let mut device = in_context()?;
        device.wait_for_stream(stream)?;
        drop(device);
        in_host_function(|| function(stream, 0, data));
        Ok(())
    }

    fn cuStreamBeginCapture_v2 | cuStreamBeginCapture_v2_ptsz(stream: usize, mode: c_int) {
        in_context()?.begin_capture(stream, mode, None, Vec::new())
    }

    fn cuStreamEndCapture | cuStreamEndCapture_ptsz(stream: usize, graph: *mut usize) {
        match in_context()?.end_capture(stream) {
            Ok(captured) => put(graph, captured),
            Err(error) => {
                offer(graph, 0);
                Err(error)
            }
        }
    }

    fn cuStreamIsCapturing | cuStreamIsCapturing_ptsz(stream: usize, status: *mut c_int) {
        put(status, in_context()?.capture_state(stream)?.0)
    }

    fn cuStreamGetCaptureInfo_v2 | cuStreamGetCaptureInfo_v2_ptsz(
        stream: usize,
        status: *mut c_int,
        id: *mut u64,
        graph: *mut usize,
        after: *mut *const usize,
        count: *mut usize,
    ) {
        capture_info(in_context()?, stream, status, Answers { id, graph, after, count })?;
        Ok(())
    }

    fn cuStreamGetCaptureInfo_v3 | cuStreamGetCaptureInfo_v3_ptsz(
        stream: usize,
        status: *mut c_int,
        id: *mut u64,
        graph: *mut usize,
        after: *mut *const usize,
        edges: *mut *const c_void,
        count: *mut usize,
    ) {
        offer(edges, std::ptr::null());
        capture_info(in_context()?, stream, status, Answers { id, graph, after, count })?;
        Ok(())
    }

    fn cuThreadExchangeStreamCaptureMode(mode: *mut c_int) {
        let wanted = *mode.as_ref().ok_or(Error::INVALID_VALUE)?;
        put(mode, exchange_mode(wanted)?)
    }

    fn cuStreamUpdateCaptureDependencies_v2 | cuStreamUpdateCaptureDependencies_v2_ptsz(
        stream: usize,
        nodes: *const usize,
        _edges: *const c_void,
        count: usize,
        flags: c_uint,
    ) {
        let nodes = crate::c::array(nodes, count)?;
        in_context()?.set_tail(stream, nodes, flags == 0)
    }
}
