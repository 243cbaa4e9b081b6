use std::sync::Arc;

use bytemuck::cast_slice;
use rayon::prelude::*;

use super::arena::Arena;
use super::driver::{DeviceMemory, Result, Stream};
use super::tools::uploaded;
use crate::backend::pieces::{self, Piece};
use crate::backend::tables;
use crate::backend::zones::Zones;
use crate::operator::{GroupOracle, Moves, Operands, Oracle, axes_of};
use crate::validate::{Allowed, Tolerance};
use dgx_core::domain::Group;
use dgx_core::fields::{Field, PointedPart};
use dgx_core::operator::{Operator, Output};

use dgx_core::domain::mix;

/// The one place on the device for the operands of a shape, whichever data set is used: addresses
/// reveal nothing.
#[derive(Debug)]
pub(super) struct Instance {
    operator: Arc<Operator>,
    groups: Vec<Group>,
    inputs: Arena,
}

impl Instance {
    /// Room for operands like these.
    pub(super) fn new(operands: &Operands) -> Result<Self> {
        let groups = operands.groups();
        let zones = tables::reserve_inputs(&operands.operator, &groups);
        Ok(Self {
            operator: Arc::clone(&operands.operator),
            groups,
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

    /// The changes that calls make to an output, by its index among those of all groups.
    pub(super) fn moves(&self, place: usize) -> Moves {
        let outputs = self.operator.outputs.len();
        let (group, output) = (place / outputs, place % outputs);
        let axes = axes_of(&self.operator, output, &self.groups[group]);
        let element = self.operator.outputs[output].tensor.element;
        Moves::new(&axes, group, element.bits())
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

    /// Address of one input of a group, by its index in the shape.
    pub(super) fn address(&self, group: usize, tensor: usize, form: PointedPart) -> u64 {
        let fields = tables::input_fields(&self.operator);
        let wanted = |field: &Field| field.tensor == tensor && field.form == form;
        let place = fields
            .iter()
            .position(wanted)
            .expect("a field of the operator");
        tables::group_inputs(&self.operator, group, self.zones(), self.base())[place]
    }
}

/// One data set on the device, at addresses that no kernel gets: the bytes that are copied into the
/// [`Instance`], and the expected result.
#[derive(Debug)]
pub(super) struct DataSet {
    key: String,
    zones: Zones,
    pristine: DeviceMemory,
    expected: Option<Expected>,
}

/// The expected outputs, every element hidden by a key: both products of all groups, or the
/// elements of one output after the other.
#[derive(Debug)]
pub(super) struct Expected {
    pub memory: DeviceMemory,
    pub seal: u64,
    /// Of each output; empty for products.
    pub answers: Vec<ExpectedOutput>,
}

/// The part of an expected result that belongs to one output, with its tolerance.
#[derive(Debug)]
pub(super) struct ExpectedOutput {
    pub elements: u64,
    pub allowed: Tolerance,
    /// Added to atol in each row.
    pub rows: Option<DeviceMemory>,
}

impl ExpectedOutput {
    fn new(output: &Output, answer: &GroupOracle, stream: &Stream) -> Result<Self> {
        let Allowed { everywhere, rows } = Allowed::of(output, answer);
        let rows: Vec<f32> = rows.iter().map(|more| *more as f32).collect();
        let rows = (!rows.is_empty()).then(|| uploaded(cast_slice(&rows), stream));
        Ok(Self {
            elements: answer.len() as u64,
            allowed: everywhere,
            rows: rows.transpose()?,
        })
    }
}

impl DataSet {
    pub(super) fn upload(key: &str, operands: &Operands, stream: &Stream) -> Result<Self> {
        let zones = tables::reserve_inputs(&operands.operator, &operands.groups());
        let tensors = tables::input_bytes(operands);
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

    /// The same with its expected result.
    pub(super) fn with_answer(
        self,
        operator: &Operator,
        oracle: &Oracle,
        seal: u64,
        stream: &Stream,
    ) -> Result<Self> {
        let memory = uploaded(cast_slice(&hidden(&answers(oracle), seal)), stream)?;
        let outputs = oracle.groups.iter().zip(operator.outputs.iter().cycle());
        let answers = outputs
            .filter(|(answer, _)| !answer.is_gated())
            .map(|(answer, output)| ExpectedOutput::new(output, answer, stream));
        Ok(Self {
            expected: Some(Expected {
                memory,
                seal,
                answers: answers.collect::<Result<_>>()?,
            }),
            ..self
        })
    }

    pub(super) fn key(&self) -> &str {
        &self.key
    }

    /// The address of an input's bytes.
    pub(super) fn address(&self, zone: usize) -> u64 {
        self.pristine.address + self.zones.zone(zone).offset
    }

    /// # Panics
    /// If it has no expected result.
    pub(super) fn expected(&self) -> &Expected {
        self.expected.as_ref().expect("a data set to time on")
    }
}

/// The numbers that the device judges by: for gated products A·B1ᵀ, group after group, then A·B2ᵀ;
/// else the elements of one output after the other.
pub(super) fn answers(oracle: &Oracle) -> Vec<f32> {
    let gates = oracle.groups.iter().map(|group| group.gate.as_slice());
    let ups = oracle.groups.iter().map(|group| group.up.as_slice());
    let mut answers = gates.chain(ups).collect::<Vec<_>>().concat();
    for group in &oracle.groups {
        answers.par_extend(group.values.par_iter().map(|value| *value as f32));
    }
    answers
}

/// Elements hidden by a key, which `dgx_judge` removes.
pub(super) fn hidden(products: &[f32], seal: u64) -> Vec<u32> {
    let places = products.par_iter().enumerate();
    places
        .map(|(i, value)| value.to_bits() ^ mix(seal ^ mix(i as u64)) as u32)
        .collect()
}
