//! The probes dgx carries: kernels with a front matter that lists their cases.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};

use dgx_core::domain::Chip;
use dgx_core::expr::{Expr, Scope, Steps};
use dgx_run::catalog::{Fill, Headers, Library, MapType, OperandRef, Swizzle};
use dgx_run::compile::TranslationUnit;
use dgx_run::plan::MapGeometry;

const OPEN: &str = "/*probe";
const CLOSE: &str = "*/";

/// By name, in the order in which they are put to a card.
const SOURCES: [(&str, &str); 21] = [
    ("pipes", include_str!("probes/pipes.cu")),
    ("operands", include_str!("probes/operands.cu")),
    ("shared", include_str!("probes/shared.cu")),
    ("behind", include_str!("probes/behind.cu")),
    ("global", include_str!("probes/global.cu")),
    ("stream", include_str!("probes/stream.cu")),
    ("rows", include_str!("probes/rows.cu")),
    ("deep", include_str!("probes/deep.cu")),
    ("bulk", include_str!("probes/bulk.cu")),
    ("boxes", include_str!("probes/boxes.cu")),
    ("ring", include_str!("probes/ring.cu")),
    ("store", include_str!("probes/store.cu")),
    ("sync", include_str!("probes/sync.cu")),
    ("cluster", include_str!("probes/cluster.cu")),
    ("wgmma", include_str!("probes/wgmma.cu")),
    ("tensor", include_str!("probes/tensor.cu")),
    ("mma", include_str!("probes/mma.cu")),
    ("parameters", include_str!("probes/parameters.cu")),
    ("start", include_str!("probes/start.cu")),
    ("code", include_str!("probes/code.cu")),
    ("clock", include_str!("probes/clock.cu")),
];

/// What they may include: one instruction is written alike in probes and
/// variants.
macro_rules! carried {
    ($($name:literal),*) => {
        &[
            ("beside.cuh", include_str!("probes/beside.cuh")),
            ("probe.cuh", include_str!("probes/probe.cuh")),
            $(($name, include_str!(concat!("../../../variants/include/", $name)))),*
        ]
    };
}
const HEADERS: &[(&str, &str)] = carried!(
    "dgx/abi.cuh",
    "dgx/dequant.cuh",
    "dgx/stamp.cuh",
    "dgx/ptx/barrier.cuh",
    "dgx/ptx/cluster.cuh",
    "dgx/ptx/convert.cuh",
    "dgx/ptx/mbarrier.cuh",
    "dgx/ptx/memory.cuh",
    "dgx/ptx/mma.cuh",
    "dgx/ptx/tcgen05.cuh",
    "dgx/ptx/tma.cuh",
    "dgx/ptx/tmem.cuh",
    "dgx/ptx/wgmma.cuh",
    "dgx/ptx/wgmma_lists.cuh"
);

/// One kernel that asks one question, in several cases.
#[derive(Clone, Debug)]
pub struct Probe {
    pub name: &'static str,
    pub question: String,
    source: Arc<str>,
    headers: Arc<Headers>,
    pub cases: Vec<Case>,
}

/// Which clock answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Read {
    /// The SM's, of CTA 0: from the first warp's start to the last one's end.
    #[default]
    Cycles,
    /// The card's, from the first CTA's start to the last one's end.
    Nanos,
    /// Events around the call, as every sample of a sweep is timed.
    Micros,
}

/// What L2 holds when the call begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum L2 {
    /// What the same call left there.
    #[default]
    Warm,
    /// What the flush before every sample of a sweep leaves there.
    Cold,
}

/// A tensor map at the beginning of `scratch`: bytes in rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map {
    /// Whether it describes `scratch` and not `data`.
    pub(crate) into_scratch: bool,
    /// Where in that memory the tensor begins.
    pub(crate) offset: u64,
    pub geometry: MapGeometry,
}

/// One launch to be timed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// With the probe's, e.g. `pipes/lop3/latency`.
    pub name: String,
    /// The one target that has its instructions; any where none is named.
    pub arch: Option<String>,
    pub(crate) defines: Vec<(String, String)>,
    pub grid: u32,
    pub block: u32,
    pub cluster: u32,
    pub smem: u32,
    /// How often the kernel is launched in one call.
    pub launches: u32,
    /// Whether each launch but the first may overlap the one before.
    pub overlap: bool,
    pub l2: L2,
    pub read: Read,
    /// Bytes the kernel reads at `data` and writes at `scratch`.
    pub data: u64,
    pub scratch: u64,
    pub map: Option<Map>,
    /// Too long to be worth emulating.
    pub long: bool,
    /// Its last instructions drive the others out of the SM's caches.
    pub(crate) driven_out: bool,
}

