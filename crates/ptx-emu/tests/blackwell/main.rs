//! What Blackwell adds outside its tensor memory, run on the device it belongs to.

mod cancel;
mod copies;
mod matrix;
mod scalar;

use ptx_emu::{
    Config, DeviceLimits, DevicePtr, Launch, LaunchError, Memory, Module, Params, TensorMap,
};

/// Words of the buffers a kernel gets.
const WORDS: u64 = 1 << 14;

/// A kernel for a target that gets the address of its output in `%rd1` and of its input in `%rd2`,
/// its thread in `%r1` and the place of its own output word in `%rd3`.
fn kernel(target: &str, body: &str) -> Module {
    let text = format!(
        ".version 9.2\n.target {target}\n.address_size 64\n\
         .visible .entry k(.param .u64 out, .param .u64 in, .param .align 64 .b8 map[128]) {{
            .reg .pred %p<9>; .reg .b8 %c<9>; .reg .b16 %rs<9>; .reg .b32 %r<60>;
            .reg .b64 %rd<20>; .reg .f32 %f<40>; .reg .b128 %q<3>;
            .shared .align 1024 .b8 tile[16384]; .shared .align 16 .b8 answer[16];
            .shared .align 8 .b64 bar;
            ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [in]; mov.u32 %r1, %tid.x;
            mul.wide.u32 %rd3, %r1, 4; add.s64 %rd3, %rd1, %rd3;
            {body}
            ret; }}"
    );
    let module = Module::load(&text).unwrap_or_else(|e| panic!("{e}"));
    if let Some(refused) = module.refused().get("k") {
        panic!("{refused}");
    }
    module
}

fn config(target: &str, seed: u64) -> Config {
    Config {
        seed,
        limits: DeviceLimits::of_target(target).expect("a target"),
        ..Config::default()
    }
}

/// Launches on an input and gives the output's words; `map` describes the input.
fn run(
    module: &Module,
    launch: Launch,
    input: &[u32],
    map: impl FnOnce(u64) -> Option<TensorMap>,
) -> Result<Vec<u32>, LaunchError> {
    let mut memory = Memory::new();
    let out = memory.alloc_named("out", 4 * WORDS).expect("room");
    let from = memory.alloc_named("in", 4 * WORDS).expect("room");
    let bytes: Vec<u8> = input.iter().flat_map(|word| word.to_le_bytes()).collect();
    memory.write(from, &bytes).expect("in bounds");
    let map = map(from.0).map_or([0; 128], |map| map.encode());
    let params = Params::new().pointer(out).pointer(from).bytes(&map);
    launch.params(params).run(module, &mut memory)?;
    Ok(words(&memory, out))
}

fn words(memory: &Memory, at: DevicePtr) -> Vec<u32> {
    let bytes = memory.read_vec(at, 4 * WORDS).expect("in bounds");
    let chunks = bytes.as_chunks::<4>().0;
    chunks.iter().map(|b| u32::from_le_bytes(*b)).collect()
}

/// One warp of the body on the input, for `sm_100a`.
fn warp(target: &str, body: &str, input: &[u32]) -> Vec<u32> {
    let launch = Launch::new("k").block([32, 1, 1]).config(config(target, 1));
    run(&kernel(target, body), launch, input, |_| None).unwrap_or_else(|e| panic!("{e}"))
}
