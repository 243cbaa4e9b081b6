//! Forms that are legal and rarely seen, run and held against what the PTX ISA says of them.

mod addresses;
mod bounds;
mod carries;
mod functions;
mod heap;
mod multimem;
mod names;
mod refused;
mod sparse;
mod sparse_groups;
mod special;
mod statics;
mod texts;
mod vectors;
mod video;

use ptx_emu::{Launch, LaunchError, Memory, Module, Params};

/// A module of some text, for sm_90a.
#[track_caller]
pub(crate) fn module(text: &str) -> Module {
    let text = format!(".version 8.7\n.target sm_90a\n.address_size 64\n{text}");
    Module::load(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Runs kernel `k(out)` of a module with one warp; the words it wrote.
pub(crate) fn launch(module: &Module, words: usize) -> Result<Vec<u32>, LaunchError> {
    let mut memory = Memory::new();
    let out = memory.alloc_named("out", 4 * words as u64)?;
    Launch::new("k")
        .block([32, 1, 1])
        .params(Params::new().pointer(out))
        .run(module, &mut memory)?;
    let bytes = memory.read_vec(out, 4 * words as u64)?;
    let words = bytes.as_chunks::<4>().0.iter();
    Ok(words.map(|word| u32::from_le_bytes(*word)).collect())
}

#[track_caller]
pub(crate) fn run(text: &str, words: usize) -> Vec<u32> {
    launch(&module(text), words).unwrap_or_else(|error| panic!("{error}"))
}

/// A kernel `k` around some lines: `%rd1` is the output, `%r1` the lane, `%rd2` its own word.
pub(crate) fn kernel(lines: &str) -> String {
    format!(
        ".visible .entry k(.param .u64 out)\n{{\n\
         .reg .pred %p<8>; .reg .b16 %rs<16>; .reg .b32 %r<64>; .reg .b64 %rd<32>; .reg .f32 %f<32>;\n\
         ld.param.u64 %rd1, [out]; mov.u32 %r1, %laneid;\n\
         mad.wide.u32 %rd2, %r1, 4, %rd1;\n{lines}\nret;\n}}\n"
    )
}
