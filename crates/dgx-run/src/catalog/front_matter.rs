//! Turns the front matter as written into a [`Variant`] in which every name is known, every
//! expression parsed and every count checked. The plan handles everything that depends on the
//! shape.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::args::Buffers;
use super::code::{adapt, shown};
use super::variant::{Deal, MAKESPAN, Scratch, Tune, Variant};
use super::wire::{self, FrontMatter, Per};
use super::{Catalog, Language, Lookup};
use super::{Headers, Library};
use dgx_core::diagnostic::{InputError, SourceFile};
use dgx_core::document::{Document, Formula, Spanned, Value};
use dgx_core::domain::bounds::CLAIM;
use dgx_core::domain::{Chip, Claim, ContenderId, Joined, Status, printable_line};
use dgx_core::expr::{self, CALL_NAMES};
use dgx_core::operator::{self, Operator};

const GUIDE: &str = "`dgx schema variant` lists the keys";
/// `Group::scratch` and `Args::scratch` have this many slots.
const SCRATCH_SLOTS: usize = 8;
/// More entries of one kind than anyone writes by hand.
pub(super) const MAX_ENTRIES: usize = 256;

/// Reads the front matter of `file`, whose stem is `name`, from the file itself or from `beside`.
pub(super) fn read(
    name: &str,
    (file, beside): (SourceFile, Option<SourceFile>),
    library: &Library,
    catalog: &Catalog,
    lookup: &Lookup,
) -> Result<Variant, InputError> {
    let (written, range) = match &beside {
        Some(beside) => (beside, 0..beside.text.len()),
        None => (&file, locate(&file)?),
    };
    let document = Document::new(written, range, GUIDE);
    let mut wire: FrontMatter = document.parse()?;
    let mut reader = Reader {
        name,
        document: &document,
        file: written,
        language: Language::of(&file.path).unwrap_or(Language::Cuda),
        target: ptx_target(&file),
        parent: None,
        names: BTreeSet::new(),
        lets: BTreeSet::new(),
        later: BTreeSet::new(),
        has_tiles: false,
        catalog,
        lookup,
        operator: Arc::clone(operator::default_operator()),
    };
    reader.parent = reader.extended(&wire)?;
    reader.operator = reader.operator(&wire)?;
    let extended = match &reader.parent {
        Some(parent) => {
            let nearest = parent.front_matter()?.to_owned();
            let others = parent.extended.iter().cloned();
            std::iter::once(nearest).chain(others).collect()
        }
        None => Vec::new(),
    };
    if let (Some(source), None) = (&wire.source, &beside) {
        let message = "`source` in the source itself";
        let error = document.error(source.span(), message, "leave it out");
        return Err(error);
    }
    let include = reader.include(&wire)?;
    let empty = std::mem::take(&mut wire.empty);
    let variant = reader.variant(wire, &file)?;
    let library = shown(library, &variant.operator, &include, &empty);
    let mut variant = Variant {
        extended,
        include,
        beside,
        ..variant
    };
    match (variant.language, &variant.beside) {
        (Language::Cuda, None) => variant.headers = Arc::new(Headers::of(&file.text, &library)),
        (Language::Cuda, Some(_)) => adapt(&mut variant, &file, &library),
        (Language::Ptx | Language::Triton, _) => {}
    }
    Ok(variant)
}

/// The target that PTX names.
fn ptx_target(file: &SourceFile) -> Option<String> {
    if Language::of(&file.path) != Some(Language::Ptx) {
        return None;
    }
    let line = file
        .text
        .lines()
        .find_map(|line| line.trim_start().strip_prefix(".target"))?;
    let target = line.split([',', ';']).next().unwrap_or_default().trim();
    Some(printable_line(target)).filter(|target| !target.is_empty())
}

/// The bytes of the comment, or in Python of the string, that opens the file.
pub fn locate(file: &SourceFile) -> Result<Range<usize>, InputError> {
    let language = Language::of(&file.path).unwrap_or(Language::Cuda);
    let (open, close) = language.comment();
    let skipped = language.skipped(&file.text);
    if !file.text[skipped..].starts_with(open) {
        return Err(file.error(
            skipped..skipped + 1,
            "the file does not open with front matter",
            how_to_open(&file.path, language),
        ));
    }
    let start = skipped + open.len();
    match file.text[start..].find(close) {
        Some(len) => Ok(start..start + len),
        None => Err(file.error(
            skipped..start,
            "the front matter is never closed",
            format!("end it with {close}"),
        )),
    }
}

