//! What the host hands to a kernel: `dgx::Args` and `dgx::Group` of
//! `variants/include/dgx/abi.cuh`, whose layout follows from the operator.

use dgx_core::fields::{PointedPart, storage_type};
use dgx_core::operator::Operator;

pub(crate) const SCRATCH_SLOTS: usize = 8;
/// Groups that [`Args`] holds itself, and whose tensor maps it holds.
pub(crate) const NEAR_GROUPS: usize = 8;
/// Bytes of a tensor map in device memory.
pub(crate) const TENSOR_MAP: usize = 128;
/// Where one may begin: at a multiple of this many bytes.
const MAP_ALIGNMENT: usize = 64;
/// A variant with more gets none in [`Args`]: parameters have 32 KB.
const MOST_NEAR_MAPS: usize = 24;
/// Bytes of [`Args`] before its groups.
const HEAD: usize = 3 * 8 + 8 * SCRATCH_SLOTS + 2 * 4;

/// `dgx::Group`. Addresses are the device's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Group {
    /// In the order of the operator's fields.
    pub pointers: Vec<u64>,
    pub scratch: [u64; SCRATCH_SLOTS],
    pub sizes: Vec<u32>,
    pub tile_begin: u32,
    pub index: u32,
}

impl Group {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let words = self.pointers.iter().chain(&self.scratch);
        let halves = self.sizes.iter().chain([&self.tile_begin, &self.index]);
        let mut bytes: Vec<u8> = words.flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend(halves.flat_map(|half| half.to_le_bytes()));
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    }
}

/// Bytes of a group of `operator`.
pub(crate) fn group_bytes(operator: &Operator) -> usize {
    let words = operator.fields().len() + SCRATCH_SLOTS;
    (8 * words + 4 * (operator.sizes.len() + 2)).next_multiple_of(8)
}

/// Bytes of `dgx::Args` of `operator`, for a variant with `maps` tensor maps a group.
pub(crate) fn args_bytes(operator: &Operator, maps: usize) -> usize {
    let groups = HEAD + NEAR_GROUPS * group_bytes(operator);
    match maps {
        1..=MOST_NEAR_MAPS => {
            groups.next_multiple_of(MAP_ALIGNMENT) + NEAR_GROUPS * maps * TENSOR_MAP
        }
        _ => groups,
    }
}

/// `dgx::Args`, the one parameter of a kernel without `args`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Args {
    pub groups: u64,
    pub maps: u64,
    pub deal: u64,
    pub scratch: [u64; SCRATCH_SLOTS],
    pub group_count: u32,
    pub tile_count: u32,
}

impl Args {
    /// With the first of `groups` and their `maps` repeated: a kernel reads parameters without a
    /// load.
    pub(crate) fn bytes(&self, operator: &Operator, groups: &[Group], maps: &[u8]) -> Vec<u8> {
        let words = [self.groups, self.maps, self.deal];
        let words = words.iter().chain(&self.scratch);
        let mut bytes: Vec<u8> = words.flat_map(|word| word.to_le_bytes()).collect();
        let counts = [self.group_count, self.tile_count];
        bytes.extend(counts.iter().flat_map(|count| count.to_le_bytes()));
        bytes.extend(groups.iter().take(NEAR_GROUPS).flat_map(Group::bytes));
        bytes.resize(args_bytes(operator, 0), 0);
        let maps_each = maps.len() / groups.len().max(1);
        let size = args_bytes(operator, maps_each / TENSOR_MAP);
        if size > bytes.len() {
            bytes.resize(bytes.len().next_multiple_of(MAP_ALIGNMENT), 0);
            bytes.extend(maps.iter().take(NEAR_GROUPS * maps_each));
            bytes.resize(size, 0);
        }
        bytes
    }
}

