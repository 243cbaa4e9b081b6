//! What warps of a partition, and of an SM, take from one another.

use super::*;

fn shared(writes: bool) -> (Kind, Deed) {
    let deed = Deed::Shared {
        wavefronts: 4,
        bytes: 512,
        writes,
        atomic: false,
    };
    (Kind::Shared, deed)
}

#[test]
fn a_fence_behind_stores_keeps_others_from_shared_memory() {
    let fence = Deed::Fence {
        proxy: true,
        beyond_cta: false,
    };
    let replay = |writes: bool, interval: f64| {
        let deeds = [shared(writes), (Kind::Fence, fence)];
        let (code, trace) = kernel(&deeds, &[&[&[0, 1][..]; 8]]);
        let mut machine = machine();
        machine.fence_interval = interval;
        let call = CallTimes::replay(&machine, &[launched(&code, &trace, 1, 1)], false);
        call.expect("an end").launches[0].cycles
    };
    let added = replay(true, 100.0) - replay(true, 0.0);
    assert!((700.0..=800.0).contains(&added), "{added}");
    assert_eq!(replay(false, 100.0), replay(false, 0.0));
}

#[test]
fn registers_of_one_bank_are_read_one_after_the_other() {
    let replay = |reads: [u8; 2]| {
        let count = 64;
        let (mut code, mut trace) = kernel(&[(Kind::Slot, Deed::Sleep(0)); 63], &[&[&[]]]);
        for (at, sass) in code.instructions.iter_mut().take(63).enumerate() {
            sass.kind = if at % 2 == 0 { Kind::Alu } else { Kind::Half };
            sass.reads = reads;
            sass.stall = 1;
        }
        trace.ctas[0].warps[0] = vec![Event::Run {
            first: 0,
            end: count,
        }];
        let mut machine = machine();
        machine.alu_interval = 2.0;
        machine.half_interval = 2.0;
        let call = CallTimes::replay(&machine, &[launched(&code, &trace, 1, 1)], false);
        call.expect("an end").launches[0].cycles
    };
    // One instruction a cycle if each bank gives one register, a third of that if one gives three.
    let (apart, alike) = (replay([1, 1]), replay([3, 0]));
    assert!(
        (120.0..=130.0).contains(&(alike - apart)),
        "{apart} {alike}"
    );
}

#[test]
fn a_product_by_a_warp_keeps_others_from_its_registers() {
    let product = Deed::Mma {
        shape: [16, 8, 16],
        bits: 16,
    };
    let replay = |reads: f64, beside: bool| {
        let pair = [(Kind::Mma, product), (Kind::Slot, Deed::Sleep(0))];
        let (mut code, mut trace) = kernel(&pair.repeat(32), &[&[&[]]]);
        for (at, sass) in code.instructions.iter_mut().take(64).enumerate() {
            sass.stall = 1;
            if beside && at % 2 == 1 {
                (sass.kind, sass.reads) = (Kind::Alu, [1, 1]);
            }
        }
        let events = (0..64).map(|at| match at % 2 {
            0 => Event::Did { at, deed: product },
            _ => Event::Run {
                first: at,
                end: at + 1,
            },
        });
        let end = Event::Run { first: 64, end: 65 };
        trace.ctas[0].warps[0] = events.chain([end]).collect();
        let mut machine = machine();
        (machine.mma_interval, machine.alu_interval) = (1.0, 1.0);
        machine.mma_read_interval = reads;
        let call = CallTimes::replay(&machine, &[launched(&code, &trace, 1, 1)], false);
        call.expect("an end").launches[0].cycles
    };
    // Five registers of each bank, and what stands beside them one of each.
    let beside = replay(1.0, true) - replay(1.0, false);
    assert!((20.0..=40.0).contains(&beside), "{beside}");
    let slower = replay(2.0, true) - replay(1.0, true);
    assert!((150.0..=165.0).contains(&slower), "{slower}");
}

#[test]
fn loads_to_registers_go_the_way_of_shared_memory() {
    let at = GlobalBytes {
        region: 0,
        first: 0,
        bytes: 4,
        sectors: 1,
        lines: 4,
        blocks: 1,
    };
    let load = Deed::Global {
        at,
        writes: false,
        atomic: false,
    };
    let replay = |deeds: &[(Kind, Deed)]| {
        let places: Vec<usize> = (0..deeds.len()).collect();
        let (code, trace) = kernel(deeds, &[&[&places[..]; 8]]);
        let call = CallTimes::replay(&machine(), &[launched(&code, &trace, 1, 1)], false);
        call.expect("an end").launches[0].cycles
    };
    let (loads, stores) = ([(Kind::Global, load); 4], [shared(true); 4]);
    let both: Vec<(Kind, Deed)> = loads.into_iter().chain(stores).collect();
    let (loads, both) = (replay(&loads), replay(&both));
    // Eight warps, four stores, four wavefronts of eight cycles each.
    assert!(both > loads + 900.0, "{loads} {both}");
}
