//! Registers and tiles of products.

use super::*;

/// Fills the tile, and makes `%rd4` its descriptor.
const TILE: &str = "mov.u32 %r7, 0; mov.u32 %r8, 0; shl.b32 %r6, %r1, 4; add.u32 %r6, %r6, %r4;
         FILL: st.shared.v4.u32 [%r6], {%r7,%r7,%r7,%r7}; add.u32 %r6, %r6, 2048;
         add.u32 %r8, %r8, 1; setp.lt.u32 %p1, %r8, 8; @%p1 bra FILL;
         fence.proxy.async.shared::cta; bar.sync 0;";

fn product(body: &str) -> String {
    body.replace("TILE", TILE).replace(
        "WGMMA",
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0,%f1,%f2,%f3}, %rd4, %rd4,",
    )
}

const PLAIN: &str = "cvt.u64.u32 %rd4, %r4; shr.u64 %rd4, %rd4, 4;
         or.b64 %rd4, %rd4, 0x0000000800080000;";

#[test]
fn an_accumulator_is_read_while_the_product_is_under_way() {
    let body = format!(
        "TILE {PLAIN} wgmma.fence.sync.aligned;
         WGMMA 0, 1, 1, 0, 0; //there
         wgmma.commit_group.sync.aligned; <<wgmma.wait_group.sync.aligned 0;>>
         cvt.rzi.u32.f32 %r7, %f3; //here
         st.global.u32 [%rd3], %r7; wgmma.wait_group.sync.aligned 0;"
    );
    let found = Planted::new(Hazard::HeldRegister, product(&body)).check();
    assert_eq!(
        (found.at.space, found.at.name.as_str()),
        ("register", "%f3")
    );
    // Nobody need have been there to say so.
    assert!(
        !found.here.executed && !found.to_string().contains("CTA"),
        "{found}"
    );
}

/// An accumulator is changed, and no fence lies between that and the product.
fn unfenced(change: &str) -> Planted {
    let body = format!(
        "TILE {PLAIN} mov.f32 %f0, 0f00000000; mov.f32 %f2, %f0; mov.f32 %f3, %f0;
         {change} //there
         <<wgmma.fence.sync.aligned;>>
         WGMMA 1, 1, 1, 0, 0; //here
         wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
         cvt.rzi.u32.f32 %r7, %f3; st.global.u32 [%rd3], %r7;"
    );
    Planted::new(Hazard::WgmmaFence, product(&body))
}

#[test]
fn an_accumulator_is_changed_without_a_fence() {
    unfenced("<<||wgmma.fence.sync.aligned;>>\nmul.f32 %f1, %f0, %f0;").check();
}

#[test]
fn accumulators_are_cleared_and_there_is_no_fence_at_all() {
    unfenced("mov.f32 %f1, 0f00000000;").check();
}

#[test]
fn a_tile_is_filled_again_while_it_is_read() {
    // Or while it would be read, if the kernel did not end first.
    for end in ["wgmma.wait_group.sync.aligned 0;", ""] {
        let body = format!(
            "TILE {PLAIN} wgmma.fence.sync.aligned;
             WGMMA 0, 1, 1, 0, 0; //there
             wgmma.commit_group.sync.aligned; <<wgmma.wait_group.sync.aligned 0; bar.sync 0;>>
             mov.u32 %r7, 0;
             st.shared.u32 [%r2], %r7; //here
             {end}"
        );
        Planted::new(Hazard::Race, product(&body)).check();
    }
}

#[test]
fn a_tile_does_not_begin_where_its_pattern_does() {
    let body = "TILE add.u32 %r6, %r4, <<1024||1152>>; cvt.u64.u32 %rd4, %r6;
         shr.u64 %rd4, %rd4, 4; or.b64 %rd4, %rd4, 0x4000004000010000; wgmma.fence.sync.aligned;
         WGMMA 0, 1, 1, 0, 0; //here
         wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
         cvt.rzi.u32.f32 %r7, %f3; st.global.u32 [%rd3], %r7;";
    let planted = Planted::new(Hazard::MisalignedAtom, product(body)).strict();
    let found = planted.check();
    assert!(found.at.detail.contains("1024 bytes"), "{found}");
    // The hardware reads by addresses alone, and so it is not said unless asked for.
    let lenient = Planted::new(Hazard::MisalignedAtom, product(body));
    assert!(lenient.run(false, 0).0.all.is_empty());
}

#[test]
fn a_register_has_no_value() {
    let found = Planted::new(
        Hazard::UninitialisedRegister,
        "<<mov.u32 %r9, 1;>>
         add.u32 %r10, %r9, %r1; //here
         st.global.u32 [%rd3], %r10;",
    )
    .check();
    assert_eq!(found.at.to_string(), "register %r9");
}

