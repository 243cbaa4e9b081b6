//! Detects launches that the device would refuse, before anything is launched.

use cpp_demangle::{DemangleOptions, Symbol};

use super::KernelReport;
use super::occupancy::residency;
use super::signature::mismatch;
use crate::catalog::LaunchKey;
use crate::plan::LaunchGeometry;
use dgx_core::diagnostic::nearest;
use dgx_core::domain::{Bytes, DECLARE, Limits};

/// Extents that CUDA allows on every device.
const BLOCK: [u32; 3] = [1024, 1024, 64];
const GRID: [u32; 3] = [i32::MAX as u32, 65_535, 65_535];

/// Why a launch would be refused, and which of its keys causes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub key: LaunchKey,
    pub reason: String,
}

impl Refusal {
    fn new(key: LaunchKey, reason: String) -> Self {
        Self { key, reason }
    }
}

/// Why this launch of one of `kernels` would be refused. A kernel without `args` gets `args` bytes.
pub fn refusal(
    limits: &Limits,
    kernels: &[KernelReport],
    launch: &LaunchGeometry,
    args: usize,
) -> Option<Refusal> {
    geometry(limits, launch).or_else(|| {
        let kernel = kernels.iter().find(|kernel| kernel.name == launch.kernel);
        match kernel {
            Some(kernel) => fit(limits, kernel, launch, args),
            None => Some(Refusal::new(
                LaunchKey::Kernel,
                missing(kernels, &launch.kernel),
            )),
        }
    })
}

/// The error that no kernel has this name, with a list of the kernels.
fn missing(kernels: &[KernelReport], name: &str) -> String {
    let overloads = kernels.iter().filter(|kernel| kernel.is_overload_of(name));
    let overloads: Vec<&str> = overloads.map(|kernel| &*kernel.entry).collect();
    if overloads.len() > 1 {
        let list = overloads.join(", ");
        return format!(
            "{} kernels are called `{name}`: name one of {list}",
            overloads.len()
        );
    }
    let names: Vec<String> = kernels.iter().map(|k| source_name(&k.name)).collect();
    let close = nearest(name, names.iter().map(String::as_str));
    let hint = match (close, kernels.is_empty()) {
        (Some(close), _) => format!("did you mean `{close}`?"),
        (None, true) => {
            format!("{DECLARE} __global__, or name an instance of the template: {name}<…>")
        }
        (None, false) => format!("it has {}", names.join(", ")),
    };
    format!("there is no kernel `{name}` in it: {hint}")
}

/// A kernel's name as the source has it, with template arguments and without parameters:
/// `_ZN3our4normIfEEvPT_` → `our::norm<float>`.
pub fn source_name(mangled: &str) -> String {
    let options = DemangleOptions::new()
        .no_params()
        .no_return_type()
        .hide_expression_literal_types();
    let symbol = Symbol::new(mangled).ok();
    let name = symbol.and_then(|symbol| symbol.demangle_with_options(&options).ok());
    name.unwrap_or_else(|| mangled.to_owned())
}

/// As far as it is known without the compiled kernel.
pub fn geometry(limits: &Limits, launch: &LaunchGeometry) -> Option<Refusal> {
    let LaunchGeometry {
        grid,
        block,
        cluster,
        ..
    } = launch;
    let name = &launch.kernel;
    let extents = [
        (LaunchKey::Grid, ("grid", "CTAs"), grid, GRID),
        (LaunchKey::Block, ("block", "threads"), block, BLOCK),
    ];
    for (key, (what, unit), extent, most) in extents {
        let of = times(extent);
        if extent.contains(&0) {
            let reason = format!("{name} has a {what} of {of}: nothing would run");
            return Some(Refusal::new(key, reason));
        }
        if extent.iter().zip(most).any(|(n, most)| *n > most) {
            let most = times(&most);
            let reason = format!("{name} has a {what} of {of} {unit}; the device allows {most}");
            return Some(Refusal::new(key, reason));
        }
    }
    let threads = launch.threads_per_block();
    let most = limits.threads_per_block;
    if threads > most {
        let reason = format!("{name} has {threads} threads a block; the device allows {most}");
        return Some(Refusal::new(LaunchKey::Block, reason));
    }
    let ctas: u64 = cluster.iter().map(|n| u64::from(*n)).product();
    let most = limits.blocks_per_cluster;
    if ctas == 0 || ctas > u64::from(most) {
        let reason = format!("{name} has clusters of {ctas} CTAs; the device allows {most}");
        return Some(Refusal::new(LaunchKey::Cluster, reason));
    }
    let divides = grid
        .iter()
        .zip(cluster)
        .all(|(grid, cluster)| grid % cluster == 0);
    (!divides).then(|| {
        let (grid, cluster) = (times(grid), times(cluster));
        let reason =
            format!("{name} has a grid of {grid}, which clusters of {cluster} do not divide");
        Refusal::new(LaunchKey::Cluster, reason)
    })
}

