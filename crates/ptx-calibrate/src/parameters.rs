//! Which cases each number of a machine is fitted on, and in which order: what
//! a case needs besides its own number stands before it.

use ptx_time::Machine;
use wildmatch::WildMatch;

use dgx_core::domain::Peaks;
use dgx_core::domain::roofline::tensor_flops;

/// One number of a [`Machine`].
pub(super) struct Parameter {
    pub(super) name: &'static str,
    /// Names of cases, with `*` for anything.
    cases: &'static [&'static str],
    pub(super) compared: Compared,
    bounds: (f64, f64),
}

/// What of an answer is held against the model's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compared {
    Time,
    /// The clock it ran at.
    Clock,
}

impl Parameter {
    pub(super) fn is_about(&self, case: &str) -> bool {
        let mut patterns = self.cases.iter();
        patterns.any(|pattern| WildMatch::new(pattern).matches(case))
    }

    /// Within what it is looked for: no more than the peaks allow.
    pub(super) fn bounds(&self, machine: &Machine, peaks: &Peaks) -> (f64, f64) {
        let (low, high) = self.bounds;
        match self.name {
            "clock_mhz" | "rested_clock_mhz" => (low, high.min(peaks.clock_mhz)),
            "memory_bandwidth" => (low, high.min(peaks.bandwidth)),
            "wgmma_column" => {
                let column = tensor_flops(machine) * machine.wgmma_column;
                let least = peaks.tensor_flops.map_or(0.0, |most| column / most);
                (low.max(least), high)
            }
            _ => (low, high),
        }
    }
}

const fn time(name: &'static str, bounds: (f64, f64), cases: &'static [&'static str]) -> Parameter {
    Parameter {
        name,
        cases,
        compared: Compared::Time,
        bounds,
    }
}

const fn clock(
    name: &'static str,
    bounds: (f64, f64),
    cases: &'static [&'static str],
) -> Parameter {
    Parameter {
        compared: Compared::Clock,
        ..time(name, bounds, cases)
    }
}

