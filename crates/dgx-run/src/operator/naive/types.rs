//! Reads and writes numbers of each type in CUDA without the toolkit's headers.

use std::collections::BTreeSet;

use dgx_core::operator::{ElementType, Number, Operator};

/// The types in which a kernel computes.
#[derive(Clone, Copy)]
pub(super) struct Numbers {
    pub double: bool,
    pub long: bool,
}

impl Numbers {
    pub(super) fn of(operator: &Operator) -> Self {
        let precise = |element| matches!(element, ElementType::F32 | ElementType::F64);
        let mut outputs = operator.outputs.iter().map(|output| output.tensor.element);
        let mut inputs = operator.inputs.iter().map(|input| input.element);
        Self {
            double: outputs.any(precise),
            long: inputs.any(|element| element == ElementType::I32),
        }
    }

    /// Like the CPU's evaluator.
    pub(super) fn exact() -> Self {
        Self {
            double: true,
            long: true,
        }
    }

    pub(super) fn declared(&self) -> &'static str {
        match (self.double, self.long) {
            (false, false) => "using real = float;\nusing integer = int;\n",
            (false, true) => "using real = float;\nusing integer = long long;\n",
            (true, false) => {
                "using real = double;  // its results are compared closely; is float enough?\n\
                 using integer = int;\n"
            }
            (true, true) => {
                "using real = double;  // its results are compared closely; is float enough?\n\
                 using integer = long long;\n"
            }
        }
    }

    pub(super) fn kind(number: Number) -> &'static str {
        match number {
            Number::Real => "real",
            Number::Integer => "integer",
            Number::Truth => "bool",
        }
    }

    /// Bytes of one of these.
    pub(super) fn bytes(&self, number: Number) -> u64 {
        match number {
            Number::Real if self.double => 8,
            Number::Integer if self.long => 8,
            Number::Truth => 1,
            _ => 4,
        }
    }
}

/// Functions that kernels may need, each a block of lines.
const FUNCTIONS: &str = include_str!("functions.cuh");

/// A function of the preamble, in the order of [`FUNCTIONS`]: each after those it
/// calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Helper {
    Narrowed,
    FromF16,
    ToF16,
    FromBf16,
    ToBf16,
    FromE2m1,
    ToE2m1,
    FromE4m3,
    ToE4m3,
    FromE5m2,
    ToE5m2,
    FromE8m0,
    Nvfp4,
    Mxfp4,
    Mxfp8,
    Clamped,
    Infinity,
    Nan,
    Maximum,
    Minimum,
    Sigmoid,
    Silu,
    Gelu,
    Sign,
    FloorDivide,
    Remainder,
    RemainderReal,
    FloorDivideReal,
    Before,
}

/// The texts of these and of those they call.
pub(super) fn ordered(used: &BTreeSet<Helper>) -> impl Iterator<Item = &'static str> {
    let mut all = used.clone();
    for helper in used {
        all.extend(helper.calls());
    }
    all.into_iter().map(Helper::text)
}

impl Helper {
    fn calls(self) -> &'static [Self] {
        match self {
            Self::Nvfp4 => &[Self::FromE2m1, Self::FromE4m3],
            Self::Mxfp4 => &[Self::FromE2m1, Self::FromE8m0],
            Self::Mxfp8 => &[Self::FromE4m3, Self::FromE8m0],
            Self::FloorDivideReal => &[Self::RemainderReal],
            _ => &[],
        }
    }

    /// The function that reads a plain element type, and its name.
    pub(super) fn reader(element: ElementType) -> Option<(Self, &'static str)> {
        Some(match element {
            ElementType::F16 => (Self::FromF16, "from_f16"),
            ElementType::Bf16 => (Self::FromBf16, "from_bf16"),
            ElementType::E4m3 => (Self::FromE4m3, "from_e4m3"),
            ElementType::E5m2 => (Self::FromE5m2, "from_e5m2"),
            ElementType::E2m1 => (Self::FromE2m1, "from_e2m1"),
            _ => return None,
        })
    }

    /// The function that rounds to one.
    pub(super) fn writer(element: ElementType) -> Option<(Self, &'static str)> {
        Some(match element {
            ElementType::F16 => (Self::ToF16, "to_f16"),
            ElementType::Bf16 => (Self::ToBf16, "to_bf16"),
            ElementType::E4m3 => (Self::ToE4m3, "to_e4m3"),
            ElementType::E5m2 => (Self::ToE5m2, "to_e5m2"),
            ElementType::E2m1 => (Self::ToE2m1, "to_e2m1"),
            _ => return None,
        })
    }

    fn text(self) -> &'static str {
        let mut blocks = FUNCTIONS.split("\n\n");
        let block = blocks.nth(self as usize);
        let block = block.expect("functions.cuh has a block for each helper");
        block.trim_end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_helper_has_the_block_of_its_name() {
        assert_eq!(FUNCTIONS.split("\n\n").count(), Helper::Before as usize + 1);
        let types = [
            ElementType::F16,
            ElementType::Bf16,
            ElementType::E4m3,
            ElementType::E5m2,
            ElementType::E2m1,
        ];
        for element in types {
            for named in [Helper::reader, Helper::writer] {
                let (helper, name) = named(element).expect("a function");
                assert!(helper.text().contains(&format!(" {name}(")), "{name}");
            }
        }
        assert!(Helper::Sign.text().contains(" sign("));
        assert!(Helper::Before.text().contains(" before("));
    }
}
