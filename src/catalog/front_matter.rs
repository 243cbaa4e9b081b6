//! From the front matter as written to a [`Variant`] in which every name is
//! known, every expression parsed and every count right. What depends on the
//! shape is left to the plan.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use toml::Spanned;

use super::Catalog;
use super::variant::{Deal, Launch, MAKESPAN, Scratch, TensorMap, Tune, Variant, combinations};
use super::wire::{self, Extent, FrontMatter, Per, Table, Value};
use super::{Fill, MapType, OperandRef};
use super::{Headers, Library};
use crate::diagnostic::{InputError, SourceFile, nearest};
use crate::document::{Document, Formula};
use crate::domain::bounds::{self, CLAIM};
use crate::domain::{Claim, ContenderId, Status, printable_line};
use crate::expr::{self, SHAPE_NAMES};

const OPEN: &str = "/*dgx";
const CLOSE: &str = "*/";
const GUIDE: &str = "docs/variants.md lists the keys";
/// `Group::scratch` and `Args::scratch` have this many slots.
const SCRATCH_SLOTS: usize = 8;
/// More contenders from one file than anyone meant to run.
const MAX_COMBINATIONS: usize = 256;
/// More entries of one kind than anyone wrote by hand.
const MAX_ENTRIES: usize = 256;

/// Reads the front matter of `file`, whose stem is `name`.
pub(super) fn read(
    name: &str,
    file: SourceFile,
    library: &Library,
    catalog: Option<&Catalog>,
) -> Result<Variant, InputError> {
    let range = locate(&file)?;
    let document = Document::new(&file, range, GUIDE);
    let wire: FrontMatter = document.parse()?;
    let reader = Reader {
        document: &document,
        file: &file,
        names: BTreeSet::new(),
        has_tiles: wire.tiles.is_some(),
        catalog,
    };
    let variant = reader.variant(name, wire)?;
    let headers = Arc::new(Headers::of(&file.text, library));
    Ok(Variant {
        file,
        headers,
        ..variant
    })
}

/// The bytes between `/*dgx` and `*/` at the top of the file.
fn locate(file: &SourceFile) -> Result<Range<usize>, InputError> {
    let text = file.text.trim_start_matches('\u{feff}');
    let skipped = file.text.len() - text.trim_start().len();
    if !file.text[skipped..].starts_with(OPEN) {
        return Err(file.error(
            skipped..skipped + 1,
            "the file does not open with front matter",
            "begin it with /*dgx, TOML, and */: see docs/variants.md",
        ));
    }
    let start = skipped + OPEN.len();
    match file.text[start..].find(CLOSE) {
        Some(len) => Ok(start..start + len),
        None => Err(file.error(
            skipped..start,
            "the front matter is never closed",
            "end it with */",
        )),
    }
}

pub(super) struct Reader<'a> {
    pub(super) document: &'a Document<'a>,
    file: &'a SourceFile,
    /// Parameters and constants defined so far.
    names: BTreeSet<String>,
    has_tiles: bool,
    /// Where picked variants are; `None` while one of them is read.
    pub(super) catalog: Option<&'a Catalog>,
}

