use bytemuck::{NoUninit, cast_slice};
use dgx_core::operator::ElementType;

use super::call_buffers::CallBuffers;
use super::driver::{DeviceMemory, LaunchConfig, Result};
use super::instance::{DataSet, Expected};
use super::program::poisons;
use super::tools::{Tools, launch, uploaded};
use crate::backend::call_seed::CallSeed;
use crate::operator::{Moves, is_gated};
use crate::validate::Tolerance;

/// Blocks that judge one output.
const JUDGING_BLOCKS: u32 = 256;

/// `Judged` of tools.cu.
#[repr(C)]
#[derive(Clone, Copy, Debug, NoUninit)]
pub(super) struct WireJudged {
    pub c: u64,
    pub expected: u64,
    pub rows: u64,
    pub columns: u64,
    pub gate: u64,
    pub up: u64,
    pub group: u64,
}

/// `JudgedValues` of tools.cu.
#[repr(C)]
#[derive(Clone, Copy, Debug, NoUninit)]
pub(super) struct WireValues {
    pub output: u64,
    pub expected: u64,
    pub count: u64,
    pub first: u64,
    /// Added to atol in each row.
    pub rows: u64,
    pub element: u32,
    pub rtol: f32,
    pub atol: f32,
    /// The distance between the smallest numbers of the type.
    pub step: f32,
    pub moves: Moves,
}

/// Judges one entry's output on one data set, on the device.
#[derive(Debug)]
pub(super) struct Judge {
    table: DeviceMemory,
    rows: u32,
    seal: u64,
    by: JudgedBy,
}

#[derive(Clone, Copy, Debug)]
enum JudgedBy {
    /// Both products of a gated one, so that signs may change.
    Products(Tolerance),
    /// The elements themselves.
    Values,
}

impl Judge {
    /// For the outputs of a call in `call_buffers`, against the expected result of `set`; `tolerance` is
    /// the entry's.
    pub(super) fn new(
        call_buffers: &CallBuffers,
        set: &DataSet,
        tolerance: Tolerance,
    ) -> Result<Self> {
        let expected = set.expected();
        match is_gated(call_buffers.instance.operator()) {
            true => Self::of_products(call_buffers, expected, tolerance),
            false => Self::of_values(call_buffers, expected, tolerance),
        }
    }

    fn of_products(
        call_buffers: &CallBuffers,
        expected: &Expected,
        tolerance: Tolerance,
    ) -> Result<Self> {
        let operator = call_buffers.instance.operator();
        let groups = call_buffers.instance.groups().iter();
        let extents = groups.filter_map(|group| operator.output_extents(0, group));
        let extents = extents.map(|(rows, columns)| (rows as u64, columns as u64));
        let all: u64 = extents.clone().map(|(rows, columns)| rows * columns).sum();
        let mut offset = 0;
        let mut table = Vec::new();
        for (index, (rows, columns)) in extents.enumerate() {
            table.push(WireJudged {
                c: call_buffers.outputs.address(index),
                expected: expected.memory.address,
                rows,
                columns,
                gate: offset,
                up: all + offset,
                group: index as u64,
            });
            offset += rows * columns;
        }
        Ok(Self {
            table: uploaded(cast_slice(&table), &call_buffers.stream)?,
            rows: table.len() as u32,
            seal: expected.seal,
            by: JudgedBy::Products(tolerance),
        })
    }

    fn of_values(
        call_buffers: &CallBuffers,
        expected: &Expected,
        tolerance: Tolerance,
    ) -> Result<Self> {
        let operator = call_buffers.instance.operator();
        let mut first = 0;
        let mut table = Vec::new();
        for (place, answer) in expected.answers.iter().enumerate() {
            let output = &operator.outputs[place % operator.outputs.len()];
            let element = output.tensor.element;
            let round = tolerance.of_round(operator, output);
            let allowed = round.or(answer.allowed);
            let rows = answer.rows.as_ref().filter(|_| round.atol.is_none());
            table.push(WireValues {
                output: call_buffers.outputs.address(place),
                expected: expected.memory.address,
                count: answer.elements,
                first,
                rows: rows.map_or(0, |rows| rows.address),
                element: element as u32,
                rtol: allowed.rtol as f32,
                atol: allowed.atol as f32,
                step: element.least_step() as f32,
                moves: call_buffers.instance.moves(place),
            });
            first += answer.elements;
        }
        Ok(Self {
            table: uploaded(cast_slice(&table), &call_buffers.stream)?,
            rows: table.len() as u32,
            seal: expected.seal,
            by: JudgedBy::Values,
        })
    }

    /// Queues counting the elements that are not certainly right into `wrong`, which must be 0
    /// before.
    pub(super) fn queue(&self, tools: &Tools, call_seed: CallSeed, wrong: u64) -> Result<()> {
        let (table, seal, stream) = (self.table.address, self.seal, &tools.stream);
        let mut launch = LaunchConfig::flat(JUDGING_BLOCKS, 256);
        launch.grid[1] = self.rows;
        match self.by {
            JudgedBy::Products(Tolerance { rtol, atol }) => {
                let poison = call_seed.poison(ElementType::F16) as u32;
                let (rtol, atol) = (rtol as f32, atol as f32);
                launch!(
                    tools.judge,
                    stream,
                    &launch,
                    [table, call_seed.0, poison, seal, rtol, atol, wrong]
                )
            }
            JudgedBy::Values => launch!(
                tools.judge_values,
                stream,
                &launch,
                [table, call_seed.0, poisons(call_seed), seal, wrong]
            ),
        }
    }
}
