//! The addresses that every backend passes to a kernel: the groups' operands, the tensor maps and
//! the scratch of an [`OperatorCall`].

use std::borrow::Cow;

use bytemuck::cast_slice;

use super::RunFailure;
use super::arrays::{self, Binder};
use super::call_seed::CallSeed;
use super::zones::Zones;
use crate::catalog::OperandRef;
use crate::compile::Image;
use crate::operator::{GroupOperands, Operands, OutputValues, abi};
use crate::plan::{MapGeometry, OperatorCall, ScratchSize};
use dgx_core::domain::Group;
use dgx_core::fields::{Field, PointedPart};
use dgx_core::operator::Operator;

/// The bytes of a field of a group's inputs.
fn field_of<'g>(field: &Field, group: &'g GroupOperands) -> Cow<'g, [u8]> {
    let tensor = &group.inputs[field.tensor];
    match field.form {
        PointedPart::Elements => Cow::from(&tensor.elements),
        PointedPart::Scales => Cow::from(&tensor.scales),
        PointedPart::Atoms => Cow::from(tensor.atoms()),
        PointedPart::Output => Cow::Borrowed(&[]),
    }
}

/// The fields that kernels read, in the order of `dgx::Group`.
pub(crate) fn input_fields(operator: &Operator) -> Vec<Field> {
    let mut fields = operator.fields();
    fields.retain(|field| field.form != PointedPart::Output);
    fields
}

/// Zones for all inputs of a shape.
pub(super) fn reserve_inputs(operator: &Operator, groups: &[Group]) -> Zones {
    reserve(operator, &input_fields(operator), groups)
}

/// The bytes of all inputs, in the order of their zones.
pub(super) fn input_bytes(operands: &Operands) -> Vec<Cow<'_, [u8]>> {
    let fields = input_fields(&operands.operator);
    let mut bytes = Vec::new();
    for group in &operands.groups {
        bytes.extend(fields.iter().map(|field| field_of(field, group)));
    }
    bytes
}

/// Zones for the outputs of every group, in the shape's order.
pub(super) fn reserve_outputs(operator: &Operator, groups: &[Group]) -> Zones {
    let mut fields = operator.fields();
    fields.retain(|field| field.form == PointedPart::Output);
    reserve(operator, &fields, groups)
}

fn reserve(operator: &Operator, fields: &[Field], groups: &[Group]) -> Zones {
    let mut zones = Zones::default();
    for (index, group) in groups.iter().enumerate() {
        for field in fields {
            let bytes = operator.field_bytes(field, group).unwrap_or(0);
            zones.add(format!("{} of group {index}", field.name), bytes);
        }
    }
    zones
}

/// Every output in a copy of the allocation: those of the first group, then of the second, and so
/// on.
pub(super) fn split_outputs(
    operator: &Operator,
    zones: &Zones,
    copy: &[u8],
    call_seed: CallSeed,
) -> Vec<OutputValues> {
    let outputs = operator.outputs.iter().cycle();
    zones
        .all()
        .iter()
        .zip(outputs)
        .map(|(zone, output)| {
            let bytes = &copy[zone.offset as usize..(zone.offset + zone.bytes) as usize];
            call_seed.written(output.tensor.element, bytes.to_vec())
        })
        .collect()
}

/// The name of a scratch buffer that a whole call shares.
pub(super) fn scratch_zone(name: &str) -> String {
    format!("scratch {name}")
}

/// The tables in global memory, by their index.
pub(super) const GROUPS: usize = 0;
pub(super) const MAPS: usize = 1;
pub(super) const DEAL: usize = 2;
/// The arrays of arguments.
pub(super) const ARRAYS: usize = 3;

/// A scratch buffer's place.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScratchZone {
    pub zone: usize,
    pub zero: bool,
}

/// Zones for a call's scratch and for the tables its kernels read.
#[derive(Debug)]
pub(super) struct PrivateZones {
    pub zones: Zones,
    pub scratch: Vec<ScratchZone>,
    /// By table; the arrays have none if there are none.
    pub tables: Vec<usize>,
    /// For each scratch layout, its zones: one per kernel group, or one in all.
    pub slots: Vec<Vec<usize>>,
}