fn fit(
    limits: &Limits,
    kernel: &KernelReport,
    launch: &LaunchGeometry,
    args: usize,
) -> Option<Refusal> {
    let name = &kernel.name;
    if let Some(given) = &launch.args {
        if let Some(why) = mismatch(kernel, given) {
            return Some(Refusal::new(LaunchKey::Args, why));
        }
    } else if kernel.params.iter().map(|p| p.bytes as usize).ne([args]) {
        let given: Vec<String> = kernel.params.iter().map(|p| p.bytes.to_string()).collect();
        let reason = format!(
            "{name} takes parameters of {} bytes, and is given one dgx::Args of {args}: \
             {DECLARE} as void {name}(const __grid_constant__ dgx::Args args), or say in `args` \
             what its parameters are",
            match given.is_empty() {
                true => "0".to_owned(),
                false => given.join(" + "),
            }
        );
        return Some(Refusal::new(LaunchKey::Args, reason));
    }
    let threads = launch.threads_per_block();
    if let Some(most) = kernel.max_threads.filter(|most| threads > *most) {
        let reason = format!("{name} has {threads} threads a block, and is compiled for {most}");
        return Some(Refusal::new(LaunchKey::CompiledBlock, reason));
    }
    for (key, what, asked, only) in [
        (
            LaunchKey::CompiledBlock,
            "block",
            launch.block,
            kernel.block,
        ),
        (
            LaunchKey::Cluster,
            "cluster",
            launch.cluster,
            kernel.cluster,
        ),
    ] {
        if let Some(only) = only.filter(|only| *only != asked) {
            let (asked, only) = (times(&asked), times(&only));
            let reason = format!("{name} has a {what} of {asked}, and is compiled for {only}");
            return Some(Refusal::new(key, reason));
        }
    }
    let smem = Bytes(u64::from(kernel.static_smem) + u64::from(kernel.dynamic_smem(launch)));
    let most = limits.shared_per_block;
    if smem > most {
        let reason = format!("{name} takes {smem} of shared memory a block, {most} at most");
        return Some(Refusal::new(LaunchKey::Smem, reason));
    }
    let residency = residency(limits, kernel.registers, threads, smem);
    (residency.blocks == 0).then(|| {
        let registers = kernel.registers;
        let limit = residency.limit;
        let reason = format!(
            "{name} takes {registers} registers × {threads} threads: no CTA fits ({limit})"
        );
        Refusal::new(LaunchKey::Block, reason)
    })
}

fn times(extent: &[u32; 3]) -> String {
    let [x, y, z] = extent;
    format!("{x}×{y}×{z}")
}

#[cfg(test)]
mod tests {
    use super::super::{Param, ParamKind};
    use super::*;

    const ARGS: usize = 1440;
    use dgx_core::config::target::default_device;
    use dgx_core::domain::is_undeclared;

