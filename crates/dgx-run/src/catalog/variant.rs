use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use super::Headers;
use super::{Argument, Arguments, Fill, Language, MapType, Number, OperandRef, Swizzle};
use dgx_core::diagnostic::{InputError, SourceFile, did_you_mean};
use dgx_core::document::Formula;
use dgx_core::domain::{Claim, ContenderId, Status};
use dgx_core::operator::{self, Operator};

/// One source with its front matter read and checked.
#[derive(Clone, Debug)]
pub struct Variant {
    pub name: String,
    /// Path and whole text, front matter included (it is a comment to the compiler).
    pub file: SourceFile,
    /// `NAME.toml`, if the front matter is there.
    pub beside: Option<SourceFile>,
    pub language: Language,
    /// The compiler's input.
    pub code: Arc<str>,
    /// Its own flags for NVRTC.
    pub flags: Vec<String>,
    /// All that it may include.
    pub headers: Arc<Headers>,
    /// Folders it names for headers, its own before those of the variant it extends.
    pub include: Vec<PathBuf>,
    /// The computation.
    pub operator: Arc<Operator>,
    pub summary: String,
    pub parent: Option<String>,
    pub round: Option<u32>,
    pub claim: Option<Claim>,
    pub arch: String,
    /// The status that its author expects.
    pub expect: Status,
    pub params: BTreeMap<String, Vec<i64>>,
    /// Constants and `let`s, each after those it names.
    pub definitions: Vec<Definition>,
    pub tune: Option<Tune>,
    pub requires: Vec<Formula>,
    pub tiles: Option<Formula>,
    pub order: Option<Formula>,
    pub deal: Option<Deal>,
    pub scratch: Vec<Scratch>,
    pub maps: Vec<TensorMap>,
    pub launches: Vec<Launch>,
    /// A variant that only dispatches has these and nothing else.
    pub picks: Vec<Pick>,
    /// The front matter of those it extends, the nearest first.
    pub extended: Vec<String>,
    /// Why its front matter cannot be used; then nothing else is known of it.
    pub broken: Option<InputError>,
}

/// A name and its meaning.
#[derive(Clone, Debug)]
pub struct Definition {
    pub name: String,
    pub formula: Formula,
    /// A value for each group, which is not passed to the compiler.
    pub per_group: bool,
}

/// Another contender, called instead if `when` is not zero.
#[derive(Clone, Debug)]
pub struct Pick {
    pub contender: Contender,
    /// Always, if there is none.
    pub when: Option<Formula>,
    /// The cost of a call, as a sum; empty if the first pick that applies is used.
    pub cost: Vec<Term>,
}

/// A part of a cost.
#[derive(Clone, Debug)]
pub struct Term {
    /// Per unit of `of`.
    pub nanos: f64,
    pub of: Formula,
}

/// In a cost: the lowest value of `minimise`, by which the contender's constants were chosen.
pub(crate) const MINIMUM: &str = "minimum";

/// Constants picked per shape.
#[derive(Clone, Debug)]
pub struct Tune {
    pub choose: BTreeMap<String, Vec<i64>>,
    pub minimise: Formula,
}

/// In `minimise`: when the last CTA finishes its dealt tiles.
pub(crate) const MAKESPAN: &str = "makespan";

/// How the host deals tiles out to CTAs.
#[derive(Clone, Debug)]
pub struct Deal {
    pub workers: Formula,
    /// The cost of one tile of a group.
    pub cost: Formula,
}

#[derive(Clone, Debug)]
pub struct Scratch {
    pub name: String,
    pub per_group: bool,
    /// Index among the scratch buffers of its kind.
    pub slot: usize,
    pub bytes: Formula,
    pub zero: bool,
}

#[derive(Clone, Debug)]
pub struct TensorMap {
    pub name: String,
    pub operand: OperandRef,
    pub dtype: MapType,
    /// Innermost first.
    pub dims: Vec<Formula>,
    /// Dense if empty.
    pub strides: Vec<Formula>,
    pub box_dims: Vec<Formula>,
    pub swizzle: Swizzle,
    pub fill: Fill,
}

#[derive(Clone, Debug)]
pub struct Launch {
    pub kernel: String,
    pub grid: Vec<Formula>,
    pub block: Vec<Formula>,
    pub cluster: Vec<Formula>,
    pub smem: Option<Formula>,
    pub pdl: bool,
    /// One `dgx::Args` if there are none.
    pub args: Option<Arguments<Formula, Formula>>,
    /// For Triton's compiler, by name.
    pub options: Vec<(String, Formula)>,
    /// The file that it is written in, and the values of `kernel` and `args` there.
    pub written: (SourceFile, Range<usize>, Option<Range<usize>>),
}

/// A key of `[[launch]]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaunchKey {
    Kernel,
    Grid,
    Block,
    /// `block`, where the kernel is compiled for another.
    CompiledBlock,
    Cluster,
    Smem,
    Args,
}

impl LaunchKey {
    /// The remedy if a device refuses its value.
    fn remedy(self) -> &'static str {
        match self {
            Self::Kernel => "name a __global__ function of this file",
            Self::Grid => "at least one CTA in each dimension, e.g. cdiv(m, 128)",
            Self::Block => "use fewer threads",
            Self::CompiledBlock => "use fewer threads, or change the kernel's __launch_bounds__",
            Self::Cluster => "choose a cluster that divides the grid",
            Self::Smem => "use fewer or smaller buffers",
            Self::Args => "list one argument for each parameter of the kernel, in order",
        }
    }
}

