//! Which instruction belongs to which `.target`, as ptxas has it.
//!
//! A plain target (`sm_100`) runs on its chip and later ones, so it has only instructions that
//! stay. An instruction of one chip needs its `a` target, and one that a family of chips shares
//! needs an `a` or `f` target of that family. The table was compared with ptxas 13.4, form by form.

use super::error::{Lowered, Problem, WrongTarget};
use crate::front::ast::{Instruction, Operand};

/// A `.target` that this crate has rules for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Target {
    /// Compute capability times ten.
    number: u32,
    reach: Reach,
}

/// Which chips run the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    Later,
    Family,
    Chip,
}

/// The targets that have a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    /// This one and all later ones.
    From(u32),
    /// `a` and `f` targets of these numbers.
    Families(&'static [u32]),
    /// `a` targets of these numbers only.
    Chips(&'static [u32]),
}

/// Chips with tensor memory.
const TCGEN05: Needs = Needs::Families(&[100, 101, 103, 110]);

/// All of Blackwell.
const BLACKWELL: Needs = Needs::Families(&[100, 101, 103, 110, 120, 121]);

/// Hopper and Blackwell, but no plain target.
const SPECIFIC: Needs = Needs::Families(&[90, 100, 101, 103, 110, 120, 121]);

/// Its `mma.sync` multiplies 4- and 6-bit floats.
const CONSUMER: Needs = Needs::Families(&[120, 121]);

/// An instruction with all of some modifiers, and the targets it needs.
struct Rule {
    opcode: &'static str,
    words: &'static [&'static str],
    needs: Needs,
}

