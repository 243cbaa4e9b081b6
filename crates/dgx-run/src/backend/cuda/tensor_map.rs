use std::ptr;

use cudarc::driver::sys;

use super::driver::{CudaError, cu};
use crate::backend::RunFailure;
use crate::catalog::{Fill, MapType, Swizzle};
use crate::operator::abi;
use crate::plan::MapGeometry;

/// Encodes one tensor map for a tensor at `address`.
pub(super) fn encode(
    name: &str,
    map: &MapGeometry,
    address: u64,
) -> Result<[u8; abi::TENSOR_MAP], RunFailure> {
    let mut encoded = sys::CUtensorMap { opaque: [0; 16] };
    let ones = vec![1u32; map.dims.len()];
    let strides = match map.strides.is_empty() {
        true => ptr::null(),
        false => map.strides.as_ptr(),
    };
    let status = cu!(cuTensorMapEncodeTiled(
        &mut encoded,
        data_type(map.dtype),
        map.dims.len() as u32,
        address as *mut std::ffi::c_void,
        map.dims.as_ptr(),
        strides,
        map.box_dims.as_ptr(),
        ones.as_ptr(),
        sys::CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
        swizzle(map.swizzle),
        sys::CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
        fill(map.fill),
    ));
    status.map_err(|error| refusal(name, map, &error))?;
    let mut bytes = [0; abi::TENSOR_MAP];
    bytes.copy_from_slice(bytemuck::cast_slice(&encoded.opaque));
    Ok(bytes)
}

/// The driver reports only "invalid value"; this names the values.
fn refusal(name: &str, map: &MapGeometry, error: &CudaError) -> RunFailure {
    RunFailure::refused(format!(
        "map {name}: {error}; type {:?}, dims {:?}, strides {:?}, box {:?}, swizzle {:?}",
        map.dtype, map.dims, map.strides, map.box_dims, map.swizzle
    ))
}

fn data_type(dtype: MapType) -> sys::CUtensorMapDataType {
    use sys::CUtensorMapDataType::*;
    match dtype {
        MapType::U8 => CU_TENSOR_MAP_DATA_TYPE_UINT8,
        MapType::U16 => CU_TENSOR_MAP_DATA_TYPE_UINT16,
        MapType::U32 => CU_TENSOR_MAP_DATA_TYPE_UINT32,
        MapType::I32 => CU_TENSOR_MAP_DATA_TYPE_INT32,
        MapType::U64 => CU_TENSOR_MAP_DATA_TYPE_UINT64,
        MapType::I64 => CU_TENSOR_MAP_DATA_TYPE_INT64,
        MapType::F16 => CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
        MapType::Bf16 => CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
        MapType::F32 => CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
        MapType::F64 => CU_TENSOR_MAP_DATA_TYPE_FLOAT64,
        MapType::U4 => CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B,
        MapType::U4Align16 => CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B,
        MapType::U6Align16 => CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B,
    }
}

fn swizzle(swizzle: Swizzle) -> sys::CUtensorMapSwizzle {
    use sys::CUtensorMapSwizzle::*;
    match swizzle {
        Swizzle::None => CU_TENSOR_MAP_SWIZZLE_NONE,
        Swizzle::B32 => CU_TENSOR_MAP_SWIZZLE_32B,
        Swizzle::B64 => CU_TENSOR_MAP_SWIZZLE_64B,
        Swizzle::B128 => CU_TENSOR_MAP_SWIZZLE_128B,
    }
}

fn fill(fill: Fill) -> sys::CUtensorMapFloatOOBfill {
    use sys::CUtensorMapFloatOOBfill::*;
    match fill {
        Fill::Zero => CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        Fill::Nan => CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA,
    }
}
