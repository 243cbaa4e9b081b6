//! What a trace of a launch tells.

mod deeds;
mod launches;
mod ring;
mod tensor_memory;

use ptx_emu::trace::{Deed, Event, Trace, Watch};
use ptx_emu::{Launch, Memory, Module, Params, Report};

const REGISTERS: &str = "
    .reg .pred %p<9>; .reg .b32 %r<20>; .reg .b64 %rd<9>; .reg .f32 %f<80>;
    .shared .align 8 .b64 bars[4]; .shared .align 1024 .b8 tile[16384];
";

/// A kernel of this body, one instruction a line.
fn kernel(params: &str, body: &str) -> Module {
    kernel_for("sm_90a", params, body)
}

fn kernel_for(target: &str, params: &str, body: &str) -> Module {
    let head = format!(".version 8.8\n.target {target}\n.address_size 64\n");
    let text = format!("{head}.visible .entry k({params}) {{\n{REGISTERS}{body}\nret;\n}}");
    Module::load(&text).unwrap_or_else(|e| panic!("{e}"))
}

/// Line of a kernel's first instruction.
const FIRST: u32 = 8;

fn watch(ctas: &[u64]) -> Watch {
    Watch {
        ctas: ctas.to_vec(),
        only: false,
    }
}

/// The events of a warp, instructions by their line in the body, from 0.
fn told(trace: &Trace, cta: usize, warp: usize) -> Vec<String> {
    let line = |pc: u32| trace.lines[pc as usize] - FIRST;
    let event = |event: &Event| match event {
        Event::Run { first, end } => format!("{}-{}", line(*first), line(*end - 1)),
        Event::Did { at, deed } => {
            let mut deed = *deed;
            // Where a map lies is the emulator's own affair.
            if let Deed::Bulk { map: Some(map), .. } = &mut deed {
                *map = 0;
            }
            let deed = format!("{deed:?}").replace("BarrierAt { rank: 0, address: ", "{ ");
            format!("{} {deed}", line(*at))
        }
    };
    trace.ctas[cta].warps[warp].iter().map(event).collect()
}

/// A body that finds its thread in `%r1`, the first byte of a page of its CTA in `%rd1`, and of
/// its word in it in `%rd3`.
fn paged(body: &str) -> Module {
    let body = format!(
        "ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mul.wide.u32 %rd2, %r2, 4096; add.u64 %rd1, %rd1, %rd2; mul.wide.u32 %rd3, %r1, 4; add.u64 %rd3, %rd1, %rd3;
{body}"
    );
    kernel(".param .u64 out", &body)
}

/// Runs such a body on one page a CTA.
fn run(body: &str, launch: Launch, watch: &Watch) -> (Report, Trace, Vec<u8>) {
    let module = paged(body);
    let mut memory = Memory::new();
    let bytes = 4096 * u64::from(launch.grid[0]);
    let out = memory.alloc(bytes).expect("room");
    let launch = launch.params(Params::new().pointer(out));
    let traced = launch.run_traced(&module, &mut memory, watch);
    let (report, trace) = traced.unwrap_or_else(|e| panic!("{e}"));
    (
        report,
        trace,
        memory.read_vec(out, bytes).expect("allocated"),
    )
}

fn warp() -> Launch {
    Launch::new("k").block([32, 1, 1])
}