const fn rule(opcode: &'static str, words: &'static [&'static str], needs: Needs) -> Rule {
    Rule {
        opcode,
        words,
        needs,
    }
}

/// If several rules apply, each must hold; the first that does not is reported.
const RULES: &[Rule] = &[
    rule("wgmma", &[], Needs::Chips(&[90])),
    rule("tcgen05", &[], TCGEN05),
    rule("tcgen05", &["shift"], Needs::Chips(&[100, 101, 103, 110])),
    rule("tcgen05", &["kind::i8"], Needs::Chips(&[100, 101, 110])),
    rule(
        "tcgen05",
        &["scale_vec::1X"],
        Needs::Chips(&[100, 101, 103, 110]),
    ),
    rule(
        "tcgen05",
        &["scale_vec::2X"],
        Needs::Chips(&[100, 101, 103, 110]),
    ),
    rule(
        "tcgen05",
        &["scale_vec::4X"],
        Needs::Chips(&[100, 101, 103, 110]),
    ),
    rule(
        "tcgen05",
        &["sp", "kind::mxf4"],
        Needs::Chips(&[100, 101, 103, 110]),
    ),
    rule(
        "tcgen05",
        &["sp", "kind::mxf4nvf4"],
        Needs::Chips(&[100, 101, 103, 110]),
    ),
    rule("tcgen05", &["ld", "red"], Needs::Families(&[101, 103, 110])),
    rule("setmaxnreg", &[], SPECIFIC),
    rule("tensormap", &["replace"], SPECIFIC),
    rule("tensormap", &["swizzle_atomicity"], BLACKWELL),
    rule("clusterlaunchcontrol", &[], Needs::From(100)),
    rule(
        "clusterlaunchcontrol",
        &["multicast::cluster::all"],
        BLACKWELL,
    ),
    rule("elect", &[], Needs::From(90)),
    rule("mapa", &[], Needs::From(90)),
    rule("getctarank", &[], Needs::From(90)),
    rule("griddepcontrol", &[], Needs::From(90)),
    rule("stmatrix", &[], Needs::From(90)),
    rule("stmatrix", &["m16n8"], BLACKWELL),
    rule("ldmatrix", &["m16n16"], BLACKWELL),
    rule("ldmatrix", &["m8n16"], BLACKWELL),
    rule("multimem", &[], Needs::From(90)),
    rule("multimem", &["e4m3"], BLACKWELL),
    rule("multimem", &["e5m2"], BLACKWELL),
    rule("multimem", &["e4m3x2"], BLACKWELL),
    rule("multimem", &["e5m2x2"], BLACKWELL),
    rule("multimem", &["e4m3x4"], BLACKWELL),
    rule("multimem", &["e5m2x4"], BLACKWELL),
    rule("barrier", &["cluster"], Needs::From(90)),
    rule("mbarrier", &["try_wait"], Needs::From(90)),
    rule("mbarrier", &["expect_tx"], Needs::From(90)),
    rule("mbarrier", &["complete_tx"], Needs::From(90)),
    rule("fence", &["proxy", "async"], Needs::From(90)),
    rule("st", &["async"], Needs::From(90)),
    rule("st", &["async", "mmio"], Needs::From(100)),
    rule("st", &["bulk"], Needs::From(100)),
    rule("red", &["async"], Needs::From(90)),
    rule("red", &["async", "mmio"], Needs::From(100)),
    rule("redux", &["f32"], Needs::Families(&[100, 103])),
    rule("cp", &["async"], Needs::From(80)),
    rule("cp", &["async", "bulk"], Needs::From(90)),
    rule("cp", &["cp_mask"], Needs::From(100)),
    rule("cp", &["cta_group::1"], TCGEN05),
    rule("cp", &["cta_group::2"], TCGEN05),
    rule("cp", &["tile::scatter4"], TCGEN05),
    rule("cp", &["tile::gather4"], Needs::From(100)),
    rule("cp", &["tile::gather4", "shared::cluster"], TCGEN05),
    rule("cp", &["tile::gather4", "prefetch"], TCGEN05),
    rule("cp", &["im2col::w"], Needs::From(100)),
    rule("cp", &["im2col::w", "shared::cluster"], TCGEN05),
    rule("cp", &["im2col::w::128"], TCGEN05),
    rule("add", &["f32x2"], Needs::From(100)),
    rule("sub", &["f32x2"], Needs::From(100)),
    rule("mul", &["f32x2"], Needs::From(100)),
    rule("fma", &["f32x2"], Needs::From(100)),
    rule("add", &["f32", "f16"], Needs::From(100)),
    rule("add", &["f32", "bf16"], Needs::From(100)),
    rule("sub", &["f32", "f16"], Needs::From(100)),
    rule("sub", &["f32", "bf16"], Needs::From(100)),
    rule("fma", &["f32", "f16"], Needs::From(100)),
    rule("fma", &["f32", "bf16"], Needs::From(100)),
    rule("cvt", &["e4m3x2"], Needs::From(89)),
    rule("cvt", &["e5m2x2"], Needs::From(89)),
    rule("cvt", &["e2m1x2"], BLACKWELL),
    rule("cvt", &["e2m3x2"], BLACKWELL),
    rule("cvt", &["e3m2x2"], BLACKWELL),
    rule("cvt", &["ue8m0x2"], BLACKWELL),
    rule("cvt", &["e4m3x2", "bf16x2"], BLACKWELL),
    rule("cvt", &["e5m2x2", "bf16x2"], BLACKWELL),
    rule(
        "cvt",
        &["s2f6x2"],
        Needs::Chips(&[100, 101, 103, 110, 120, 121]),
    ),
    rule("cvt", &["rs"], Needs::Chips(&[100, 103])),
    rule("cvt", &["tf32"], Needs::From(80)),
    rule("cvt", &["rn", "satfinite", "tf32"], Needs::From(100)),
    rule("cvt", &["rz", "satfinite", "tf32"], Needs::From(100)),
    rule("mma", &["e4m3"], Needs::From(89)),
    rule("mma", &["e5m2"], Needs::From(89)),
    rule("mma", &["kind::f8f6f4"], BLACKWELL),
    rule("mma", &["e2m1"], CONSUMER),
    rule("mma", &["e2m3"], CONSUMER),
    rule("mma", &["e3m2"], CONSUMER),
    rule("mma", &["block_scale"], CONSUMER),
    rule(
        "mma",
        &["sp::ordered_metadata", "block_scale"],
        Needs::Chips(&[120, 121]),
    ),
];

impl Target {
    /// The target of this name, if there is one; without one there are no rules, and no device
    /// would run the module.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let rest = name.strip_prefix("sm_")?;
        let digits = rest.trim_end_matches(|c: char| c.is_ascii_lowercase());
        let reach = match &rest[digits.len()..] {
            "" => Reach::Later,
            "f" => Reach::Family,
            "a" => Reach::Chip,
            _ => return None,
        };
        let number = digits.parse().ok()?;
        Some(Self { number, reach })
    }

    /// Of Blackwell, or later.
    pub(crate) fn is_blackwell_or_later(self) -> bool {
        self.number >= 100
    }

    fn meets(self, needs: Needs) -> bool {
        match needs {
            Needs::From(first) => self.number >= first,
            Needs::Families(numbers) => {
                self.reach != Reach::Later && numbers.contains(&self.number)
            }
            Needs::Chips(numbers) => self.reach == Reach::Chip && numbers.contains(&self.number),
        }
    }

    /// Refuses an instruction that this target lacks.
    pub(crate) fn check(self, name: &str, instruction: &Instruction<'_>) -> Lowered<()> {
        let has = |word: &&str| instruction.modifiers.contains(word);
        let broken = RULES
            .iter()
            .filter(|rule| rule.opcode == instruction.opcode && rule.words.iter().all(has))
            .find(|rule| !self.meets(rule.needs));
        let (words, needs) = match broken {
            Some(rule) => (rule.words, rule.needs),
            None if wide(instruction) && !self.meets(Needs::From(100)) => {
                (&["a vector of 256 bits"][..], Needs::From(100))
            }
            None if of_three(instruction) && !self.meets(Needs::From(100)) => {
                (&["three sources"][..], Needs::From(100))
            }
            None if scales_d(instruction) && matches!(self.number, 101 | 110) => {
                (&["scale-input-d"][..], Needs::Families(&[100, 103]))
            }
            None => return Ok(()),
        };
        let first = instruction.modifiers.first().filter(|_| words.is_empty());
        Err(Problem::Target(Box::new(WrongTarget {
            form: form(instruction.opcode, first, words),
            target: name.to_owned(),
            needs: needs.to_string(),
        })))
    }
}

