use ptx_emu::{Fill as EmuFill, MapElement, Swizzle as EmuSwizzle, TensorMap, Tiled};

use crate::backend::RunFailure;
use crate::catalog::{Fill, MapType, Swizzle};
use crate::operator::abi;
use crate::plan::{MapGeometry, OperatorCall};

/// Tensors lie on such boundaries.
const SOMEWHERE: u64 = 1 << 20;

/// Encodes one tensor map for a tensor at `address`.
pub(super) fn encode(
    name: &str,
    map: &MapGeometry,
    address: u64,
) -> Result<[u8; abi::TENSOR_MAP], RunFailure> {
    let made = TensorMap::tiled(Tiled {
        element: element(map.dtype),
        address,
        dims: &map.dims,
        strides: &map.strides,
        box_dims: &map.box_dims,
        element_strides: &vec![1; map.dims.len()],
        swizzle: match map.swizzle {
            Swizzle::None => EmuSwizzle::None,
            Swizzle::B32 => EmuSwizzle::B32,
            Swizzle::B64 => EmuSwizzle::B64,
            Swizzle::B128 => EmuSwizzle::B128,
        },
        fill: match map.fill {
            Fill::Zero => EmuFill::Zero,
            Fill::Nan => EmuFill::Nan,
        },
    });
    made.map(|map| map.encode())
        .map_err(|error| RunFailure::refused(format!("map {name}: {error}")))
}

/// Why a tensor map of the call cannot be made, at any address of its tensor.
pub fn refusal(call: &OperatorCall) -> Option<String> {
    call.maps.iter().find_map(|map| {
        let refusal = |geometry| encode(&map.name, geometry, SOMEWHERE).err();
        Some(map.groups.iter().find_map(refusal)?.message)
    })
}

fn element(dtype: MapType) -> MapElement {
    match dtype {
        MapType::U8 => MapElement::U8,
        MapType::U16 => MapElement::U16,
        MapType::U32 => MapElement::U32,
        MapType::I32 => MapElement::S32,
        MapType::U64 => MapElement::U64,
        MapType::I64 => MapElement::S64,
        MapType::F16 => MapElement::F16,
        MapType::Bf16 => MapElement::Bf16,
        MapType::F32 => MapElement::F32,
        MapType::F64 => MapElement::F64,
        MapType::U4 => MapElement::U4,
        MapType::U4Align16 => MapElement::U4Align16,
        MapType::U6Align16 => MapElement::U6Align16,
    }
}
