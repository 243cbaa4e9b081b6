//! From a round file as written to a [`Round`] that is right in itself.
//! Whether its names exist is the plan's to find out.

use std::ops::{Range, RangeInclusive};
use std::path::Path;

use super::round::{Baseline, Gate, Measurement, Pitch, Round, Selection, Validation};
use super::{is_plain, jury, limits, shapes, slurm, wire};
use crate::diagnostic::{InputError, SourceFile, nearest};
use crate::document::{Document, Spanned};
use crate::domain::Distribution;
use crate::domain::bounds::{self, CLAIM};
use crate::domain::{Bytes, ContenderId, Counter, printable, printable_line, short};

const GUIDE: &str = "docs/rounds.md lists the keys";

impl Round {
    /// Reads and checks a round file.
    pub fn read(path: &Path) -> Result<Self, InputError> {
        let remedy = "give the path of a round file, e.g. configs/round4.toml";
        let file = SourceFile::read(path, "config", remedy)?;
        Self::from_source(file)
    }

    /// Checks a round file that was read already.
    pub fn from_source(file: SourceFile) -> Result<Self, InputError> {
        let document = Document::new(&file, 0..file.text.len(), GUIDE);
        let wire: wire::RoundFile = document.parse()?;
        let reader = Reader {
            document: &document,
        };
        let (shapes, shape_spans) = shapes::read(&document, &wire.shapes, &wire.grid)?
            .into_iter()
            .unzip();
        Ok(Self {
            name: reader.name(wire.name.as_ref(), &file.path)?,
            question: reader.question(&wire.question)?,
            contenders: reader.contenders(&wire.contenders)?,
            baseline: reader.baseline(&wire.baseline)?,
            yardstick: wire.yardstick,
            shapes,
            shape_spans,
            validation: reader.validation(wire.validate)?,
            measurement: reader.measurement(wire.measure)?,
            slurm: slurm::read(&document, wire.slurm)?,
            gate: wire.gate.map(|gate| reader.gate(gate)).transpose()?,
            jury: wire.jury.map(|j| jury::read(&document, j)).transpose()?,
            only: Vec::new(),
            pitches: reader.pitches(wire.pitch)?,
            file: file.clone(),
        })
    }
}

impl Selection {
    /// A contender's name, or a variant's for all its contenders, written at
    /// `span` of a round file (or nowhere, for one from the command line).
    pub fn parse(text: &str, span: Range<usize>) -> Result<Self, String> {
        let (variant, params) = ContenderId::parts(text)?;
        Ok(Self {
            variant,
            params,
            span,
        })
    }
}

struct Reader<'a> {
    document: &'a Document<'a>,
}