impl PrivateZones {
    pub(super) fn reserve(operator: &Operator, call: &OperatorCall) -> Self {
        let mut zones = Zones::default();
        let mut scratch = Vec::new();
        let mut slots = Vec::new();
        for layout in &call.scratch {
            let own: Vec<usize> = match &layout.size {
                ScratchSize::PerCall(bytes) => {
                    vec![zones.add(scratch_zone(&layout.name), *bytes)]
                }
                ScratchSize::PerGroup(sizes) => sizes
                    .iter()
                    .zip(&call.group_order)
                    .map(|(bytes, group)| {
                        zones.add(format!("scratch {} of group {group}", layout.name), *bytes)
                    })
                    .collect(),
            };
            scratch.extend(own.iter().map(|&zone| ScratchZone {
                zone,
                zero: layout.zero,
            }));
            slots.push(own);
        }
        let groups = call.group_order.len();
        let maps = groups * call.maps.len() * abi::TENSOR_MAP;
        let deal = call.deal.as_ref().map_or(0, |deal| deal.tiles.len());
        let mut tables = vec![
            zones.add("groups", (groups * abi::group_bytes(operator)) as u64),
            zones.add("maps", maps as u64),
            zones.add("deal", (deal * size_of::<u32>()) as u64),
        ];
        let arrays = Some(arrays::bytes(call)).filter(|bytes| *bytes > 0);
        tables.extend(arrays.map(|bytes| zones.add("arrays", bytes)));
        Self {
            zones,
            scratch,
            tables,
            slots,
        }
    }
}

/// Device addresses of the three allocations of a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bases {
    pub inputs: u64,
    pub outputs: u64,
    pub private: u64,
}

/// The data passed to kernels.
#[derive(Debug)]
pub(super) struct Tables {
    /// In global memory.
    pub bytes: [Vec<u8>; ARRAYS + 1],
    /// The parameters of each launch.
    pub params: Vec<Vec<Vec<u8>>>,
}

/// Addresses of operands and scratch of the kernel's groups.
#[derive(Debug, Default)]
pub(super) struct Addresses {
    pub groups: Vec<abi::Group>,
    /// Of the whole call, by slot.
    pub scratch: [u64; abi::SCRATCH_SLOTS],
}

impl Addresses {
    /// Of a group in the kernel's order.
    pub(super) fn operand(&self, operand: OperandRef, group: usize) -> u64 {
        let group = &self.groups[group];
        match operand {
            OperandRef::Field(field) => group.pointers[field],
            OperandRef::Scratch(slot) => group.scratch[slot],
        }
    }
}

impl Tables {
    /// `shape` is the shape's groups; `encode` makes one tensor map from a name, a geometry and the
    /// tensor's address.
    pub(super) fn build(
        (call, image): (&OperatorCall, &Image),
        (operator, shape): (&Operator, &[Group]),
        (inputs, outputs, private): (&Zones, &Zones, &PrivateZones),
        bases: Bases,
        encode: impl Fn(&str, &MapGeometry, u64) -> Result<[u8; abi::TENSOR_MAP], RunFailure>,
    ) -> Result<Self, RunFailure> {
        let private_at = |zone: usize| bases.private + private.zones.zone(zone).offset;
        let addresses = addresses(call, (operator, shape), (inputs, outputs, private), bases);
        let mut maps = Vec::new();
        for group in 0..addresses.groups.len() {
            for map in &call.maps {
                let geometry = &map.groups[group];
                let address = addresses.operand(geometry.operand, group);
                maps.extend(encode(&map.name, geometry, address)?);
            }
        }
        let args = abi::Args {
            groups: private_at(private.tables[GROUPS]),
            maps: private_at(private.tables[MAPS]),
            deal: private_at(private.tables[DEAL]),
            scratch: addresses.scratch,
            group_count: call.group_order.len() as u32,
            tile_count: call.tile_count,
        };
        let args = args.bytes(operator, &addresses.groups, &maps);
        let mut binder = Binder {
            addresses: &addresses,
            maps: &maps,
            base: (private.tables.get(ARRAYS)).map_or(0, |zone| private_at(*zone)),
            arrays: Vec::new(),
        };
        let params = call.launches.iter().map(|launch| match &launch.args {
            None => Ok(vec![args.clone()]),
            Some(own) => binder.bind(launch, own, image),
        });
        let params = params.collect::<Result<_, _>>()?;
        let arrays = binder.arrays;
        let groups = addresses.groups.iter().flat_map(abi::Group::bytes);
        let deal = call.deal.as_ref().map_or(&[][..], |deal| &deal.tiles);
        let deal = cast_slice(deal).to_vec();
        Ok(Self {
            params,
            bytes: [groups.collect(), maps, deal, arrays],
        })
    }
}

/// All addresses of a call, group by group in the kernel's order.
fn addresses(
    call: &OperatorCall,
    (operator, shape): (&Operator, &[Group]),
    (inputs, outputs, private): (&Zones, &Zones, &PrivateZones),
    bases: Bases,
) -> Addresses {
    let scratch_at = |zone: usize| bases.private + private.zones.zone(zone).offset;
    let written = operator.outputs.len();
    let mut addresses = Addresses::default();
    for (i, &place) in call.group_order.iter().enumerate() {
        let output = |o: usize| bases.outputs + outputs.zone(place * written + o).offset;
        let mut group = abi::Group {
            pointers: group_inputs(operator, place, inputs, bases.inputs),
            sizes: shape[place].sizes().collect(),
            tile_begin: call.tile_begin[i],
            index: place as u32,
            ..abi::Group::default()
        };
        group.pointers.extend((0..written).map(output));
        for (scratch, zones) in call.scratch.iter().zip(&private.slots) {
            match scratch.size {
                ScratchSize::PerCall(_) => addresses.scratch[scratch.slot] = scratch_at(zones[0]),
                ScratchSize::PerGroup(_) => group.scratch[scratch.slot] = scratch_at(zones[i]),
            }
        }
        addresses.groups.push(group);
    }
    addresses
}

