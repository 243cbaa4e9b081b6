//! Turns a round file as written into a consistent [`Round`]. The plan checks whether its names
//! exist.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::operator::Operator;

use super::round::{Baseline, Gate, Pitch, Round, Selection, Yardstick};
use super::{GUIDE, is_plain, jury, shapes, wire};
use crate::diagnostic::{InputError, SourceFile};
use crate::document::{Document, Spanned};
use crate::domain::{ContenderId, bounds, printable_line};
use crate::operator;

impl Round {
    /// Reads and checks a round file.
    pub fn read(path: &Path) -> Result<Self, InputError> {
        let remedy = "give the path of a round file, e.g. configs/round4.toml";
        let file = SourceFile::read(path, "config", remedy)?;
        Self::from_source(file)
    }

    /// Checks a round file that is already in memory.
    pub fn from_source(file: SourceFile) -> Result<Self, InputError> {
        let document = Document::whole(&file, GUIDE);
        let wire: wire::RoundFile = document.parse()?;
        let reader = Reader {
            document: &document,
        };
        let operator = reader.operator(wire.operator.as_ref())?;
        let (shapes, shape_spans) = shapes::read(&document, &operator, &wire.shapes, &wire.grid)?
            .into_iter()
            .unzip();
        Ok(Self {
            name: reader.name(wire.name.as_ref(), &file.path)?,
            question: reader.question(&wire.question)?,
            contenders: reader.contenders(&wire.contenders)?,
            baseline: reader.baseline(&wire.baseline)?,
            yardstick: reader.yardstick(wire.yardstick.as_ref(), &operator)?,
            operator,
            shapes,
            shape_spans,
            validation: wire.validate,
            measurement: wire.measure,
            slurm: wire.slurm,
            gate: wire.gate.map(Gate::written),
            jury: wire.jury.map(|j| jury::read(&document, j)).transpose()?,
            only: Vec::new(),
            pitches: wire.pitch.into_iter().map(Pitch::printable).collect(),
            file: file.clone(),
        })
    }
}

impl Selection {
    /// A contender's name, or a variant's for all its contenders, written at `span` of a round file
    /// (or nowhere, if it is from the command line).
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
    fn yardstick(
        &self,
        asked: Option<&Spanned<wire::AskedYardstick>>,
        operator: &Operator,
    ) -> Result<Option<Yardstick>, InputError> {
        let usual = Yardstick::of(operator);
        let Some(asked) = asked else {
            return Ok(Some(usual));
        };
        match *asked.get_ref() {
            wire::AskedYardstick::Usual(wanted) => Ok(wanted.then_some(usual)),
            wire::AskedYardstick::Named(Yardstick::Cublas) if usual != Yardstick::Cublas => {
                let name = &operator.name;
                let message = format!("cuBLAS has no product that is all of {name}");
                let remedy = "write \"copy\": a copy of as many bytes as the operator moves";
                Err(self.document.error(asked.span(), message, remedy))
            }
            wire::AskedYardstick::Named(named) => Ok(Some(named)),
        }
    }

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

    fn operator(&self, name: Option<&Spanned<String>>) -> Result<Arc<Operator>, InputError> {
        let named = name.map(|name| name.get_ref().as_str());
        operator::named(named).map_err(|error| match name {
            // An error in an existing value has its own location.
            Some(name) if error.location().is_none() => {
                self.document
                    .error(name.span(), error.message(), error.remedy())
            }
            _ => error,
        })
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
}