impl Reader<'_> {
    fn name(&self, name: Option<&Spanned<String>>, path: &Path) -> Result<String, InputError> {
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        let (text, span) = match name {
            Some(name) => (name.get_ref().as_str(), name.span()),
            None => (stem.unwrap_or_default(), 0..0),
        };
        bounds::name("round", text).map_err(|why| {
            self.document
                .error(span.clone(), why, "give it a short `name`")
        })?;
        if is_plain(text) {
            return Ok(text.to_owned());
        }
        Err(self.document.error(
            span,
            format!("`{}` cannot be a round's name", text.escape_debug()),
            "use letters, digits, - _ and .: the run file is named after it",
        ))
    }

    fn question(&self, question: &Spanned<String>) -> Result<String, InputError> {
        let text = question.get_ref().trim();
        if text.is_empty() || text.chars().any(char::is_control) {
            return Err(self.document.error(
                question.span(),
                "`question` is not one line of text",
                "write in one line what the round is to find out",
            ));
        }
        Ok(printable_line(text))
    }

    fn contenders(
        &self,
        list: &Spanned<Vec<Spanned<String>>>,
    ) -> Result<Vec<Selection>, InputError> {
        if list.get_ref().is_empty() {
            return Err(self.document.error(
                list.span(),
                "the round has no contenders",
                "name one or more variants; `dgx list` shows them",
            ));
        }
        list.get_ref()
            .iter()
            .map(|text| self.selection(text.get_ref(), text.span()))
            .collect()
    }

    fn selection(&self, text: &str, span: Range<usize>) -> Result<Selection, InputError> {
        Selection::parse(text, self.document.place(span.clone())).map_err(|message| {
            let remedy = "write NAME, or NAME:KEY=1:KEY=2";
            self.document.error(span, message, remedy)
        })
    }

    fn baseline(&self, baseline: &Spanned<wire::Baseline>) -> Result<Baseline, InputError> {
        let span = baseline.span();
        match baseline.get_ref() {
            wire::Baseline::Name(text) => Ok(Baseline::Contender(self.selection(text, span)?)),
            wire::Baseline::WinnerOf(round) => Ok(Baseline::WinnerOf {
                round: round.winner_of.clone(),
                span,
            }),
        }
    }

    fn validation(&self, wire: wire::Validate) -> Result<Validation, InputError> {
        let distributions = match &wire.distributions {
            None => Distribution::USUAL.to_vec(),
            Some(list) => self.distributions(list)?,
        };
        let seed = wire.seed.as_ref();
        Ok(Validation {
            rtol: self.real("rtol", wire.rtol, 1e-3, limits::TOLERANCE)?,
            atol: self.real("atol", wire.atol, 1e-3, limits::TOLERANCE)?,
            distributions,
            seed: seed
                .map(|seed| {
                    u64::try_from(*seed.get_ref()).map_err(|_| {
                        let message = format!("a seed of {}", seed.get_ref());
                        let remedy = "give 0 or more, or none for a fresh one each run";
                        self.document.error(seed.span(), message, remedy)
                    })
                })
                .transpose()?,
            timeout: self.real("timeout", wire.timeout, 120.0, limits::TIMEOUT)?,
        })
    }

    fn distributions(
        &self,
        list: &Spanned<Vec<Spanned<String>>>,
    ) -> Result<Vec<Distribution>, InputError> {
        let mut chosen = Vec::new();
        for name in list.get_ref() {
            let distribution = self.distribution(name)?;
            if chosen.contains(&distribution) {
                let message = format!("`{distribution}` is listed twice");
                return Err(self.document.error(name.span(), message, "remove one"));
            }
            chosen.push(distribution);
        }
        if chosen.is_empty() {
            return Err(self.document.error(
                list.span(),
                "no distribution: nothing would be validated",
                "leave the key out for all of them",
            ));
        }
        Ok(chosen)
    }

    fn distribution(&self, name: &Spanned<String>) -> Result<Distribution, InputError> {
        let text = name.get_ref();
        Distribution::from_name(text).ok_or_else(|| {
            let known = Distribution::ALL.map(Distribution::as_str);
            let remedy = match nearest(text, known) {
                Some(close) => format!("did you mean `{close}`?"),
                None => format!("there are {}", known.join(", ")),
            };
            let message = format!("there is no distribution `{text}`");
            self.document.error(name.span(), message, remedy)
        })
    }

    fn measurement(&self, wire: wire::Measure) -> Result<Measurement, InputError> {
        let distribution = wire.distribution.as_ref();
        Ok(Measurement {
            min_blocks: self.count("min_blocks", wire.min_blocks, 30, limits::MIN_BLOCKS)?,
            max_seconds: self.real("max_seconds", wire.max_seconds, 5.0, limits::MAX_SECONDS)?,
            processes: self.count("processes", wire.processes, 5, limits::PROCESSES)?,
            warmup: self.count("warmup", wire.warmup, 3, limits::WARMUP)?,
            cold_l2: wire.cold_l2.unwrap_or(true),
            distribution: distribution
                .map(|name| self.distribution(name))
                .transpose()?
                .unwrap_or(Distribution::Benchmark),
        })
    }

    fn gate(&self, wire: wire::Gate) -> Result<Gate, InputError> {
        let speedup = |name, value: Option<Spanned<f64>>| {
            let checked = value.map(|value| self.real(name, Some(value), 1.0, limits::FACTOR));
            checked.transpose()
        };
        let limit = |name, value: Option<Spanned<i64>>, range: RangeInclusive<u32>| {
            let checked = value.map(|value| self.count(name, Some(value), 1, range));
            checked.transpose()
        };
        let occupancy = wire.min_occupancy;
        Ok(Gate {
            contenders: wire.contenders.iter().map(|name| written(name)).collect(),
            // A run file may stand there as well.
            over: wire.over.map(|over| match over.ends_with(".jsonl") {
                true => over,
                false => written(&over),
            }),
            min_geomean: speedup("min_geomean", wire.min_geomean)?,
            min_shape: speedup("min_shape", wire.min_shape)?,
            not_slower: wire.not_slower,
            correct: wire.correct,
            max_smem: limit("max_smem", wire.max_smem, limits::SMEM)?.map(|b| Bytes(b.into())),
            max_registers: limit("max_registers", wire.max_registers, limits::REGISTERS)?,
            min_occupancy: occupancy
                .map(|value| self.real("min_occupancy", Some(value), 0.0, limits::OCCUPANCY))
                .transpose()?,
            occupancy_not_worse: wire.occupancy_not_worse,
            spills_not_worse: wire.spills_not_worse,
            claims_met: wire.claims_met,
            counters: self.counters(wire.counters)?,
        })
    }

    fn counters(
        &self,
        table: wire::Table<Spanned<f64>>,
    ) -> Result<Vec<(Counter, f64)>, InputError> {
        let rule = |(name, factor): (Spanned<String>, Spanned<f64>)| {
            let Some(counter) = Counter::named(name.get_ref()) else {
                return Err(self.document.error(
                    name.span(),
                    format!("`{}` is not a counter", name.get_ref()),
                    format!("one of {}", Counter::names()),
                ));
            };
            let factor = self.real(counter.as_str(), Some(factor), 1.0, limits::FACTOR)?;
            Ok((counter, factor))
        };
        table.into_iter().map(rule).collect()
    }

    fn pitches(&self, list: Vec<wire::Pitch>) -> Result<Vec<Pitch>, InputError> {
        list.into_iter()
            .map(|pitch| {
                let claim = match pitch
                    .claim
                    .as_ref()
                    .map(|c| (c.get_ref().as_slice(), c.span()))
                {
                    None => None,
                    Some(([low, high], _))
                        if low <= high && CLAIM.contains(low) && CLAIM.contains(high) =>
                    {
                        Some((*low, *high))
                    }
                    Some((_, span)) => {
                        return Err(self.document.error(
                            span,
                            "a claim is a pair of speedups from 0.001 to 1000, least first",
                            "e.g. claim = [1.5, 1.8]",
                        ));
                    }
                };
                Ok(Pitch {
                    design: printable_line(pitch.design.get_ref()),
                    contender: pitch.contender.as_deref().map(written),
                    claim,
                    idea: printable(&pitch.idea),
                    outcome: pitch.outcome.as_deref().map(printable),
                })
            })
            .collect()
    }

    fn real(
        &self,
        name: &str,
        value: Option<Spanned<f64>>,
        default: f64,
        range: RangeInclusive<f64>,
    ) -> Result<f64, InputError> {
        let Some(value) = value else {
            return Ok(default);
        };
        match range.contains(value.get_ref()) {
            true => Ok(*value.get_ref()),
            false => Err(self.document.error(
                value.span(),
                format!("{name} = {} is out of range", short(*value.get_ref())),
                format!("give between {} and {}", range.start(), range.end()),
            )),
        }
    }

    fn count(
        &self,
        name: &str,
        value: Option<Spanned<i64>>,
        default: u32,
        range: RangeInclusive<u32>,
    ) -> Result<u32, InputError> {
        let Some(value) = value else {
            return Ok(default);
        };
        match u32::try_from(*value.get_ref()) {
            Ok(count) if range.contains(&count) => Ok(count),
            _ => Err(self.document.error(
                value.span(),
                format!("{name} = {} is out of range", value.get_ref()),
                format!("give between {} and {}", range.start(), range.end()),
            )),
        }
    }
}

/// A contender's name in the spelling of tables and run files.
fn written(name: &str) -> String {
    printable_line(ContenderId::written(name).as_str())
}