/// The remedy for a file without front matter.
pub(super) fn how_to_open(path: &Path, language: Language) -> String {
    let (open, close) = language.comment();
    let name = path.with_extension("toml");
    let name = name.file_name().unwrap_or_default().to_string_lossy();
    format!(
        "begin it with {open}, TOML, and {close}, or write {name} beside it: see \
         `dgx schema variant`"
    )
}

fn is_target(arch: &str) -> bool {
    Chip::parse(arch).is_some_and(|chip| Chip::KNOWN.contains(&chip))
}

/// The TOML of a variant's text.
pub fn toml_of(path: &Path, text: &str) -> Result<String, InputError> {
    let file = SourceFile {
        path: path.to_owned(),
        text: text.into(),
    };
    Ok(file.text[locate(&file)?].to_owned())
}

pub(super) struct Reader<'a> {
    pub(super) name: &'a str,
    pub(super) document: &'a Document<'a>,
    pub(super) file: &'a SourceFile,
    /// The variant whose front matter this one extends.
    pub(super) parent: Option<Arc<Variant>>,
    /// Own names known so far.
    pub(super) names: BTreeSet<String>,
    /// Those of them that have a value for each group.
    pub(super) lets: BTreeSet<String>,
    /// Names that become known further down.
    pub(super) later: BTreeSet<String>,
    /// Whether `tiles` is known.
    pub(super) has_tiles: bool,
    /// Where other variants are found.
    pub(super) catalog: &'a Catalog,
    pub(super) lookup: &'a Lookup,
    /// The computation.
    pub(super) operator: Arc<Operator>,
    pub(super) language: Language,
    /// The target of its PTX.
    pub(super) target: Option<String>,
}

