use super::arena::Arena;
use super::driver::{DeviceMemory, Function, Launch, Module, Result, Stream};
use crate::backend::zones::Zones;
use crate::backend::{Trespass, tables};
use crate::domain::Group;
use crate::operator::Operands;
use crate::plan::OperandRef;

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
        let (zones, tensors) = tables::reserve_inputs(operands);
        let inputs = Arena::new(zones, stream)?;
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

    pub fn zones(&self) -> &Zones {
        self.inputs.zones()
    }

    pub fn base(&self) -> u64 {
        self.inputs.base()
    }

    /// Address of one input of a group, by its place in the shape.
    pub fn address(&self, group: usize, operand: OperandRef) -> u64 {
        let group = tables::group_inputs(self.groups[group], group, self.zones(), self.base());
        tables::tensor(&group, operand)
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
        Ok(Some(self.inputs.zones().explain(offset)))
    }
}
