//! Reads and writes numbers of each type in CUDA without the toolkit's headers.

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

/// Ends the names of functions of reals that have the same for integers, until it is known which of
/// them are called.
pub(super) const REALS: &str = "_reals";

/// Functions that kernels may need, each a block of lines, after those it calls.
const FUNCTIONS: &str = include_str!("functions.cuh");

/// The functions that `code` calls, each after those it calls itself.
pub(super) fn called(code: &str) -> Vec<&'static str> {
    let mut found: Vec<&str> = Vec::new();
    for block in FUNCTIONS.rsplit("\n\n") {
        let declared = block.split('(').next().unwrap_or_default();
        let name = declared.rsplit(' ').next().unwrap_or_default();
        if calls(code, name) || found.iter().any(|other| calls(other, name)) {
            found.push(block.trim_end());
        }
    }
    found.reverse();
    found
}

/// Whether a line that is no comment calls the function.
fn calls(code: &str, name: &str) -> bool {
    let lines = code.lines().filter(|line| !line.starts_with("//"));
    lines.into_iter().any(|line| {
        line.match_indices(name).any(|(at, _)| {
            let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            !line[..at].ends_with(is_word) && line[at + name.len()..].starts_with(['(', '<'])
        })
    })
}

/// Whether functions read it, and round to it.
pub(super) fn is_narrow(element: ElementType) -> bool {
    use ElementType::{Bf16, E2m1, E4m3, E5m2, F16};
    matches!(element, F16 | Bf16 | E4m3 | E5m2 | E2m1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_function_has_the_block_of_its_name() {
        for element in ElementType::ALL.into_iter().filter(|e| is_narrow(*e)) {
            for way in ["from", "to"] {
                let name = format!("{way}_{}", element.name());
                let found = called(&format!("{name}(x)"));
                assert!(found.len() == 1 && found[0].contains(&format!(" {name}(")));
            }
        }
        let first = |code: &str| {
            called(code)
                .first()
                .map(|text| text.lines().last().unwrap())
        };
        assert!(first("sign<real>(x)").unwrap().contains(" sign("));
        assert!(first("before(x, y)").unwrap().contains(" before("));
        assert_eq!(first("sign[0] + compute_sign(x)\n// sign(x)"), None);
        assert_eq!(called("nvfp4(x, y, 0)").len(), 3);
        assert_eq!(called("floor_divide_reals(x, y)").len(), 2);
    }
}
