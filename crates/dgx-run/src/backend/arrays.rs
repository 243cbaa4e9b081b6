//! Arguments of kernels with their own signatures, bound to addresses. If a call has several
//! problems, each per-problem value is an array in memory with one entry per problem.

use super::RunFailure;
use super::tables::Addresses;
use crate::catalog::{Argument, Arguments};
use crate::compile::{Image, parameters};
use crate::operator::abi;
use crate::plan::{LaunchGeometry, OperatorCall};

/// Arrays start on this boundary.
const ALIGN: usize = 128;

/// Bytes that the arrays of a call take.
pub(super) fn bytes(call: &OperatorCall) -> u64 {
    let groups = call.group_order.len();
    let args = call
        .launches
        .iter()
        .filter_map(|launch| launch.args.as_ref());
    let args = args.filter(|args| args.arrays).flat_map(|args| &args.list);
    args.map(|arg| array_bytes(arg, groups)).sum::<usize>() as u64
}

/// Bytes of the arrays that an argument needs.
fn array_bytes(arg: &Argument, groups: usize) -> usize {
    let entry = match arg {
        Argument::Operand(_) => size_of::<u64>(),
        Argument::PerGroup(_) => size_of::<u32>(),
        Argument::Map(_) => abi::TENSOR_MAP,
        Argument::CallScratch(_) | Argument::Number(_) | Argument::Typed(..) | Argument::At(_) => 0,
        Argument::Struct(members) => {
            return members.iter().map(|arg| array_bytes(arg, groups)).sum();
        }
    };
    padded(entry * groups)
}

fn padded(bytes: usize) -> usize {
    bytes.next_multiple_of(ALIGN)
}

/// Binds the arguments of launches in order, and fills the arrays.
pub(super) struct Binder<'a> {
    pub addresses: &'a Addresses,
    /// Of all maps, group by group.
    pub maps: &'a [u8],
    /// Where the arrays lie.
    pub base: u64,
    pub arrays: Vec<u8>,
}

impl Binder<'_> {
    /// The parameters of a launch.
    pub(super) fn bind(
        &mut self,
        launch: &LaunchGeometry,
        args: &Arguments,
        image: &Image,
    ) -> Result<Vec<Vec<u8>>, RunFailure> {
        let kernel = image.kernel(&launch.kernel);
        let name = &launch.kernel;
        let missing = || RunFailure::refused(format!("there is no kernel `{name}` in it"));
        let kernel = kernel.ok_or_else(missing)?;
        parameters(kernel, args, |arg| self.place(arg, args.arrays)).map_err(RunFailure::refused)
    }

    /// The bytes of an argument in memory.
    fn place(&mut self, arg: &Argument, arrays: bool) -> Vec<u8> {
        let groups = 0..self.addresses.groups.len();
        let address = |at: u64| at.to_le_bytes().to_vec();
        let entries: Vec<u8> = match arg {
            Argument::Operand(operand) if arrays => groups
                .flat_map(|group| address(self.addresses.operand(*operand, group)))
                .collect(),
            Argument::Map(map) if arrays => {
                groups.flat_map(|group| self.map(*map, group)).collect()
            }
            Argument::Operand(operand) => return address(self.addresses.operand(*operand, 0)),
            Argument::Map(map) => return self.map(*map, 0),
            Argument::CallScratch(slot) => return address(self.addresses.scratch[*slot]),
            Argument::PerGroup(values) => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
            Argument::Number(_) | Argument::Typed(..) | Argument::Struct(_) | Argument::At(_) => {
                Vec::new()
            }
        };
        let at = self.base + self.arrays.len() as u64;
        let end = padded(self.arrays.len() + entries.len());
        self.arrays.extend(entries);
        self.arrays.resize(end, 0);
        address(at)
    }

    fn map(&self, map: usize, group: usize) -> Vec<u8> {
        let all = self.maps.len() / abi::TENSOR_MAP / self.addresses.groups.len().max(1);
        let at = (group * all + map) * abi::TENSOR_MAP;
        self.maps[at..at + abi::TENSOR_MAP].to_vec()
    }
}