/// The text that kernels of `operator` include as `dgx/abi.cuh`.
pub(crate) fn header(operator: &Operator) -> String {
    let (group, args) = (group_bytes(operator), args_bytes(operator, 0));
    let mut members = String::new();
    for field in operator.fields() {
        let tensor = operator.tensor(&field);
        let (constant, kind) = match field.form {
            PointedPart::Elements => ("const ", storage_type(tensor.element)),
            PointedPart::Scales | PointedPart::Atoms => ("const ", "u8"),
            PointedPart::Output => ("", storage_type(tensor.element)),
        };
        let extents: Vec<String> = tensor.extents.iter().map(|e| operator.formula(e)).collect();
        let (element, extents) = (tensor.element.name(), extents.join(" x "));
        let about = match field.form {
            PointedPart::Elements | PointedPart::Output => format!("{element}, {extents}"),
            PointedPart::Scales => "one for each block of a row".to_owned(),
            PointedPart::Atoms => {
                "the same scales in 128-row x 4-scale atoms of 512 bytes".to_owned()
            }
        };
        members += &format!("  {constant}{kind}* {};  // {about}\n", field.name);
    }
    let sizes = operator.sizes.join(", ");
    let padding = match operator.sizes.len() % 2 {
        0 => "",
        _ => "  u32 reserved;\n",
    };
    let constants = match operator.constants.is_empty() {
        true => String::new(),
        false => {
            let all = operator.constants.iter();
            let lines = all.map(|(name, value)| format!("constexpr double {name} = {value:?};\n"));
            let lines: String = lines.collect();
            format!("// As the operator's file says.\nnamespace constants {{\n{lines}}}\n\n")
        }
    };
    format!(
        "// What the host hands to a kernel of {name}; made from operators/{name}.toml.
#pragma once

namespace dgx {{

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;

// Opaque to device code: only TMA instructions look inside.
struct alignas({MAP_ALIGNMENT}) TensorMap {{
  u8 opaque[{TENSOR_MAP}];
}};

// One problem of a call.
struct Group {{
{members}  u8* scratch[{SCRATCH_SLOTS}];
  u32 {sizes};
  u32 tile_begin;  // tiles of all groups before this one
  u32 index;       // place in the shape as the user gave it
{padding}}};

{constants}constexpr u32 NEAR_GROUPS = {NEAR_GROUPS};

struct Args {{
  const Group* groups;
  const TensorMap* maps;  // map i of group g at maps[g * MAPS + i]
  const u32* deal;        // see docs/variants.md, \"Dealing tiles\"
  u8* scratch[{SCRATCH_SLOTS}];
  u32 group_count;
  u32 tile_count;
  Group near[NEAR_GROUPS];  // the first of `groups` again: parameters cost no load
#if MAPS > 0 && MAPS <= {MOST_NEAR_MAPS}  // parameters have 32 KB
  TensorMap near_maps[NEAR_GROUPS * MAPS];  // theirs again, where no copy waits for memory
#endif
}};

static_assert(sizeof(TensorMap) == {TENSOR_MAP}, \"the driver fixes the size of a tensor map\");
static_assert(sizeof(Group) == {group}, \"keep in step with crates/dgx-run/src/operator/abi.rs\");
#if MAPS == 0
static_assert(sizeof(Args) == {args}, \"keep in step with crates/dgx-run/src/operator/abi.rs\");
#endif

}}  // namespace dgx
",
        name = operator.name,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use dgx_core::operator::default_operator;

    #[test]
    fn the_dual_gemm_has_the_layout_it_always_had() {
        assert_eq!(
            (
                group_bytes(default_operator()),
                args_bytes(default_operator(), 0),
                args_bytes(default_operator(), 3)
            ),
            (168, 1440, 1472 + 8 * 3 * 128)
        );
        let group = Group {
            pointers: (1..=10).collect(),
            sizes: vec![21, 22, 23],
            tile_begin: 24,
            index: 25,
            ..Group::default()
        };
        let bytes = group.bytes();
        let at = |offset: usize| bytes[offset];
        assert_eq!([at(72), at(144), at(148), at(152)], [10, 21, 22, 23]);
        assert_eq!([at(156), at(160), bytes.len() as u8], [24, 25, 168]);
    }

    /// Those of the first eight groups, behind the groups, where a map may begin.
    #[test]
    fn arguments_end_with_the_first_groups_maps() {
        let groups = vec![Group::default(); 9];
        let maps: Vec<u8> = (0..9)
            .flat_map(|group| vec![group + 1; 2 * TENSOR_MAP])
            .collect();
        let bytes = Args::default().bytes(default_operator(), &groups, &maps);
        assert_eq!(bytes.len(), args_bytes(default_operator(), 2));
        assert_eq!(bytes[1440..1472], [0; 32]);
        assert_eq!(bytes[1472..], maps[..8 * 2 * TENSOR_MAP]);
        let few = Args::default().bytes(default_operator(), &groups[..1], &maps[..TENSOR_MAP]);
        assert_eq!(few.len(), args_bytes(default_operator(), 1));
        assert_eq!((few[1472], few[1472 + TENSOR_MAP]), (1, 0));
        let many = Args::default().bytes(default_operator(), &groups[..1], &[1; 25 * TENSOR_MAP]);
        assert_eq!(many.len(), 1440);
    }

    /// The header in the repository, which people read, equals the generated one except for its
    /// comments.
    #[test]
    fn the_header_of_the_dual_gemm_is_the_one_in_the_repository() {
        let code = |text: &str| -> Vec<String> {
            let lines = text
                .lines()
                .map(|line| line.split("//").next().unwrap_or(""));
            let lines = lines.map(|line| line.trim_end().to_owned());
            lines.filter(|line| !line.is_empty()).collect()
        };
        let kept = include_str!("../../../../variants/include/dgx/abi.cuh");
        assert_eq!(code(&header(default_operator())), code(kept));
    }
}
