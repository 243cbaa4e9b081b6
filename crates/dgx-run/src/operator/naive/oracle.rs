//! Kernels that compute an operator's expected results in f64 on a GPU, and the launches for one
//! problem. Products are computed tile by tile, everything else with one thread per element.

mod solve;
mod tile;

use dgx_core::fields::{PointedPart, storage_type};
use dgx_core::operator::{Extent, NodeId, Op, Operator};

use super::code::Writer;
use super::parts::{Goal, ScratchKind, ScratchPart};
use super::types::{self, Numbers};
use crate::operator::gated::kept_steps;

pub(crate) use solve::{OracleDevice, solve};

/// Threads of a CTA.
pub(crate) const THREADS: u32 = 256;
/// Rows and columns of a tile of a product.
pub(crate) const SIDE: u64 = 64;
/// Maximum of elements times terms for sorting and running sums, whose threads each read a whole
/// axis.
const MOST_TERMS: u128 = 1 << 38;

/// The kernels for an operator's expected results.
#[derive(Clone, Debug)]
pub(crate) struct OracleKernels {
    /// CUDA C++ that needs no header.
    pub source: String,
    /// One for each result of a group, in order.
    pub answers: Vec<AnswerKernels>,
    /// The scratch slots of all results.
    scratch: usize,
}

/// The kernels of one result, each after those whose output it reads.
#[derive(Clone, Debug)]
pub(crate) struct AnswerKernels {
    /// The last writes the result, the others one part each, in order.
    pub kernels: Vec<OracleKernel>,
    /// Leading axes that may be computed a few at a time.
    aligned: usize,
    /// Extents of sorting and running sums, with their axis twice.
    slow: Vec<Vec<Extent>>,
}

#[derive(Clone, Debug)]
pub(crate) struct OracleKernel {
    pub name: String,
    pub extents: Vec<Extent>,
    /// One CTA for each tile of a product; else one thread for each element.
    pub tiled: bool,
    /// Bytes of an element of its output.
    pub bytes: u64,
    /// The scratch slot that it writes to; `None` for the result.
    pub slot: Option<usize>,
}

/// One launch: its grid, and the range of elements, or of matrices, that it computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub begin: u64,
    pub end: u64,
    pub blocks: u64,
}

impl OracleKernels {
    pub(crate) fn new(operator: &Operator) -> Self {
        let goals = goals(operator);
        let (mut kernels, mut answers, mut scratch) = (String::new(), Vec::new(), 0);
        for (place, goal) in goals.iter().enumerate() {
            let parts = goal.parts();
            let writing = Writing {
                operator,
                goal,
                parts: &parts,
                first_slot: scratch,
                place,
            };
            scratch += parts.len();
            let (code, answer) = writing.kernels();
            kernels += &code;
            answers.push(answer);
        }
        let source = format!(
            "namespace oracle_{} {{\nusing u8 = unsigned char;\nusing u16 = unsigned short;\n\
             using u32 = unsigned int;\nusing u64 = unsigned long long;\nusing real = double;\n\
             using integer = long long;\n\n{}\n{}\n{kernels}\n}}  // namespace\n",
            tag(operator),
            group(operator, scratch),
            types::called(&kernels).join("\n\n"),
        );
        Self {
            source,
            answers,
            scratch,
        }
    }

    /// The one parameter of every kernel: `Group` of the source. `fields` are the addresses of the
    /// operator's fields without atoms.
    pub(crate) fn parameter(
        &self,
        fields: &[u64],
        scratch: &[u64],
        answer: u64,
        range: Range,
        sizes: &[u64],
    ) -> Vec<u8> {
        let mut slots = scratch.to_vec();
        slots.resize(self.scratch.max(1), 0);
        let words = fields.iter().chain(&slots);
        let words = words.chain([&answer, &range.begin, &range.end]);
        let mut bytes: Vec<u8> = words.flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend(sizes.iter().flat_map(|size| (*size as u32).to_le_bytes()));
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    }
}