impl Reader<'_> {
    fn variant(mut self, name: &str, wire: FrontMatter) -> Result<Variant, InputError> {
        self.check_counts(&wire)?;
        let picks = self.picks(&wire)?;
        let summary = self.summary(&wire.summary)?;
        let claim = wire.claim.map(|claim| self.claim(claim)).transpose()?;
        let place = wire.params.keys().next().map_or(0..0, Spanned::span);
        let params = self.choices(wire.params)?;
        for chosen in combinations(&params) {
            bounds::name("contender", ContenderId::new(name, &chosen).as_str()).map_err(|why| {
                let remedy = "shorten the variant's name, or those of its parameters";
                self.document.error(place.clone(), why, remedy)
            })?;
        }
        let (choose, minimise) = match wire.tune {
            Some(tune) => (self.choices(tune.choose)?, Some(tune.minimise)),
            None => Default::default(),
        };
        let constants = self.constants(wire.constants)?;
        let tune = minimise
            .map(|minimise| {
                if wire.deal.is_some() {
                    self.names.insert(MAKESPAN.to_owned());
                }
                let minimise = self.formula(&minimise)?;
                self.names.remove(MAKESPAN);
                Ok(Tune { choose, minimise })
            })
            .transpose()?;
        let requires = self.formulas(&wire.requires)?;
        let tiles = wire.tiles.as_ref().map(|t| self.formula(t)).transpose()?;
        let order = wire.order.as_ref().map(|o| self.formula(o)).transpose()?;
        let deal = wire.deal.as_ref().map(|d| self.deal(d)).transpose()?;
        let scratch = self.scratch(&wire.scratch)?;
        let maps = self.maps(&wire.map, &scratch)?;
        let launches = match picks.is_empty() {
            true => self.launches(&wire.launch)?,
            false => Vec::new(),
        };
        Ok(Variant {
            name: name.to_owned(),
            file: self.file.clone(),
            headers: Arc::default(),
            summary,
            parent: wire.parent.as_deref().map(printable_line),
            round: wire.round,
            claim,
            // Whether there is such a target is the compiler's to say: what
            // it refuses is this variant's row.
            arch: printable_line(&wire.arch),
            expect: wire.expect.unwrap_or(Status::Ok),
            params,
            constants,
            tune,
            requires,
            tiles,
            order,
            deal,
            scratch,
            maps,
            launches,
            picks,
            broken: None,
        })
    }

    fn check_counts(&self, wire: &FrontMatter) -> Result<(), InputError> {
        let counts = [
            ("constants", wire.constants.len()),
            ("requirements", wire.requires.len()),
            ("maps", wire.map.len()),
            ("launches", wire.launch.len()),
        ];
        match counts.iter().find(|(_, count)| *count > MAX_ENTRIES) {
            None => Ok(()),
            Some((what, count)) => Err(self.document.error(
                0..0,
                format!("{count} {what}, {MAX_ENTRIES} at most"),
                "leave some out",
            )),
        }
    }

    fn summary(&self, summary: &Spanned<String>) -> Result<String, InputError> {
        let text = summary.get_ref().trim();
        if text.is_empty() || text.contains('\n') {
            return Err(self.document.error(
                summary.span(),
                "`summary` is not one line",
                "say the design's idea in one line: it is printed in tables",
            ));
        }
        Ok(printable_line(text))
    }

    fn claim(&self, claim: Spanned<wire::Claim>) -> Result<Claim, InputError> {
        let span = claim.span();
        let wire::Claim { geomean, over, why } = claim.into_inner();
        if !CLAIM.contains(&geomean) {
            return Err(self.document.error(
                span,
                format!("a claim of {geomean} is no speedup"),
                "give the geometric mean claimed, from 0.001 to 1000, e.g. 1.4",
            ));
        }
        Ok(Claim {
            geomean,
            over: printable_line(&over),
            why: why.map(|why| printable_line(&why)),
        })
    }

    /// `params`, and the choices of `tune`: lists of values under new names.
    fn choices(
        &mut self,
        table: Table<Spanned<Vec<i64>>>,
    ) -> Result<std::collections::BTreeMap<String, Vec<i64>>, InputError> {
        let mut combinations = 1_usize;
        let mut choices = std::collections::BTreeMap::new();
        for (key, values) in table {
            self.define(&key)?;
            let list = values.get_ref();
            let distinct: BTreeSet<&i64> = list.iter().collect();
            if list.is_empty() || distinct.len() < list.len() {
                return Err(self.document.error(
                    values.span(),
                    format!("`{}` needs one or more different values", key.get_ref()),
                    "list each value once",
                ));
            }
            combinations = combinations.saturating_mul(list.len());
            if combinations > MAX_COMBINATIONS {
                return Err(self.document.error(
                    values.span(),
                    format!("more than {MAX_COMBINATIONS} combinations"),
                    "list fewer values",
                ));
            }
            choices.insert(key.into_inner(), values.into_inner());
        }
        Ok(choices)
    }

    fn constants(
        &mut self,
        table: Table<Spanned<Value>>,
    ) -> Result<Vec<(String, Formula)>, InputError> {
        let mut entries: Vec<_> = table.into_iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        let mut constants = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let formula = self.formula(&value)?;
            self.define(&key)?;
            constants.push((key.into_inner(), formula));
        }
        Ok(constants)
    }

    /// Takes a new name into use.
    fn define(&mut self, key: &Spanned<String>) -> Result<(), InputError> {
        let name = key.get_ref();
        let error =
            |message: String, remedy: &str| Err(self.document.error(key.span(), message, remedy));
        if !is_identifier(name) {
            return error(
                format!("`{name}` cannot be a C macro"),
                "use letters, digits and underscores",
            );
        }
        let reserved = SHAPE_NAMES.contains(&name.as_str())
            || name == MAKESPAN
            || name == "MAPS"
            || name.starts_with("MAP_")
            || name.starts_with("SCRATCH_");
        if reserved {
            return error(
                format!("`{name}` already has a meaning"),
                "choose another name; capitals are usual for constants",
            );
        }
        if !self.names.insert(name.clone()) {
            return error(format!("`{name}` is defined twice"), "remove one of them");
        }
        Ok(())
    }

    /// Parses an expression and checks that every name in it means something here.
    pub(super) fn formula(&self, value: &Spanned<Value>) -> Result<Formula, InputError> {
        self.formula_at(value.get_ref(), value.span())
    }

    fn formula_at(&self, value: &Value, span: Range<usize>) -> Result<Formula, InputError> {
        let formula = match value {
            Value::Integer(value) => return Ok(self.document.number(*value, span)),
            Value::Text(text) => self.document.formula(text, span)?,
        };
        for (name, span) in formula.expr.names() {
            let known = match name {
                "tiles" => self.has_tiles,
                _ => SHAPE_NAMES.contains(&name) || self.names.contains(name),
            };
            if !known {
                let error = expr::unknown(name, &span, self.names.iter());
                return Err(formula.error(self.file, &error));
            }
        }
        Ok(formula)
    }

    fn formulas(&self, values: &[Spanned<Value>]) -> Result<Vec<Formula>, InputError> {
        values.iter().map(|value| self.formula(value)).collect()
    }

    fn extent(&self, extent: &Spanned<Extent>) -> Result<Vec<Formula>, InputError> {
        match extent.get_ref() {
            Extent::One(value) => Ok(vec![self.formula_at(value, extent.span())?]),
            Extent::List(list) if (1..=3).contains(&list.len()) => self.formulas(list),
            Extent::List(list) => Err(self.document.error(
                extent.span(),
                format!("{} dimensions where one to three are possible", list.len()),
                "give x, or x and y, or x, y and z",
            )),
        }
    }

    fn deal(&self, deal: &Spanned<wire::Deal>) -> Result<Deal, InputError> {
        if !self.has_tiles {
            return Err(self.document.error(
                deal.span(),
                "`deal` without `tiles`",
                "say with `tiles` how many tiles a group has",
            ));
        }
        Ok(Deal {
            workers: self.formula(&deal.get_ref().workers)?,
            cost: self.formula(&deal.get_ref().cost)?,
        })
    }

    fn scratch(&self, list: &[wire::Scratch]) -> Result<Vec<Scratch>, InputError> {
        let mut slots = [0_usize; 2];
        let mut seen = BTreeSet::new();
        let mut scratch = Vec::with_capacity(list.len());
        for entry in list {
            let name = entry.name.get_ref();
            self.new_label(&entry.name, &mut seen, "scratch buffer")?;
            if tensor_named(name).is_some() {
                return Err(self.document.error(
                    entry.name.span(),
                    format!("`{name}` is an operand"),
                    "give the scratch buffer another name",
                ));
            }
            let per_group = entry.per == Per::Group;
            let slot = &mut slots[usize::from(per_group)];
            if *slot == SCRATCH_SLOTS {
                return Err(self.document.error(
                    entry.name.span(),
                    format!("more than {SCRATCH_SLOTS} scratch buffers of one kind"),
                    "put several into one buffer",
                ));
            }
            scratch.push(Scratch {
                name: name.clone(),
                per_group,
                slot: *slot,
                bytes: self.formula(&entry.bytes)?,
                zero: entry.zero,
            });
            *slot += 1;
        }
        Ok(scratch)
    }

    /// Refuses labels that cannot become part of a macro, or come twice.
    fn new_label(
        &self,
        label: &Spanned<String>,
        seen: &mut BTreeSet<String>,
        what: &str,
    ) -> Result<(), InputError> {
        let name = label.get_ref();
        if !is_identifier(name) {
            return Err(self.document.error(
                label.span(),
                format!("`{name}` cannot be part of a C macro"),
                "use letters, digits and underscores",
            ));
        }
        if !seen.insert(name.to_ascii_uppercase()) {
            return Err(self.document.error(
                label.span(),
                format!("a second {what} named `{name}`"),
                "names must differ in more than case",
            ));
        }
        Ok(())
    }

    fn maps(&self, list: &[wire::Map], scratch: &[Scratch]) -> Result<Vec<TensorMap>, InputError> {
        let mut seen = BTreeSet::new();
        list.iter()
            .map(|map| {
                self.new_label(&map.name, &mut seen, "map")?;
                self.map(map, scratch)
            })
            .collect()
    }

    fn map(&self, map: &wire::Map, scratch: &[Scratch]) -> Result<TensorMap, InputError> {
        let operand = self.operand(&map.tensor, scratch)?;
        let dims = match &map.dims {
            Some(dims) => self.formulas(dims.get_ref())?,
            None => self.default_dims(operand, &map.tensor)?,
        };
        let box_dims = self.formulas(map.box_dims.get_ref())?;
        if box_dims.len() != dims.len() || !(1..=5).contains(&dims.len()) {
            return Err(self.document.error(
                map.box_dims.span(),
                format!(
                    "a box of {} dimensions on a tensor of {}",
                    box_dims.len(),
                    dims.len()
                ),
                "give one extent per dimension, innermost first, five at most",
            ));
        }
        let strides = match &map.strides {
            Some(strides) if strides.get_ref().len() + 1 != dims.len() => {
                return Err(self.document.error(
                    strides.span(),
                    format!(
                        "{} strides for a tensor of {} dimensions",
                        strides.get_ref().len(),
                        dims.len()
                    ),
                    "give bytes for all dimensions but the innermost",
                ));
            }
            Some(strides) => self.formulas(strides.get_ref())?,
            None => Vec::new(),
        };
        let default_type = match operand {
            OperandRef::C | OperandRef::Scratch(_) => MapType::F16,
            _ => MapType::U8,
        };
        Ok(TensorMap {
            name: map.name.get_ref().clone(),
            operand,
            dtype: map.dtype.unwrap_or(default_type),
            dims,
            strides,
            box_dims,
            swizzle: map.swizzle,
            fill: map.fill.unwrap_or(Fill::Zero),
        })
    }

    fn operand(
        &self,
        tensor: &Spanned<String>,
        scratch: &[Scratch],
    ) -> Result<OperandRef, InputError> {
        let name = tensor.get_ref().as_str();
        let own = scratch.iter().find(|s| s.per_group && s.name == name);
        if let Some(operand) = tensor_named(name).or(own.map(|s| OperandRef::Scratch(s.slot))) {
            return Ok(operand);
        }
        let known = TENSORS
            .iter()
            .map(|(name, _)| *name)
            .chain(scratch.iter().filter(|s| s.per_group).map(|s| &*s.name));
        let remedy = match nearest(name, known) {
            Some(close) => format!("did you mean `{close}`?"),
            None => "name an operand (a b1 b2 sfa sfb1 sfb2 c) or a per-group scratch".to_owned(),
        };
        let message = format!("there is no tensor `{name}`");
        Err(self.document.error(tensor.span(), message, remedy))
    }

    fn default_dims(
        &self,
        operand: OperandRef,
        tensor: &Spanned<String>,
    ) -> Result<Vec<Formula>, InputError> {
        let texts = match operand {
            OperandRef::A => ["k / 2", "m"],
            OperandRef::B1 | OperandRef::B2 => ["k / 2", "n"],
            OperandRef::Sfa => ["k / 16", "m"],
            OperandRef::Sfb1 | OperandRef::Sfb2 => ["k / 16", "n"],
            OperandRef::C => ["n", "m"],
            OperandRef::Scratch(_) => {
                return Err(self.document.error(
                    tensor.span(),
                    "a map on scratch has no default `dims`",
                    "add dims = [innermost, …]",
                ));
            }
        };
        texts
            .iter()
            .map(|text| self.document.formula(text, tensor.span()))
            .collect()
    }

    fn launches(&self, list: &[wire::Launch]) -> Result<Vec<Launch>, InputError> {
        list.iter()
            .map(|launch| {
                if !is_identifier(launch.kernel.get_ref()) {
                    return Err(self.document.error(
                        launch.kernel.span(),
                        format!("`{}` cannot be a kernel's name", launch.kernel.get_ref()),
                        "name an extern \"C\" __global__ function of this file",
                    ));
                }
                Ok(Launch {
                    kernel: launch.kernel.get_ref().clone(),
                    grid: self.extent(&launch.grid)?,
                    block: self.extent(&launch.block)?,
                    cluster: match &launch.cluster {
                        Some(cluster) => self.extent(cluster)?,
                        None => Vec::new(),
                    },
                    smem: launch.smem.as_ref().map(|s| self.formula(s)).transpose()?,
                    pdl: launch.pdl,
                })
            })
            .collect::<Result<Vec<_>, _>>()
            .and_then(|launches| match launches.is_empty() {
                false => Ok(launches),
                true => Err(self.document.error(
                    0..0,
                    "no launch: the variant would do nothing",
                    "add a [[launch]]",
                )),
            })
    }
}

const TENSORS: [(&str, OperandRef); 7] = [
    ("a", OperandRef::A),
    ("b1", OperandRef::B1),
    ("b2", OperandRef::B2),
    ("sfa", OperandRef::Sfa),
    ("sfb1", OperandRef::Sfb1),
    ("sfb2", OperandRef::Sfb2),
    ("c", OperandRef::C),
];

fn tensor_named(name: &str) -> Option<OperandRef> {
    TENSORS
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, operand)| *operand)
}

pub(crate) fn is_identifier(name: &str) -> bool {
    let mut chars = name.chars();
    chars
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}