#[test]
fn fragments_may_be_loaded_ahead() {
    // The second half of the tile is nobody's; what is loaded of it is not multiplied.
    let body = "mov.u32 %r7, 0; st.shared.v4.u32 [%r4], {%r7,%r7,%r7,%r7}; shl.b32 %r6, %r19, 4;
         add.u32 %r6, %r6, %r4; st.shared.v4.u32 [%r6], {%r7,%r7,%r7,%r7}; bar.sync 0;
         ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10,%r11,%r12,%r13}, [%r6+<<0||512>>]; //here
         st.global.u32 [%rd3], %r7;";
    let one_warp = Launch::new("k").block([32, 1, 1]);
    let planted = || Planted::new(Hazard::UninitialisedShared, body).on(one_warp.clone());
    planted().strict().check();
    for clusters in [None, Some(1)] {
        let mut lenient = planted().on(Launch::new("k").grid([4, 1, 1]).block([32, 1, 1]));
        lenient.sanitize.clusters = clusters;
        let told = lenient.run(false, 0).0.all;
        let mut told = told.iter().filter(|f| f.hazard != Hazard::Race);
        assert_eq!(told.next(), None);
    }
}

#[test]
fn registers_are_handed_out_in_eights() {
    // 255 of each thread are 256: who has them all asks for nothing more.
    let body = "setmaxnreg.inc.sync.aligned.u32 256; bar.sync 0;";
    let all = Launch::new("k").block([256, 1, 1]).registers(255);
    let (found, faulted) = Planted::new(Hazard::RegisterBudget, body)
        .on(all)
        .run(true, 0);
    assert!(found.all.is_empty() && !faulted, "{:#?}", found.all);
}

#[test]
fn a_warp_takes_registers_that_nobody_gives_back() {
    let found = Planted::new(
        Hazard::RegisterBudget,
        "setp.ge.u32 %p1, %r1, 128; @%p1 bra MORE;
         setmaxnreg.dec.sync.aligned.u32 <<24||96>>; //there
         bra END;
         MORE:
         setmaxnreg.inc.sync.aligned.u32 232; //here
         END: bar.sync 0;",
    )
    .on(Launch::new("k").block([256, 1, 1]).registers(128))
    .check();
    assert!(found.at.detail.contains("232"), "{found}");
}

const STORED: &str = "cvt.rzi.u32.f32 %r7, %f3; st.global.u32 [%rd3], %r7;";

#[test]
fn a_product_adds_to_registers_that_nobody_set() {
    let clear =
        "<<mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;>>";
    let turns = "add.u32 %r8, %r8, 1; setp.lt.u32 %p1, %r8, 2; @%p1 bra LOOP;";
    let body = format!(
        "TILE {PLAIN} {clear} mov.u32 %r8, 0; LOOP: wgmma.fence.sync.aligned;
         WGMMA 1, 1, 1, 0, 0; //here
         wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; {turns} {STORED}"
    );
    let found = Planted::new(Hazard::UninitialisedRegister, product(&body)).check();
    assert_eq!(found.at.detail, "4 of the 4 accumulators");
    assert!(found.remedy.contains("scale-d 0"), "{found}");
    let body = format!(
        "{clear} mov.u32 %r8, 0; mov.u32 %r20, 0; LOOP:
         mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{%f0,%f1,%f2,%f3}}, {{%r20,%r20,%r20,%r20}}, {{%r20,%r20}}, {{%f0,%f1,%f2,%f3}}; //here
         {turns} {STORED}"
    );
    Planted::new(Hazard::UninitialisedRegister, body).check();
}

#[test]
fn a_first_product_that_adds_to_nothing_sets_its_registers() {
    let body = format!(
        "TILE {PLAIN} mov.u32 %r8, 0; LOOP: setp.ne.u32 %p2, %r8, 0; wgmma.fence.sync.aligned;
         WGMMA %p2, 1, 1, 0, 0; WGMMA 1, 1, 1, 0, 0;
         wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
         add.u32 %r8, %r8, 1; setp.lt.u32 %p1, %r8, 2; @%p1 bra LOOP; {STORED}"
    );
    let planted = Planted::new(Hazard::UninitialisedRegister, product(&body));
    let (found, _) = planted.run(true, 0);
    assert!(found.all.is_empty(), "{:#?}", found.all);
}

/// The wait is there; the barrier is not.
#[test]
fn of_a_missing_barrier_no_missing_wait_is_told() {
    let two = || Launch::new("k").block([256, 1, 1]);
    let after = format!(
        "TILE {PLAIN} wgmma.fence.sync.aligned;
         WGMMA 0, 1, 1, 0, 0; //there
         wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; <<bar.sync 0;>>
         mov.u32 %r7, 0;
         st.shared.u32 [%r2], %r7; //here"
    );
    let before = format!(
        "TILE {PLAIN} mov.u32 %r7, 0;
         st.shared.u32 [%r2], %r7; //here
         fence.proxy.async.shared::cta; <<bar.sync 0;>>
         wgmma.fence.sync.aligned;
         WGMMA 0, 1, 1, 0, 0; //there
         wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"
    );
    for body in [after, before] {
        // Twice as many threads fill as much.
        let body = product(&body)
            .replace("2048", "4096")
            .replace("%r8, 8;", "%r8, 4;");
        let planted = Planted::new(Hazard::Race, body).on(two());
        for seed in 0..4 {
            let (found, _) = planted.run(false, seed);
            assert!(!found.all.is_empty());
            for finding in &found.all {
                assert!(finding.missing.contains("no barrier"), "{finding}");
            }
        }
        planted.check();
    }
}