/// All probes, their cases laid out.
pub fn probes() -> &'static [Probe] {
    static PROBES: LazyLock<Vec<Probe>> = LazyLock::new(|| {
        let library = Library::carried(HEADERS);
        let read = |&(name, source)| Probe::read(name, source, &library);
        let probes: Result<Vec<Probe>, String> = SOURCES.iter().map(read).collect();
        probes.unwrap_or_else(|mistake| panic!("{mistake}"))
    });
    &PROBES
}

/// Every case with its probe.
pub fn cases() -> impl Iterator<Item = (&'static Probe, &'static Case)> {
    let probes = probes().iter();
    probes.flat_map(|probe| probe.cases.iter().map(move |case| (probe, case)))
}

impl Case {
    /// Whether a chip has its instructions.
    pub(crate) fn suits(&self, chip: Chip) -> bool {
        let refused = |arch: &String| chip.refuses(arch).is_some();
        !self.arch.as_ref().is_some_and(refused)
    }
}

/// What to compile for a case on a chip; equal for cases that only launch differently.
pub(crate) fn unit(probe: &Probe, case: &Case, chip: Chip) -> TranslationUnit {
    TranslationUnit {
        name: format!("crates/ptx-calibrate/src/probes/{}.cu", probe.name),
        source: Arc::clone(&probe.source),
        arch: chip.target(),
        flags: Vec::new(),
        defines: case.defines.clone(),
        headers: Arc::clone(&probe.headers),
        compiler: Default::default(),
        kernels: Vec::new(),
    }
}

impl Probe {
    fn read(name: &'static str, source: &'static str, library: &Library) -> Result<Self, String> {
        let mistake = |why: String| format!("probe {name}: {why}");
        let matter = source.strip_prefix(OPEN).and_then(|s| s.split_once(CLOSE));
        let (matter, code) = matter.ok_or_else(|| mistake("no front matter".to_owned()))?;
        let wire: Wire = toml::from_str(matter).map_err(|e| mistake(e.to_string()))?;
        let mut cases = Vec::new();
        for case in wire.case {
            let arch = case.arch.as_ref().or(wire.arch.as_ref()).cloned();
            let all = case.all(name, code).map_err(mistake)?;
            cases.extend(all.into_iter().map(|case| Case {
                arch: arch.clone(),
                ..case
            }));
        }
        Ok(Self {
            name,
            question: wire.question,
            source: source.into(),
            headers: Arc::new(Headers::of(source, library)),
            cases,
        })
    }
}

