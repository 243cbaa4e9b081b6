//! Properties of each kernel from its PTX: its parameters, the block size it was compiled for, and
//! the tensor memory it allocates.

use super::{KernelReport, Param, ParamKind};

/// Adds the declarations of the PTX to ptxas's report.
pub(super) fn describe(kernels: &mut [KernelReport], ptx: &str) {
    let says_pointers = ptx.contains(" .ptr");
    for kernel in kernels {
        let found = ptx.match_indices(".entry").find_map(|(at, word)| {
            let text = &ptx[at + word.len()..];
            let text = text.split(".entry").next()?.trim_start();
            let (head, body) = text.split_once('{').unwrap_or((text, ""));
            let rest = head.strip_prefix(kernel.entry.as_str())?;
            (!rest.starts_with(|c: char| c.is_ascii_alphanumeric() || "_$".contains(c)))
                .then_some((rest, body))
        });
        let Some((head, body)) = found else { continue };
        kernel.tensor_columns = body.lines().filter_map(columns).max().unwrap_or(0);
        let (params, directives) = match head.trim_start().strip_prefix('(') {
            Some(list) => list.split_once(')').unwrap_or((list, "")),
            None => ("", head),
        };
        kernel.params = params
            .split(',')
            .filter(|p| !p.trim().is_empty())
            .map(|text| param(text, says_pointers))
            .collect();
        kernel.max_threads = numbers_after(directives, ".maxntid").map(|n| product(&n));
        kernel.block = numbers_after(directives, ".reqntid").map(|n| extent(&n));
        kernel.cluster = numbers_after(directives, ".reqnctapercluster").map(|n| extent(&n));
    }
}

/// Gives each kernel the name it is launched by: that of its instance, or that in the source if
/// exactly one entry is its mangled form.
pub(super) fn name(kernels: &mut [KernelReport], asked: &[String], lowered: &[(String, String)]) {
    for name in asked {
        let is_plain = |k: &KernelReport| k.entry == *name;
        if kernels.iter().any(is_plain) {
            continue;
        }
        let instance = lowered.iter().find(|(written, _)| written == name);
        let is_it = |kernel: &KernelReport| match instance {
            Some((_, entry)) => kernel.entry == *entry,
            None => kernel.is_overload_of(name),
        };
        let mut found = kernels.iter_mut().filter(|kernel| is_it(kernel));
        if let (Some(kernel), None) = (found.next(), found.next()) {
            kernel.name = name.clone();
        }
    }
}

/// `_ZN2ns3linEPf` → `ns`, `lin`; an unnamed namespace is none.
pub(super) fn scopes(entry: &str) -> Option<Vec<&str>> {
    let mangled = entry.strip_prefix("_Z")?;
    let (mut rest, nested) = match mangled.strip_prefix('N') {
        Some(rest) => (rest, true),
        None => (mangled, false),
    };
    let mut scopes = Vec::new();
    loop {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let Ok(length) = rest[..digits].parse::<usize>() else {
            return Some(scopes);
        };
        let scope = rest.get(digits..digits.checked_add(length)?)?;
        if !scope.starts_with("_GLOBAL__N_") {
            scopes.push(scope);
        }
        rest = &rest[digits + length..];
        if !nested {
            return Some(scopes);
        }
    }
}

/// `tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 512;` → 512.
fn columns(line: &str) -> Option<u32> {
    let operands = line.trim_start().strip_prefix("tcgen05.alloc")?;
    let (_, count) = operands.trim_end_matches(';').rsplit_once(',')?;
    count.trim().parse().ok()
}

/// `.param .align 8 .b8 k_param_0[1440]` → 1440 bytes in a block. If the PTX does not mark
/// pointers, numbers of their size may be pointers.
fn param(text: &str, says_pointers: bool) -> Param {
    const SIZES: [(&str, u32); 4] = [("8", 1), ("16", 2), ("32", 4), ("64", 8)];
    let mut words = text.split_whitespace().filter_map(|w| w.strip_prefix('.'));
    let element = words.find_map(|word| {
        let bits = word.strip_prefix(['b', 'u', 's', 'f'])?;
        let (_, bytes) = SIZES.iter().find(|(name, _)| *name == bits)?;
        Some((word.starts_with('f'), *bytes))
    });
    let (is_float, bytes) = element.unwrap_or((false, 0));
    let count = text.split_once('[').map(|(_, rest)| {
        let count = rest.split(']').next().unwrap_or_default();
        count.trim().parse().unwrap_or(1_u32)
    });
    let kind = match count {
        Some(_) => ParamKind::Block,
        None if text.contains(" .ptr") => ParamKind::Pointer,
        None if is_float => ParamKind::Float,
        None if bytes == 8 && !says_pointers => ParamKind::Either,
        None => ParamKind::Integer,
    };
    let align = text.split_once(".align").and_then(|(_, rest)| {
        let number = rest.split_whitespace().next()?;
        number.parse().ok()
    });
    Param {
        bytes: bytes.saturating_mul(count.unwrap_or(1)),
        align: align.unwrap_or(1),
        kind,
    }
}

