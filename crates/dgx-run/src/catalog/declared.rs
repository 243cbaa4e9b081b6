//! The kernels that a source declares, as far as its text shows: for users who import one.

use super::includes::without_comments;

/// A `__global__` function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredKernel {
    pub name: String,
    /// It has no instance until one is named.
    pub is_template: bool,
    pub params: Vec<DeclaredParam>,
    /// The maximum number of threads it is compiled for, if that is written as a number.
    pub threads: Option<u32>,
}

/// A parameter as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredParam {
    /// `const float* __restrict__ x`.
    pub text: String,
    pub name: String,
    pub is_pointer: bool,
}

/// Words before a kernel's name that have arguments.
const ATTRIBUTES: [&str; 4] = [
    "__launch_bounds__",
    "__cluster_dims__",
    "__maxnreg__",
    "__attribute__",
];

/// All kernels of a CUDA source.
pub fn declared(source: &str) -> Vec<DeclaredKernel> {
    let text = without_comments(source);
    let places = text.match_indices("__global__");
    places
        .filter_map(|(at, word)| kernel(&text[..at], &text[at + word.len()..]))
        .collect()
}

fn kernel(before: &str, mut rest: &str) -> Option<DeclaredKernel> {
    let mut threads = None;
    loop {
        rest = rest.trim_start_matches(|c: char| !is_word(c) && c != '(' && c != ';' && c != '{');
        let end = rest.find(|c: char| !is_word(c))?;
        let (word, after) = rest.split_at(end);
        let after = after.trim_start();
        match (word, after.strip_prefix('(')) {
            ("", _) => return None,
            (_, Some(inner)) => {
                let (list, after) = inner.split_at(closing(inner)?);
                if ATTRIBUTES.contains(&word) {
                    let first = list.split(',').next().unwrap_or_default();
                    if word == "__launch_bounds__" {
                        threads = first.trim().parse().ok();
                    }
                    rest = &after[1..];
                    continue;
                }
                let head = before.rfind([';', '}']).map_or(before, |at| &before[at..]);
                return Some(DeclaredKernel {
                    name: word.to_owned(),
                    is_template: head.contains("template"),
                    params: params(list),
                    threads,
                });
            }
            (_, None) => rest = after,
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The position of the bracket that closes an already opened one.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 1;
    let places = text.char_indices();
    let mut ends = places.filter(|(_, c)| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    ends.next().map(|(at, _)| at)
}

fn params(list: &str) -> Vec<DeclaredParam> {
    let mut depth = 0;
    let parts = list.split(|c: char| {
        match c {
            '(' | '<' | '[' | '{' => depth += 1,
            ')' | '>' | ']' | '}' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    });
    let written = parts
        .map(str::trim)
        .filter(|part| !part.is_empty() && *part != "void");
    written.map(declaration).collect()
}

fn declaration(text: &str) -> DeclaredParam {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let named = text.split('=').next().unwrap_or_default();
    let named = named.split('[').next().unwrap_or_default();
    let named = named.trim_end_matches([' ', ')']);
    let name = named
        .rsplit(|c: char| !is_word(c))
        .next()
        .unwrap_or_default();
    DeclaredParam {
        name: name.to_owned(),
        is_pointer: text.contains(['*', '[']),
        text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_found_with_their_parameters() {
        let source = "// __global__ void not_me(int a)\n\
            template <typename T, int N>\n__global__ void __maxnreg__(64) __launch_bounds__(256, 2)\n\
            norm(const T* __restrict__ x, float (&w)[4], cuda::std::array<int, 2> sizes, int n = 4) {}\n\
            extern \"C\" __global__ void plain(void) {}\n\
            static __device__ int other(int a);\n__global__ void late(\n    half *out,\n    int m\n);\n";
        let found = declared(source);
        let names: Vec<&str> = found.iter().map(|kernel| &*kernel.name).collect();
        assert_eq!(names, ["norm", "plain", "late"]);
        let [norm, plain, late] = &found[..] else {
            panic!("three");
        };
        assert!(norm.is_template && !plain.is_template && !late.is_template);
        assert_eq!((norm.threads, plain.threads), (Some(256), None));
        let params: Vec<(&str, bool)> = (norm.params.iter().chain(&late.params))
            .map(|param| (&*param.name, param.is_pointer))
            .collect();
        let expected = [
            ("x", true),
            ("w", true),
            ("sizes", false),
            ("n", false),
            ("out", true),
            ("m", false),
        ];
        assert_eq!(params, expected);
        assert!(plain.params.is_empty());
        assert!(declared("__global__").is_empty());
        assert!(declared("__global__ void f(int (").is_empty());
    }
}
