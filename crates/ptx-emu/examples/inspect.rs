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
        match ptx_emu::lower::compile(&text) {
            Err(error) => {
                eprintln!("{path}: {error}");
                failed = true;
            }
            Ok(module) => {
                for (name, reason) in &module.refused {
                    eprintln!("{path}: {name}: refused: {reason}");
                    failed = true;
                }
                for (name, kernel) in &module.kernels {
                    println!(
                        "{path}: {name}: {} instructions, {} + {} registers, {} predicates, \
                         {} B parameters, {} B static shared, {} B local",
                        kernel.insts.len(),
                        kernel.n32,
                        kernel.n64,
                        kernel.npred,
                        kernel.param_bytes,
                        kernel.shared_static_end - ptx_emu::op::SHARED_BASE,
                        kernel.local_bytes,
                    );
                }
            }
        }
    }
    ExitCode::from(u8::from(failed))
}