impl Launch {
    /// The error of a launch that a device refuses, at the key that causes it.
    pub fn error(&self, key: LaunchKey, message: String) -> InputError {
        let (file, kernel, args) = &self.written;
        let extent = match key {
            LaunchKey::Grid => &self.grid[..],
            LaunchKey::Block | LaunchKey::CompiledBlock => &self.block,
            LaunchKey::Cluster => &self.cluster,
            LaunchKey::Smem => self.smem.as_slice(),
            LaunchKey::Kernel | LaunchKey::Args => &[],
        };
        let place = match (extent, args) {
            ([first, .., last], _) => first.place.start..last.place.end,
            ([only], _) => only.place.clone(),
            ([], Some(args)) if key == LaunchKey::Args => args.clone(),
            ([], _) => kernel.clone(),
        };
        file.error(place, message, key.remedy())
    }
}

impl Argument<Formula, Formula> {
    /// The formulas it contains.
    pub(super) fn formulas(&self) -> Vec<&Formula> {
        match self {
            Self::Number(Number::Integer(formula))
            | Self::PerGroup(formula)
            | Self::Typed(_, Number::Integer(formula)) => vec![formula],
            Self::Struct(members) => members.iter().flat_map(Self::formulas).collect(),
            _ => Vec::new(),
        }
    }
}

impl Variant {
    /// A source of which nothing is known but its text.
    pub(super) fn unread(name: &str, file: SourceFile) -> Self {
        Self {
            name: name.to_owned(),
            language: Language::of(&file.path).unwrap_or(Language::Cuda),
            code: Arc::clone(&file.text),
            file,
            beside: None,
            flags: Vec::new(),
            headers: Arc::default(),
            include: Vec::new(),
            operator: Arc::clone(operator::default_operator()),
            summary: String::new(),
            parent: None,
            round: None,
            claim: None,
            arch: String::new(),
            expect: Status::Ok,
            params: BTreeMap::new(),
            definitions: Vec::new(),
            tune: None,
            requires: Vec::new(),
            tiles: None,
            order: None,
            deal: None,
            scratch: Vec::new(),
            maps: Vec::new(),
            launches: Vec::new(),
            picks: Vec::new(),
            extended: Vec::new(),
            broken: None,
        }
    }

    /// Represents a file whose front matter cannot be used, so that it fails its own row and not
    /// the round.
    pub(super) fn broken(name: &str, file: SourceFile, why: InputError) -> Self {
        Self {
            summary: "broken: its front matter cannot be used".to_owned(),
            broken: Some(why),
            ..Self::unread(name, file)
        }
    }

    /// The TOML of its front matter.
    pub fn front_matter(&self) -> Result<&str, InputError> {
        match &self.beside {
            Some(beside) => Ok(&beside.text),
            None => super::front_matter(&self.file).map(|range| &self.file.text[range]),
        }
    }

    /// Why no contender has these parameters, and the remedy; `None` if one has.
    pub fn refused(&self, fixed: &BTreeMap<String, i64>) -> Option<(String, String)> {
        fixed.iter().find_map(|(name, value)| {
            let Some(values) = self.params.get(name) else {
                let known = self.params.keys().map(String::as_str);
                let remedy = match did_you_mean(name, known) {
                    Some(close) => close,
                    None if self.params.is_empty() => "it has no parameters".to_owned(),
                    None => "its front matter lists its `params`".to_owned(),
                };
                return Some((format!("`{}` has no parameter `{name}`", self.name), remedy));
            };
            let list = || values.iter().map(i64::to_string).collect::<Vec<_>>();
            (!values.contains(value)).then(|| {
                (
                    format!("`{}` has no {name} = {value}", self.name),
                    format!("its values are {}", list().join(", ")),
                )
            })
        })
    }

    /// Every combination of parameters that agrees with `fixed`, in the order of the values in the
    /// front matter; for a broken variant, the requested one.
    pub fn contenders(self: &Arc<Self>, fixed: &BTreeMap<String, i64>) -> Vec<Contender> {
        let choices = match self.broken {
            Some(_) => vec![fixed.clone()],
            None => combinations(&self.params),
        };
        choices
            .into_iter()
            .filter(|params| fixed.iter().all(|(k, v)| params.get(k) == Some(v)))
            .map(|params| Contender {
                id: ContenderId::new(&self.name, &params),
                variant: Arc::clone(self),
                params,
            })
            .collect()
    }
}

/// The cartesian product; the last key varies fastest.
pub fn combinations(choices: &BTreeMap<String, Vec<i64>>) -> Vec<BTreeMap<String, i64>> {
    let mut all = vec![BTreeMap::new()];
    for (key, values) in choices {
        all = all
            .into_iter()
            .flat_map(|chosen| {
                values.iter().map(move |value| {
                    let mut chosen = chosen.clone();
                    chosen.insert(key.clone(), *value);
                    chosen
                })
            })
            .collect();
    }
    all
}

/// A variant with its parameters chosen, as it competes.
#[derive(Clone, Debug)]
pub struct Contender {
    pub id: ContenderId,
    pub variant: Arc<Variant>,
    pub params: BTreeMap<String, i64>,
}