/// Front matter as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    question: String,
    /// The one target that has what all its cases ask about.
    arch: Option<String>,
    case: Vec<WireCase>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireCase {
    name: String,
    /// The one target that has what it asks about.
    arch: Option<String>,
    /// One case for every combination.
    #[serde(default)]
    each: BTreeMap<String, Vec<Value>>,
    #[serde(default)]
    define: BTreeMap<String, Value>,
    #[serde(default = "one")]
    grid: Value,
    block: Value,
    #[serde(default = "one")]
    cluster: Value,
    #[serde(default)]
    smem: Value,
    #[serde(default = "one")]
    launches: Value,
    #[serde(default)]
    overlap: bool,
    #[serde(default)]
    l2: L2,
    #[serde(default)]
    read: Read,
    #[serde(default = "page")]
    data: Value,
    #[serde(default = "page")]
    scratch: Value,
    map: Option<WireMap>,
    #[serde(default)]
    long: bool,
    #[serde(default)]
    driven_out: bool,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireMap {
    width: Value,
    rows: Value,
    r#box: [Value; 2],
    /// Bytes of a row of the box: as wide is the swizzle.
    swizzle: Value,
    #[serde(default)]
    into: Into,
    #[serde(default)]
    offset: Value,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Into {
    #[default]
    Data,
    Scratch,
}

/// A number, an expression of the case's numbers, or a word of the source.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
enum Value {
    Number(i64),
    Text(String),
}

impl Default for Value {
    fn default() -> Self {
        Self::Number(0)
    }
}

fn one() -> Value {
    Value::Number(1)
}

fn page() -> Value {
    Value::Number(1 << 16)
}

/// The names of one case and what they stand for.
#[derive(Clone, Default)]
struct Names {
    numbers: BTreeMap<String, i64>,
    words: BTreeMap<String, String>,
}

impl Names {
    fn number(&self, value: &Value) -> Result<i64, String> {
        let text = match value {
            Value::Number(number) => return Ok(*number),
            Value::Text(text) => text,
        };
        let (lets, steps) = (BTreeMap::new(), Steps::new(Steps::MOST));
        let scope = Scope {
            constants: &self.numbers,
            lets: &lets,
            groups: &[],
            tiles: None,
            group: None,
            sms: 1,
            steps: &steps,
        };
        let expr = Expr::parse(text).map_err(|e| format!("`{text}`: {e}"))?;
        expr.eval(&scope).map_err(|e| format!("`{text}`: {e}"))
    }

    fn within<T: TryFrom<i64>>(&self, value: &Value) -> Result<T, String> {
        let number = self.number(value)?;
        T::try_from(number).map_err(|_| format!("{number} is out of range"))
    }

    /// Numbers first: what is computed may need them.
    fn define(&mut self, defined: &BTreeMap<String, Value>) {
        for (name, value) in defined {
            if let Value::Number(number) = value {
                self.numbers.insert(name.clone(), *number);
            }
        }
        for (name, value) in defined {
            if let Value::Text(text) = value {
                match self.number(value) {
                    Ok(number) => drop(self.numbers.insert(name.clone(), number)),
                    Err(_) => drop(self.words.insert(name.clone(), text.clone())),
                }
            }
        }
    }

    fn all(&self) -> impl Iterator<Item = (&str, String)> {
        let numbers = self
            .numbers
            .iter()
            .map(|(k, v)| (k.as_str(), v.to_string()));
        let words = self.words.iter().map(|(k, v)| (k.as_str(), v.clone()));
        numbers.chain(words)
    }

    /// `text` with every `{NAME}` replaced.
    fn filled(&self, text: &str) -> String {
        let fill = |text: String, (name, value): (&str, String)| {
            text.replace(&format!("{{{name}}}"), &value)
        };
        self.all().fold(text.to_owned(), fill)
    }
}

impl WireCase {
    fn all(&self, probe: &str, code: &str) -> Result<Vec<Case>, String> {
        let mut combinations = vec![BTreeMap::new()];
        for (name, values) in &self.each {
            let grown = combinations.iter().flat_map(|chosen| {
                values.iter().map(move |value| {
                    let mut chosen: BTreeMap<String, Value> = chosen.clone();
                    chosen.insert(name.clone(), value.clone());
                    chosen
                })
            });
            combinations = grown.collect();
        }
        let mut cases = Vec::new();
        for chosen in &combinations {
            let mut names = Names::default();
            names.define(chosen);
            names.define(&self.define);
            let case = self.one(probe, code, &names);
            cases.push(case.map_err(|why| format!("case {}: {why}", self.name))?);
        }
        Ok(cases)
    }

    fn one(&self, probe: &str, code: &str, names: &Names) -> Result<Case, String> {
        let block: u32 = names.within(&self.block)?;
        let mut labels = names.clone();
        labels.numbers.insert("block".to_owned(), i64::from(block));
        // What the code does not mention concerns the launch alone.
        let mentioned = names.all().filter(|(name, _)| code.contains(name));
        let mut defines: Vec<(String, String)> = mentioned
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        if self.read == Read::Nanos {
            defines.push(("NANOS".to_owned(), "1".to_owned()));
        }
        Ok(Case {
            name: format!("{probe}/{}", labels.filled(&self.name)),
            arch: None,
            defines,
            grid: names.within(&self.grid)?,
            block,
            cluster: names.within(&self.cluster)?,
            smem: names.within(&self.smem)?,
            launches: names.within(&self.launches)?,
            overlap: self.overlap,
            l2: self.l2,
            read: self.read,
            data: names.within(&self.data)?,
            scratch: names.within(&self.scratch)?,
            map: self
                .map
                .as_ref()
                .map(|map| map.laid_out(names))
                .transpose()?,
            long: self.long,
            driven_out: self.driven_out,
        })
    }
}

impl WireMap {
    fn laid_out(&self, names: &Names) -> Result<Map, String> {
        let [row, rows] = &self.r#box;
        let width: u64 = names.within(&self.width)?;
        let geometry = MapGeometry {
            // No tensor of an operator: the probe's memory stands in.
            operand: OperandRef::Field(0),
            dtype: MapType::U8,
            dims: vec![width, names.within(&self.rows)?],
            strides: vec![width],
            box_dims: vec![names.within(row)?, names.within(rows)?],
            swizzle: match names.number(&self.swizzle)? {
                32 => Swizzle::B32,
                64 => Swizzle::B64,
                128 => Swizzle::B128,
                _ => Swizzle::None,
            },
            fill: Fill::Zero,
        };
        Ok(Map {
            into_scratch: self.into == Into::Scratch,
            offset: names.within(&self.offset)?,
            geometry,
        })
    }
}
