//! Any text, parsed and lowered. Seed the corpus with `crates/ptx-emu/tests/ptx/*.ptx`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = ptx_emu::Module::load(text);
});