/// The fields whose addresses kernels get.
pub(crate) fn oracle_fields(operator: &Operator) -> Vec<dgx_core::fields::Field> {
    let fields = operator.fields().into_iter();
    fields
        .filter(|field| field.form != PointedPart::Atoms)
        .collect()
}

/// Distinguishes the kernels of one operator from those of another.
fn tag(operator: &Operator) -> String {
    let digits = operator.digest.chars().filter(char::is_ascii_alphanumeric);
    digits.take(12).collect()
}

/// The kept steps of all outputs.
fn goals(operator: &Operator) -> Vec<Goal<'_>> {
    let of_output = |output: usize| {
        let goal = Goal::output(operator, output);
        let steps = kept_steps(operator, output).into_iter();
        steps.map(move |root| Goal {
            root,
            products_apart: true,
            ..goal
        })
    };
    (0..operator.outputs.len()).flat_map(of_output).collect()
}

/// The parameter of every kernel.
fn group(operator: &Operator, scratch: usize) -> String {
    let mut members = String::new();
    for field in oracle_fields(operator) {
        let kind = match field.form {
            PointedPart::Elements | PointedPart::Output => {
                storage_type(operator.tensor(&field).element)
            }
            PointedPart::Scales | PointedPart::Atoms => "u8",
        };
        members += &format!("  const {kind}* {};\n", field.name);
    }
    format!(
        "struct Group {{\n{members}  void* scratch[{}];\n  double* dgx_answer;\n  \
         u64 dgx_begin, dgx_end;\n  u32 {};\n}};\n",
        scratch.max(1),
        operator.sizes.join(", ")
    )
}

/// The input for writing the kernels of one result.
struct Writing<'a> {
    operator: &'a Operator,
    goal: &'a Goal<'a>,
    parts: &'a [ScratchPart],
    first_slot: usize,
    place: usize,
}

impl Writing<'_> {
    fn kernels(&self) -> (String, AnswerKernels) {
        let (mut code, mut kernels) = (String::new(), Vec::new());
        let mut aligned = self.goal.extents.len().saturating_sub(2);
        for place in 0..=self.parts.len() {
            let part = self.parts.get(place);
            let (text, along) = self.kernel(part, place);
            code += &text;
            let extents = part.map_or(self.goal.extents, |part| &part.extents);
            let mut pairs = extents.iter().zip(self.goal.extents);
            let same = pairs.position(|(one, other)| one != other);
            aligned = aligned.min(along).min(same.unwrap_or(extents.len()));
            let number = part.map_or(8, |part| Numbers::exact().bytes(part.number));
            kernels.push(OracleKernel {
                name: self.name(place),
                extents: extents.to_vec(),
                tiled: self.product(part).is_some(),
                bytes: number,
                slot: part.map(|_| self.first_slot + place),
            });
        }
        let answer = AnswerKernels {
            kernels,
            aligned,
            slow: self.slow(),
        };
        (code, answer)
    }

    fn name(&self, place: usize) -> String {
        format!("oracle_{}_{}_{place}", tag(self.operator), self.place)
    }

    /// The product that a kernel computes, if it is one.
    fn product(&self, part: Option<&ScratchPart>) -> Option<NodeId> {
        let Goal { value, root, .. } = *self.goal;
        let is_product = |id: NodeId| value.node(id).op == Op::MatMul;
        match part {
            Some(part) if part.kept == ScratchKind::Value => Some(part.node),
            Some(_) => None,
            None if self.parts.iter().any(|part| part.node == root) => None,
            None => Some(root),
        }
        .filter(|id| is_product(*id))
    }

    /// The text of a kernel, and along how many leading axes it reads parts at its own indices.
    fn kernel(&self, part: Option<&ScratchPart>, place: usize) -> (String, usize) {
        let Goal { value, root, .. } = *self.goal;
        let numbers = Numbers::exact();
        let mut writer = Writer::new(self.operator, value, self.parts, numbers);
        writer.reserve(tile::WORDS);
        let extents = part.map_or(self.goal.extents, |part| &part.extents);
        let at = writer.indices(extents);
        let to = part.map_or("group.dgx_answer", |part| &part.name);
        let mut body = match self.product(part) {
            Some(product) => writer.tiles(product, &at, to),
            None => {
                let place = writer.placed(&at, extents);
                let value = match part {
                    Some(part) => writer.part(part, &at),
                    None => format!("double({})", writer.stretched(root, &at).text),
                };
                writer.line(format!("{to}[at] = {value};"));
                let mut head = vec![
                    "const u64 at = group.dgx_begin + u64(blockIdx.x) * blockDim.x + threadIdx.x;"
                        .to_owned(),
                    "if (at >= group.dgx_end) return;".to_owned(),
                ];
                head.extend(place);
                head
            }
        };
        let along = writer.aligned();
        let (lines, read) = writer.finish();
        body.extend(lines);
        let own = part.map(|_| place);
        let pointers: String = read
            .into_iter()
            .chain(own)
            .map(|place| self.pointer(place))
            .collect();
        let body: String = body.iter().map(|line| format!("  {line}\n")).collect();
        let name = self.name(place);
        let text = format!(
            "\nextern \"C\" __global__ void __launch_bounds__({THREADS})\n\
             {name}(const __grid_constant__ Group group) {{\n{pointers}{body}}}\n"
        );
        (text, along)
    }

    fn pointer(&self, place: usize) -> String {
        let part = &self.parts[place];
        let (name, kind) = (&part.name, Numbers::kind(part.number));
        let slot = self.first_slot + place;
        format!("  auto* {name} = static_cast<{kind}*>(group.scratch[{slot}]);\n")
    }

    fn slow(&self) -> Vec<Vec<Extent>> {
        let nodes = self.goal.value.nodes.iter();
        let of = |node: &dgx_core::operator::Node| match node.op {
            Op::Cumsum(axis) | Op::Argsort(axis) => {
                let mut extents = node.extents.clone();
                extents.push(extents[extents.len() - 1 - axis].clone());
                Some(extents)
            }
            _ => None,
        };
        nodes.filter_map(of).collect()
    }
}

