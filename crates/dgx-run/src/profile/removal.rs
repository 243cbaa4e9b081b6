//! The most that removing one cost could save: the same call replayed on a machine where that cost
//! is zero.

use ptx_time::{CallTimes, Cause, Machine};
use rayon::prelude::*;

use dgx_core::domain::Micros;

/// A cost that is set to zero.
#[derive(Clone, Copy, Debug)]
struct Removal {
    cause: Cause,
    /// Names of the numbers that become 0.
    none: &'static str,
    /// Names of the rates that become infinite.
    endless: &'static str,
}

impl Removal {
    /// All but issuing: a warp's instructions are issued one by one on any machine.
    const ALL: [Self; 8] = [
        Self {
            cause: Cause::Launch,
            none: "launch_micros cold_start_micros next_launch_micros \
                   dependent_start_micros dependent_wait_micros spread_micros start_cycles \
                   turnover_cycles",
            endless: "",
        },
        Self {
            cause: Cause::Tensor,
            none: "wgmma_column wgmma_least wgmma_latency wgmma_wait_latency \
                   wgmma_settled_latency wgmma_steal wgmma_steal_column mma_interval \
                   mma_latency mma_read_interval tmem_product_column tmem_operand_line \
                   tmem_pair_operands tmem_product_latency tmem_a_latency tmem_pair_latency \
                   tmem_copy_line tmem_copy_latency tmem_shift_cycles tmem_move_column \
                   tmem_wide_column tmem_load_latency resume_micros",
            endless: "",
        },
        Self {
            cause: Cause::Arithmetic,
            none: "alu_interval imad_interval imad_high_interval fma_interval half_interval \
                   double_interval mufu_interval mufu_latency pack_interval \
                   convert_interval convert_latency shuffle_interval shuffle_latency \
                   to_uniform_latency constant_latency special_latency",
            endless: "",
        },
        Self {
            cause: Cause::Shared,
            none: "shared_interval shared_latency shared_atomic_latency",
            endless: "",
        },
        Self {
            cause: Cause::Memory,
            none: "memory_piece",
            endless: "memory_bandwidth dirty_bandwidth",
        },
        Self {
            cause: Cause::L2,
            none: "bulk_interval row_interval line_interval",
            endless: "l2_bandwidth l2_port store_bandwidth store_port sectors_per_cycle",
        },
        Self {
            cause: Cause::Latency,
            none: "l1_latency l2_latency l2_spread constant_line_latency \
                   constant_cold_latency memory_latency memory_spread memory_row_spread \
                   memory_beside memory_busy_latency memory_channels memory_reordering \
                   atomic_latency bulk_latency map_latency map_l2_latency bulk_store_latency",
            endless: "",
        },
        Self {
            cause: Cause::Barriers,
            none: "phase_latency wake_latency arrive_latency syncs_interval barrier_latency \
                   barrier_interval cluster_latency fence_latency fence_interval \
                   far_fence_latency remote_latency tmem_alloc_latency",
            endless: "remote_port",
        },
    ];

    fn of(&self, machine: &Machine) -> Machine {
        let mut machine = machine.clone();
        for (names, value) in [(self.none, 0.0), (self.endless, f64::INFINITY)] {
            for name in names.split_whitespace() {
                if let Some(number) = machine.number_mut(name) {
                    *number = value;
                }
            }
        }
        machine
    }
}

/// One cause on the critical path, and the time without it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Saving {
    pub cause: Cause,
    /// Its part of the critical path.
    pub on_way: Micros,
    /// Saved of the whole call, if it can be removed.
    pub saved: Option<Micros>,
}