/// Addresses of a group's inputs, by its index in the shape.
pub(super) fn group_inputs(
    operator: &Operator,
    place: usize,
    inputs: &Zones,
    base: u64,
) -> Vec<u64> {
    let fields = input_fields(operator).len();
    let zones = place * fields..(place + 1) * fields;
    zones.map(|zone| base + inputs.zone(zone).offset).collect()
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;
    use crate::plan::{LaunchGeometry, MapLayout, ScratchLayout};
    use dgx_core::domain::{Distribution, Shape};
    use dgx_core::operator::default_operator;
    use dgx_core::record::synthetic::group;

    /// Kernels are compiled for these bytes.
    #[test]
    fn a_ragged_call_lays_out_its_tables_byte_by_byte() {
        let groups = [(40, 128, 256), (7, 256, 512), (130, 128, 1024)];
        let shape = Shape {
            name: "ragged".to_owned(),
            groups: groups.map(|(m, n, k)| group(m, n, k)).to_vec(),
        };
        let operands = Operands::draw(default_operator(), &shape, Distribution::Full, 7);
        let map = |operand: OperandRef| MapLayout {
            name: "map".to_owned(),
            groups: vec![
                MapGeometry {
                    operand,
                    dtype: crate::catalog::MapType::U8,
                    dims: vec![128, 40],
                    strides: vec![128],
                    box_dims: vec![64, 8],
                    swizzle: crate::catalog::Swizzle::B64,
                    fill: crate::catalog::Fill::Zero,
                };
                3
            ],
        };
        let scratch = |name: &str, slot, size| ScratchLayout {
            name: name.to_owned(),
            slot,
            size,
            zero: false,
        };
        let call = OperatorCall {
            group_order: vec![2, 0, 1],
            tile_begin: vec![0, 3, 5],
            tile_count: 9,
            scratch: vec![
                scratch("own", 2, ScratchSize::PerGroup(vec![100, 200, 300])),
                scratch("all", 0, ScratchSize::PerCall(1000)),
            ],
            maps: vec![
                map(OperandRef::Field(1)),
                map(OperandRef::Field(6)),
                map(OperandRef::Field(9)),
                map(OperandRef::Scratch(2)),
            ],
            launches: vec![LaunchGeometry::default()],
            ..OperatorCall::default()
        };
        let image = Image::default();
        let inputs = reserve_inputs(default_operator(), &shape.groups);
        let tensors = input_bytes(&operands);
        let outputs = reserve_outputs(default_operator(), &shape.groups);
        let private = PrivateZones::reserve(default_operator(), &call);
        let bases = Bases {
            inputs: 1 << 32,
            outputs: 2 << 32,
            private: 3 << 32,
        };
        let encode = |name: &str, geometry: &MapGeometry, at: u64| {
            let mut map = [0; abi::TENSOR_MAP];
            map[..8].copy_from_slice(&at.to_le_bytes());
            map[8] = name.len() as u8;
            map[9] = geometry.dims.len() as u8;
            Ok(map)
        };
        let zones = (&inputs, &outputs, &private);
        let tables = Tables::build(
            (&call, &image),
            (default_operator(), &shape.groups),
            zones,
            bases,
            encode,
        )
        .unwrap();
        let digest = |parts: &[&[u8]]| {
            let mut hash = Sha256::new();
            parts.iter().for_each(|part| hash.update(part));
            hash.finalize()[..8]
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<String>()
        };
        let tensors: Vec<&[u8]> = tensors.iter().map(|t| &**t).collect();
        let args = &tables.params[0][0];
        let maps = &tables.bytes[MAPS];
        assert_eq!(args[1472..][..maps.len()], *maps);
        let found = [
            digest(&tensors),
            digest(&[&tables.bytes[GROUPS]]),
            digest(&[&args[..1440]]),
            digest(&[maps]),
        ];
        assert_eq!(
            found,
            [
                "26875ab78d7bcb0b",
                "efe63885ebdfa809",
                "c51f4f31424fab2e",
                "86d6369aa1361729"
            ]
        );
        let names: Vec<&str> = inputs.all().iter().map(|zone| &*zone.name).collect();
        assert_eq!(names.len(), 27);
        assert_eq!(names[10], "b1 of group 1");
        assert_eq!(names[24], "sfa_atoms of group 2");
        assert_eq!(outputs.zone(2).name, "c of group 2");
    }
}