    /// A change that breaks a launch, and the message about it.
    type Case<T> = (fn(&mut T), &'static str);

    fn param(bytes: u32) -> Param {
        Param {
            bytes,
            align: 8,
            kind: ParamKind::Block,
        }
    }

    fn kernel() -> KernelReport {
        KernelReport {
            name: "k".to_owned(),
            registers: 128,
            params: vec![param(1440)],
            ..KernelReport::default()
        }
    }

    fn launch() -> LaunchGeometry {
        LaunchGeometry {
            kernel: "k".to_owned(),
            grid: [132, 1, 1],
            block: [256, 1, 1],
            cluster: [2, 1, 1],
            smem: 200 << 10,
            ..LaunchGeometry::default()
        }
    }

    #[test]
    fn kernels_are_listed_by_their_names_in_the_source() {
        for (mangled, name) in [
            ("_Z4normPf", "norm"),
            ("_ZN3our4normEPf", "our::norm"),
            ("_ZN3our4normIfEEvPT_", "our::norm<float>"),
            ("_Z4gemmILi4EEvv", "gemm<4>"),
            ("plain", "plain"),
        ] {
            assert_eq!(source_name(mangled), name);
        }
        let kernel = KernelReport {
            name: "_ZN3our4normEPf".to_owned(),
            ..KernelReport::default()
        };
        let told = missing(&[kernel], "nrm");
        assert!(told.ends_with("it has our::norm"), "{told}");
    }

    #[test]
    fn what_a_device_takes_is_let_through() {
        assert_eq!(
            refusal(&default_device().limits, &[kernel()], &launch(), ARGS),
            None
        );
    }

    #[test]
    fn what_a_device_refuses_is_told_with_its_numbers() {
        let launches: [Case<LaunchGeometry>; 8] = [
            (|l| l.grid[1] = 0, "grid of 132×0×1"),
            (
                |l| l.grid[2] = 65_536,
                "the device allows 2147483647×65535×65535",
            ),
            (
                |l| l.block[0] = 2048,
                "block of 2048×1×1 threads; the device allows 1024×1024×64",
            ),
            (|l| l.block = [512, 4, 1], "2048 threads a block"),
            (|l| l.block = [8, 1, 65], "block of 8×1×65 threads"),
            (|l| l.cluster[0] = 5, "do not divide"),
            (|l| l.cluster[0] = 33, "33 CTAs"),
            (|l| l.smem = 228 << 10, "of shared memory a block"),
        ];
        for (change, expected) in launches {
            let mut launch = launch();
            change(&mut launch);
            let told = refusal(&default_device().limits, &[kernel()], &launch, ARGS)
                .expect(expected)
                .reason;
            assert!(told.contains(expected) && !is_undeclared(&told), "{told}");
        }
        let kernels: [Case<KernelReport>; 7] = [
            (|k| k.registers = 255, "no CTA fits (registers)"),
            (
                |k| k.params = vec![param(8), param(8)],
                "parameters of 8 + 8 bytes",
            ),
            (|k| k.params = Vec::new(), "parameters of 0 bytes"),
            (|k| k.max_threads = Some(128), "compiled for 128"),
            (|k| k.block = Some([128, 1, 1]), "compiled for 128×1×1"),
            (|k| k.cluster = Some([4, 1, 1]), "compiled for 4×1×1"),
            (|k| k.static_smem = 40 << 10, "of shared memory a block"),
        ];
        let mut many = launch();
        many.block[0] = 512;
        for (change, expected) in kernels {
            let mut kernel = kernel();
            change(&mut kernel);
            let launch = match kernel.registers {
                255 => &many,
                _ => &launch(),
            };
            let told = refusal(&default_device().limits, &[kernel.clone()], launch, ARGS)
                .expect(expected)
                .reason;
            assert!(told.contains(expected), "{told}");
            let params = kernel.params != self::kernel().params;
            assert_eq!(is_undeclared(&told), params, "{told}");
        }
        let told = refusal(&default_device().limits, &[], &launch(), ARGS)
            .expect("a refusal")
            .reason;
        assert!(told.contains("no kernel `k`"), "{told}");
        assert!(is_undeclared(&told), "{told}");
    }
}