/// `wgmma.fence`, or `cvt with .rs`.
fn form(opcode: &str, first: Option<&&str>, words: &[&str]) -> String {
    let described: Vec<String> = words
        .iter()
        .map(|word| match word.contains(' ') {
            true => (*word).to_owned(),
            false => format!(".{word}"),
        })
        .collect();
    match (first, &described[..]) {
        (Some(first), _) => format!("{opcode}.{first}"),
        (None, []) => opcode.to_owned(),
        (None, words) => format!("{opcode} with {}", words.join(" and ")),
    }
}

/// A load or store of 256 bits.
fn wide(instruction: &Instruction<'_>) -> bool {
    let has = |words: &[&str]| {
        words
            .iter()
            .any(|word| instruction.modifiers.contains(word))
    };
    let of_64 = has(&["v4"]) && has(&["b64", "u64", "s64", "f64"]);
    matches!(instruction.opcode, "ld" | "st") && (has(&["v8"]) || of_64)
}

/// A product of tensor memory whose D is scaled first: a number after the predicate.
fn scales_d(instruction: &Instruction<'_>) -> bool {
    let has = |word: &str| instruction.modifiers.contains(&word);
    let single = |operand: &&Operand<'_>| !matches!(operand, Operand::Vector(_));
    let kind = has("kind::f16") || has("kind::tf32");
    instruction.opcode == "tcgen05"
        && (has("mma") && kind && !has("sp") && !has("ws"))
        && instruction.operands.iter().filter(single).count() > 5
}

/// `min` or `max` of three operands.
fn of_three(instruction: &Instruction<'_>) -> bool {
    let guard = |operand: &&Operand<'_>| !matches!(operand, Operand::Pair(..));
    matches!(instruction.opcode, "min" | "max")
        && instruction.operands.iter().filter(guard).count() > 3
}

