//! `dgx run`: runs a CUDA program on the emulator and reports its launches.

mod folder;
mod launched;
mod process;

use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use ptx_cuda::report::{REPORT, WHOLE};
use ptx_cuda::{Properties, SANITIZE, SEED, TARGET, TIME, Timing};

use super::machine::target_help;
use crate::cli::Globals;
use crate::cli::runs::{natural, style};
use dgx_core::config::target;
use dgx_core::diagnostic::CommandError;
use dgx_core::domain::{Device, Exit};
use dgx_core::speech;
use dgx_run::backend::emu::machine;
use dgx_run::compile::find_ptxas;

use folder::Folder;
use launched::Launched;
use process::Process;

/// The shared library that stands in for CUDA's.
static LIBRARY: &[u8] = ptx_cuda_image::library!();

/// The file that Triton uses as ptxas.
const PTXAS: &str = "ptxas";

#[derive(Debug, clap::Args)]
#[command(
    after_help = "The program must carry PTX: nvcc -arch=compute_90a. Its exit code is dgx's."
)]
pub(crate) struct Args {
    #[arg(long, value_name = "TARGET", default_value = "h200", help = target_help(
        "Device to emulate",
        ", or a target file",
    ))]
    target: String,
    /// Watch every launch for races and other hazards
    #[arg(long)]
    sanitize: bool,
    /// Model how long each kernel takes on the device; needs ptxas
    #[arg(long, conflicts_with = "sanitize")]
    time: bool,
    /// Seed of the first launch; each launch uses the next
    #[arg(long, value_name = "SEED", default_value_t = 0, value_parser = natural)]
    seed: u64,
    /// Write what was launched to a file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Program
    #[arg(value_name = "PROGRAM")]
    program: OsString,
    /// Its arguments
    #[arg(
        value_name = "ARGS",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    args: Vec<OsString>,
}

pub(super) fn run(args: Args, globals: &Globals) -> Result<Exit, CommandError> {
    if std::env::var_os(REPORT).is_some_and(|folder| !folder.is_empty()) {
        return run_inside(&args);
    }
    let device = target::find(&args.target)?;
    args.json.as_deref().map_or(Ok(()), check_writable)?;
    let folder = Folder::make().map_err(|e| no_folder(&e))?;
    check_name(folder.path())?;
    prepare(folder.path()).map_err(|e| no_folder(&e))?;
    let timing = args.time.then(|| timing(&device)).transpose();
    let known = timing.as_ref().ok().and_then(Option::as_ref);
    let code = start(&args, &device, folder.path(), known)?;
    let launched = Launched::read(&folder.path().join("report"), timing.err());
    if speech::level() > speech::Level::Quiet {
        remark!("{}", launched.text(&style(globals)));
    }
    if let Some(path) = &args.json {
        write(path, &launched.json(&device.name, args.seed, code))?;
    }
    drop(folder);
    match code {
        0 if launched.is_part => Err(no_room()),
        0 => Ok(Exit::Done),
        code => std::process::exit(code),
    }
}

/// Runs a program inside another `dgx run`, which has prepared everything: a second library would
/// conflict with the first.
fn run_inside(args: &Args) -> Result<Exit, CommandError> {
    remark!("inside another dgx run, which chooses the device and lists what is launched");
    let mut command = Command::new(&args.program);
    match wait(args, command.args(&args.args))? {
        0 => Ok(Exit::Done),
        code => std::process::exit(code),
    }
}

fn no_room() -> CommandError {
    let message = "what was launched could not be written whole";
    CommandError::could_not_run(message, "set TMPDIR to a folder with more room")
}

/// Fails if a file cannot be written, before the program runs in vain.
fn check_writable(path: &Path) -> Result<(), CommandError> {
    let opened = File::options().append(true).create(true).open(path);
    opened.map(drop).map_err(|error| unwritable(path, &error))
}

fn no_folder(error: &std::io::Error) -> CommandError {
    let message = format!("cannot make a folder for the libraries: {error}");
    CommandError::could_not_run(message, "set TMPDIR to a folder with 20 MB of room")
}

/// A space or a colon in `LD_PRELOAD` ends a file name.
fn check_name(folder: &Path) -> Result<(), CommandError> {
    match folder.to_string_lossy().contains([' ', ':']) {
        false => Ok(()),
        true => {
            let message = format!("the loader cannot use {}", folder.display());
            let remedy = "set TMPDIR to a folder without a space or colon in its name";
            Err(CommandError::could_not_run(message, remedy))
        }
    }
}

