//! Generates a starting kernel from an operator's values: one thread per element, one loop per sum.
//! It is correct, and slow. A sum that many elements read gets its own kernel, which writes its
//! results to scratch.

mod code;
mod oracle;
mod parts;
mod steps;
mod types;

use dgx_core::operator::{ElementType, Extent, Op, Operator};

use super::abi::SCRATCH_SLOTS;
use code::Writer;
use parts::{Goal, ScratchPart};
use types::Numbers;

pub(crate) use oracle::{OracleDevice, OracleKernels, THREADS as ORACLE_THREADS, solve};

/// Source of a naive design of `operator` for the compile target `arch`; or the reason why there is
/// none.
pub fn naive(operator: &Operator, arch: &str) -> Result<String, String> {
    let numbers = Numbers::of(operator);
    let all: Vec<Vec<ScratchPart>> = (0..operator.outputs.len())
        .map(|output| Goal::output(operator, output).parts())
        .collect();
    let count: usize = all.iter().map(Vec::len).sum();
    if count > SCRATCH_SLOTS {
        return Err(format!(
            "its values have {count} sums that many elements read, and a kernel is written for \
             {SCRATCH_SLOTS} at most"
        ));
    }
    let (mut matter, mut kernels) = (front_matter(operator, arch, &all, &numbers), String::new());
    for (output, parts) in all.iter().enumerate() {
        for place in 0..=parts.len() {
            let kernel = Kernel {
                operator,
                numbers,
                output,
                parts,
                place,
            };
            matter += &kernel.launch();
            kernels += &kernel.code();
        }
    }
    let code = preamble(&numbers, &kernels) + &kernels;
    let code = code.replace(&format!("{}(", types::REALS), "(");
    Ok(format!("/*dgx\n{matter}*/\n{code}"))
}

fn front_matter(
    operator: &Operator,
    arch: &str,
    all: &[Vec<ScratchPart>],
    numbers: &Numbers,
) -> String {
    let mut matter = format!(
        "operator = {:?}\nsummary  = \"One thread for each element\"\narch     = {arch:?}\n\
         const    = {{ THREADS = 128 }}\n",
        operator.name
    );
    for part in all.iter().flatten() {
        let elements = elements(operator, &part.extents);
        let bytes = numbers.bytes(part.number);
        let (name, bytes) = (&part.name, format!("{elements} * {bytes}"));
        matter += &format!("\n[[scratch]]\nname  = {name:?}\nbytes = {bytes:?}\n");
    }
    matter
}

/// The number of elements, as front matter.
fn elements(operator: &Operator, extents: &[Extent]) -> String {
    let factors = extents.iter().filter(|extent| !is_one(extent));
    let factors: Vec<String> = factors
        .map(|extent| match operator.formula(extent) {
            formula if formula.contains(' ') => format!("({formula})"),
            plain => plain,
        })
        .collect();
    match factors.is_empty() {
        true => "1".to_owned(),
        false => factors.join(" * "),
    }
}

/// Whether there is one element along an axis whatever the sizes are: `n - (n - 1)`, too.
fn is_one(extent: &Extent) -> bool {
    match extent {
        Extent::Number(number) => *number == 1,
        Extent::Size(_) => false,
        Extent::Of(..) => [1009, 2003].iter().all(|first| {
            let sizes: Vec<u64> = (0..64).map(|place| first + 13 * place).collect();
            extent.eval(&sizes) == Some(1)
        }),
    }
}

fn preamble(numbers: &Numbers, kernels: &str) -> String {
    let mut text = String::from(
        "// Right, and slow: each thread computes one element and reads all of its operands from\n\
         // memory. What usually pays, one at a time: let a warp or a CTA share a row and add up with\n\
         // __shfl_xor_sync; read 16 bytes at a time; keep tiles in shared memory, or in registers\n\
         // what one kernel writes to scratch for the next; multiply matrices with mma.\n\
         #include <dgx/abi.cuh>\nusing dgx::u16;\nusing dgx::u32;\nusing dgx::u64;\nusing dgx::u8;\n\n",
    );
    text += numbers.declared();
    for function in types::called(kernels) {
        text += "\n";
        text += function;
        text += "\n";
    }
    text
}

/// One kernel of the design: for a part, or for the output itself, which is last.
struct Kernel<'a> {
    operator: &'a Operator,
    numbers: Numbers,
    output: usize,
    parts: &'a [ScratchPart],
    place: usize,
}