impl std::fmt::Display for Needs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (numbers, suffix) = match self {
            Self::From(first) => return write!(f, "sm_{first} or later"),
            Self::Families(numbers) => (numbers, "a/f"),
            Self::Chips(numbers) => (numbers, "a"),
        };
        // sm_101 is the old name of sm_110, and sm_90 has no family.
        let names: Vec<String> = numbers
            .iter()
            .filter(|&&n| n != 101)
            .map(|&n| format!("sm_{n}{}", if n == 90 { "a" } else { suffix }))
            .collect();
        f.write_str(&names.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::Target;
    use crate::Module;

    /// Why the kernel cannot run when compiled for `target`, if so.
    fn refusal(target: &str, line: &str) -> Option<String> {
        let text = format!(
            ".version 9.2\n.target {target}\n.address_size 64\n.visible .entry k()\n{{\n\
             .reg .pred %p<4>; .reg .b32 %r<20>; .reg .f32 %f<20>; .reg .b64 %rd<9>;\n\
             .reg .b16 %rs<9>; .reg .b8 %c<4>;\n{line}\nret;\n}}\n"
        );
        let module = Module::load(&text).unwrap_or_else(|e| panic!("{e}"));
        let problem = module.refused().get("k").map(|e| e.problem.to_string());
        problem.filter(|text| text.contains(".target"))
    }

    const TARGETS: [&str; 18] = [
        "sm_75", "sm_80", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_100f", "sm_103",
        "sm_103a", "sm_103f", "sm_110", "sm_110a", "sm_110f", "sm_120", "sm_120a", "sm_120f",
        "sm_121a",
    ];

    /// The results of ptxas 13.4 for the targets above.
    #[test]
    fn the_rules_are_those_of_the_assembler() {
        let from_90 = "90 90a 100 100a 100f 103 103a 103f 110 110a 110f 120 120a 120f 121a";
        let from_100 = "100 100a 100f 103 103a 103f 110 110a 110f 120 120a 120f 121a";
        let blackwell = "100a 100f 103a 103f 110a 110f 120a 120f 121a";
        let tensor = "100a 100f 103a 103f 110a 110f";
        let cases = [
            ("wgmma.fence.sync.aligned;", "90a"),
            (
                "setmaxnreg.inc.sync.aligned.u32 104;",
                "90a 100a 100f 103a 103f 110a 110f 120a 120f 121a",
            ),
            ("tcgen05.wait::ld.sync.aligned;", tensor),
            ("tcgen05.shift.cta_group::1.down [%r1];", "100a 103a 110a"),
            (
                "tcgen05.mma.cta_group::1.kind::i8 [%r1], %rd1, %rd2, %r2, %p1;",
                "100a 110a",
            ),
            (
                "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X [%r1], %rd1, \
                 %rd2, %r2, [%r3], [%r4], %p1;",
                "100a 103a 110a",
            ),
            (
                "tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r2, %p1, 3;",
                "100a 100f 103a 103f",
            ),
            (
                "multimem.ld_reduce.relaxed.gpu.global.add.e4m3x4 %r1, [%rd1];",
                blackwell,
            ),
            ("elect.sync _|%p1, -1;", from_90),
            ("add.rn.f32x2 %rd1, %rd2, %rd3;", from_100),
            ("max.f32 %f1, %f2, %f3, %f4;", from_100),
            (
                "ld.global.v8.b32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd1];",
                from_100,
            ),
            (
                "ld.global.v4.u64 {%rd1, %rd2, %rd3, %rd4}, [%rd1];",
                from_100,
            ),
            ("redux.sync.min.f32 %f1, %f2, -1;", "100a 100f 103a 103f"),
            ("cvt.rn.satfinite.e2m1x2.f32 %c1, %f1, %f2;", blackwell),
            ("cvt.rn.bf16x2.ue8m0x2 %r1, %rs1;", blackwell),
            ("cvt.rs.f16x2.f32 %r1, %f1, %f2, %r2;", "100a 103a"),
            ("cvt.rn.satfinite.tf32.f32 %r1, %f1;", from_100),
            (
                "cvt.rna.satfinite.tf32.f32 %r1, %f1;",
                "80 89 90 90a 100 100a 100f 103 103a 103f 110 110a 110f 120 120a 120f 121a",
            ),
            (
                "cvt.rn.satfinite.e4m3x2.f32 %rs1, %f1, %f2;",
                "89 90 90a 100 100a 100f 103 103a 103f 110 110a 110f 120 120a 120f 121a",
            ),
            (
                "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4\
                 .mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r3, %r4, %r5, %r6}], [%r7];",
                from_100,
            ),
            (
                "cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4\
                 .mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r3, %r4, %r5, %r6}], [%r7];",
                tensor,
            ),
            (
                "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes\
                 .cta_group::2 [%r1], [%rd1, {%r2, %r3}], [%r7];",
                tensor,
            ),
            (
                "stmatrix.sync.aligned.m16n8.x2.trans.shared.b8 [%r5], {%r1, %r2};",
                blackwell,
            ),
            (
                "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e4m3.e4m3.f32 {%f1, %f2, %f3, \
                 %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4};",
                blackwell,
            ),
            (
                "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e3m2.e2m1.f32 {%f1, %f2, %f3, \
                 %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4};",
                "120a 120f 121a",
            ),
        ];
        for (line, accepted) in cases {
            let known: Vec<String> = accepted.split(' ').map(|n| format!("sm_{n}")).collect();
            for target in TARGETS {
                let refused = refusal(target, line);
                assert_eq!(
                    refused.is_none(),
                    known.iter().any(|name| name == target),
                    "{target}: {line}: {refused:?}"
                );
            }
        }
    }

    #[test]
    fn a_refusal_names_form_target_and_remedy() {
        let told = |target, line| refusal(target, line).unwrap();
        assert_eq!(
            told("sm_100a", "wgmma.fence.sync.aligned;"),
            "`wgmma.fence` is not supported on .target sm_100a: it needs sm_90a"
        );
        assert_eq!(
            told("sm_90a", "add.rn.f32x2 %rd1, %rd2, %rd3;"),
            "`add with .f32x2` is not supported on .target sm_90a: it needs sm_100 or later"
        );
        assert_eq!(
            told("sm_90a", "tcgen05.wait::ld.sync.aligned;"),
            "`tcgen05.wait::ld` is not supported on .target sm_90a: \
             it needs sm_100a/f, sm_103a/f, sm_110a/f"
        );
    }

    #[test]
    fn names_of_targets() {
        assert!(
            ["sm_75", "sm_90a", "sm_100f", "sm_121a"]
                .iter()
                .all(|t| Target::parse(t).is_some())
        );
        assert!(
            ["", "sm_", "sm_100x", "compute_90", "sm_a"]
                .iter()
                .all(|t| Target::parse(t).is_none())
        );
    }
}
