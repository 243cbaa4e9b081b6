//! Special registers.

use crate::{kernel, module, run};

#[test]
fn every_special_register_of_the_isa_is_known() {
    let mut words: Vec<String> = Vec::new();
    for vector in [
        "tid",
        "ntid",
        "ctaid",
        "nctaid",
        "clusterid",
        "nclusterid",
        "cluster_ctaid",
        "cluster_nctaid",
    ] {
        words.extend(["x", "y", "z", "w"].map(|axis| format!("{vector}.{axis}")));
    }
    words.extend((0..32).map(|n| format!("envreg{n}")));
    words.extend((0..8).map(|n| format!("pm{n}")));
    words.extend(
        [
            "laneid",
            "warpid",
            "nwarpid",
            "smid",
            "nsmid",
            "gridid",
            "cluster_ctarank",
            "cluster_nctarank",
            "lanemask_eq",
            "lanemask_le",
            "lanemask_lt",
            "lanemask_ge",
            "lanemask_gt",
            "clock",
            "clock_lo",
            "clock_hi",
            "globaltimer_lo",
            "globaltimer_hi",
            "reserved_smem_offset_begin",
            "reserved_smem_offset_end",
            "reserved_smem_offset_cap",
            "reserved_smem_offset_0",
            "reserved_smem_offset_1",
            "total_smem_size",
            "aggr_smem_size",
            "dynamic_smem_size",
        ]
        .map(str::to_owned),
    );
    let mut lines: Vec<String> = words
        .iter()
        .map(|name| format!("mov.u32 %r2, %{name};"))
        .collect();
    let long = ["clock64", "globaltimer", "gridid", "current_graph_exec"];
    lines.extend(long.map(|name| format!("mov.u64 %rd3, %{name};")));
    lines.extend((0..8).map(|n| format!("mov.u64 %rd3, %pm{n}_64;")));
    lines.push("mov.pred %p1, %is_explicit_cluster;".into());
    lines.push("mov.u16 %rs1, %tid.x; mov.u64 %rd3, %smid; cvt.u32.u16 %r2, %ntid.x;".into());
    run(&kernel(&lines.join("\n")), 1);
    for unknown in ["envreg32", "pm8", "pm08", "reserved_smem_offset_2", "tid.v"] {
        let module = module(&kernel(&format!("mov.u32 %r2, %{unknown};")));
        let problem = module.refused()["k"].problem.to_string();
        assert_eq!(problem, format!("`%{unknown}` is not declared"));
    }
}

/// Cooperative groups keep the state of tiles of several warps in 288 reserved bytes.
#[test]
fn reserved_shared_bytes_can_be_used_where_they_are_asked_for() {
    let out = run(
        &kernel(
            "mov.u32 %r2, %reserved_smem_offset_1; mov.u32 %r3, %reserved_smem_offset_end;
             sub.u32 %r4, %r3, %r2; st.global.u32 [%rd1], %r4;
             st.shared.u32 [%r2+284], 5; ld.shared.u32 %r5, [%r2+284];
             st.global.u32 [%rd1+4], %r5;
             mov.u32 %r6, %reserved_smem_offset_cap; st.global.u32 [%rd1+8], %r6;",
        ),
        3,
    );
    assert!(out[0] >= 288, "{out:?}");
    assert_eq!(out[1..], [5, 1024]);
    // Nobody asked: a small shared address is a bug, as ever.
    let module = module(&kernel("mov.u32 %r2, 512; st.shared.u32 [%r2], 5;"));
    assert!(crate::launch(&module, 1).is_err());
}

/// Two readings of every clock, and the low words of both, of a launch with this memory.
fn clocks(memory: &mut ptx_emu::Memory) -> [u64; 4] {
    let text = kernel(
        "mov.u64 %rd2, %clock64; mov.u64 %rd3, %globaltimer;
         mov.u32 %r2, 0;
         TURN: add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 40; @%p1 bra TURN;
         st.global.u64 [%rd1], %rd2; mov.u64 %rd2, %clock64; st.global.u64 [%rd1+8], %rd2;
         st.global.u64 [%rd1+16], %rd3; mov.u64 %rd3, %globaltimer; st.global.u64 [%rd1+24], %rd3;",
    );
    let out = memory.alloc(32).expect("room");
    let params = ptx_emu::Params::new().pointer(out);
    let launch = ptx_emu::Launch::new("k").params(params);
    launch.run(&module(&text), memory).expect("it runs");
    let bytes = memory.read_vec(out, 32).expect("in it");
    let words: Vec<u64> = bytes
        .as_chunks::<8>()
        .0
        .iter()
        .map(|&word| u64::from_le_bytes(word))
        .collect();
    [words[0], words[1], words[2], words[3]]
}

#[test]
fn clocks_run_as_a_cards_do() {
    let mut memory = ptx_emu::Memory::new();
    let [first, second, began, ended] = clocks(&mut memory);
    // A hundred instructions and more between them.
    assert!((200..5_000).contains(&(second - first)), "{first} {second}");
    assert!((32..5_000).contains(&(ended - began)), "{began} {ended}");
    // Neither begins with the launch, nor with a number anybody would know.
    assert!(first > 1_000_000_000 && began % 1_000_000_000 != 0);
    assert!(began > 1_700_000_000_000_000_001, "{began}");
    let [later, .., timer, _] = clocks(&mut memory);
    assert!(later > second && timer > ended, "the next launch is later");
    // The same on another device.
    let again = clocks(&mut ptx_emu::Memory::new());
    assert_eq!(again, [first, second, began, ended]);
}
