use std::sync::Arc;

use bytemuck::cast_slice;
use rayon::prelude::*;

use super::arena::Arena;
use super::driver::{DeviceMemory, Result, Stream};
use super::tools::uploaded;
use crate::backend::pieces::{self, Piece};
use crate::backend::tables;
use crate::backend::zones::Zones;
use crate::operator::{Extents, Operands};
use dgx_core::domain::Group;
use dgx_core::fields::{Field, Form};
use dgx_core::operator::Operator;

use dgx_core::domain::mix;

/// The one place on the device where contenders of a shape find their
/// operands, whichever data set lies there: addresses tell nothing.
#[derive(Debug)]
pub(super) struct Instance {
    operator: Arc<Operator>,
    groups: Vec<Group>,
    inputs: Arena,
}

impl Instance {
    /// Room for operands like these.
    pub(super) fn new(operands: &Operands) -> Result<Self> {
        let (zones, _) = tables::reserve_inputs(operands);
        Ok(Self {
            operator: Arc::clone(&operands.operator),
            groups: operands.groups(),
            inputs: Arena::new(zones)?,
        })
    }

    /// In the shape's order.
    pub(super) fn groups(&self) -> &[Group] {
        &self.groups
    }

    pub(super) fn operator(&self) -> &Arc<Operator> {
        &self.operator
    }

    /// Of a group by its place in the shape, where the operator is a gated product.
    pub(super) fn extents(&self, group: usize) -> Option<Extents> {
        Extents::of(&self.operator, &self.groups[group])
    }

    pub(super) fn zones(&self) -> &Zones {
        self.inputs.zones()
    }

    pub(super) fn base(&self) -> u64 {
        self.inputs.base()
    }

    pub(super) fn pieces(&self) -> Vec<Piece> {
        pieces::inputs(self.zones(), self.base(), &self.operator, &self.groups)
    }

    /// Address of one input of a group, by its place in the shape.
    pub(super) fn address(&self, group: usize, tensor: usize, form: Form) -> u64 {
        let fields = tables::input_fields(&self.operator);
        let wanted = |field: &Field| field.tensor == tensor && field.form == form;
        let place = fields
            .iter()
            .position(wanted)
            .expect("a field of the operator");
        tables::group_inputs(&self.operator, group, self.zones(), self.base())[place]
    }
}

/// One data set on the device, in memory no kernel is told of: what is laid
/// into the [`Instance`], and the answer to it.
#[derive(Debug)]
pub(super) struct DataSet {
    key: String,
    zones: Zones,
    pristine: DeviceMemory,
    expected: Option<Expected>,
}

/// Both products as they should be, every element hidden under a key.
#[derive(Debug)]
pub(super) struct Expected {
    pub memory: DeviceMemory,
    pub seal: u64,
}

impl DataSet {
    pub(super) fn upload(key: &str, operands: &Operands, stream: &Stream) -> Result<Self> {
        let (zones, tensors) = tables::reserve_inputs(operands);
        let pristine = DeviceMemory::new(zones.bytes())?;
        for (zone, bytes) in zones.all().iter().zip(&tensors) {
            stream.upload(pristine.address + zone.offset, bytes)?;
        }
        stream.synchronize()?;
        Ok(Self {
            key: key.to_owned(),
            zones,
            pristine,
            expected: None,
        })
    }

    /// The same with its answer: A·B1ᵀ of all groups, one after another, then
    /// A·B2ᵀ.
    pub(super) fn with_answer(self, products: &[f32], seal: u64, stream: &Stream) -> Result<Self> {
        let memory = uploaded(cast_slice(&sealed(products, seal)), stream)?;
        Ok(Self {
            expected: Some(Expected { memory, seal }),
            ..self
        })
    }

    pub(super) fn key(&self) -> &str {
        &self.key
    }

    /// Where the bytes of an input lie.
    pub(super) fn address(&self, zone: usize) -> u64 {
        self.pristine.address + self.zones.zone(zone).offset
    }

    pub(super) fn expected(&self) -> Option<&Expected> {
        self.expected.as_ref()
    }
}

/// Elements under a key: `dgx_judge` lifts it.
pub(super) fn sealed(products: &[f32], seal: u64) -> Vec<u32> {
    let places = products.par_iter().enumerate();
    places
        .map(|(i, value)| value.to_bits() ^ mix(seal ^ mix(i as u64)) as u32)
        .collect()
}
