//! PTX to machine code, by the ptxas of a toolkit, a wheel or Triton.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::CompileLimits;
use super::process::NoImage;
use super::tool;
use crate::toolkit;

/// The message if there is none.
const MISSING: &str = "there is no ptxas here to compile PTX with: pip install nvidia-cuda-nvcc \
    fetches one; a CUDA toolkit on PATH or in CUDA_HOME has one too";

/// The result of assembling.
pub(super) struct Assembled {
    /// `None` if the PTX is at fault; then the log has the reason.
    pub cubin: Option<Vec<u8>>,
    pub log: String,
}

/// The ptxas of this machine.
pub fn find() -> Result<PathBuf, String> {
    toolkit::program("ptxas").ok_or_else(|| MISSING.to_owned())
}

/// Assembles `ptx`, called `name` in messages, for a chip and with further flags.
pub(super) fn assemble(
    program: &Path,
    (name, ptx): (&str, &str),
    (arch, flags): (&str, &[String]),
    limits: &CompileLimits,
    stop: &dyn Fn() -> bool,
) -> Result<Assembled, NoImage> {
    let folder = tempfile::tempdir().map_err(tool::no_room)?;
    let (source, cubin) = (
        folder.path().join("in.ptx"),
        folder.path().join("out.cubin"),
    );
    fs::write(&source, ptx).map_err(tool::no_room)?;
    let mut command = Command::new(program);
    command
        .args(["-v", "-lineinfo"])
        .args(flags)
        .arg(format!("--gpu-name={arch}"))
        .arg(&source)
        .arg("-o")
        .arg(&cubin);
    let ran = tool::run(&mut command, Vec::new(), limits, stop)?;
    let prefix = format!("ptxas {}, line ", source.display());
    let lines = ran.stdout.lines().chain(ran.stderr.lines());
    let log: Vec<String> = lines.map(|line| placed(line, &prefix, name)).collect();
    let cubin = match ran.status.success() {
        true => Some(fs::read(&cubin).map_err(tool::no_room)?),
        false => None,
    };
    let log = log.join("\n");
    Ok(Assembled { cubin, log })
}

/// Whether a log says that PTX has a later version than its ptxas supports.
pub(super) fn is_too_old(log: &str) -> bool {
    log.contains(TOO_OLD)
}

const TOO_OLD: &str = "Unsupported .version";

/// `ptxas in.ptx, line 3; error : no` → `mine.ptx(3): error: no`.
fn placed(line: &str, prefix: &str, name: &str) -> String {
    let message = line
        .strip_prefix(prefix)
        .and_then(|rest| rest.split_once(';'));
    let Some((number, message)) = message else {
        return line.to_owned();
    };
    let what = message
        .split_once(':')
        .map_or(message, |(_, what)| what)
        .trim();
    let remedy = match what.starts_with(TOO_OLD) {
        true => " (pip install -U nvidia-cuda-nvcc gets a newer ptxas)",
        false => "",
    };
    match message.contains("warning") {
        true => format!("{name}({number}): warning {what}"),
        false => format!("{name}({number}): error: {what}{remedy}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ptxas_says_stands_where_it_is() {
        let placed = |line: &str| placed(line, "ptxas /tmp/in.ptx, line ", "mine.ptx");
        assert_eq!(
            placed("ptxas /tmp/in.ptx, line 3; error   : Parsing error"),
            "mine.ptx(3): error: Parsing error"
        );
        let old = placed(
            "ptxas /tmp/in.ptx, line 5; fatal   : Unsupported .version 9.4; current version is '9.0'",
        );
        assert!(
            old.starts_with("mine.ptx(5): error: Unsupported .version 9.4"),
            "{old}"
        );
        assert!(old.contains("pip install -U nvidia-cuda-nvcc"), "{old}");
        let info = "ptxas info    : 0 bytes gmem";
        assert_eq!(placed(info), info);
    }
}
