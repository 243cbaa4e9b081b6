//! Cases in which thread `i` reads element `i` of each input, runs one instruction
//! (or a few), and writes element `i` of each output.

use std::fmt::Write;

use crate::case::{Case, Compare, Launch};
use crate::kernel::{Kernel, UNWRITTEN};
use crate::values::{Ty, cross2, cross3};

/// Registers the body finds its operands in.
const OPERANDS: [&str; 6] = ["%a", "%b", "%c", "%e", "%f", "%g"];

const THREADS: usize = 128;

/// An elementwise case under construction. The body reads `%a`, `%b`, `%c`, … and
/// writes `%d0` (also spelled `%d`), `%d1`, ….
#[derive(Debug, Clone)]
pub(crate) struct Elementwise {
    name: String,
    target: &'static str,
    forms: Vec<String>,
    operands: Vec<(Ty, Vec<u64>)>,
    results: Vec<Ty>,
    module: String,
    body: String,
    compare: Compare,
}

impl Elementwise {
    /// A case named `form/variant` that covers `form`, its body still to be given.
    pub(crate) fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        let form = name.split('/').next().unwrap_or_default().to_owned();
        Self {
            name,
            target: "sm_90a",
            forms: vec![form],
            operands: Vec::new(),
            results: Vec::new(),
            module: String::new(),
            body: String::new(),
            compare: Compare::Exact,
        }
    }

    /// `form %d, %a, …;` over the cross product of the operand types' edges.
    pub(crate) fn op(form: &str, operands: &[Ty], result: Ty) -> Self {
        let mut this = Self::new(form).result(result);
        this.operands = crossed(operands);
        let names = OPERANDS[..operands.len()].join(", ");
        this.body(&format!("{form} %d, {names};"))
    }

    /// Makes it for another target.
    pub(crate) fn target(self, target: &'static str) -> Self {
        Self { target, ..self }
    }

    /// Replaces the covered forms.
    pub(crate) fn forms<S: Into<String>>(mut self, forms: impl IntoIterator<Item = S>) -> Self {
        self.forms = forms.into_iter().map(Into::into).collect();
        self
    }

    /// One more operand with its values.
    pub(crate) fn operand(mut self, ty: Ty, values: Vec<u64>) -> Self {
        self.operands.push((ty, values));
        self
    }

    /// Operands over the cross product of their edges.
    pub(crate) fn crossed(mut self, operands: &[Ty]) -> Self {
        self.operands = crossed(operands);
        self
    }

    /// Replaces the operands' values.
    pub(crate) fn with<const N: usize>(mut self, values: [Vec<u64>; N]) -> Self {
        assert_eq!(
            self.operands.len(),
            N,
            "{}: one list per operand",
            self.name
        );
        for ((_, old), new) in self.operands.iter_mut().zip(values) {
            *old = new;
        }
        self
    }

    /// Keeps only elements whose operands satisfy `keep`: for inputs the ISA leaves undefined.
    pub(crate) fn filtered(mut self, keep: impl Fn(&[u64]) -> bool) -> Self {
        let count = self.operands[0].1.len();
        let kept: Vec<usize> = (0..count)
            .filter(|&i| keep(&self.operands.iter().map(|(_, v)| v[i]).collect::<Vec<_>>()))
            .collect();
        for (_, values) in &mut self.operands {
            *values = kept.iter().map(|&i| values[i]).collect();
        }
        self
    }

    /// One more result.
    pub(crate) fn result(mut self, ty: Ty) -> Self {
        self.results.push(ty);
        self
    }

    /// Functions and variables before the entry.
    pub(crate) fn module(mut self, text: &str) -> Self {
        self.module = text.to_owned();
        self
    }

    /// The instructions.
    pub(crate) fn body(mut self, text: &str) -> Self {
        self.body = text.to_owned();
        self
    }

    /// How results are compared.
    pub(crate) fn compare(mut self, compare: Compare) -> Self {
        self.compare = compare;
        self
    }

    /// The finished case.
    pub(crate) fn case(self) -> Case {
        let count = self.operands[0].1.len();
        let ctas = count.div_ceil(THREADS);
        let mut kernel = Kernel::new(
            self.name.clone(),
            Launch::linear(ctas as u32, THREADS as u32),
        )
        .target(self.target)
        .forms(self.forms.clone())
        .module(&self.module)
        .compare(self.compare)
        .declare(&self.registers())
        .body(&self.text(count));
        for (ty, values) in &self.operands {
            kernel = kernel.input(ty.pack(values));
        }
        for ty in &self.results {
            kernel = kernel.output_from(vec![UNWRITTEN; count * ty.bytes()]);
        }
        kernel.case()
    }

    fn registers(&self) -> String {
        let mut text = String::from(".reg .b32 %index;\n.reg .b64 %at;\n.reg .pred %beyond;\n");
        for ((ty, _), name) in self.operands.iter().zip(OPERANDS) {
            let _ = writeln!(text, ".reg {} {name};", ty.register());
        }
        for (i, ty) in self.results.iter().enumerate() {
            let _ = writeln!(text, ".reg {} %d{};", ty.register(), suffix(i));
        }
        text
    }

    fn text(&self, count: usize) -> String {
        let mut text = format!(
            "mov.u32 %index, %ctaid.x;\nmad.lo.s32 %index, %index, {THREADS}, %thread;\n\
             setp.ge.u32 %beyond, %index, {count};\n@%beyond bra DONE;\n"
        );
        for (i, ((ty, _), name)) in self.operands.iter().zip(OPERANDS).enumerate() {
            let _ = write!(
                text,
                "mad.wide.u32 %at, %index, {}, %in{i};\nld.global.{} {name}, [%at];\n",
                ty.bytes(),
                ty.access()
            );
        }
        text.push_str(&self.body);
        text.push('\n');
        for (i, ty) in self.results.iter().enumerate() {
            let _ = write!(
                text,
                "mad.wide.u32 %at, %index, {}, %out{i};\nst.global.{} [%at], %d{};\n",
                ty.bytes(),
                ty.access(),
                suffix(i)
            );
        }
        text.push_str("DONE:\n");
        text
    }
}

/// The first result is plain `%d`, as most cases have one.
fn suffix(index: usize) -> String {
    if index == 0 {
        String::new()
    } else {
        index.to_string()
    }
}

fn crossed(types: &[Ty]) -> Vec<(Ty, Vec<u64>)> {
    let lists: Vec<Vec<u64>> = match types {
        [a] => {
            let mut values = a.edges();
            values.extend(a.random(1, 200));
            vec![values]
        }
        [a, b] => {
            let mut pairs = cross2(&a.edges(), &b.edges());
            pairs[0].extend(a.random(2, 300));
            pairs[1].extend(b.random(3, 300));
            pairs.to_vec()
        }
        [a, b, c] => {
            let mut triples = cross3(&a.few_edges(), &b.few_edges(), &c.few_edges());
            for (seed, (list, ty)) in triples.iter_mut().zip(types).enumerate() {
                list.extend(ty.random(4 + seed as u64, 300));
            }
            triples.to_vec()
        }
        _ => types
            .iter()
            .enumerate()
            .map(|(seed, ty)| ty.random(8 + seed as u64, 512))
            .collect(),
    };
    types.iter().copied().zip(lists).collect()
}
