//! Devices as `configs/targets/` describes them: every number with where it is
//! from. Those committed are built in, so that dgx works from any folder.

mod rewrite;
mod what_if;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::LazyLock;

use ptx_time::Machine;
use serde::Deserialize;

use crate::diagnostic::{InputError, SourceFile, nearest};
use crate::document::{Document, Spanned};
use crate::domain::roofline::{tensor_flops, tmem_flops};
use crate::domain::{Bytes, Calibration, Chip, Device, Limits, Peaks, bounds, printable_line};

pub(crate) use rewrite::{with_calibration, with_numbers};

const GUIDE: &str = "docs/targets.md lists the keys";

/// The usual one first.
const COMMITTED: [(&str, &str); 3] = [
    ("h200", include_str!("../../../configs/targets/h200.toml")),
    ("h100", include_str!("../../../configs/targets/h100.toml")),
    ("b200", include_str!("../../../configs/targets/b200.toml")),
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

/// What is emulated, and planned for, where nothing else is asked for.
pub(crate) fn usual() -> &'static Device {
    &BUILT_IN[0].1
}

/// What is known of a card beyond what its driver tells: the target of its
/// name, or one of its chip.
pub(crate) fn like(name: &str, chip: Option<Chip>) -> Option<&'static Device> {
    let devices = || BUILT_IN.iter().map(|(_, device)| device);
    let same = devices().find(|device| device.name == name);
    same.or_else(|| devices().find(|device| Some(device.chip) == chip))
}

/// Those that go by a name.
pub(crate) fn built_in() -> impl Iterator<Item = (&'static str, &'static Device)> {
    BUILT_IN.iter().map(|(name, device)| (*name, device))
}

/// A target by the name of one that is built in, or by its file, perhaps with
/// some numbers changed: `h200,sms=144`.
pub(crate) fn find(word: &str) -> Result<Device, InputError> {
    match word.split_once(',').filter(|_| !Path::new(word).is_file()) {
        Some((base, changes)) => what_if::changed(named(base.trim())?, changes),
        None => named(word),
    }
}

