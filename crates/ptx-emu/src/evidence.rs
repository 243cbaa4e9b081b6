//! How sure it is that an instruction does what a card does.
//!
//! An instruction's form is its opcode with those modifiers that decide what it computes. The forms
//! of kernels whose results were recorded on a card are listed in `recorded.txt`, which
//! `ptx-conformance forms` writes; a test there keeps it true.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::MmaMode;
use crate::front::ast::Instruction;

/// What a form's results rest on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Evidence {
    /// Tests compare them, bit for bit, with results that a card gave.
    Exact,
    /// Tests compare them within the error that the PTX ISA allows, or where it leaves the order of
    /// a sum open.
    Near,
    /// The PTX ISA alone.
    Documents,
}

impl Evidence {
    /// Of a form as [`crate::Kernel::forms`] has it. Fast tensor products of floats sum in an order
    /// of their own, so they are near at best.
    pub fn of(form: &str, mode: MmaMode) -> Self {
        let recorded = RECORDED.get(form).copied().unwrap_or(Self::Documents);
        match mode == MmaMode::Fast && sums_floats(form) {
            true => recorded.max(Self::Near),
            false => recorded,
        }
    }
}

/// Whether a form is a tensor product that is not of whole numbers.
fn sums_floats(form: &str) -> bool {
    let product = ["mma.", "wmma.mma.", "wgmma.mma_async."];
    let whole = |word: &str| matches!(word, "s32" | "b1");
    product.iter().any(|of| form.starts_with(of)) && !form.split('.').any(whole)
}

static RECORDED: LazyLock<HashMap<&str, Evidence>> = LazyLock::new(|| {
    let lines = include_str!("recorded.txt").lines();
    let known = lines.filter_map(|line| match line.split_once(' ')? {
        ("=", form) => Some((form, Evidence::Exact)),
        ("~", form) => Some((form, Evidence::Near)),
        _ => None,
    });
    known.collect()
});

/// The form of an instruction. Hints for caches are left out, and of types that are only moved
/// their width remains.
pub(crate) fn form(instruction: &Instruction<'_>) -> String {
    let moves = matches!(instruction.opcode, "ld" | "ldu" | "st" | "mov");
    let mut form = instruction.opcode.to_owned();
    for &modifier in instruction.modifiers.iter().filter(|word| !is_hint(word)) {
        form.push('.');
        form.push_str(if moves { width(modifier) } else { modifier });
    }
    form
}

fn is_hint(modifier: &str) -> bool {
    matches!(
        modifier,
        "uni" | "ca" | "cg" | "cs" | "cv" | "lu" | "wb" | "wt"
    ) || ["L1::", "L2::", "level::"]
        .iter()
        .any(|of| modifier.starts_with(of))
}

fn width(modifier: &str) -> &str {
    match modifier {
        "u8" | "s8" => "b8",
        "u16" | "s16" | "f16" | "bf16" => "b16",
        "u32" | "s32" | "f32" => "b32",
        "u64" | "s64" | "f64" => "b64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Module;

    #[test]
    fn a_kernel_lists_its_forms_without_hints_and_moved_types() {
        let module = Module::load(
            ".version 8.5\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p) {
             .reg .b64 %rd<2>; .reg .f32 %f<3>;
             ld.param.u64 %rd1, [p];
             ld.global.nc.L1::no_allocate.f32 %f1, [%rd1];
             add.rn.f32 %f2, %f1, %f1;
             st.global.wb.f32 [%rd1], %f2;
             ret.uni; }",
        )
        .expect("it compiles");
        let kernel = module.kernel("k").expect("it is there");
        let forms: Vec<&str> = kernel.forms.iter().map(String::as_str).collect();
        let expected = [
            "add.rn.f32",
            "ld.global.nc.b32",
            "ld.param.b64",
            "ret",
            "st.global.b32",
        ];
        assert_eq!(forms, expected);
    }

    #[test]
    fn the_list_tells_recorded_forms_from_others() {
        let of = |form| Evidence::of(form, MmaMode::Exact);
        assert_eq!(of("add.rn.f32"), Evidence::Exact);
        assert_eq!(of("ex2.approx.f32"), Evidence::Near);
        let alloc = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32";
        assert_eq!(of(alloc), Evidence::Documents);
        let product = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32";
        assert_eq!(of(product), Evidence::Exact);
        assert_eq!(Evidence::of(product, MmaMode::Fast), Evidence::Near);
        let whole = "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32";
        assert_eq!(Evidence::of(whole, MmaMode::Fast), Evidence::Exact);
    }
}
