//! Devices as `configs/targets/` describes them: every number with where it is
//! from. Those committed are built in, so that dgx works from any folder.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::LazyLock;

use serde::Deserialize;
use toml::Spanned;

use crate::diagnostic::{InputError, SourceFile, nearest};
use crate::document::Document;
use crate::domain::{Bytes, Chip, Device, Limits, Model, Peaks, bounds, printable_line};

const GUIDE: &str = "docs/targets.md lists the keys";

/// The usual one first.
const COMMITTED: [(&str, &str); 3] = [
    ("h200", include_str!("../../configs/targets/h200.toml")),
    ("h100", include_str!("../../configs/targets/h100.toml")),
    ("b200", include_str!("../../configs/targets/b200.toml")),
];

static BUILT_IN: LazyLock<Vec<(&str, Device)>> = LazyLock::new(|| {
    let read = |(name, text): (&'static str, &str)| {
        let file = SourceFile {
            path: format!("configs/targets/{name}.toml").into(),
            text: text.into(),
        };
        let device = device(&file).expect("a test reads all that are built in");
        (name, device)
    };
    COMMITTED.into_iter().map(read).collect()
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

/// A target by the name of one that is built in, or by its file.
pub(crate) fn find(word: &str) -> Result<Device, InputError> {
    if let Some((_, device)) = BUILT_IN.iter().find(|(name, _)| *name == word) {
        return Ok(device.clone());
    }
    let names: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
    let remedy = format!(
        "give one of {}, or the path of a target file",
        names.join(", ")
    );
    device(&SourceFile::read(Path::new(word), "target", &remedy)?)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TargetFile {
    name: Spanned<String>,
    arch: Spanned<String>,
    sources: BTreeMap<String, Spanned<String>>,
    limits: LimitsTable,
    peaks: PeaksTable,
    model: ModelTable,
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

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelTable {
    clock_mhz: Figure,
    tensor_flops: Figure,
    issue: Figure,
    mufu: Figure,
    shared_bytes: Figure,
    l2_bandwidth: Figure,
    bandwidth: Figure,
    launch_micros: Figure,
}

/// A number, and which of the sources it is from.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Figure {
    value: Spanned<f64>,
    from: Spanned<String>,
}

fn device(file: &SourceFile) -> Result<Device, InputError> {
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
    let model = reader.model(&wire.model)?;
    reader.agree(&wire)?;
    Ok(Device {
        name,
        chip,
        limits,
        peaks,
        model: Some(model),
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

    fn model(&mut self, wire: &ModelTable) -> Result<Model, InputError> {
        Ok(Model {
            clock_mhz: self.figure("model.clock_mhz", &wire.clock_mhz, CLOCK)?,
            tensor_flops: self.figure("model.tensor_flops", &wire.tensor_flops, RATE)?,
            issue: self.figure("model.issue", &wire.issue, RATE)?,
            mufu: self.figure("model.mufu", &wire.mufu, RATE)?,
            shared_bytes: self.figure("model.shared_bytes", &wire.shared_bytes, RATE)?,
            l2_bandwidth: self.figure("model.l2_bandwidth", &wire.l2_bandwidth, BANDWIDTH)?,
            bandwidth: self.figure("model.bandwidth", &wire.bandwidth, BANDWIDTH)?,
            launch_micros: self.figure("model.launch_micros", &wire.launch_micros, 0.0..=1e4)?,
        })
    }

    /// A part cannot be more than the whole, nor what is reached than the peak.
    fn agree(&self, wire: &TargetFile) -> Result<(), InputError> {
        let TargetFile {
            limits,
            peaks,
            model,
            ..
        } = wire;
        let pairs = [
            ("limits.shared_per_block", &limits.shared_per_block),
            ("limits.shared_per_sm", &limits.shared_per_sm),
            ("limits.shared_reserved", &limits.shared_reserved),
            ("limits.shared_per_sm", &limits.shared_per_sm),
            ("limits.threads_per_block", &limits.threads_per_block),
            ("limits.threads_per_sm", &limits.threads_per_sm),
            ("limits.register_unit", &limits.register_unit),
            ("limits.registers_per_sm", &limits.registers_per_sm),
            ("model.clock_mhz", &model.clock_mhz),
            ("peaks.clock_mhz", &peaks.clock_mhz),
            ("model.bandwidth", &model.bandwidth),
            ("peaks.bandwidth", &peaks.bandwidth),
            ("model.tensor_flops", &model.tensor_flops),
            ("peaks.tensor_flops", &peaks.tensor_flops),
        ];
        for pair in pairs.chunks_exact(2) {
            let [(key, part), (of, whole)] = [pair[0], pair[1]];
            let (value, most) = (part.value.get_ref(), whole.value.get_ref());
            if value > most {
                return Err(self.document.error(
                    part.value.span(),
                    format!("{key} = {value} is more than {of} = {most}"),
                    "one of the two is wrong",
                ));
            }
        }
        Ok(())
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
            assert_eq!(device.origins.len(), 12 + 3 + 8, "{name}");
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
                "value = 1700,",
                "value = 2700,",
                "model.clock_mhz = 2700 is more than peaks.clock_mhz = 1980",
                "one of the two is wrong",
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
}
