//! Finds the instruction that touched certain bytes: repeats the call with watchpoints on them.

use std::time::Duration;

use ptx_emu::{Touches, Watchpoint};

use super::{EmuCell, config, shuffled_operands, tables};
use crate::backend::{AccessSites, CallInput, ForbiddenWrite, pieces};

/// The number of trespasses whose instruction is searched for.
const SOUGHT: usize = 8;
/// Time limit of a search: less than a supervisor waits beyond a call's own limit.
const PATIENCE: Duration = Duration::from_secs(30);

impl EmuCell<'_> {
    /// Names the instruction behind each of the first trespasses, found at these addresses.
    pub(super) fn name_instructions(
        &mut self,
        data: &CallInput<'_>,
        found: &mut [(u64, ForbiddenWrite)],
    ) {
        let sought = found.iter().take(SOUGHT);
        let watchpoints: Vec<Watchpoint> = sought.map(|(at, _)| written(*at, 1)).collect();
        let touches = self.watched(data, &watchpoints);
        for ((_, trespass), touches) in found.iter_mut().zip(touches) {
            let culprit = touches.first.first();
            trespass.by = culprit.map(|touch| touch.place.to_string());
        }
    }

    /// Finds the instructions that write an element of C (its group and its index there), and those
    /// that read outside all buffers.
    pub(super) fn search(
        &mut self,
        data: &CallInput<'_>,
        element: Option<(usize, usize)>,
    ) -> Option<AccessSites> {
        let place = self.place.as_ref()?;
        let mut watchpoints = Vec::new();
        for (zones, base) in place.arenas() {
            for (begin, end) in zones.guards().filter(|(begin, end)| begin < end) {
                watchpoints.push(Watchpoint {
                    bytes: base + begin..base + end,
                    reads: true,
                });
            }
        }
        let element = element.map(|(group, index)| {
            let zone = place.now.outputs.zone(group);
            let outputs = &place.operator.outputs;
            let bits = outputs[group % outputs.len()].tensor.element.bits();
            let at = place.now.bases.outputs + zone.offset + index as u64 * bits / 8;
            written(at, bits.div_ceil(8))
        });
        watchpoints.extend(element.clone());
        let mut touches = self.watched(data, &watchpoints);
        let writers = element.and_then(|_| touches.pop());
        let place = self.place.as_ref()?;
        let strays = touches.iter().filter_map(|touches| {
            let read = touches.first.iter().find(|touch| !touch.write)?;
            let arenas = place.arenas();
            let trespass = pieces::explain(&place.now.pieces, &arenas, read.address);
            let ForbiddenWrite { buffer, offset, .. } = trespass;
            let who = &read.place;
            Some(format!(
                "read out of bounds of {buffer}, at byte {offset}; at {who}"
            ))
        });
        Some(AccessSites {
            writers: writers.map(|touches| words(&touches)),
            strays: strays.take(SOUGHT).collect(),
        })
    }

    /// Repeats the call from its beginning, with the same schedule. If the call fails this time,
    /// the touches until then are returned.
    fn watched(&mut self, data: &CallInput<'_>, watchpoints: &[Watchpoint]) -> Vec<Touches> {
        let mut all = vec![Touches::default(); watchpoints.len()];
        let Some(place) = &mut self.place else {
            return all;
        };
        let operands = shuffled_operands(data);
        let tensors = tables::input_bytes(&operands);
        if place.lay(data, &tensors).is_err() {
            return all;
        }
        let config = config(self.device, data.emulation, data.time_limit.min(PATIENCE));
        for index in 0..self.job.call.launches.len() {
            let launch = place.launch_with_arguments(&self.job, index, &config);
            let (ran, touches) = launch.run_watched(self.module, &mut place.memory, watchpoints);
            for (all, mut one) in all.iter_mut().zip(touches) {
                all.first.append(&mut one.first);
                all.times += one.times;
            }
            if ran.is_err() {
                break;
            }
        }
        all
    }
}

fn words(touches: &Touches) -> String {
    let mut lines: Vec<String> = touches.first.iter().map(ToString::to_string).collect();
    let more = touches.times.saturating_sub(lines.len() as u64);
    match (lines.is_empty(), more) {
        (true, _) => return "it was never written".to_owned(),
        (false, 0) => {}
        (false, more) => lines.push(format!("and {more} times more")),
    }
    lines.join("\n")
}

fn written(at: u64, bytes: u64) -> Watchpoint {
    Watchpoint {
        bytes: at..at + bytes,
        reads: false,
    }
}
