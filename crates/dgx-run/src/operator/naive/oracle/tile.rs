//! A product with a 64 x 64 tile per CTA: the elements of both operands are computed once per tile
//! and kept in shared memory.

use dgx_core::operator::{ElementType, Extent, NodeId, Op};

use super::super::code::{Writer, extent};
use super::super::types::Numbers;
use super::{SIDE, THREADS};

/// Terms of a sum per step.
const STEP: u64 = 16;

/// Names that these kernels use themselves.
pub(super) const WORDS: &[&str] = &[
    "SIDE", "STEP", "left", "right", "rows", "columns", "depth", "across", "down", "row", "column",
    "x", "y", "sums", "base", "i", "j", "u", "v", "l", "r", "element",
];

impl Writer<'_> {
    /// The statements of a kernel that writes the product `id` to `to`, whose indices are `at`.
    pub(super) fn tiles(&mut self, id: NodeId, at: &[String], to: &str) -> Vec<String> {
        let value = self.value;
        let node = value.node(id);
        let kind = Numbers::kind(node.number);
        let rank = at.len();
        let along = value.node(node.inputs[0]).extents.last().cloned();
        let along = along.unwrap_or(Extent::Number(1));
        let [rows, columns] = [2, 1].map(|back| extent(self.operator, &node.extents[rank - back]));
        let depth = extent(self.operator, &along);
        let mut head = vec![
            format!("constexpr u64 SIDE = {SIDE}, STEP = {STEP};"),
            format!("__shared__ {kind} left[STEP][SIDE + 1], right[STEP][SIDE + 1];"),
            format!("const u64 rows = {rows}, columns = {columns}, depth = {depth};"),
            "const u64 across = (columns + SIDE - 1) / SIDE, down = (rows + SIDE - 1) / SIDE;"
                .to_owned(),
            "const u64 row = blockIdx.x / across % down * SIDE, column = blockIdx.x % across * SIDE;"
                .to_owned(),
            "const u64 at = group.dgx_begin + blockIdx.x / (across * down);".to_owned(),
            "const u32 x = threadIdx.x % 16, y = threadIdx.x / 16;".to_owned(),
        ];
        head.extend(self.placed(&at[..rank - 2], &node.extents[..rank - 2]));
        head.push(format!("{kind} sums[4][4] = {{}};"));
        self.block(
            "for (u64 base = 0; base < depth; base += STEP) {".to_owned(),
            |writer| {
                writer.operand("left", id, at);
                writer.operand("right", id, at);
                multiply(writer, kind);
            },
        );
        self.results(id, at, to);
        head
    }

    /// Copies one side's part of a step to shared memory; zeros lie beyond its ends.
    fn operand(&mut self, side: &str, id: NodeId, at: &[String]) {
        let value = self.value;
        let node = value.node(id);
        let rank = at.len();
        let is_left = side == "left";
        let (of, own, first, end) = match is_left {
            true => (node.inputs[0], rank - 2, "row", "rows"),
            false => (node.inputs[1], rank - 1, "column", "columns"),
        };
        let kind = Numbers::kind(node.number);
        let head = format!("for (u32 i = threadIdx.x; i < SIDE * STEP; i += {THREADS}) {{");
        self.block(head, |writer| {
            let index = match at[own].as_str() {
                "0" => writer.fresh("i_one"),
                index => index.to_owned(),
            };
            let term = writer.fresh("term");
            writer.line(format!(
                "const u64 {index} = {first} + i / STEP, {term} = base + i % STEP;"
            ));
            writer.line(format!("{kind} element = 0;"));
            writer.block(
                format!("if ({index} < {end} && {term} < depth) {{"),
                |writer| {
                    let mut place = at.to_vec();
                    place[rank - 2].clone_from(if is_left { &index } else { &term });
                    place[rank - 1].clone_from(if is_left { &term } else { &index });
                    let code = writer.stretched(of, &place).to(node.number);
                    writer.line(format!("element = {};", code.text));
                },
            );
            writer.line(format!("{side}[i % STEP][i / STEP] = element;"));
        });
    }

    fn results(&mut self, id: NodeId, at: &[String], to: &str) {
        let number = match self.is_rounded(id) {
            true => "double(float(sums[u][v]))",
            false => "sums[u][v]",
        };
        let lines = [
            "for (u32 u = 0; u < 4; ++u) {",
            "  for (u32 v = 0; v < 4; ++v) {",
            "    const u64 i = row + y + 16 * u, j = column + x + 16 * v;",
            "    if (i < rows && j < columns) {",
        ];
        lines.iter().for_each(|line| self.line((*line).to_owned()));
        let matrix = match at.len() {
            2 => String::new(),
            _ => "at * rows * columns + ".to_owned(),
        };
        self.line(format!("      {to}[{matrix}i * columns + j] = {number};"));
        for line in ["    }", "  }", "}"] {
            self.line(line.to_owned());
        }
    }

    /// Products of two nvfp4 tensors are rounded once to f32, as in the evaluator.
    fn is_rounded(&self, id: NodeId) -> bool {
        let inputs = &self.value.node(id).inputs;
        let tensor = |id: NodeId| match self.value.node(id).op {
            Op::Input(input) => Some(self.operator.inputs[input].element),
            Op::Output(output) => Some(self.operator.outputs[output].tensor.element),
            _ => None,
        };
        let right = self.value.node(inputs[1]);
        let both = [inputs[0], *right.inputs.first().unwrap_or(&inputs[1])];
        let nvfp4 = |id: &NodeId| tensor(*id) == Some(ElementType::Nvfp4);
        right.op == Op::Transpose && both.iter().all(nvfp4)
    }
}

fn multiply(writer: &mut Writer<'_>, kind: &str) {
    let lines = [
        "__syncthreads();".to_owned(),
        "for (u32 i = 0; i < STEP; ++i) {".to_owned(),
        format!("  {kind} l[4], r[4];"),
        "  for (u32 j = 0; j < 4; ++j) {".to_owned(),
        "    l[j] = left[i][y + 16 * j];".to_owned(),
        "    r[j] = right[i][x + 16 * j];".to_owned(),
        "  }".to_owned(),
        "  for (u32 u = 0; u < 4; ++u) {".to_owned(),
        "    for (u32 v = 0; v < 4; ++v) sums[u][v] += l[u] * r[v];".to_owned(),
        "  }".to_owned(),
        "}".to_owned(),
        "__syncthreads();".to_owned(),
    ];
    lines.into_iter().for_each(|line| writer.line(line));
}
