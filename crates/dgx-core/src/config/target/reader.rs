//! Turns a target file into a device: every number is in its range and names its source.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use ptx_machine::Machine;

use super::GUIDE;
use super::wire::{CalibrationTable, Figure, LimitsTable, ModelTable, PeaksTable, TargetFile};
use crate::diagnostic::{InputError, SourceFile, did_you_mean, nearest};
use crate::document::{Document, Spanned};
use crate::domain::roofline::{tensor_flops, tmem_flops};
use crate::domain::{
    Bytes, Calibration, Chip, Device, Joined, Limits, Peaks, bounds, printable_line, short,
};

/// The device a target file describes.
pub fn device(file: &SourceFile) -> Result<Device, InputError> {
    let document = Document::whole(file, GUIDE);
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
    let calibration = calibration.transpose()?;
    let mut device = Device {
        chip,
        limits,
        peaks,
        model: Some(model),
        calibration: None,
        name,
        origins: reader.origins,
        card: None,
    };
    let compared = wire.calibration.and_then(|table| table.digest);
    if compared == Some(device.digest()) {
        device.calibration = calibration;
    }
    Ok(device)
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
                let remedy = format!("describe the origin of `{name}` in one line");
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

    /// A device is a chip, not one of the targets to compile for it.
    fn chip(&self, arch: &Spanned<String>) -> Result<Chip, InputError> {
        let chip = Chip::parse(arch.get_ref());
        chip.filter(|chip| chip.to_string() == *arch.get_ref())
            .ok_or_else(|| {
                let message = format!("{:?} is not a chip", arch.get_ref());
                let known = Chip::KNOWN.iter().joined(", ");
                let remedy = format!("give one without a letter, e.g. of {known}");
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
                    format!("limits.{key} = {value} is not a whole number"),
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
                    (SMS, _) => "limits.sms sets it already".to_owned(),
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
                    format!("calibration.{key} = {} is out of range", short(value)),
                    format!("give a share of the measured time, between {least} and {MOST_ERROR}"),
                ));
            }
            least = value;
        }
        if *wire.cells.get_ref() == 0 {
            return Err(self.document.error(
                wire.cells.span(),
                "calibration.cells = 0 compares nothing".to_owned(),
                "write how many cells were compared, or remove [calibration]",
            ));
        }
        for operator in &wire.operators {
            bounds::name("operator", operator.get_ref()).map_err(|why| {
                let remedy = "name the operators whose cells were compared";
                self.document.error(operator.span(), why, remedy)
            })?;
        }
        let operators = wire.operators.iter().map(|name| name.get_ref());
        Ok(Calibration {
            device: name.to_owned(),
            run: printable_line(wire.run.get_ref()),
            median: *wire.median.get_ref(),
            p90: *wire.p90.get_ref(),
            worst: *wire.worst.get_ref(),
            cells: *wire.cells.get_ref(),
            operators: operators.map(|name| printable_line(name)).collect(),
        })
    }

    /// A part cannot be larger than the whole.
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

    /// An achieved rate cannot exceed the peak.
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
                ("half of model.clock_mhz", deepest_drop(machine)),
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
            let shown = short(value);
            return Err(self.document.error(
                figure.value.span(),
                format!("{key} = {shown} is out of range"),
                format!("give between {} and {:e}", range.start(), range.end()),
            ));
        }
        let from = figure.from.get_ref();
        let Some(source) = self.sources.get(from) else {
            let known = self.sources.keys().map(String::as_str);
            let remedy = did_you_mean(from, known)
                .unwrap_or_else(|| format!("describe `{}` in [sources]", printable_line(from)));
            let message = format!("{key} is from an unknown source");
            return Err(self.document.error(figure.from.span(), message, remedy));
        };
        let origin = printable_line(source.get_ref());
        self.origins.insert(key.to_owned(), origin);
        Ok(value)
    }
}

/// The only number of a machine that is among its limits.
pub(super) const SMS: &str = "sms";

/// The range of a number of a model. Latencies may be 0; intervals and rates may not.
pub(super) fn range(name: &str) -> RangeInclusive<f64> {
    match name {
        "clock_mhz" | "rested_clock_mhz" => CLOCK,
        _ if name.ends_with("_bandwidth") => BANDWIDTH,
        "wgmma_column" | "wgmma_least" | "sectors_per_cycle" => RATE,
        _ if name.starts_with("tmem_") && name.ends_with("_column") => RATE,
        _ if name.ends_with("_interval") || name.ends_with("_port") => RATE,
        _ if name.ends_with("_bytes") => 0.0..=1e12,
        _ if name.ends_with("_micros") => 0.0..=1e4,
        "l2_same" | "memory_beside" => 0.0..=1.0,
        _ => CYCLES,
    }
}

/// The largest allowed drop of a machine's clock under load: times are divided by the rest.
pub(super) fn deepest_drop(machine: &Machine) -> f64 {
    machine.clock_mhz / 2.0
}

/// The largest error that a model may state.
const MOST_ERROR: f64 = 100.0;
const CLOCK: RangeInclusive<f64> = 1.0..=20_000.0;
const BANDWIDTH: RangeInclusive<f64> = 1e6..=1e16;
const RATE: RangeInclusive<f64> = 1e-3..=1e9;
/// Half a millisecond: sums of longer times would exceed any clock.
const CYCLES: RangeInclusive<f64> = 0.0..=1e6;
