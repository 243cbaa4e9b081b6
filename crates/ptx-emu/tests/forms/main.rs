//! Every instruction form that public Hopper kernels use, and many siblings, must lower; what
//! does not exist must be refused with its name and line.

mod hopper;
mod memory;
mod refusals;
mod scalar;
mod tensor;

use ptx_emu::{CompileError, LowerError, Module};

/// The chip that has the instructions of some lines: what only Hopper or only the consumer chips
/// have is refused elsewhere.
fn target(lines: &str) -> &'static str {
    let mma_of_blackwell = lines.contains("mma.s") && lines.contains(".kind::");
    match lines {
        _ if lines.contains("wgmma.") => "sm_90a",
        _ if mma_of_blackwell && !lines.contains("tcgen05.") => "sm_120a",
        _ => "sm_100a",
    }
}

/// A kernel around some lines, with registers of every kind declared.
pub(crate) fn kernel(lines: &str) -> String {
    let target = target(lines);
    format!(
        ".version 9.2\n.target {target}\n.address_size 64\n\
         .extern .shared .align 1024 .b8 dynamic[];\n\
         .global .align 8 .b8 table[64];\n\
         .const .align 4 .f32 factor = 0f3F800000;\n\
         .extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n\
         .func (.param .b32 result) twice(.param .b32 x) {{ .reg .b32 %r<3>; \
         ld.param.b32 %r1, [x]; add.s32 %r2, %r1, %r1; st.param.b32 [result], %r2; ret; }}\n\
         .visible .entry k(.param .u64 pointer, .param .align 64 .b8 map[128])\n{{\n\
         .reg .pred %p<8>; .reg .b8 %c<4>; .reg .b16 %rs<16>; .reg .b32 %r<300>;\n\
         .reg .f32 %f<300>; .reg .b64 %rd<20>; .reg .f64 %fd<20>; .reg .b128 %q<4>;\n\
         .shared .align 8 .b8 bar[64];\n.local .align 16 .b8 depot[64];\n\
         {lines}\nret;\n}}\n"
    )
}

/// Why the one kernel of a text cannot run, if it cannot.
pub(crate) fn refusal(text: &str) -> Option<LowerError> {
    match Module::load(text) {
        Ok(module) => module.refused().values().next().cloned(),
        Err(CompileError::Lower(error)) => Some(error),
        Err(other) => panic!("{other}\n{text}"),
    }
}

#[track_caller]
pub(crate) fn accepts(lines: &str) {
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(error) = refusal(&kernel(line)) {
            panic!("{line}\n  {error}");
        }
    }
}