fn named(word: &str) -> Result<Device, InputError> {
    if let Some((_, device)) = BUILT_IN.iter().find(|(name, _)| *name == word) {
        return Ok(device.clone());
    }
    let device = device(&source(word)?)?;
    Ok(Device {
        calibration: device.calibration.or_else(|| usual().calibration.clone()),
        ..device
    })
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TargetFile {
    name: Spanned<String>,
    arch: Spanned<String>,
    sources: BTreeMap<String, Spanned<String>>,
    limits: LimitsTable,
    peaks: PeaksTable,
    model: Spanned<ModelTable>,
    calibration: Option<CalibrationTable>,
    /// Rounds whose runs were looked at while the model was made.
    #[serde(default)]
    seen: Vec<String>,
}

/// By the names of [`Machine::NAMES`], all but `sms`.
type ModelTable = BTreeMap<Spanned<String>, Figure>;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CalibrationTable {
    run: Spanned<String>,
    median: Spanned<f64>,
    p90: Spanned<f64>,
    worst: Spanned<f64>,
    cells: u32,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitsTable {
    sms: Figure,
    memory: Figure,
    l2: Figure,
    shared_per_sm: Figure,
    shared_per_block: Figure,
    shared_reserved: Figure,
    registers_per_sm: Figure,
    register_unit: Figure,
    threads_per_sm: Figure,
    threads_per_block: Figure,
    blocks_per_sm: Figure,
    blocks_per_cluster: Figure,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PeaksTable {
    clock_mhz: Figure,
    bandwidth: Figure,
    tensor_flops: Figure,
}

/// A number, and which of the sources it is from.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Figure {
    value: Spanned<f64>,
    from: Spanned<String>,
}

/// The file of a target, by the name of one that is built in or by its path.
pub(crate) fn source(word: &str) -> Result<SourceFile, InputError> {
    if let Some(built_in) = COMMITTED.iter().find(|(name, _)| *name == word) {
        return Ok(committed(*built_in));
    }
    let names: Vec<&str> = COMMITTED.iter().map(|(name, _)| *name).collect();
    let remedy = format!(
        "give one of {}, the name of a file in configs/targets/, or a path",
        names.join(", ")
    );
    let here = Path::new("configs/targets").join(format!("{word}.toml"));
    let path = match Path::new(word).exists() || !here.is_file() {
        true => Path::new(word),
        false => &here,
    };
    SourceFile::read(path, "target", &remedy)
}

fn committed((name, text): (&str, &str)) -> SourceFile {
    SourceFile {
        path: format!("configs/targets/{name}.toml").into(),
        text: text.into(),
    }
}

/// The rounds that were looked at while the model of a target was made.
pub(crate) fn seen(file: &SourceFile) -> Result<Vec<String>, InputError> {
    let document = Document::new(file, 0..file.text.len(), GUIDE);
    Ok(document.parse::<TargetFile>()?.seen)
}

/// The device a target file describes.
pub(crate) fn device(file: &SourceFile) -> Result<Device, InputError> {
    let document = Document::new(file, 0..file.text.len(), GUIDE);
    let wire: TargetFile = document.parse()?;
    let mut reader = Reader {
        document: &document,
        sources: &wire.sources,
        origins: BTreeMap::new(),
    };
    reader.sources()?;
    let (name, chip) = (reader.name(&wire.name)?, reader.chip(&wire.arch)?);
    let limits = reader.limits(&wire.limits)?;
    let peaks = reader.peaks(&wire.peaks)?;
    let model = reader.model(&wire.model, limits.sms)?;
    reader.agree(&wire)?;
    reader.reach(&wire, &model)?;
    let calibration = wire.calibration.as_ref();
    let calibration = calibration.map(|table| reader.calibration(table, &name));
    Ok(Device {
        chip,
        limits,
        peaks,
        model: Some(model),
        calibration: calibration.transpose()?,
        name,
        origins: reader.origins,
        card: None,
    })
}

struct Reader<'a> {
    document: &'a Document<'a>,
    sources: &'a BTreeMap<String, Spanned<String>>,
    origins: BTreeMap<String, String>,
}

impl Reader<'_> {
    fn sources(&self) -> Result<(), InputError> {
        for (name, text) in self.sources {
            bounds::name("source", text.get_ref()).map_err(|why| {
                let remedy = format!("say in one line where what is from `{name}` is from");
                self.document.error(text.span(), why, remedy)
            })?;
        }
        Ok(())
    }

    fn name(&self, name: &Spanned<String>) -> Result<String, InputError> {
        bounds::name("device", name.get_ref()).map_err(|why| {
            let remedy = "give it the name its driver gives it, e.g. NVIDIA H200";
            self.document.error(name.span(), why, remedy)
        })?;
        Ok(printable_line(name.get_ref()))
    }

    /// A device is a chip, not one of the ways to compile for it.
    fn chip(&self, arch: &Spanned<String>) -> Result<Chip, InputError> {
        let chip = Chip::parse(arch.get_ref());
        chip.filter(|chip| chip.to_string() == *arch.get_ref())
            .ok_or_else(|| {
                let message = format!("{:?} is no chip", arch.get_ref());
                let remedy = "give its compute capability without a letter, e.g. sm_90";
                self.document.error(arch.span(), message, remedy)
            })
    }

    fn limits(&mut self, wire: &LimitsTable) -> Result<Limits, InputError> {
        let mut whole = |key: &str, figure: &Figure, range: RangeInclusive<f64>| {
            let value = self.figure(&format!("limits.{key}"), figure, range)?;
            match value.fract() == 0.0 {
                true => Ok(value as u64),
                false => Err(self.document.error(
                    figure.value.span(),
                    format!("limits.{key} = {value} is no whole number"),
                    "give how many there are",
                )),
            }
        };
        // All but the memories fit 32 bits by their ranges.
        let mut count = |key: &str, figure: &Figure, least: f64, most: f64| {
            whole(key, figure, least..=most).map(|n| n as u32)
        };
        Ok(Limits {
            sms: count("sms", &wire.sms, 1.0, 1e4)?,
            registers_per_sm: count("registers_per_sm", &wire.registers_per_sm, 1024.0, 1e8)?,
            register_unit: count("register_unit", &wire.register_unit, 1.0, 65_536.0)?,
            threads_per_sm: count("threads_per_sm", &wire.threads_per_sm, 32.0, 1e6)?,
            threads_per_block: count("threads_per_block", &wire.threads_per_block, 32.0, 1e6)?,
            blocks_per_sm: count("blocks_per_sm", &wire.blocks_per_sm, 1.0, 1e4)?,
            blocks_per_cluster: count("blocks_per_cluster", &wire.blocks_per_cluster, 1.0, 1e4)?,
            memory: Bytes(whole("memory", &wire.memory, 1e6..=1e15)?),
            l2: Bytes(whole("l2", &wire.l2, 1e3..=1e12)?),
            shared_per_sm: Bytes(whole("shared_per_sm", &wire.shared_per_sm, 1024.0..=1e9)?),
            shared_per_block: Bytes(whole(
                "shared_per_block",
                &wire.shared_per_block,
                1024.0..=1e9,
            )?),
            shared_reserved: Bytes(whole("shared_reserved", &wire.shared_reserved, 0.0..=1e6)?),
        })
    }

    fn peaks(&mut self, wire: &PeaksTable) -> Result<Peaks, InputError> {
        Ok(Peaks {
            clock_mhz: self.figure("peaks.clock_mhz", &wire.clock_mhz, CLOCK)?,
            bandwidth: self.figure("peaks.bandwidth", &wire.bandwidth, BANDWIDTH)?,
            tensor_flops: Some(self.figure("peaks.tensor_flops", &wire.tensor_flops, RATE)?),
        })
    }

    fn model(&mut self, wire: &Spanned<ModelTable>, sms: u32) -> Result<Machine, InputError> {
        let table = wire.get_ref();
        let known = || Machine::NAMES.iter().copied().filter(|name| *name != SMS);
        for (key, figure) in table {
            let name = key.get_ref();
            if !known().any(|known| known == name) {
                let remedy = match (name.as_str(), nearest(name, known())) {
                    (SMS, _) => "limits.sms says so already".to_owned(),
                    (_, Some(close)) => format!("did you mean `{close}`? ({GUIDE})"),
                    (_, None) => GUIDE.to_owned(),
                };
                let message = format!("unknown key `{}`", printable_line(name));
                return Err(self.document.error(key.span(), message, remedy));
            }
            self.figure(&format!("model.{name}"), figure, range(name))?;
        }
        let number = |name: &'static str| match name {
            SMS => Some(f64::from(sms)),
            _ => Some(*table.get(name)?.value.get_ref()),
        };
        Machine::from_numbers(number).map_err(|missing| {
            let start = wire.span().start;
            self.document.error(
                start..start + "[model]".len(),
                format!("the key `{missing}` is missing"),
                format!("add `{missing} = {{ value = …, from = \"…\" }}`; {GUIDE}"),
            )
        })
    }

    fn calibration(&self, wire: &CalibrationTable, name: &str) -> Result<Calibration, InputError> {
        bounds::name("run", wire.run.get_ref()).map_err(|why| {
            let remedy = "name the measured run it was compared with";
            self.document.error(wire.run.span(), why, remedy)
        })?;
        let mut least = 0.0;
        for (key, share) in [
            ("median", &wire.median),
            ("p90", &wire.p90),
            ("worst", &wire.worst),
        ] {
            let value = *share.get_ref();
            if !(least..=MOST_ERROR).contains(&value) {
                return Err(self.document.error(
                    share.span(),
                    format!("calibration.{key} = {value} is out of range"),
                    format!("give a share of the measured time, between {least} and {MOST_ERROR}"),
                ));
            }
            least = value;
        }
        Ok(Calibration {
            device: name.to_owned(),
            run: printable_line(wire.run.get_ref()),
            median: *wire.median.get_ref(),
            p90: *wire.p90.get_ref(),
            worst: *wire.worst.get_ref(),
            cells: wire.cells,
        })
    }

    /// A part cannot be more than the whole.
    fn agree(&self, wire: &TargetFile) -> Result<(), InputError> {
        let limits = &wire.limits;
        let pairs = [
            ("limits.shared_per_block", &limits.shared_per_block),
            ("limits.shared_per_sm", &limits.shared_per_sm),
            ("limits.shared_reserved", &limits.shared_reserved),
            ("limits.shared_per_sm", &limits.shared_per_sm),
            ("limits.threads_per_block", &limits.threads_per_block),
            ("limits.threads_per_sm", &limits.threads_per_sm),
            ("limits.register_unit", &limits.register_unit),
            ("limits.registers_per_sm", &limits.registers_per_sm),
        ];
        for pair in pairs.chunks_exact(2) {
            let [(key, part), (of, whole)] = [pair[0], pair[1]];
            let (value, most) = (*part.value.get_ref(), *whole.value.get_ref());
            self.at_most(part, (key, value), (of, most))?;
        }
        Ok(())
    }

    /// What is reached cannot be more than the peak.
    fn reach(&self, wire: &TargetFile, machine: &Machine) -> Result<(), InputError> {
        let (model, peaks) = (wire.model.get_ref(), &wire.peaks);
        let peak = |figure: &Figure| *figure.value.get_ref();
        let limits = [
            (
                "clock_mhz",
                ("model.clock_mhz", machine.clock_mhz),
                ("peaks.clock_mhz", peak(&peaks.clock_mhz)),
            ),
            (
                "rested_clock_mhz",
                ("model.rested_clock_mhz", machine.rested_clock_mhz),
                ("peaks.clock_mhz", peak(&peaks.clock_mhz)),
            ),
            (
                "clock_drop_mhz",
                ("model.clock_drop_mhz", machine.clock_drop_mhz),
                ("half of model.clock_mhz", machine.clock_mhz / 2.0),
            ),
            (
                "memory_bandwidth",
                ("model.memory_bandwidth", machine.memory_bandwidth),
                ("peaks.bandwidth", peak(&peaks.bandwidth)),
            ),
            (
                "wgmma_column",
                ("2048 / model.wgmma_column", tensor_flops(machine)),
                ("peaks.tensor_flops", peak(&peaks.tensor_flops)),
            ),
            (
                "tmem_product_column",
                (
                    "16384 / model.tmem_product_column",
                    tmem_flops(machine).unwrap_or_default(),
                ),
                ("peaks.tensor_flops", peak(&peaks.tensor_flops)),
            ),
        ];
        for (key, reached, most) in limits {
            if let Some(figure) = model.get(key) {
                self.at_most(figure, reached, most)?;
            }
        }
        Ok(())
    }

    fn at_most(
        &self,
        figure: &Figure,
        (key, value): (&str, f64),
        (of, most): (&str, f64),
    ) -> Result<(), InputError> {
        match value > most {
            false => Ok(()),
            true => Err(self.document.error(
                figure.value.span(),
                format!("{key} = {value} is more than {of} = {most}"),
                "one of the two is wrong",
            )),
        }
    }

    fn figure(
        &mut self,
        key: &str,
        figure: &Figure,
        range: RangeInclusive<f64>,
    ) -> Result<f64, InputError> {
        let value = *figure.value.get_ref();
        if !range.contains(&value) {
            // 1e308 has three hundred digits.
            let shown = match value.is_finite() && value.abs() >= 1e16 {
                true => format!("{value:e}"),
                false => value.to_string(),
            };
            return Err(self.document.error(
                figure.value.span(),
                format!("{key} = {shown} is out of range"),
                format!("give between {} and {:e}", range.start(), range.end()),
            ));
        }
        let from = figure.from.get_ref();
        let Some(source) = self.sources.get(from) else {
            let known = self.sources.keys().map(String::as_str);
            let remedy = match nearest(from, known) {
                Some(close) => format!("did you mean `{close}`?"),
                None => format!("say in [sources] what `{}` is", printable_line(from)),
            };
            let message = format!("{key} is from an unknown source");
            return Err(self.document.error(figure.from.span(), message, remedy));
        };
        let origin = printable_line(source.get_ref());
        self.origins.insert(key.to_owned(), origin);
        Ok(value)
    }
}