impl AnswerKernels {
    /// Leading slices of the result that are computed one after another if necessary.
    pub(crate) fn slices(&self, sizes: &[u64]) -> u64 {
        let extents = &self.kernels[0].extents[..self.aligned];
        volume(extents, sizes)
    }

    /// Whether a GPU would take longer than the CPU.
    pub(crate) fn is_slow(&self, sizes: &[u64]) -> bool {
        let terms = self.slow.iter().map(|extents| {
            let extents = extents.iter().map(|e| e.eval(sizes).unwrap_or(0) as u128);
            extents.product::<u128>()
        });
        terms.sum::<u128>() > MOST_TERMS
    }

    /// Elements of one leading slice of a kernel's output.
    pub(crate) fn slice(&self, kernel: &OracleKernel, sizes: &[u64]) -> u64 {
        volume(&kernel.extents[self.aligned..], sizes)
    }

    /// The launches of a kernel for the slices `first..first + count`.
    pub(crate) fn range(
        &self,
        kernel: &OracleKernel,
        first: u64,
        count: u64,
        sizes: &[u64],
    ) -> Range {
        if !kernel.tiled {
            let each = self.slice(kernel, sizes);
            return Range {
                begin: first * each,
                end: (first + count) * each,
                blocks: (count * each).div_ceil(u64::from(THREADS)),
            };
        }
        let matrices = kernel.extents.len() - 2;
        let each = volume(&kernel.extents[self.aligned..matrices], sizes);
        let tiles = |extent: &Extent| volume(std::slice::from_ref(extent), sizes).div_ceil(SIDE);
        let tiles: u64 = kernel.extents[matrices..].iter().map(tiles).product();
        Range {
            begin: first * each,
            end: (first + count) * each,
            blocks: count * each * tiles,
        }
    }
}

fn volume(extents: &[Extent], sizes: &[u64]) -> u64 {
    let extents = extents.iter().map(|extent| extent.eval(sizes).unwrap_or(0));
    extents.map(|extent| extent.max(0) as u64).product()
}