impl Kernel<'_> {
    fn part(&self) -> Option<&ScratchPart> {
        self.parts.get(self.place)
    }

    fn name(&self) -> String {
        let output = &self.operator.outputs[self.output].tensor.name;
        let of = self.part().map_or(output, |part| &part.name);
        format!("compute_{of}")
    }

    fn extents(&self) -> &[Extent] {
        let output = &self.operator.outputs[self.output].tensor;
        self.part().map_or(&output.extents, |part| &part.extents)
    }

    /// Elements per thread: two elements share a byte, and threads must not.
    fn each(&self) -> u64 {
        let element = self.operator.outputs[self.output].tensor.element;
        match self.part() {
            None if element == ElementType::E2m1 => 2,
            _ => 1,
        }
    }

    fn launch(&self) -> String {
        let mut elements = elements(self.operator, self.extents());
        if self.each() == 2 {
            elements += " / 2";
        }
        let grid = format!("cdiv({elements}, THREADS)");
        let grid = match self.operator.groups {
            true => format!("[\"most({grid})\", \"groups\"]"),
            false => format!("{grid:?}"),
        };
        let name = self.name();
        format!("\n[[launch]]\nkernel = {name:?}\ngrid   = {grid}\nblock  = \"THREADS\"\n")
    }

    fn code(&self) -> String {
        let output = &self.operator.outputs[self.output];
        let mut writer = Writer::new(self.operator, &output.value, self.parts, self.numbers);
        let at = writer.indices(self.extents());
        let mut body = writer.placed(&at, self.extents());
        match self.part() {
            Some(part) => {
                let value = writer.part(part, &at);
                writer.line(format!("{}[at] = {value};", part.name));
            }
            None => {
                let value = writer.stretched(output.value.root, &at);
                writer.store(&output.tensor, value);
            }
        }
        let (lines, read) = writer.finish();
        body.extend(lines);
        if self.each() == 2 {
            body = in_pairs(body, &output.tensor.name);
        }
        let scratch = read.into_iter().map(|place| (place, true));
        let own = self.part().map(|_| (self.place, false));
        let pointers = scratch.chain(own).map(|(place, constant)| {
            let part = &self.parts[place];
            let kind = Numbers::kind(part.number);
            let kind = if constant {
                format!("const {kind}")
            } else {
                kind.to_owned()
            };
            let (name, slot) = (&part.name, part.name.to_uppercase());
            format!("  auto* {name} = reinterpret_cast<{kind}*>(group.scratch[SCRATCH_{slot}]);\n")
        });
        let pointers: String = pointers.collect();
        let body: String = body.iter().map(|line| format!("  {line}\n")).collect();
        let group = match self.operator.groups {
            true => "args.groups[blockIdx.y]",
            false => "args.near[0]",
        };
        let (about, name) = (self.about(), self.name());
        let bound = self.bound();
        format!(
            "\n{about}extern \"C\" __global__ void __launch_bounds__(THREADS)\n\
             {name}(const __grid_constant__ dgx::Args args) {{\n  \
             const dgx::Group& group = {group};\n{pointers}  \
             const u64 {thread} = u64(blockIdx.x) * THREADS + threadIdx.x;\n  \
             if ({thread} >= {bound}) return;\n{body}}}\n",
            thread = if self.each() == 2 { "pair" } else { "at" },
        )
    }

    /// Threads that have work, in C++.
    fn bound(&self) -> String {
        let elements = code::count(self.operator, self.extents());
        match self.each() {
            2 => format!("{elements} / 2"),
            _ => elements,
        }
    }

    /// Its computation, as written in the file.
    fn about(&self) -> String {
        let value = &self.operator.outputs[self.output].value;
        let (span, before) = match self.part() {
            Some(part) => (value.node(part.node).span.clone(), part.before()),
            None => (self.operator.outputs[self.output].place.clone(), ""),
        };
        let text = self.operator.file.text.get(span).unwrap_or_default();
        let text = text.trim_matches(['"', '\'', '\n']);
        let lines = text.lines().map(|line| line.trim_end_matches('\\').trim());
        let name = self.name();
        let name = name.trim_start_matches("compute_");
        format!(
            "// {name} = {before}{}\n",
            lines.collect::<Vec<_>>().join(" ")
        )
    }
}

/// The body of a kernel whose threads write a byte of two elements each.
fn in_pairs(body: Vec<String>, name: &str) -> Vec<String> {
    let mut lines = vec![
        "u32 both = 0;".to_owned(),
        "for (u64 at = 2 * pair; at < 2 * pair + 2; ++at) {".to_owned(),
    ];
    lines.extend(body.into_iter().map(|line| format!("  {line}")));
    lines.push("}".to_owned());
    lines.push(format!("group.{name}[pair] = both;"));
    lines
}

/// Whether a step has its own loop.
fn loops(op: &Op) -> bool {
    matches!(
        op,
        Op::MatMul | Op::Reduce(..) | Op::Cumsum(_) | Op::Argsort(_)
    )
}

#[cfg(test)]
mod tests;