/// The one number of a machine that its limits say.
const SMS: &str = "sms";

/// What a number of a model can be. Latencies may be nothing; what takes or
/// moves something takes and moves more than that.
fn range(name: &str) -> RangeInclusive<f64> {
    match name {
        "clock_mhz" | "rested_clock_mhz" => CLOCK,
        _ if name.ends_with("_bandwidth") => BANDWIDTH,
        "wgmma_column" | "wgmma_least" | "sectors_per_cycle" => RATE,
        _ if name.starts_with("tmem_") && name.ends_with("_column") => RATE,
        _ if name.ends_with("_interval") || name.ends_with("_port") => RATE,
        _ if name.ends_with("_bytes") => 0.0..=1e12,
        _ if name.ends_with("_micros") => 0.0..=1e4,
        _ => 0.0..=1e12,
    }
}

/// A model that is off by more than this is none.
const MOST_ERROR: f64 = 100.0;
const CLOCK: RangeInclusive<f64> = 1.0..=20_000.0;
const BANDWIDTH: RangeInclusive<f64> = 1e6..=1e16;
const RATE: RangeInclusive<f64> = 1e-3..=1e9;

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Device, InputError> {
        device(&SourceFile {
            path: "t.toml".into(),
            text: text.into(),
        })
    }

    #[test]
    fn all_that_are_built_in_are_right_and_say_where_every_number_is_from() {
        for (name, device) in BUILT_IN.iter() {
            let model = device.model.as_ref().unwrap();
            let given = |name: &&&str| model.number(name).is_some();
            let numbers = Machine::NAMES.iter().filter(given).count();
            assert_eq!(device.origins.len(), 12 + 3 + numbers - 1, "{name}");
            assert_eq!(model.tmem.is_some(), device.chip.multiplies_fp4(), "{name}");
            assert!(device.ceiling(crate::domain::Timing::Modelled).is_some());
            assert_eq!(find(name).unwrap(), *device);
        }
        assert_eq!(usual().name, "NVIDIA H200");
        let folder = std::fs::read_dir("configs/targets").unwrap();
        assert_eq!(folder.count(), COMMITTED.len(), "one is not built in");
    }

    #[test]
    fn a_card_is_known_by_its_name_or_else_by_its_chip() {
        let chip = Chip::parse("sm_90");
        let bandwidth = |name: &str, chip| Some(like(name, chip)?.peaks.bandwidth);
        assert_eq!(bandwidth("NVIDIA H100 80GB HBM3", chip), Some(3.35e12));
        assert_eq!(bandwidth("NVIDIA H20", chip), Some(4.8e12));
        assert_eq!(bandwidth("NVIDIA B200", None), Some(8.0e12));
        assert_eq!(like("NVIDIA A100", Chip::parse("sm_80")), None);
    }

    #[test]
    fn mistakes_are_placed_and_told() {
        let h200 = COMMITTED[0].1;
        let sms = "sms = { value = 132, from = \"driver\" }";
        let cases = [
            (sms, "sm = 1", "unknown key `sm`", "did you mean `sms`?"),
            (sms, "", "the key `sms` is missing", "add `sms"),
            (
                sms,
                "sms = 132",
                "expected struct Figure",
                "docs/targets.md",
            ),
            (
                sms,
                "sms = { value = 132 }",
                "the key `from` is missing",
                "add `from",
            ),
            (
                sms,
                "sms = { value = 132, from = \"drivr\" }",
                "limits.sms is from an unknown source",
                "did you mean `driver`?",
            ),
            (
                "value = 132,",
                "value = 132, unit = 1,",
                "unknown key `unit`",
                "one of value, from is meant",
            ),
            (
                "value = 132,",
                "value = -1,",
                "limits.sms = -1",
                "give between 1",
            ),
            (
                "value = 132,",
                "value = 0,",
                "limits.sms = 0",
                "give between 1",
            ),
            (
                "value = 132,",
                "value = 1.5,",
                "no whole number",
                "how many",
            ),
            (
                "value = 132,",
                "value = nan,",
                "limits.sms = NaN",
                "between",
            ),
            (
                "value = 132,",
                "value = 1e99,",
                "limits.sms = 1e99 is out of range",
                "between",
            ),
            (
                "value = 1024, from = \"guide\" }\nregisters",
                "value = 999_999, from = \"guide\" }\nregisters",
                "limits.shared_reserved = 999999 is more than limits.shared_per_sm",
                "one of the two",
            ),
            (
                "value = 132,",
                "value = \"x\",",
                "expected f64",
                "docs/targets.md",
            ),
            (
                "value = 1980,",
                "value = -1980,",
                "peaks.clock_mhz",
                "between",
            ),
            (
                "value = 4.8e12,",
                "value = inf,",
                "peaks.bandwidth",
                "between",
            ),
            (
                "value = 4.8e12,",
                "value = 4.8,",
                "peaks.bandwidth = 4.8 is out of range",
                "between",
            ),
            (
                "value = 232_448,",
                "value = 332_448,",
                "limits.shared_per_block",
                "one of the two",
            ),
            (
                "\"sm_90\"",
                "\"sm_90a\"",
                "\"sm_90a\" is no chip",
                "without a letter",
            ),
            ("\"sm_90\"", "\"hopper\"", "\"hopper\" is no chip", "sm_90"),
            (
                "\"NVIDIA H200\"",
                "\"\"",
                "is no name for a device",
                "driver",
            ),
            (
                "driver = \"the",
                "driver = \" \" # ",
                "is no name for a source",
                "where",
            ),
            (
                "[peaks]",
                "[peak]",
                "unknown key `peak`",
                "did you mean `peaks`?",
            ),
        ];
        for (from, to, message, remedy) in cases {
            let text = h200.replacen(from, to, 1);
            assert_ne!(text, h200, "{from}");
            let error = read(&text).expect_err(to);
            assert!(
                error.message().contains(message),
                "{to}: {}",
                error.message()
            );
            assert!(error.remedy().contains(remedy), "{to}: {}", error.remedy());
            // What is missing is told at its table.
            let at = if to.is_empty() { "[limits]" } else { from };
            let line = h200[..h200.find(at).unwrap()].matches('\n').count() + 1;
            let place = error.location().unwrap_or_default();
            assert!(
                place.starts_with(&format!("t.toml:{line}:")),
                "{to}: {place}"
            );
        }
        assert!(
            find("h300")
                .unwrap_err()
                .remedy()
                .contains("h200, h100, b200")
        );
    }

    /// The H200 with the value of a number after its `[model]` written so, and
    /// the line where that is; the numbers themselves may be fitted anew.
    fn rewritten(key: &str, value: &str) -> (String, usize) {
        let h200 = COMMITTED[0].1;
        let model = h200.find("[model]").unwrap();
        let at = model + h200[model..].find(&format!("\n{key} = ")).unwrap() + 1;
        let end = at + h200[at..].find('\n').unwrap();
        let old = &h200[at..end];
        let new = match old.split_once("value = ") {
            Some((before, rest)) => {
                let after = rest.find(',').unwrap();
                format!("{before}value = {value}{}", &rest[after..])
            }
            None => format!("{key} = {value}"),
        };
        let line = h200[..at].matches('\n').count() + 1;
        (h200[..at].to_owned() + &new + &h200[end..], line)
    }

    #[test]
    fn a_model_that_cannot_be_is_refused_where_it_says_so() {
        let range = "is out of range";
        let cases = [
            ("clock_mhz", "2850", "is more than peaks.clock_mhz = 1980"),
            ("rested_clock_mhz", "2850", "more than peaks.clock_mhz"),
            (
                "clock_drop_mhz",
                "1500",
                "more than half of model.clock_mhz",
            ),
            ("memory_bandwidth", "5e12", "is more than peaks.bandwidth"),
            (
                "wgmma_column",
                "0.25",
                "= 8192 is more than peaks.tensor_flops",
            ),
            ("wgmma_column", "0", range),
            ("mufu_interval", "0", range),
            ("l2_port", "0", range),
            (
                "mufu_latency",
                "-24",
                "model.mufu_latency = -24 is out of range",
            ),
            (
                "l2_bandwidth",
                "nan",
                "model.l2_bandwidth = NaN is out of range",
            ),
            ("launch_micros", "inf", range),
            (
                "median",
                "-0.035",
                "calibration.median = -0.035 is out of range",
            ),
            (
                "worst",
                "0.00001",
                "calibration.worst = 0.00001 is out of range",
            ),
            ("p90", "nan", "calibration.p90 = NaN is out of range"),
            ("run", "\"\"", "is no name for a run"),
        ];
        for (key, value, message) in cases {
            let (text, line) = rewritten(key, value);
            let error = read(&text).expect_err(key);
            let told = error.message();
            assert!(told.contains(message), "{key} = {value}: {told}");
            let place = error.location().unwrap_or_default();
            assert!(
                place.starts_with(&format!("t.toml:{line}:")),
                "{key}: {place}"
            );
        }
        assert!(read(&rewritten("mufu_latency", "0").0).is_ok());
    }

    #[test]
    fn a_number_that_is_unknown_or_missing_is_told() {
        let h200 = COMMITTED[0].1;
        let renamed = |name: &str| read(&h200.replace("\nwake_latency =", name)).unwrap_err();
        let error = renamed("\nwake_latenci =");
        assert_eq!(error.message(), "unknown key `wake_latenci`");
        assert!(error.remedy().contains("did you mean `wake_latency`?"));
        let error = renamed("\nsms =");
        assert!(error.remedy().contains("limits.sms"), "{}", error.remedy());
        let error = renamed("\n# ");
        assert_eq!(error.message(), "the key `wake_latency` is missing");
        assert!(error.remedy().contains("add `wake_latency"));
        let line = h200[..h200.find("[model]").unwrap()].matches('\n').count() + 1;
        assert_eq!(error.location(), Some(format!("t.toml:{line}:1")));
    }

    #[test]
    fn numbers_of_tensor_memory_are_all_there_or_none() {
        let b200 = COMMITTED.iter().find(|(name, _)| *name == "b200");
        let b200 = b200.expect("it is built in").1;
        let changed = |old: &str, new: &str| {
            assert!(b200.contains(old), "{old}");
            read(&b200.replace(old, new)).unwrap_err()
        };
        let column = "\ntmem_product_column = { value = 0.5,";
        for (old, new, message) in [
            (
                column,
                "\ntmem_product_column = { value = 0.25,",
                "= 65536 is more than peaks.tensor_flops",
            ),
            (
                column,
                "\ntmem_product_column = { value = 0,",
                "model.tmem_product_column = 0 is out of range",
            ),
            (
                "\ntmem_load_latency = { value = 23,",
                "\ntmem_load_latency = { value = -1,",
                "model.tmem_load_latency = -1 is out of range",
            ),
            (
                "\ntmem_alloc_latency =",
                "\n# ",
                "the key `tmem_alloc_latency` is missing",
            ),
        ] {
            let told = changed(old, new);
            assert!(told.message().contains(message), "{}", told.message());
        }
        let lines = b200.lines().filter(|line| !line.starts_with("tmem_"));
        let none = read(&lines.collect::<Vec<_>>().join("\n")).unwrap();
        assert_eq!(none.model.unwrap().tmem, None);
    }

    #[test]
    fn who_was_never_compared_says_who_was() {
        let told = |name: &str| find(name).unwrap().calibration.unwrap().device;
        for name in ["h200", "h100", "b200"] {
            assert_eq!(told(name), "NVIDIA H200", "{name}");
        }
    }
}
