//! Loads a PTX file, fills buffers, launches a kernel and prints the result:
//!
//! `cargo run -p ptx-emu --example run_ptx -- kernel.ptx saxpy 8 128 f32:2 in:1024 out:1024 u32:1024`
//!
//! Parameters in order: `in:N` is a buffer of N floats 0, 1, 2, …, `out:N` one of N zeros that is
//! printed afterwards, `u32:V` and `f32:V` are numbers. The device is the one the PTX is made for.

use std::error::Error;

use ptx_emu::{Class, Config, DeviceLimits, DevicePtr, Launch, Memory, Module, Params};

fn buffer(memory: &mut Memory, name: &str, values: &[f32]) -> Result<DevicePtr, Box<dyn Error>> {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    let ptr = memory.alloc_named(name, bytes.len() as u64)?;
    memory.write(ptr, &bytes)?;
    Ok(ptr)
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [path, kernel, grid, block, specs @ ..] = &args[..] else {
        return Err("usage: run_ptx FILE KERNEL GRID BLOCK [in:N|out:N|u32:V|f32:V]…".into());
    };
    let module = Module::load(&std::fs::read_to_string(path)?)?;
    let mut memory = Memory::new();
    let mut params = Params::new();
    let mut outputs = Vec::new();
    for spec in specs {
        let (kind, value) = spec
            .split_once(':')
            .ok_or_else(|| format!("{spec}: expected KIND:VALUE"))?;
        params = match kind {
            "in" => {
                let values: Vec<f32> = (0..value.parse()?).map(|i: u32| i as f32).collect();
                params.pointer(buffer(&mut memory, spec, &values)?)
            }
            "out" => {
                let count: usize = value.parse()?;
                let ptr = buffer(&mut memory, spec, &vec![0.0; count])?;
                outputs.push((ptr, count));
                params.pointer(ptr)
            }
            "u32" => params.u32(value.parse()?),
            "f32" => params.f32(value.parse()?),
            other => return Err(format!("{other}: unknown kind, use in, out, u32 or f32").into()),
        };
    }
    let launch = Launch::new(kernel)
        .grid([grid.parse()?, 1, 1])
        .block([block.parse()?, 1, 1])
        .params(params)
        .config(Config {
            limits: DeviceLimits::of_target(module.target()).unwrap_or_default(),
            ..Config::default()
        });
    let report = launch.run(&module, &mut memory)?;
    for (ptr, count) in outputs {
        let bytes = memory.read_vec(ptr, count as u64 * 4)?;
        let values = bytes
            .as_chunks::<4>()
            .0
            .iter()
            .map(|b| f32::from_le_bytes(*b));
        println!("{:?} …", values.take(8).collect::<Vec<f32>>());
    }
    for class in Class::ALL {
        println!(
            "{:>12} {}",
            class.name(),
            report.counters.instructions(class)
        );
    }
    Ok(())
}