/// The share of each cause in the critical path, and what its removal saves; the largest comes
/// first, and is the limit.
pub fn savings<E: Send>(
    machine: &Machine,
    replay: impl Fn(&Machine) -> Result<CallTimes, E> + Sync,
) -> Result<(Micros, Vec<Saving>), E> {
    let whole = replay(machine)?;
    let one = |removal: &Removal| -> Result<(Cause, Micros), E> {
        let left = replay(&removal.of(machine))?;
        // Removing a cost can delay other work; that does not count as a loss.
        Ok((removal.cause, Micros((whole.micros - left.micros).max(0.0))))
    };
    let saved = Removal::ALL.par_iter().map(one);
    let saved = saved.collect::<Result<Vec<_>, E>>()?;
    let way = whole.way();
    let mut savings: Vec<Saving> = (Cause::ALL.into_iter())
        .map(|cause| Saving {
            cause,
            on_way: Micros(way[cause as usize]),
            saved: saved.iter().find(|s| s.0 == cause).map(|s| s.1),
        })
        .collect();
    savings.sort_by(|a, b| b.on_way.0.total_cmp(&a.on_way.0));
    Ok((Micros(whole.micros), savings))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_removal_changes_numbers_that_there_are() {
        let machine = Machine::from_numbers(|_| Some(1.0)).unwrap();
        for removal in Removal::ALL {
            let names = format!("{} {}", removal.none, removal.endless);
            let names: Vec<&str> = names.split_whitespace().collect();
            for name in &names {
                assert!(Machine::NAMES.contains(name), "{name}");
            }
            let free = removal.of(&machine);
            let changed = |n: &&&str| free.number(n) != machine.number(n);
            assert_eq!(
                Machine::NAMES.iter().filter(changed).count(),
                names.len(),
                "{:?}",
                removal.cause
            );
        }
    }

    /// Numbers that no removal changes: the size of the machine and its caches, its clocks, and the
    /// cost of issuing.
    const KEPT: [&str; 17] = [
        "clock_mhz",
        "rested_clock_mhz",
        "clock_drop_mhz",
        "rest_micros",
        "sms",
        "branch_cycles",
        "fetch_interval",
        "fetch_latency",
        "near_code_bytes",
        "far_fetch_latency",
        "far_fetch_cold_latency",
        "queue_cycles",
        "l2_queue_cycles",
        "operands_latency",
        "l2_same",
        "dirty_bytes",
        "l2_bytes",
    ];

    #[test]
    fn every_number_is_removed_by_one_or_kept_on_purpose() {
        for name in Machine::NAMES {
            let has = |r: &&Removal| {
                let mut names = r
                    .none
                    .split_whitespace()
                    .chain(r.endless.split_whitespace());
                names.any(|n| n == *name)
            };
            let removed = Removal::ALL.iter().filter(has).count();
            let kept = usize::from(KEPT.contains(name));
            assert_eq!(removed + kept, 1, "{name}");
        }
    }

    fn lasting(micros: f64) -> CallTimes {
        CallTimes {
            micros,
            ..CallTimes::default()
        }
    }

    #[test]
    fn what_takes_most_of_the_way_comes_first_and_nothing_saves_less_than_nothing() {
        let machine = Machine::from_numbers(|_| Some(1.0)).unwrap();
        let replay = |m: &Machine| -> Result<CallTimes, ()> {
            let more = 5.0 * m.launch_micros + 2.0 * m.barrier_latency - m.shared_latency;
            Ok(lasting(10.0 + more))
        };
        let (whole, found) = savings(&machine, replay).unwrap();
        assert_eq!((whole, found.len()), (Micros(16.0), Cause::ALL.len()));
        // Nothing is known of its launches: all of the time is starting.
        assert_eq!(
            (found[0].cause, found[0].on_way),
            (Cause::Launch, Micros(16.0))
        );
        let saved = |cause| found.iter().find(|s| s.cause == cause).unwrap().saved;
        assert_eq!(saved(Cause::Launch), Some(Micros(5.0)));
        assert_eq!(saved(Cause::Barriers), Some(Micros(2.0)));
        assert_eq!(saved(Cause::Shared), Some(Micros(0.0)));
        assert_eq!(saved(Cause::Issue), None);
    }

    #[test]
    fn a_replay_that_stands_still_is_said() {
        let machine = Machine::from_numbers(|_| Some(1.0)).unwrap();
        let stuck = |m: &Machine| match m.launch_micros > 0.0 {
            true => Ok(lasting(1.0)),
            false => Err("stuck"),
        };
        assert_eq!(savings(&machine, stuck).unwrap_err(), "stuck");
    }
}