/// In the order in which they are fitted. Those of a machine that are not among
/// them no case can tell from others.
pub(super) const PARAMETERS: &[Parameter] = &[
    clock("rested_clock_mhz", (500.0, 4000.0), &["clock/spin/320"]),
    clock("clock_mhz", (500.0, 4000.0), &["clock/six-bits/1"]),
    clock(
        "clock_drop_mhz",
        (0.0, 500.0),
        &["clock/six-bits/99", "clock/six-bits/132"],
    ),
    clock("rest_micros", (0.1, 5.0), &["clock/rest/8/*"]),
    clock("resume_micros", (0.0, 2.0), &["clock/rest/8/*"]),
    // Instructions: rates where four warps share a partition, then latencies.
    time(
        "branch_cycles",
        (0.5, 40.0),
        &[
            "pipes/iadd/latency",
            "pipes/lop3/latency",
            "pipes/imad/latency",
            "pipes/ffma/latency",
        ],
    ),
    time("fetch_interval", (1.0, 200.0), &["code/driven-out-cold/*"]),
    time(
        "fetch_latency",
        (1.0, 4000.0),
        &["code/jumps/*/driven-out-cold"],
    ),
    time(
        "alu_interval",
        (0.5, 16.0),
        &[
            "pipes/lop3/?-warp*",
            "pipes/shf/?-warp*",
            "pipes/prmt/?-warp*",
            "pipes/sel/?-warp*",
        ],
    ),
    time("imad_interval", (0.5, 16.0), &["pipes/imad/?-warp*"]),
    time(
        "imad_high_interval",
        (0.5, 32.0),
        &["pipes/imad_hi/4-warps"],
    ),
    time(
        "fma_interval",
        (0.5, 16.0),
        &[
            "pipes/fadd/?-warp*",
            "pipes/fmul/?-warp*",
            "pipes/ffma/?-warp*",
        ],
    ),
    time(
        "half_interval",
        (0.5, 16.0),
        &[
            "pipes/hfma2/?-warp*",
            "pipes/hmul2/?-warp*",
            "pipes/hadd2/?-warp*",
            "pipes/f16_to_f32/?-warp*",
        ],
    ),
    time(
        "mufu_interval",
        (1.0, 64.0),
        &["pipes/ex2/?-warp*", "pipes/rsqrt/?-warp*"],
    ),
    time(
        "mufu_latency",
        (4.0, 200.0),
        &["pipes/ex2/latency", "pipes/rsqrt/latency"],
    ),
    time(
        "pack_interval",
        (0.5, 64.0),
        &["pipes/pack/?-warp*", "pipes/e4m3_to_f16/?-warp*"],
    ),
    time("convert_interval", (1.0, 64.0), &["pipes/popc/?-warp*"]),
    time("convert_latency", (4.0, 200.0), &["pipes/popc/latency"]),
    time(
        "shuffle_interval",
        (0.5, 64.0),
        &["pipes/shfl/4-warps", "pipes/shfl/1-warp"],
    ),
    time("shuffle_latency", (4.0, 200.0), &["pipes/shfl/latency"]),
    // Shared memory.
    time(
        "shared_interval",
        (0.25, 16.0),
        &[
            "shared/lds*/4-warps",
            "shared/sts*/4-warps",
            "shared/?ds4/stride-128",
        ],
    ),
    time("shared_latency", (8.0, 200.0), &["shared/lds*/latency"]),
    time(
        "queue_cycles",
        (1.0, 500.0),
        &["shared/lds*/1-warp", "shared/sts*/1-warp"],
    ),
    time(
        "shared_atomic_latency",
        (8.0, 1000.0),
        &["sync/atomic_shared"],
    ),
    // Global memory.
    time("l1_latency", (8.0, 400.0), &["global/l1"]),
    time("l2_latency", (50.0, 2000.0), &["global/l2"]),
    time(
        "l2_spread",
        (0.0, 200.0),
        &[
            "rows/once/one/1x8",
            "rows/once/one/4x8",
            "rows/both/one/1x8",
            "rows/both/one/4x8",
            "stream/read/one-warp",
        ],
    ),
    time("memory_latency", (50.0, 4000.0), &["global/cold*"]),
    time(
        "memory_spread",
        (0.0, 1000.0),
        &["bulk/plain/cold/*", "bulk/tensor/cold/64x8"],
    ),
    time(
        "memory_row_spread",
        (0.0, 1000.0),
        &["bulk/tensor/cold/64x128", "ring/one/*", "ring/turns/1x*"],
    ),
    time(
        "memory_beside",
        (0.0, 1.0),
        &["boxes/all/cold/*", "boxes/long/*"],
    ),
    time("far_fence_latency", (20.0, 8000.0), &["global/fence"]),
    time(
        "l2_port",
        (8.0, 512.0),
        &["stream/read/one/*", "bulk/plain/one/*x32768"],
    ),
    time(
        "sectors_per_cycle",
        (0.25, 64.0),
        &["stream/read/one/*", "rows/once/one/14x8", "deep/once/one/*"],
    ),
    time(
        "line_interval",
        (0.0, 16.0),
        &["rows/once/one/14x8", "rows/scales/one/14x8"],
    ),
    time("atomic_latency", (50.0, 4000.0), &["global/atomic"]),
    time("store_port", (4.0, 512.0), &["stream/write/one/*"]),
    time(
        "store_bandwidth",
        (2e11, 2e13),
        &["stream/write/all/warm/*", "stream/write/all/cold/*"],
    ),
    time(
        "l2_bandwidth",
        (5e11, 5e13),
        &[
            "stream/read/all/warm/*",
            "stream/async/all/warm/*",
            "bulk/plain/all/warm/*",
        ],
    ),
    time(
        "l2_queue_cycles",
        (1.0, 10000.0),
        &["stream/read/one/*", "stream/read/one-warp"],
    ),
    time(
        "l2_same",
        (0.01, 1.0),
        &["stream/read/all/same/*", "bulk/plain/all/same/*"],
    ),
    time(
        "dirty_bandwidth",
        (2e11, 2e13),
        &[
            "stream/read/all/cold/131072",
            "stream/async/all/cold/131072",
            "bulk/plain/all/cold/*x16384",
        ],
    ),
    time(
        "memory_bandwidth",
        (2e11, 2e13),
        &[
            "stream/read/all/cold/1048576",
            "stream/async/all/cold/1048576",
        ],
    ),
    time(
        "memory_busy_latency",
        (0.0, 8000.0),
        &[
            "rows/both/all/cold/4x*",
            "rows/both/all/cold/8x*",
            "bulk/plain/all/cold/4x4096",
            "bulk/plain/all/cold/8x4096",
        ],
    ),
    time(
        "memory_piece",
        (0.0, 256.0),
        &[
            "rows/plain/all/cold/14x*",
            "rows/both/all/cold/14x*",
            "rows/scales/all/cold/14x*",
        ],
    ),
    // Waiting.
    time("phase_latency", (2.0, 200.0), &["sync/passed"]),
    time("arrive_latency", (1.0, 400.0), &["sync/meet*"]),
    time(
        "syncs_interval",
        (0.1, 100.0),
        &["sync/arrive", "sync/meet*/512"],
    ),
    time("wake_latency", (1.0, 400.0), &["sync/ping_pong"]),
    time(
        "barrier_latency",
        (2.0, 400.0),
        &["sync/bar/32", "sync/bar/128", "sync/turns/64"],
    ),
    time(
        "barrier_interval",
        (0.1, 100.0),
        &["sync/bar/*", "sync/turns/*"],
    ),
    time("fence_latency", (1.0, 1000.0), &["sync/fence_*"]),
    time(
        "fence_interval",
        (0.1, 200.0),
        &["behind/fence/8/256", "behind/proxy_fence/8/256"],
    ),
    time("cluster_latency", (20.0, 2000.0), &["cluster/barrier/*"]),
    time(
        "remote_latency",
        (20.0, 2000.0),
        &["cluster/load", "cluster/ping_pong"],
    ),
    time(
        "remote_port",
        (1.0, 512.0),
        &["cluster/store/256", "cluster/read/256"],
    ),
    // Copies.
    time("bulk_latency", (50.0, 4000.0), &["bulk/plain/latency/*"]),
    time("bulk_interval", (0.5, 1000.0), &["bulk/plain/one/*x512"]),
    time(
        "row_interval",
        (0.01, 100.0),
        &["bulk/tensor/one/*", "bulk/tensor/latency/*"],
    ),
    time("map_latency", (1.0, 8000.0), &["bulk/tensor/first/cold"]),
    time("map_l2_latency", (1.0, 8000.0), &["bulk/tensor/first/warm"]),
    time(
        "bulk_store_latency",
        (1.0, 4000.0),
        &["store/plain/done/1x*", "store/tensor/done/*"],
    ),
    // Tensor cores.
    time(
        "wgmma_column",
        (0.125, 4.0),
        &[
            "wgmma/*s/n128/2-groups",
            "wgmma/*s/n192/2-groups",
            "wgmma/*s/n256/2-groups",
        ],
    ),
    time(
        "wgmma_least",
        (1.0, 128.0),
        &[
            "wgmma/*s/n8/1-group",
            "wgmma/*s/n8/2-groups",
            "wgmma/*s/n16/1-group",
        ],
    ),
    time("wgmma_latency", (1.0, 400.0), &["wgmma/*s/n*/alone"]),
    time(
        "wgmma_wait_latency",
        (0.5, 400.0),
        &["wgmma/*s/n*/*-then-wait", "wgmma/*s/n*/alone"],
    ),
    time("wgmma_settled_latency", (1.0, 400.0), &["sync/wgmma_empty"]),
    time(
        "wgmma_steal",
        (0.01, 64.0),
        &["wgmma/beside/*-96/n8/*", "wgmma/beside/*-96/n64/*"],
    ),
    time(
        "wgmma_steal_column",
        (0.001, 4.0),
        &[
            "wgmma/beside/*-96/n64/*",
            "wgmma/beside/*-96/n96/*",
            "wgmma/beside/*-128/*",
        ],
    ),
    time("mma_interval", (1.0, 256.0), &["mma/*-warp", "mma/*-warps"]),
    time("mma_latency", (4.0, 400.0), &["mma/*/latency"]),
    // What stands beside them in a design; single precision takes less than its registers would.
    time(
        "mma_read_interval",
        (0.0, 4.0),
        &[
            "mma/beside/lop3*",
            "mma/beside/hmul2*",
            "mma/beside/prmt*",
            "mma/dequantised/4/*",
        ],
    ),
    // Launches.
    time(
        "constant_line_latency",
        (1.0, 2000.0),
        &["parameters/first/warm"],
    ),
    time(
        "constant_cold_latency",
        (1.0, 4000.0),
        &["parameters/first/cold/132"],
    ),
    time("spread_micros", (0.01, 20.0), &["start/spread/132"]),
    time(
        "turnover_cycles",
        (1.0, 20000.0),
        &["start/turnover/264/*", "start/turnover/528/*"],
    ),
    time(
        "launch_micros",
        (0.1, 50.0),
        &["start/empty/132/small", "start/empty/132/full"],
    ),
    time(
        "cold_start_micros",
        (0.001, 20.0),
        &["start/empty/132/cold"],
    ),
    time(
        "next_launch_micros",
        (0.01, 50.0),
        &["start/launches/2/*", "start/launches/3/*"],
    ),
    time(
        "dependent_start_micros",
        (0.01, 50.0),
        &["start/overlapped/*"],
    ),
    time(
        "dependent_wait_micros",
        (0.01, 50.0),
        &["start/overlapped/*", "start/overlapped-full/*"],
    ),
];

/// Numbers of machines on which nothing is fitted: what the device is, and what
/// no case can tell from others.
pub(super) fn unasked() -> impl Iterator<Item = &'static str> {
    let names = Machine::NAMES.iter().copied();
    names.filter(|name| PARAMETERS.iter().all(|p| p.name != *name))
}
