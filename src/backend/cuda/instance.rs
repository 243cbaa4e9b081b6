use std::borrow::Cow;

use super::arena::{Arena, Layout};
use super::driver::{DeviceMemory, Function, Launch, Module, Result, Stream};
use crate::backend::Trespass;
use crate::backend::abi;
use crate::domain::Group;
use crate::operator::{GroupOperands, Operands};
use crate::plan::OperandRef;

/// Inputs of a group in the arena, in this order.
const INPUTS: [&str; 9] = [
    "a",
    "b1",
    "b2",
    "sfa",
    "sfb1",
    "sfb2",
    "sfa_atoms",
    "sfb1_atoms",
    "sfb2_atoms",
];

/// A group's inputs in the order of [`INPUTS`].
fn tensors_of(group: &GroupOperands) -> [Cow<'_, [u8]>; 9] {
    [
        Cow::from(&group.a),
        Cow::from(&group.b1),
        Cow::from(&group.b2),
        Cow::from(&group.sfa),
        Cow::from(&group.sfb1),
        Cow::from(&group.sfb2),
        Cow::from(group.sfa_atoms()),
        Cow::from(group.sfb1_atoms()),
        Cow::from(group.sfb2_atoms()),
    ]
}

/// One shape's operands on the device, between canaries, with a second copy
/// that no kernel is told of: what the first is compared with after each run.
#[derive(Debug)]
pub struct Instance {
    key: String,
    groups: Vec<Group>,
    inputs: Arena,
    pristine: DeviceMemory,
}

impl Instance {
    pub fn upload(key: &str, operands: &Operands, stream: &Stream) -> Result<Self> {
        let mut layout = Layout::default();
        let mut tensors: Vec<Cow<'_, [u8]>> = Vec::new();
        for (index, group) in operands.groups.iter().enumerate() {
            for (name, bytes) in INPUTS.iter().zip(tensors_of(group)) {
                layout.add(format!("{name} of group {index}"), bytes.len() as u64);
                tensors.push(bytes);
            }
        }
        let inputs = Arena::new(layout, stream)?;
        for (zone, bytes) in tensors.iter().enumerate() {
            stream.upload(inputs.address(zone), bytes)?;
        }
        let pristine = DeviceMemory::new(inputs.bytes())?;
        stream.copy(pristine.address, inputs.base(), inputs.bytes())?;
        stream.synchronize()?;
        Ok(Self {
            key: key.to_owned(),
            groups: operands.groups.iter().map(|g| g.group).collect(),
            inputs,
            pristine,
        })
    }

    pub fn key(&self) -> &str {
        &self.key
    }

    /// In the shape's order.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// Address of one input of a group, by its place in the shape.
    pub fn address(&self, group: usize, operand: OperandRef) -> Option<u64> {
        let input = match operand {
            OperandRef::A => 0,
            OperandRef::B1 => 1,
            OperandRef::B2 => 2,
            OperandRef::Sfa => 3,
            OperandRef::Sfb1 => 4,
            OperandRef::Sfb2 => 5,
            OperandRef::C | OperandRef::Scratch(_) => return None,
        };
        Some(self.inputs.address(group * INPUTS.len() + input))
    }

    /// The kernel's view of a group's inputs; the rest is left zero.
    pub fn group_inputs(&self, group: usize) -> abi::Group {
        let at = |input: usize| self.inputs.address(group * INPUTS.len() + input);
        let Group { m, n, k } = self.groups[group];
        abi::Group {
            a: at(0),
            b1: at(1),
            b2: at(2),
            sfa: at(3),
            sfb1: at(4),
            sfb2: at(5),
            sfa_atoms: at(6),
            sfb1_atoms: at(7),
            sfb2_atoms: at(8),
            m,
            n,
            k,
            index: group as u32,
            ..abi::Group::default()
        }
    }

    /// Whether any input or canary changed since the upload; puts it right
    /// again if so, because other contenders read the same operands.
    pub fn verify(&self, tools: &Module, stream: &Stream) -> Result<Option<Trespass>> {
        let first = DeviceMemory::new(8)?;
        stream.fill(first.address, 0xff, 8)?;
        let differ: Function = tools.function("dgx_differ")?;
        let (mut a, mut b) = (self.inputs.base(), self.pristine.address);
        let (mut words, mut out) = (self.inputs.bytes() / 16, first.address);
        let mut parameters = [
            (&raw mut a).cast(),
            (&raw mut b).cast(),
            (&raw mut words).cast(),
            (&raw mut out).cast(),
        ];
        differ.launch(stream, &Launch::flat(2048, 256), &mut parameters)?;
        let mut offset = [0; 8];
        stream.download(&mut offset, first.address)?;
        let offset = u64::from_le_bytes(offset);
        if offset == u64::MAX {
            return Ok(None);
        }
        stream.copy(
            self.inputs.base(),
            self.pristine.address,
            self.inputs.bytes(),
        )?;
        stream.synchronize()?;
        Ok(Some(self.inputs.explain(offset)))
    }
}