fn prepare(folder: &Path) -> std::io::Result<()> {
    let report = folder.join("report");
    std::fs::create_dir(&report)?;
    std::fs::write(report.join(WHOLE), [])?;
    let libraries = folder.join("lib");
    std::fs::create_dir(&libraries)?;
    ptx_cuda::library::prepare(&libraries, LIBRARY)?;
    let ptxas = libraries.join(PTXAS);
    std::fs::write(&ptxas, include_str!("ptxas.sh"))?;
    std::fs::set_permissions(&ptxas, Permissions::from_mode(0o755))?;
    let named = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let installed = ["/usr/local/cuda/lib64", "/usr/lib/x86_64-linux-gnu"].map(PathBuf::from);
    let places = std::env::split_paths(&named).chain(installed);
    ptx_cuda::library::prepare_compiler(&libraries, places)
}

fn write(path: &Path, text: &str) -> Result<(), CommandError> {
    std::fs::write(path, text).map_err(|error| unwritable(path, &error))
}

fn unwritable(path: &Path, error: &std::io::Error) -> CommandError {
    let message = format!("{} cannot be written: {error}", path.display());
    CommandError::could_not_run(message, "name another file with --json")
}

/// What times are modelled with, or the reason why they are not.
fn timing(device: &Device) -> Result<Timing, String> {
    Ok(Timing {
        machine: machine(device)?.clone(),
        ptxas: find_ptxas()?,
    })
}

/// Runs the program to its end and returns its exit code.
fn start(
    args: &Args,
    device: &Device,
    folder: &Path,
    timing: Option<&Timing>,
) -> Result<i32, CommandError> {
    let libraries = folder.join("lib");
    let mut path = OsString::from(&libraries);
    if let Some(others) = std::env::var_os("LD_LIBRARY_PATH").filter(|path| !path.is_empty()) {
        path.push(":");
        path.push(others);
    }
    // Makes a program with a static runtime use the library's before it begins.
    let mut preload = libraries.join(ptx_cuda::library::DRIVER).into_os_string();
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|names| !names.is_empty()) {
        preload.push(":");
        preload.push(others);
    }
    let properties = serde_json::to_string(&properties(device)).unwrap_or_default();
    let timing = timing.and_then(|timing| serde_json::to_string(timing).ok());
    let mut command = Command::new(&args.program);
    command
        .args(&args.args)
        .env("LD_LIBRARY_PATH", path)
        .env("LD_PRELOAD", preload)
        .env("TRITON_LIBCUDA_PATH", &libraries)
        .env("TRITON_PTXAS_PATH", libraries.join(PTXAS))
        .env("TRITON_PTXAS_BLACKWELL_PATH", libraries.join(PTXAS))
        .env(TARGET, properties)
        .env(SEED, args.seed.to_string())
        .env(TIME, timing.unwrap_or_default())
        .env(SANITIZE, if args.sanitize { "1" } else { "" })
        .env(REPORT, folder.join("report"));
    wait(args, &mut command)
}

fn wait(args: &Args, command: &mut Command) -> Result<i32, CommandError> {
    let process = Process::start(command).map_err(|error| unstarted(&args.program, &error))?;
    process.wait().map_err(|error| {
        CommandError::could_not_run(format!("the program is lost: {error}"), "run it again")
    })
}

/// Only a name without a folder is looked for in `PATH`.
fn unstarted(program: &OsStr, error: &std::io::Error) -> CommandError {
    let shown = program.display();
    let is_name = Path::new(program).components().count() == 1 && !program.is_empty();
    let (message, remedy) = match error.kind() == ErrorKind::NotFound && is_name {
        true => (
            format!("there is no program {shown} in PATH"),
            format!("write ./{shown} for a file here"),
        ),
        false => (
            format!("{shown} cannot be started: {error}"),
            "name a program, as ./program".to_owned(),
        ),
    };
    CommandError::usage(message, remedy)
}

fn properties(device: &Device) -> Properties {
    let (limits, chip) = (&device.limits, device.chip);
    let like = match chip.major >= 10 {
        true => Properties::b200(),
        false => Properties::h200(),
    };
    let narrow = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
    Properties {
        name: device.name.clone(),
        capability: 10 * chip.major + chip.minor,
        sms: limits.sms,
        memory: limits.memory.0,
        l2: narrow(limits.l2.0),
        shared_per_sm: narrow(limits.shared_per_sm.0),
        shared_per_block: narrow(limits.shared_per_block.0),
        clock_khz: (device.peaks.clock_mhz * 1e3) as u32,
        ..like
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_knows_the_targets_by_the_same_numbers() {
        for (name, known) in [("h200", Properties::h200()), ("b200", Properties::b200())] {
            let device = target::find(name).expect("built in");
            assert_eq!(properties(&device), known, "{name}");
        }
    }
}
