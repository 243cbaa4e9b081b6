//! The same seed gives the same run on any number of host threads.

use ptx_emu::{Config, Launch, LaunchError};

use crate::{kernel, run, seeded};

/// Results of a launch that must not depend on the host: memory, counters, text; or the fault.
fn outcome(module: &ptx_emu::Module, launch: &Launch, seed: u64, threads: usize) -> String {
    let config = Config {
        threads,
        ..seeded(seed)
    };
    match run(module, launch.clone().config(config)) {
        Ok((out, report)) => format!("{:?} {:?} {}", out, report.counters, said(&report.printed)),
        Err(LaunchError::Fault(fault)) => format!("{fault} {}", said(&fault.printed)),
        Err(other) => panic!("{other}"),
    }
}

fn said(printed: &[ptx_emu::Print]) -> String {
    printed.iter().map(|print| print.text.as_str()).collect()
}

/// Five runs each on one, two and five threads: the distinct outcomes of some seeds.
fn repeats(body: &str, launch: &Launch) -> usize {
    let module = kernel(body);
    let mut distinct = std::collections::BTreeSet::new();
    for seed in 0..6 {
        let one = outcome(&module, launch, seed, 1);
        for threads in [1, 2, 5] {
            for _ in 0..5 {
                assert_eq!(one, outcome(&module, launch, seed, threads), "seed {seed}");
            }
        }
        distinct.insert(one);
    }
    distinct.len()
}

fn grid(ctas: u32, threads: u32) -> Launch {
    Launch::new("k").grid([ctas, 1, 1]).block([threads, 1, 1])
}

#[test]
fn ctas_that_write_the_same_words() {
    let body = "mov.u32 %r2, %ctaid.x; st.global.u32 [%rd3], %r2; add.u32 %r3, %r2, 1;
         ld.global.u32 %r4, [%rd3+128]; st.global.u32 [%rd3+4096], %r4;";
    assert!(repeats(body, &grid(40, 64)) > 1);
}

#[test]
fn ctas_that_read_what_others_write() {
    // Each adds one to a word of all: without atomics, updates are lost.
    let body = "mov.u32 %r2, 0; LOOP: ld.global.u32 %r3, [%rd1]; add.u32 %r3, %r3, 1;
         st.global.u32 [%rd1], %r3; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 50; @%p1 bra LOOP;
         mov.u32 %r5, %ctaid.x; mul.wide.u32 %rd4, %r5, 4; add.s64 %rd4, %rd4, %rd1;
         st.global.u32 [%rd4+64], %r3;";
    assert!(repeats(body, &grid(30, 32)) > 1);
}

#[test]
fn plain_races_beside_atomics() {
    let body = "atom.global.add.u32 %r2, [%rd1], 1; mov.u32 %r5, %ctaid.x;
         st.global.u32 [%rd1+8], %r5; ld.global.u32 %r6, [%rd1+12]; add.u32 %r6, %r6, %r2;
         st.global.u32 [%rd1+12], %r6; atom.global.exch.b32 %r7, [%rd1+4], %r5;
         mul.wide.u32 %rd4, %r5, 4; add.s64 %rd4, %rd4, %rd1; st.global.u32 [%rd4+64], %r7;";
    assert!(repeats(body, &grid(60, 32)) > 1);
}

#[test]
fn bulk_copies_over_each_other() {
    let body =
        "mov.u32 %r4, tile; shl.b32 %r2, %r1, 2; add.u32 %r2, %r2, %r4; mov.u32 %r5, %ctaid.x;
         st.shared.u32 [%r2], %r5; fence.proxy.async; bar.sync 0; setp.ne.u32 %p1, %r1, 0;
         @%p1 bra END; mul.wide.u32 %rd4, %r5, 16; add.s64 %rd4, %rd4, %rd1;
         cp.async.bulk.global.shared::cta.bulk_group [%rd4+992], [%r4], 1024;
         cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; END:";
    assert!(repeats(body, &grid(20, 256)) > 1);
}

#[test]
fn the_fault_of_several_ctas_that_is_told() {
    let body = "mov.u32 %r5, %ctaid.x; and.b32 %r6, %r5, 3; setp.ne.u32 %p1, %r6, 3;
         @%p1 bra END; mul.wide.u32 %rd4, %r5, 65536; add.s64 %rd4, %rd4, %rd1;
         ld.global.u32 %r7, [%rd4]; END:";
    let module = kernel(body);
    let launch = grid(200, 32);
    for seed in 0..4 {
        let first = outcome(&module, &launch, seed, 1);
        assert!(first.contains("out of bounds"), "{first}");
        for threads in [1, 2, 5] {
            assert_eq!(first, outcome(&module, &launch, seed, threads));
        }
    }
}

#[test]
fn a_cluster_sees_its_own_writes_and_all_arrive() {
    // Every CTA writes its rows of a matrix whose rows lie far apart, reads them, adds to them.
    let body = "mov.u32 %r5, %ctaid.x; mad.lo.u32 %r6, %r5, 32, %r1; mul.wide.u32 %rd4, %r6, 4;
         add.s64 %rd4, %rd4, %rd1; st.global.u32 [%rd4], %r6; st.global.u32 [%rd4+32768], %r5;
         ld.global.u32 %r7, [%rd4]; add.u32 %r7, %r7, 1; st.global.u32 [%rd4], %r7;";
    let module = kernel(body);
    let (out, _) = run(&module, grid(200, 32)).unwrap();
    assert!((0..6400).all(|i| out[i] == i as u32 + 1));
    assert!((0..6400).all(|i| out[8192 + i] == i as u32 / 32));
}
