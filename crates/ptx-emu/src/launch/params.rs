//! The values a kernel is launched with.

use crate::memory::DevicePtr;
use crate::tensor::tensormap::TensorMap;

/// Kernel parameters, in declaration order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Params {
    pub(super) values: Vec<Vec<u8>>,
}

impl Params {
    /// No parameters yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A parameter of raw bytes (a struct passed by value).
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        self.values.push(bytes.to_vec());
        self
    }

    /// A device pointer.
    pub fn pointer(self, ptr: DevicePtr) -> Self {
        self.u64(ptr.0)
    }

    /// A tensor map by value (`__grid_constant__ const CUtensorMap`).
    pub fn tensor_map(self, map: &TensorMap) -> Self {
        self.bytes(&map.encode())
    }

    /// A 32-bit unsigned integer.
    pub fn u32(self, value: u32) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    /// A 32-bit signed integer.
    pub fn i32(self, value: i32) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    /// A 64-bit unsigned integer.
    pub fn u64(self, value: u64) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    /// A 64-bit signed integer.
    pub fn i64(self, value: i64) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    /// A 64-bit float.
    pub fn f64(self, value: f64) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    /// A 32-bit float.
    pub fn f32(self, value: f32) -> Self {
        self.bytes(&value.to_le_bytes())
    }
}
