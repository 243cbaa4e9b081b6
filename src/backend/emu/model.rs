//! A plain roofline of the emulator's counters: for each launch the
//! slowest of its resources, each at its peak, with idle multiprocessors
//! counted, plus a fixed cost per launch. What cannot overlap is assumed to
//! overlap, so it is a lower bound; it ranks designs by the work they make,
//! and is never shown beside measured times. docs/emulator.md derives it.

use ptx_emu::{Class, Counters, Report};

use crate::backend::Modelled;
use crate::domain::roofline::{Resource, Work};
use crate::domain::{Device, Micros, Timing};

/// Bytes of shared memory that one wavefront moves.
const WAVEFRONT: f64 = 128.0;
/// Lanes of a warp.
const LANES: f64 = 32.0;

/// The time of a call: its launches one after another. What bounds the
/// longest of them bounds the call.
pub(super) fn modelled(device: &Device, reports: &[Report]) -> Option<Modelled> {
    let ceiling = device.ceiling(Timing::Modelled)?;
    let floor = |r: &Report| ceiling.floor(&work(&r.counters, device.limits.sms));
    let launches: Vec<(Micros, Resource)> = reports.iter().map(floor).collect();
    let longest = launches.iter().max_by(|a, b| a.0.0.total_cmp(&b.0.0));
    let busy: f64 = launches.iter().map(|l| l.0.0).sum();
    let started = device.model?.launch_micros * launches.len() as f64;
    Some(Modelled {
        micros: Micros(busy + started),
        bound: longest.map_or("launch", |l| l.1.as_str()).to_owned(),
    })
}

/// What a launch asks of the device. SMs that stand idle in the last wave
/// lengthen everything an SM does.
fn work(counters: &Counters, sms: u32) -> Work {
    let (sms, ctas) = (f64::from(sms), counters.ctas.max(1) as f64);
    let waves = (ctas / sms).ceil() * sms / ctas;
    let conflicts = counters.bank_conflicts as f64 * WAVEFRONT;
    let shared = (counters.shared_read + counters.shared_written) as f64 + conflicts;
    let l2 = counters.global_read
        + counters.global_written
        + counters.async_read
        + counters.async_written;
    let memory = counters.global_unique_read + counters.global_unique_written;
    Work {
        tensor_flops: counters.mma_flops as f64 * waves,
        instructions: counters.total_instructions() as f64 * waves,
        mufu: counters.instructions(Class::Mufu) as f64 * LANES * waves,
        shared_bytes: shared * waves,
        l2_bytes: l2 as f64,
        memory_bytes: memory as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::target::usual;

    fn report(counters: Counters) -> Report {
        Report {
            counters,
            seed: 0,
            ctas_per_sm: 1,
            early_read: None,
            printed: String::new(),
        }
    }

    #[test]
    fn idle_multiprocessors_lengthen_what_the_busy_ones_do() {
        let full = report(Counters {
            mma_flops: 1 << 40,
            ctas: 132,
            ..Counters::default()
        });
        let ragged = report(Counters {
            ctas: 133,
            ..full.counters
        });
        let (full, ragged) = (
            modelled(usual(), &[full]).unwrap(),
            modelled(usual(), &[ragged]).unwrap(),
        );
        assert_eq!(full.bound, "tensor");
        assert!(ragged.micros.0 > 1.9 * full.micros.0 - usual().model.unwrap().launch_micros);
    }

    #[test]
    fn a_call_is_bound_by_its_longest_launch() {
        let gemm = report(Counters {
            mma_flops: 1 << 36,
            ctas: 132,
            ..Counters::default()
        });
        let gate = report(Counters {
            global_unique_read: 1 << 20,
            ctas: 132,
            ..Counters::default()
        });
        let both = modelled(usual(), &[gemm.clone(), gate]).unwrap();
        assert_eq!(both.bound, "tensor");
        assert!(
            both.micros.0
                > modelled(usual(), &[gemm]).unwrap().micros.0
                    + usual().model.unwrap().launch_micros
        );
    }
}
