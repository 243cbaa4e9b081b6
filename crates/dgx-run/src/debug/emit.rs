//! Writes the code of a contender to files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::unwritten;
use crate::compile::Image;
use crate::toolkit::program;
use dgx_core::diagnostic::CommandError;
use dgx_core::domain::ContenderId;

/// A kind of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum CodeKind {
    /// What the emulator runs
    Ptx,
    /// Machine code, disassembled by nvdisasm or cuobjdump
    Sass,
    /// Machine code
    Cubin,
}

impl CodeKind {
    fn ending(self) -> &'static str {
        match self {
            Self::Ptx => "ptx",
            Self::Sass => "sass",
            Self::Cubin => "cubin",
        }
    }
}

/// The files written, and the error for those that could not be.
#[derive(Debug, Default)]
pub struct Emission {
    pub files: Vec<PathBuf>,
    pub missing: Option<CommandError>,
}

/// Writes a contender's code into an existing folder. A missing disassembler is reported after
/// everything else is written.
pub fn emit(
    image: &Image,
    contender: &ContenderId,
    kinds: &[CodeKind],
    folder: &Path,
) -> Result<Emission, CommandError> {
    let mut emission = Emission::default();
    for kind in kinds {
        let file = folder.join(format!("{}.{}", stem(contender), kind.ending()));
        let code = match kind {
            CodeKind::Ptx => image.ptx.clone().into_bytes(),
            CodeKind::Cubin => image.cubin.clone(),
            CodeKind::Sass => match disassemble(&image.cubin) {
                Ok(text) => text,
                Err(why) => {
                    emission.missing = Some(why);
                    continue;
                }
            },
        };
        fs::write(&file, code).map_err(|e| unwritten(&file, &e))?;
        emission.files.push(file);
    }
    Ok(emission)
}

/// `pipelined[STAGES=3]` is `pipelined-STAGES3` as a file.
fn stem(contender: &ContenderId) -> String {
    let kept = |c: char| match c {
        '[' | ',' => Some('-'),
        ']' | '=' => None,
        c => Some(c),
    };
    contender.as_str().chars().filter_map(kept).collect()
}

/// Disassemblers, and the flags each needs.
const DISASSEMBLERS: [(&str, &[&str]); 2] = [
    ("nvdisasm", &["--print-code", "--print-line-info"]),
    ("cuobjdump", &["--dump-sass"]),
];

fn disassemble(cubin: &[u8]) -> Result<Vec<u8>, CommandError> {
    let found = DISASSEMBLERS
        .iter()
        .find_map(|(name, flags)| Some((program(name)?, flags)));
    let Some((program, flags)) = found else {
        return Err(CommandError::could_not_run(
            "there is no nvdisasm and no cuobjdump here, so there is no SASS",
            "both are part of the CUDA toolkit: put its bin folder on PATH or set CUDA_HOME; \
             the cubin can be disassembled elsewhere (--emit cubin)",
        ));
    };
    let failed = |why: String| {
        let message = format!("{} does not disassemble it: {why}", program.display());
        CommandError::could_not_run(message, "--emit cubin writes the code itself")
    };
    let file = tempfile::Builder::new().suffix(".cubin").tempfile();
    let file = file.map_err(|e| failed(e.to_string()))?;
    fs::write(file.path(), cubin).map_err(|e| failed(e.to_string()))?;
    let output = Command::new(&program)
        .args(*flags)
        .arg(file.path())
        .output();
    let output = output.map_err(|e| failed(e.to_string()))?;
    match output.status.success() {
        true => Ok(output.stdout),
        false => Err(failed(
            String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contender_is_a_plain_file_name() {
        let id = ContenderId::from_text("pipelined[BN=64,STAGES=3]");
        assert_eq!(stem(&id), "pipelined-BN64-STAGES3");
    }
}
