//! A clock that rises where nobody multiplies.

use super::*;

/// Products, a pause of so many cycles, and products again.
fn two_bursts(pause: u32) -> (Code, Trace) {
    let commit = (Kind::Slot, Deed::WgmmaCommit);
    let wait = (Kind::WgmmaWait, Deed::WgmmaWait(0));
    let sleep = (Kind::Slot, Deed::Sleep(pause));
    let deeds = [WGMMA, commit, wait, sleep, WGMMA, commit, wait];
    kernel(&deeds, &[&[&[0, 1, 2, 3, 4, 5, 6]]])
}

#[test]
fn a_clock_that_has_risen_is_taken_back_by_the_next_products() {
    let mut machine = machine();
    machine.clock_drop_mhz = 0.0;
    machine.spread_micros = 0.0;
    let resumed = |pause: u32, ctas: u64| {
        let (code, trace) = two_bursts(pause);
        let call = CallTimes::replay(&machine, &[launched(&code, &trace, ctas, 1)], false);
        let call = call.expect("an end");
        let cycles = call.launches[0].cycles;
        let outside = machine.launch_micros + machine.cold_start_micros;
        call.micros - outside - cycles / machine.clock_mhz
    };
    // Eight microseconds are a rest here, and cost as many.
    assert!(resumed(5_000, 1).abs() < 0.01);
    assert!((resumed(20_000, 1) - 8.0).abs() < 0.01);
    // Where SMs take one CTA after another somebody always multiplies.
    assert!(resumed(20_000, 9).abs() < 0.01);
}

#[test]
fn a_rest_may_be_faster_than_the_work() {
    let mut machine = machine();
    machine.resume_micros = 0.0;
    let micros = |machine: &Machine| {
        let (code, trace) = two_bursts(20_000);
        let call = CallTimes::replay(machine, &[launched(&code, &trace, 1, 1)], false);
        call.expect("an end").micros
    };
    let same = micros(&machine);
    machine.rested_clock_mhz = 2000.0;
    let saved = same - micros(&machine);
    assert!((saved - 10.0).abs() < 1.0, "{saved}");
}