impl Reader<'_> {
    fn variant(
        mut self,
        mut wire: FrontMatter,
        source: &SourceFile,
    ) -> Result<Variant, InputError> {
        self.check_counts(&wire)?;
        let picks = self.picks(&wire)?;
        let summary = self.summary(&wire.summary)?;
        let claim = wire.claim.take().map(|c| self.claim(c)).transpose()?;
        let arch = self.arch(&wire)?;
        let flags = self.flags(&wire)?;
        let parent = self.parent.clone();
        let parent = parent.as_deref();
        let defined = self.definitions(&mut wire)?;
        let tiles = self.either(wire.tiles.as_ref(), parent.and_then(|p| p.tiles.as_ref()))?;
        self.has_tiles = tiles.is_some();
        let deal = self.deal(wire.deal.as_ref())?;
        let minimise = self.minimised(&wire, deal.is_some())?;
        let requires = self.requires(&wire)?;
        let order = self.either(wire.order.as_ref(), parent.and_then(|p| p.order.as_ref()))?;
        let scratch = self.scratch(&wire.scratch)?;
        let maps = self.maps(&wire.map, &scratch)?;
        let launches = match picks.is_empty() {
            true => self.launches(
                &wire.launch,
                Buffers {
                    scratch: &scratch,
                    maps: &maps,
                },
            )?,
            false => Vec::new(),
        };
        let lineage = wire
            .parent
            .as_deref()
            .or(wire.extend.as_ref().map(|e| e.get_ref().as_str()));
        Ok(Variant {
            flags,
            operator: Arc::clone(&self.operator),
            summary,
            parent: lineage.map(printable_line),
            round: wire.round,
            claim,
            arch,
            expect: wire.expect.unwrap_or(Status::Ok),
            params: defined.params,
            definitions: defined.definitions,
            tune: minimise.map(|minimise| Tune {
                choose: defined.choose,
                minimise,
            }),
            requires,
            tiles,
            order,
            deal,
            scratch,
            maps,
            launches,
            picks,
            ..Variant::unread(self.name, source.clone())
        })
    }

    /// What the choice of tuned constants minimises.
    fn minimised(
        &mut self,
        wire: &FrontMatter,
        dealt: bool,
    ) -> Result<Option<Formula>, InputError> {
        let parent = self.parent.clone();
        let inherited = parent.as_ref().and_then(|parent| parent.tune.as_ref());
        match (&wire.tune, inherited) {
            (Some(tune), _) => self.minimise(&tune.minimise, dealt).map(Some),
            (None, Some(tune)) => self.inherited_minimise(&tune.minimise, dealt).map(Some),
            (None, None) => Ok(None),
        }
    }

    fn requires(&self, wire: &FrontMatter) -> Result<Vec<Formula>, InputError> {
        match (&wire.requires, &self.parent) {
            (Some(requires), _) => self.formulas(requires),
            (None, Some(parent)) => self.inherit_all(&parent.requires),
            (None, None) => Ok(Vec::new()),
        }
    }

    /// The operator that it names, or its folder, or the variant it extends.
    fn operator(&self, wire: &FrontMatter) -> Result<Arc<Operator>, InputError> {
        match (&wire.operator, &self.lookup.operator, &self.parent) {
            (Some(name), Some(folder), _) if name.get_ref() != folder => Err(self.document.error(
                name.span(),
                format!("`operator` is not that of its folder, {folder}"),
                "leave `operator` out, or move the file",
            )),
            (Some(name), _, _) => {
                operator::named(Some(name.get_ref())).map_err(|error| match error.location() {
                    None => self
                        .document
                        .error(name.span(), error.message(), error.remedy()),
                    Some(_) => error,
                })
            }
            (None, Some(folder), _) => operator::named(Some(folder)),
            (None, None, Some(parent)) => Ok(Arc::clone(&parent.operator)),
            (None, None, None) => Ok(Arc::clone(operator::default_operator())),
        }
    }

    /// Whether a chip has a target with this suffix is for NVRTC to say: a refusal is a compile
    /// error of this variant.
    fn arch(&self, wire: &FrontMatter) -> Result<String, InputError> {
        if let (Some(arch), Some(target)) = (&wire.arch, &self.target)
            && arch.get_ref() != target
        {
            return Err(self.document.error(
                arch.span(),
                format!("`arch` is not what the PTX is for, {target}"),
                "leave `arch` out",
            ));
        }
        let inherited = self.parent.as_ref().map(|parent| &parent.arch);
        match (
            &wire.arch,
            &self.lookup.beside,
            self.target.as_ref().or(inherited),
        ) {
            (Some(arch), Some(folder), _) if arch.get_ref() != folder => Err(self.document.error(
                arch.span(),
                format!("`arch` is not that of its folder, {folder}"),
                "leave `arch` out, or move the file",
            )),
            (Some(arch), _, _) if !is_target(arch.get_ref()) => {
                let word = printable_line(arch.get_ref());
                Err(self.document.error(
                    arch.span(),
                    format!("`{word}` is not a compile target"),
                    format!(
                        "write a chip, with its own instructions sm_90a, sm_100a, …; the chips are {}",
                        Chip::KNOWN.iter().joined(", ")
                    ),
                ))
            }
            (Some(arch), _, _) => Ok(arch.get_ref().clone()),
            (None, Some(folder), _) => Ok(folder.clone()),
            (None, None, Some(arch)) => Ok(arch.clone()),
            (None, None, None) => Err(self.document.error(
                0..0,
                "the key `arch` is missing",
                format!("add `arch = …`; {GUIDE}"),
            )),
        }
    }

    fn minimise(&mut self, value: &Spanned<Value>, dealt: bool) -> Result<Formula, InputError> {
        self.with_makespan(dealt, |reader| reader.formula(value))
    }

    fn inherited_minimise(&mut self, own: &Formula, dealt: bool) -> Result<Formula, InputError> {
        self.with_makespan(dealt, |reader| reader.inherit(own))
    }

    /// Only `minimise` may name it, and only if tiles are dealt.
    fn with_makespan(
        &mut self,
        dealt: bool,
        read: impl Fn(&Self) -> Result<Formula, InputError>,
    ) -> Result<Formula, InputError> {
        if dealt {
            self.names.insert(MAKESPAN.to_owned());
        }
        let formula = read(self);
        self.names.remove(MAKESPAN);
        formula
    }

    fn check_counts(&self, wire: &FrontMatter) -> Result<(), InputError> {
        let counts = [
            ("requirements", wire.requires.as_ref().map_or(0, Vec::len)),
            ("scratch buffers", wire.scratch.len()),
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
            over: printable_line(ContenderId::written(&over).as_str()),
            why: why.map(|why| printable_line(&why)),
        })
    }

    /// Parses an expression and checks that every name in it has a meaning here.
    pub(super) fn formula(&self, value: &Spanned<Value>) -> Result<Formula, InputError> {
        self.formula_at(value.get_ref(), value.span())
    }

    pub(super) fn formula_at(
        &self,
        value: &Value,
        span: Range<usize>,
    ) -> Result<Formula, InputError> {
        let formula = self.parsed(value, span)?;
        self.check_names(&formula, |name| self.knows(name))?;
        Ok(formula)
    }

    pub(super) fn parsed(&self, value: &Value, span: Range<usize>) -> Result<Formula, InputError> {
        match value {
            Value::Integer(value) => Ok(self.document.number(*value, span)),
            Value::Text(text) => self.document.formula(text, span),
        }
    }

    pub(super) fn check_names(
        &self,
        formula: &Formula,
        known: impl Fn(&str) -> bool,
    ) -> Result<(), InputError> {
        for (name, span) in formula.expr.names() {
            if !known(name) {
                let error = match self.later.contains(name) {
                    true => expr::not_yet(name, &span),
                    false => {
                        let sizes = self.operator.sizes.iter();
                        let known = self.names.iter().chain(sizes).map(String::as_str);
                        expr::unknown(name, &span, known)
                    }
                };
                return Err(formula.error(&error));
            }
        }
        Ok(())
    }

    pub(super) fn knows(&self, name: &str) -> bool {
        match name {
            "tiles" => self.has_tiles,
            _ => self.is_of_shape(name) || self.names.contains(name),
        }
    }

    /// Whether `name` is defined for every shape: a size, or a value of the plan.
    pub(super) fn is_of_shape(&self, name: &str) -> bool {
        CALL_NAMES.contains(&name) || self.operator.sizes.iter().any(|size| size == name)
    }

    /// Whether `name` has a value for each group.
    pub(super) fn is_per_group(&self, name: &str) -> bool {
        self.lets.contains(name) || self.operator.sizes.iter().any(|size| size == name)
    }

    pub(super) fn formulas(&self, values: &[Spanned<Value>]) -> Result<Vec<Formula>, InputError> {
        values.iter().map(|value| self.formula(value)).collect()
    }

    fn deal(&self, deal: Option<&Spanned<wire::Deal>>) -> Result<Option<Deal>, InputError> {
        let Some(deal) = deal else {
            let inherited = self.parent.as_ref().and_then(|parent| parent.deal.as_ref());
            let inherit = |deal: &Deal| {
                Ok(Deal {
                    workers: self.inherit(&deal.workers)?,
                    cost: self.inherit(&deal.cost)?,
                })
            };
            return inherited.map(inherit).transpose();
        };
        if !self.has_tiles {
            return Err(self.document.error(
                deal.span(),
                "`deal` without `tiles`",
                "say with `tiles` how many tiles a group has",
            ));
        }
        Ok(Some(Deal {
            workers: self.formula(&deal.get_ref().workers)?,
            cost: self.formula(&deal.get_ref().cost)?,
        }))
    }

    fn scratch(&self, list: &[wire::Scratch]) -> Result<Vec<Scratch>, InputError> {
        let mut scratch = self.inherited_scratch()?;
        let mut seen = BTreeSet::new();
        for entry in list {
            self.new_label(&entry.name, &mut seen, "scratch buffer")?;
            let name = entry.name.get_ref();
            if self
                .operator
                .fields()
                .iter()
                .any(|field| field.name == *name)
            {
                return Err(self.document.error(
                    entry.name.span(),
                    format!("`{name}` is an operand"),
                    "give the scratch buffer another name",
                ));
            }
            let per_group = entry.per == Per::Group;
            let replaced = position(scratch.iter().map(|s| &*s.name), name);
            let slot = match replaced {
                Some(at) if scratch[at].per_group != per_group => {
                    return Err(self.document.error(
                        entry.name.span(),
                        format!("`{name}` is extended and has another `per`"),
                        "keep its kind, or give the scratch buffer another name",
                    ));
                }
                Some(at) => scratch[at].slot,
                None => scratch.iter().filter(|s| s.per_group == per_group).count(),
            };
            if slot == SCRATCH_SLOTS {
                return Err(self.document.error(
                    entry.name.span(),
                    format!("more than {SCRATCH_SLOTS} scratch buffers of one kind"),
                    "put several into one buffer",
                ));
            }
            let buffer = Scratch {
                name: name.clone(),
                per_group,
                slot,
                bytes: self.formula(&entry.bytes)?,
                zero: entry.zero,
            };
            put(&mut scratch, replaced, buffer);
        }
        Ok(scratch)
    }

    /// Refuses labels that cannot become part of a macro, or occur twice.
    pub(super) fn new_label(
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
}

/// The index of `name` among `names`. They become macros in capitals, so names that differ only in
/// case are the same.
pub(super) fn position<'a>(mut names: impl Iterator<Item = &'a str>, name: &str) -> Option<usize> {
    names.position(|other| other.eq_ignore_ascii_case(name))
}

/// Puts `item` in the place of the one it replaces, or last.
pub(super) fn put<T>(list: &mut Vec<T>, replaced: Option<usize>, item: T) {
    match replaced {
        Some(at) => list[at] = item,
        None => list.push(item),
    }
}

pub fn is_identifier(name: &str) -> bool {
    let mut chars = name.chars();
    chars
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}