fn numbers_after(text: &str, directive: &str) -> Option<Vec<u32>> {
    let rest = text.split_once(directive)?.1;
    let list = rest.split('.').next()?;
    Some(
        list.split(',')
            .filter_map(|n| n.trim().parse().ok())
            .collect(),
    )
}

fn product(numbers: &[u32]) -> u32 {
    numbers.iter().fold(1, |all, n| all.saturating_mul(*n))
}

fn extent(numbers: &[u32]) -> [u32; 3] {
    std::array::from_fn(|i| numbers.get(i).copied().unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(name: &str, ptx: &str) -> KernelReport {
        let mut kernels = [KernelReport {
            name: name.to_owned(),
            entry: name.to_owned(),
            ..KernelReport::default()
        }];
        describe(&mut kernels, ptx);
        let [kernel] = kernels;
        kernel
    }

    #[test]
    fn parameters_and_bounds_are_read() {
        let ptx = ".visible .entry k2(.param .u64 k2_param_0)\n{ }\n\
            .visible .entry k(\n\t.param .align 64 .b8 k_param_0[1440],\n\t\
            .param .u64 .ptr .align 1 k_param_1,\n\t.param .f32 k_param_2\n)\n\
            .maxntid 384, 1, 1\n.minnctapersm 1\n.reqnctapercluster 2, 1\n{\n}\n\
            .entry none\n.reqntid 64\n{ }";
        let kernel = described("k", ptx);
        let found: Vec<(u32, ParamKind)> =
            kernel.params.iter().map(|p| (p.bytes, p.kind)).collect();
        let expected = [
            (1440, ParamKind::Block),
            (8, ParamKind::Pointer),
            (4, ParamKind::Float),
        ];
        assert_eq!(found, expected);
        assert_eq!(kernel.max_threads, Some(384));
        assert_eq!(kernel.cluster, Some([2, 1, 1]));
        let number = &described("k2", ptx).params[0];
        assert_eq!((number.bytes, number.kind), (8, ParamKind::Integer));
        assert_eq!(kernel.tensor_columns, 0);
        let alloc = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 256;";
        let two = format!(".entry a()\n{{\n\t{alloc}\n}}\n.entry b()\n{{\n}}\n");
        let columns = |name| described(name, &two).tensor_columns;
        assert_eq!((columns("a"), columns("b")), (256, 0));
        let none = described("none", ptx);
        assert!(none.params.is_empty());
        assert_eq!(none.block, Some([64, 1, 1]));
    }

    #[test]
    fn a_mangled_entry_is_found_by_the_names_of_its_scopes() {
        let is = |entry: &str, name: &str| {
            let kernel = KernelReport {
                entry: entry.to_owned(),
                ..KernelReport::default()
            };
            kernel.is_overload_of(name)
        };
        assert!(is("_Z3linPKfPf", "lin") && !is("_Z4linePKf", "lin"));
        let unnamed = "_ZN36_GLOBAL__N__00000000_4_k_cu_abcdef013linEPKfPf";
        assert!(is(unnamed, "lin"));
        assert!(is("_ZN2ns3linEPf", "lin") && is("_ZN2ns3linEPf", "ns::lin"));
        assert!(!is("_ZN2ns3linEPf", "other::lin") && !is("_ZN3lin2nsEPf", "lin"));
        assert!(is("_ZN1a1b3linILi4EEEvPf", "b::lin"));
        for broken in [
            "lin",
            "_Z",
            "_ZN",
            "_Z9lin",
            "_ZN99999999999999999999x",
            "_Z1é",
        ] {
            assert!(!is(broken, "lin"), "{broken}");
        }
    }
}
