//! The program `dgx`. All of it is in the library, where tests reach it.

use std::process::ExitCode;

fn main() -> ExitCode {
    dgx::main()
}
