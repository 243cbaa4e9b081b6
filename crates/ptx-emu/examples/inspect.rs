//! Lowers PTX files and prints what each kernel needs:
//! `cargo run -p ptx-emu --example inspect -- kernel.ptx …`

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut failed = false;
    for path in std::env::args().skip(1) {
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) => {
                eprintln!("{path}: {error}");
                failed = true;
                continue;
            }
        };
        match ptx_emu::Module::load(&text) {
            Err(error) => {
                eprintln!("{path}: {error}");
                failed = true;
            }
            Ok(module) => {
                for (name, reason) in module.refused() {
                    eprintln!("{path}: {name}: refused: {reason}");
                    failed = true;
                }
                for kernel in module.kernels() {
                    println!(
                        "{path}: {}: {} instructions, {} + {} registers, {} predicates, \
                         {} B parameters, {} B static shared, {} B local",
                        kernel.name,
                        kernel.instructions,
                        kernel.registers_32,
                        kernel.registers_64,
                        kernel.predicates,
                        kernel.param_bytes,
                        kernel.static_shared,
                        kernel.local_bytes,
                    );
                }
            }
        }
    }
    ExitCode::from(u8::from(failed))
}
