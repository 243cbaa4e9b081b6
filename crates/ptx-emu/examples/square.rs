//! Launches a kernel and reads what it wrote.

use ptx_emu::{Launch, Memory, Module, Params};

const PTX: &str = "
.version 8.0
.target sm_90
.address_size 64
.visible .entry square(.param .u64 values)
{
    .reg .b32 %r<4>;
    .reg .b64 %d<3>;
    ld.param.u64 %d0, [values];
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %ntid.x;
    mov.u32 %r2, %tid.x;
    mad.lo.u32 %r0, %r0, %r1, %r2;
    mul.wide.u32 %d1, %r0, 4;
    add.u64 %d2, %d0, %d1;
    mul.lo.u32 %r3, %r0, %r0;
    st.global.u32 [%d2], %r3;
    ret;
}";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let module = Module::load(PTX)?;
    let mut memory = Memory::new();
    let values = memory.alloc(4 * 256)?;
    let launch = Launch::new("square").grid([2, 1, 1]).block([128, 1, 1]);
    let report = launch
        .params(Params::new().pointer(values))
        .run(&module, &mut memory)?;
    assert_eq!(memory.read_values::<u32>(values, 256)?[255], 255 * 255);
    println!("{} warp instructions", report.counters.total_instructions());
    Ok(())
}
