//! Expected results from a device: the uploads, launches and downloads for each problem.

use dgx_core::fields::{Field, PointedPart};
use dgx_core::operator::Operator;

use super::{AnswerKernels, OracleKernels, Range, oracle_fields};
use crate::operator::{
    GroupOperands, GroupOracle, Operands, Oracle, Tensor, gated::kept_steps, oracle::written_output,
};

/// Bytes of scratch above which leading slices are computed one after another.
const SCRATCH: u64 = 2 << 30;

/// A device that can compute expected results.
pub(crate) trait OracleDevice {
    /// Memory that is freed when dropped.
    type Memory;

    /// Memory with these bytes.
    fn upload(&mut self, bytes: &[u8]) -> Result<Self::Memory, String>;

    fn room(&mut self, bytes: u64) -> Result<Self::Memory, String>;

    fn address(memory: &Self::Memory) -> u64;

    /// Starts a kernel with one parameter, in CTAs of [`super::THREADS`] threads.
    fn launch(&mut self, kernel: &str, blocks: u32, parameter: &[u8]) -> Result<(), String>;

    /// Waits for all kernels and copies the memory's contents.
    fn fetch(&mut self, memory: &Self::Memory, into: &mut [u8]) -> Result<(), String>;
}

/// The expected results for these operands, from the kernels made for their operator.
pub(crate) fn solve<D: OracleDevice>(
    device: &mut D,
    operands: &Operands,
) -> Result<Oracle, String> {
    let kernels = OracleKernels::new(&operands.operator);
    let mut groups = Vec::new();
    for given in &operands.groups {
        let group = Group::new(device, &kernels, &operands.operator, given)?;
        groups.extend(group.solve(device)?);
    }
    Ok(Oracle { groups })
}

/// One problem on a device.
struct Group<'a, D: OracleDevice> {
    kernels: &'a OracleKernels,
    operator: &'a Operator,
    sizes: Vec<u64>,
    fields: Vec<Field>,
    /// Of each field; outputs are there once they are computed.
    memory: Vec<Option<D::Memory>>,
}

impl<'a, D: OracleDevice> Group<'a, D> {
    fn new(
        device: &mut D,
        kernels: &'a OracleKernels,
        operator: &'a Operator,
        given: &'a GroupOperands,
    ) -> Result<Self, String> {
        let fields = oracle_fields(operator);
        let upload = |field: &Field| {
            let bytes = match field.form {
                PointedPart::Elements => &given.inputs[field.tensor].elements,
                PointedPart::Scales => &given.inputs[field.tensor].scales,
                PointedPart::Atoms | PointedPart::Output => return Ok(None),
            };
            device.upload(bytes).map(Some)
        };
        Ok(Self {
            kernels,
            operator,
            sizes: given.problem(operator).sizes,
            memory: fields.iter().map(upload).collect::<Result<_, _>>()?,
            fields,
        })
    }

    fn solve(mut self, device: &mut D) -> Result<Vec<GroupOracle>, String> {
        let mut answers = Vec::new();
        let mut done = 0;
        for (place, output) in self.operator.outputs.iter().enumerate() {
            let extents = output.tensor.extents(&self.sizes).unwrap_or_default();
            let columns = extents.last().copied().unwrap_or(1) as usize;
            let steps = kept_steps(self.operator, place).len();
            let answer =
                GroupOracle::of_steps(columns, steps, |nth| self.values(device, done + nth))?;
            done += steps;
            let written = written_output(self.operator, place, &self.sizes, &answer);
            self.keep(device, place, &written)?;
            answers.push(answer);
        }
        Ok(answers)
    }

    /// Keeps a computed output for later outputs that read it.
    fn keep(&mut self, device: &mut D, place: usize, written: &Tensor) -> Result<(), String> {
        let is_it = |field: &Field| field.form == PointedPart::Output && field.tensor == place;
        if let Some(at) = self.fields.iter().position(is_it) {
            self.memory[at] = Some(device.upload(&written.elements)?);
        }
        Ok(())
    }

    /// One kept step of this problem, counted over all outputs.
    fn values(&self, device: &mut D, place: usize) -> Result<Vec<f64>, String> {
        let (answer, sizes) = (&self.kernels.answers[place], &self.sizes);
        if answer.is_slow(sizes) {
            return Err("its sorts and running sums are long".to_owned());
        }
        let (slices, last) = (answer.slices(sizes), answer.kernels.len() - 1);
        let parts = &answer.kernels[..last];
        let each = |kernel| answer.slice(kernel, sizes) * kernel.bytes;
        let needed: u64 = parts.iter().map(each).sum();
        let at_once = (SCRATCH / needed.max(1)).clamp(1, slices.max(1));
        let rooms = parts
            .iter()
            .map(|kernel| device.room(at_once * each(kernel)));
        let rooms: Vec<D::Memory> = rooms.collect::<Result<_, _>>()?;
        let elements = slices * answer.slice(&answer.kernels[last], sizes);
        let written = device.room(8 * elements)?;
        for first in (0..slices).step_by(at_once as usize) {
            let count = at_once.min(slices - first);
            self.launch(device, answer, first..first + count, &rooms, &written)?;
        }
        let mut values = vec![0.0; elements as usize];
        device.fetch(&written, bytemuck::cast_slice_mut(&mut values))?;
        Ok(values)
    }

    /// All kernels of a result for some of its slices.
    fn launch(
        &self,
        device: &mut D,
        answer: &AnswerKernels,
        slices: std::ops::Range<u64>,
        rooms: &[D::Memory],
        written: &D::Memory,
    ) -> Result<(), String> {
        let fields = self.memory.iter();
        let fields: Vec<u64> = fields
            .map(|memory| memory.as_ref().map_or(0, D::address))
            .collect();
        let mut scratch = Vec::new();
        for (kernel, room) in answer.kernels.iter().zip(rooms) {
            // Kernels count from the very first slice.
            let before = slices.start * answer.slice(kernel, &self.sizes) * kernel.bytes;
            let slot = kernel.slot.unwrap_or_default();
            scratch.resize(scratch.len().max(slot + 1), 0);
            scratch[slot] = D::address(room).wrapping_sub(before);
        }
        for kernel in &answer.kernels {
            let count = slices.end - slices.start;
            let range: Range = answer.range(kernel, slices.start, count, &self.sizes);
            let blocks = u32::try_from(range.blocks).ok().filter(|b| *b < 1 << 31);
            let blocks = blocks.ok_or("a grid has too many CTAs")?;
            let parameter =
                self.kernels
                    .parameter(&fields, &scratch, D::address(written), range, &self.sizes);
            device.launch(&kernel.name, blocks, &parameter)?;
        }
        Ok(())
    }
}
