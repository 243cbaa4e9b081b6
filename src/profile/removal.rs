//! What it would give at most to be rid of one thing: the same call replayed
//! on a machine for which that thing costs nothing.

use std::thread;

use ptx_time::Machine;
use serde::Serialize;

use crate::domain::Micros;

/// Something a machine does in no time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Removal {
    pub what: &'static str,
    /// Numbers that become nothing.
    none: &'static [&'static str],
    /// Rates that become endless.
    endless: &'static [&'static str],
}

impl Removal {
    pub(crate) const ALL: [Self; 13] = [
        Self {
            what: "launches",
            none: &[
                "launch_micros",
                "cold_start_micros",
                "next_launch_micros",
                "dependent_start_micros",
                "dependent_wait_micros",
                "spread_micros",
            ],
            endless: &[],
        },
        Self {
            what: "starts of CTAs",
            none: &["start_cycles", "turnover_cycles"],
            endless: &[],
        },
        Self {
            what: "tensor cores",
            none: &[
                "wgmma_column",
                "wgmma_least",
                "wgmma_latency",
                "wgmma_wait_latency",
                "mma_interval",
                "mma_latency",
            ],
            endless: &[],
        },
        Self {
            what: "slots that wgmmas take from others",
            none: &["wgmma_steal", "wgmma_steal_column"],
            endless: &[],
        },
        Self {
            what: "integer arithmetic",
            none: &["alu_interval", "imad_interval", "imad_high_interval"],
            endless: &[],
        },
        Self {
            what: "floating-point arithmetic",
            none: &["fma_interval", "half_interval", "double_interval"],
            endless: &[],
        },
        Self {
            what: "conversions, special functions, shuffles",
            none: &[
                "mufu_interval",
                "mufu_latency",
                "pack_interval",
                "convert_interval",
                "convert_latency",
                "shuffle_interval",
                "shuffle_latency",
            ],
            endless: &[],
        },
        Self {
            what: "shared memory",
            none: &["shared_interval", "shared_latency", "shared_atomic_latency"],
            endless: &[],
        },
        Self {
            what: "bandwidth of memory",
            none: &[],
            endless: &["memory_bandwidth", "dirty_bandwidth"],
        },
        Self {
            what: "bandwidth of L2",
            none: &[],
            endless: &["l2_bandwidth", "l2_port", "sectors_per_cycle"],
        },
        Self {
            what: "latency of L2 and memory",
            none: &[
                "l1_latency",
                "l2_latency",
                "memory_latency",
                "bulk_latency",
                "map_latency",
                "bulk_store_latency",
                "bulk_interval",
                "row_interval",
            ],
            endless: &[],
        },
        Self {
            what: "latency of mbarriers",
            none: &[
                "phase_latency",
                "wake_latency",
                "arrive_latency",
                "syncs_interval",
            ],
            endless: &[],
        },
        Self {
            what: "barriers, fences, other CTAs",
            none: &[
                "barrier_latency",
                "barrier_interval",
                "cluster_latency",
                "fence_latency",
                "far_fence_latency",
                "remote_latency",
            ],
            endless: &["remote_port"],
        },
    ];

    fn of(&self, machine: &Machine) -> Machine {
        let mut machine = machine.clone();
        for (names, value) in [(self.none, 0.0), (self.endless, f64::INFINITY)] {
            for name in names {
                if let Some(number) = machine.number_mut(name) {
                    *number = value;
                }
            }
        }
        machine
    }
}

/// What a removal gives.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Saving {
    pub what: &'static str,
    /// Of the whole call.
    pub saved: Micros,
}

/// Every removal's saving, the most first. `replay` gives µs.
pub(crate) fn savings<E: Send>(
    machine: &Machine,
    replay: impl Fn(&Machine) -> Result<f64, E> + Sync,
) -> Result<(Micros, Vec<Saving>), E> {
    let whole = replay(machine)?;
    let one = |removal: &Removal| {
        let left = replay(&removal.of(machine))?;
        Ok(Saving {
            what: removal.what,
            // Who is early may be in another's way; that is no loss of it.
            saved: Micros((whole - left).max(0.0)),
        })
    };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let share = Removal::ALL.len().div_ceil(cores);
    let found: Result<Vec<Vec<Saving>>, E> = thread::scope(|scope| {
        let parts = Removal::ALL.chunks(share);
        let parts: Vec<_> = parts
            .map(|part| scope.spawn(|| part.iter().map(&one).collect::<Result<Vec<_>, E>>()))
            .collect();
        let joined = parts.into_iter().map(|part| part.join());
        joined
            .map(|part| part.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    let mut savings: Vec<Saving> = found?.into_iter().flatten().collect();
    savings.sort_by(|a, b| b.saved.0.total_cmp(&a.saved.0));
    Ok((Micros(whole), savings))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_removal_changes_numbers_that_there_are() {
        let machine = Machine::from_numbers(|_| Some(1.0)).unwrap();
        for removal in Removal::ALL {
            let names = [removal.none, removal.endless].concat();
            for name in &names {
                assert!(Machine::NAMES.contains(name), "{name}");
            }
            let free = removal.of(&machine);
            let changed = |n: &&&str| free.number(n) != machine.number(n);
            assert_eq!(
                Machine::NAMES.iter().filter(changed).count(),
                names.len(),
                "{}",
                removal.what
            );
        }
    }

    #[test]
    fn savings_come_with_the_most_first_and_never_below_nothing() {
        let machine = Machine::from_numbers(|_| Some(1.0)).unwrap();
        let replay = |m: &Machine| -> Result<f64, ()> {
            Ok(10.0 + 5.0 * m.launch_micros + 2.0 * m.barrier_latency - m.shared_latency)
        };
        let (whole, found) = savings(&machine, replay).unwrap();
        assert_eq!((whole, found.len()), (Micros(16.0), Removal::ALL.len()));
        assert_eq!((found[0].what, found[0].saved), ("launches", Micros(5.0)));
        assert_eq!(found[1].saved, Micros(2.0));
        assert!(found[2..].iter().all(|s| s.saved == Micros(0.0)));
    }

    #[test]
    fn a_replay_that_stands_still_is_said() {
        let machine = Machine::from_numbers(|_| Some(1.0)).unwrap();
        let stuck = |m: &Machine| match m.launch_micros > 0.0 {
            true => Ok(1.0),
            false => Err("stuck"),
        };
        assert_eq!(savings(&machine, stuck), Err("stuck"));
    }
}
