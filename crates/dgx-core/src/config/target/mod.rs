//! Devices as `configs/targets/` describes them, with the source of every number. The committed
//! ones are built in, so that dgx works from any folder.

mod reader;
mod rewrite;
mod what_if;
mod wire;

use std::path::Path;
use std::sync::LazyLock;

use crate::diagnostic::{InputError, SourceFile};
use crate::document::Document;
use crate::domain::{Chip, Device, Joined};
use wire::TargetFile;

pub use reader::device;
pub use rewrite::{replace, with_calibration, with_numbers};

const GUIDE: &str = "docs/targets.md lists the keys";

/// The usual one first.
const COMMITTED: [(&str, &str); 3] = [
    (
        "h200",
        include_str!("../../../../../configs/targets/h200.toml"),
    ),
    (
        "h100",
        include_str!("../../../../../configs/targets/h100.toml"),
    ),
    (
        "b200",
        include_str!("../../../../../configs/targets/b200.toml"),
    ),
];

static BUILT_IN: LazyLock<Vec<(&str, Device)>> = LazyLock::new(|| {
    let read = |(name, text): (&'static str, &str)| {
        let device = device(&committed((name, text))).expect("a test reads all that are built in");
        (name, device)
    };
    let mut devices: Vec<(&str, Device)> = COMMITTED.into_iter().map(read).collect();
    let known = devices[0].1.calibration.clone();
    for (_, device) in &mut devices {
        device.calibration = device.calibration.take().or_else(|| known.clone());
    }
    devices
});

/// The device that is emulated and planned for by default.
pub fn default_device() -> &'static Device {
    &BUILT_IN[0].1
}

/// What is known of a card beyond its driver's answers: the target of its name, or one of its chip.
pub fn like(name: &str, chip: Option<Chip>) -> Option<&'static Device> {
    let devices = || BUILT_IN.iter().map(|(_, device)| device);
    let same = devices().find(|device| device.name == name);
    same.or_else(|| devices().find(|device| Some(device.chip) == chip))
}

/// The names of all built-in targets, the usual one first.
pub fn names() -> impl Iterator<Item = &'static str> {
    COMMITTED.iter().map(|(name, _)| *name)
}

/// All built-in targets, by name.
pub fn built_in() -> impl Iterator<Item = (&'static str, &'static Device)> {
    BUILT_IN.iter().map(|(name, device)| (*name, device))
}

/// A target by the name of a built-in one, or by its file, optionally with some numbers changed:
/// `h200,sms=144`.
pub fn find(word: &str) -> Result<Device, InputError> {
    match word.split_once(',').filter(|_| !Path::new(word).is_file()) {
        Some((base, changes)) => what_if::changed(named(base.trim())?, changes),
        None => named(word),
    }
}

fn named(word: &str) -> Result<Device, InputError> {
    if let Some((_, device)) = BUILT_IN.iter().find(|(name, _)| *name == word) {
        return Ok(device.clone());
    }
    let file = source(word)?;
    let mut device = device(&file)?;
    if device.calibration.is_none() {
        if claims_calibration(&file)? {
            let path = file.path.display();
            remark!(
                "warning: {path}: [calibration] is not of these numbers, so {} is uncalibrated; \
                 `dgx calibrate RUN --target {path} -o {path}` compares them with a measured run",
                device.name
            );
        }
        // The error of the same model on another device; it does not apply to a device of the same
        // name.
        let elsewhere = default_device().calibration.clone();
        device.calibration = elsewhere.filter(|known| known.device != device.name);
    }
    Ok(device)
}

/// Whether a target file states the error of its times, valid or not.
fn claims_calibration(file: &SourceFile) -> Result<bool, InputError> {
    let document = Document::whole(file, GUIDE);
    Ok(document.parse::<TargetFile>()?.calibration.is_some())
}

/// The file of a target, by the name of a built-in one or by its path.
pub fn source(word: &str) -> Result<SourceFile, InputError> {
    if let Some(built_in) = COMMITTED.iter().find(|(name, _)| *name == word) {
        return Ok(committed(*built_in));
    }
    let remedy = format!(
        "give one of {}, the name of a file in configs/targets/, or a path",
        names().joined(", ")
    );
    let here = Path::new("configs/targets").join(format!("{word}.toml"));
    let path = match Path::new(word).exists() || !here.is_file() {
        true => Path::new(word),
        false => &here,
    };
    if !path.exists() {
        return Err(InputError::new(
            format!("there is no target `{word}`"),
            remedy,
        ));
    }
    SourceFile::read(path, "target", &remedy)
}

fn committed((name, text): (&str, &str)) -> SourceFile {
    SourceFile {
        path: format!("configs/targets/{name}.toml").into(),
        text: text.into(),
    }
}

/// The rounds that were examined while the model of a target was built.
pub fn seen(file: &SourceFile) -> Result<Vec<String>, InputError> {
    let document = Document::whole(file, GUIDE);
    Ok(document.parse::<TargetFile>()?.seen)
}

#[cfg(test)]
mod tests;
