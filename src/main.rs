use std::process::ExitCode;

fn main() -> ExitCode {
    dgx::main()
}
