//! What the PTX says of each kernel: its parameters, the blocks it was compiled
//! for, and the tensor memory it asks for.

use super::KernelReport;

/// Adds what the PTX declares to what ptxas reported.
pub(super) fn describe(kernels: &mut [KernelReport], ptx: &str) {
    for kernel in kernels {
        let found = ptx.match_indices(".entry").find_map(|(at, word)| {
            let text = &ptx[at + word.len()..];
            let text = text.split(".entry").next()?.trim_start();
            let (head, body) = text.split_once('{').unwrap_or((text, ""));
            let rest = head.strip_prefix(kernel.name.as_str())?;
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
            .map(param_bytes)
            .collect();
        kernel.max_threads = numbers_after(directives, ".maxntid").map(|n| product(&n));
        kernel.block = numbers_after(directives, ".reqntid").map(|n| extent(&n));
        kernel.cluster = numbers_after(directives, ".reqnctapercluster").map(|n| extent(&n));
    }
}

/// `tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 512;` → 512.
fn columns(line: &str) -> Option<u32> {
    let operands = line.trim_start().strip_prefix("tcgen05.alloc")?;
    let (_, count) = operands.trim_end_matches(';').rsplit_once(',')?;
    count.trim().parse().ok()
}

/// `.param .align 8 .b8 k_param_0[1440]` → 1440.
fn param_bytes(text: &str) -> u32 {
    const TYPES: [(&str, u32); 4] = [("8", 1), ("16", 2), ("32", 4), ("64", 8)];
    let element = text
        .split_whitespace()
        .filter_map(|word| word.strip_prefix(['.']))
        .find_map(|word| {
            let bits = word.strip_prefix(['b', 'u', 's', 'f'])?;
            TYPES.iter().find(|(name, _)| *name == bits)
        })
        .map_or(0, |(_, bytes)| *bytes);
    let count = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split(']').next()?.trim().parse().ok())
        .unwrap_or(1_u32);
    element.saturating_mul(count)
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
        assert_eq!(kernel.params, [1440, 8, 4]);
        assert_eq!(kernel.max_threads, Some(384));
        assert_eq!(kernel.cluster, Some([2, 1, 1]));
        assert_eq!(described("k2", ptx).params, [8]);
        assert_eq!(kernel.tensor_columns, 0);
        let alloc = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 256;";
        let two = format!(".entry a()\n{{\n\t{alloc}\n}}\n.entry b()\n{{\n}}\n");
        let columns = |name| described(name, &two).tensor_columns;
        assert_eq!((columns("a"), columns("b")), (256, 0));
        let none = described("none", ptx);
        assert!(none.params.is_empty());
        assert_eq!(none.block, Some([64, 1, 1]));
    }
}
