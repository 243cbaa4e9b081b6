//! The oracle's products on the device: in f64 like the CPU's, a hundred times
//! faster. Whoever keeps the answer holds it against the CPU's first
//! ([`Oracle::spot_check`]).

use super::driver::{DeviceMemory, Launch, Result, Stream};
use super::tools::Tools;
use crate::operator::{Extents, GroupOperands, GroupOracle, Operands, Oracle, Tensor};

/// Keep in step with oracle.cu.
const SIDE: u32 = 64;
const THREADS: u32 = 256;

/// Parameters of `dgx_products`; keep in step with oracle.cu.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::NoUninit)]
struct Products {
    a: u64,
    sfa: u64,
    b: [u64; 2],
    sfb: [u64; 2],
    out: [u64; 2],
    /// Rows, columns and depth.
    extents: [u32; 3],
    reserved: u32,
}

/// Both products of every group.
pub(super) fn solve(tools: &Tools, stream: &Stream, operands: &Operands) -> Result<Oracle> {
    let groups = operands.groups.iter();
    let solved = groups.map(|group| solve_group(tools, stream, group));
    Ok(Oracle {
        groups: solved.collect::<Result<_>>()?,
    })
}

fn solve_group(tools: &Tools, stream: &Stream, operands: &GroupOperands) -> Result<GroupOracle> {
    let extents = operands.extents();
    let upload = |bytes: &[u8]| {
        let memory = DeviceMemory::new(bytes.len() as u64)?;
        stream.upload(memory.address, bytes)?;
        Ok(memory)
    };
    let tensor = |tensor: &Tensor| Ok((upload(&tensor.elements)?, upload(&tensor.scales)?));
    let (a, sfa) = tensor(operands.left())?;
    let (b1, sfb1) = tensor(operands.gate())?;
    let (b2, sfb2) = tensor(operands.up())?;
    let elements = extents.rows * extents.columns;
    let gate = DeviceMemory::new(4 * elements as u64)?;
    let up = DeviceMemory::new(4 * elements as u64)?;
    let mut products = Products {
        a: a.address,
        sfa: sfa.address,
        b: [b1.address, b2.address],
        sfb: [sfb1.address, sfb2.address],
        out: [gate.address, up.address],
        extents: extents.wide().map(|extent| extent as u32),
        reserved: 0,
    };
    let launch = Launch {
        grid: grid(extents),
        ..Launch::flat(1, THREADS)
    };
    tools
        .products
        .launch(stream, &launch, &mut [(&raw mut products).cast()])?;
    let fetch = |memory: &DeviceMemory| {
        let mut bytes = vec![0; 4 * elements];
        stream.download(&mut bytes, memory.address)?;
        Ok(floats(&bytes))
    };
    Ok(GroupOracle {
        rows: extents.rows,
        columns: extents.columns,
        gate: fetch(&gate)?,
        up: fetch(&up)?,
        values: Vec::new(),
    })
}

/// One CTA a tile of each product.
fn grid(extents: Extents) -> [u32; 3] {
    let tiles = |extent: usize| extent.div_ceil(SIDE as usize) as u32;
    [tiles(extents.columns), tiles(extents.rows), 2]
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    let words = bytes.chunks_exact(4);
    words
        .map(|w| f32::from_le_bytes([w[0], w[1], w[2], w[3]]))
        .collect()
}

#[cfg(test)]
mod tests {
    use ptx_emu::{Launch, Memory, Module, Params};

    use super::*;
    use crate::backend::cuda::tools_unit;
    use crate::compile::Nvrtc;
    use dgx_core::domain::Distribution;
    use dgx_core::domain::Shape;
    use dgx_core::operators::usual;
    use dgx_core::record::synthetic::group;

    /// The device's kernel, without the device.
    fn solve_emulated(module: &Module, operands: &GroupOperands) -> GroupOracle {
        let extents = operands.extents();
        let mut memory = Memory::new();
        let mut place = |bytes: &[u8]| {
            let at = memory.alloc(bytes.len() as u64).unwrap();
            memory.write(at, bytes).unwrap();
            at
        };
        let empty = vec![0xff; 4 * extents.rows * extents.columns];
        let products = Products {
            a: place(&operands.left().elements).0,
            sfa: place(&operands.left().scales).0,
            b: [operands.gate(), operands.up()].map(|b| place(&b.elements).0),
            sfb: [operands.gate(), operands.up()].map(|b| place(&b.scales).0),
            out: [place(&empty).0, place(&empty).0],
            extents: extents.wide().map(|extent| extent as u32),
            reserved: 0,
        };
        Launch::new("dgx_products")
            .grid(grid(extents))
            .block([THREADS, 1, 1])
            .params(Params::new().bytes(bytemuck::bytes_of(&products)))
            .run(module, &mut memory)
            .unwrap();
        let fetch = |address: u64| {
            let bytes = memory.read_vec(ptx_emu::DevicePtr(address), empty.len() as u64);
            floats(&bytes.unwrap())
        };
        GroupOracle {
            rows: extents.rows,
            columns: extents.columns,
            gate: fetch(products.out[0]),
            up: fetch(products.out[1]),
            values: Vec::new(),
        }
    }

    #[test]
    fn the_device_and_the_host_give_one_answer() {
        let compiler = Nvrtc::find().expect("scripts/nvrtc gets a compiler");
        let unit = tools_unit("sm_90a");
        let compiled = compiler.compile(&unit.name, &unit.source, &unit.flags(), &[]);
        let module = Module::load(&compiled.expect("the harness's kernels compile").ptx).unwrap();
        let groups = [(70, 256, 512), (1, 128, 256), (64, 192, 64)];
        let shape = Shape {
            name: "t".to_owned(),
            groups: groups.map(|(m, n, k)| group(m, n, k)).to_vec(),
        };
        for distribution in Distribution::ALL {
            let operands = Operands::draw(usual(), &shape, distribution, 5);
            let emulated = operands.groups.iter().map(|g| solve_emulated(&module, g));
            for (one, other) in emulated.zip(&Oracle::compute(&operands).groups) {
                for (a, b) in [(&one.gate, &other.gate), (&one.up, &other.up)] {
                    let mut pairs = a.iter().zip(b);
                    let same = pairs.all(|(a, b)| a == b || a.is_nan() && b.is_nan());
                    assert!(same, "{distribution}");
                }
            }
        }
    }
}
