//! Wide accesses, packed arithmetic and narrow conversions.

use crate::warp;

#[test]
fn thirty_two_bytes_at_once() {
    let body = "
        shl.b32 %r2, %r1, 5; cvt.u64.u32 %rd4, %r2; add.s64 %rd5, %rd2, %rd4; add.s64 %rd6, %rd1, %rd4;
        ld.global.L2::evict_last.v8.b32 {%r10, %r11, %r12, %r13, %r14, %r15, %r16, %r17}, [%rd5];
        st.global.L2::evict_first.v8.b32 [%rd6], {%r17, %r16, %r15, %r14, %r13, %r12, %r11, %r10};
        ld.global.nc.v4.u64 {%rd10, %rd11, %rd12, %rd13}, [%rd5];
        st.global.v4.b64 [%rd6+1024], {%rd13, %rd12, %rd11, %rd10};";
    let input: Vec<u32> = (0..256).collect();
    let found = warp("sm_100", body, &input);
    for i in 0..256 {
        assert_eq!(found[i], (i ^ 7) as u32);
        assert_eq!(found[256 + i], (i ^ 6) as u32);
    }
}

/// Two singles in 64 bits: each half is rounded on its own.
#[test]
fn pairs_of_singles() {
    let body = "
        mov.b32 %r2, 0x3f800000; mov.b32 %r3, 1; mov.b32 %r4, 0x33800001;
        mov.b64 %rd4, {%r2, %r3}; mov.b64 %rd5, {%r4, %r3};
        add.rz.f32x2 %rd6, %rd4, %rd5; add.rp.ftz.f32x2 %rd7, %rd4, %rd5;
        fma.rn.f32x2 %rd8, %rd4, %rd5, %rd5; mul.rm.f32x2 %rd9, %rd4, %rd4;
        st.global.b64 [%rd1], %rd6; st.global.b64 [%rd1+8], %rd7;
        st.global.b64 [%rd1+16], %rd8; st.global.b64 [%rd1+24], %rd9;";
    let found = warp("sm_100", body, &[]);
    // 1 + just over half of its last place: down to 1, and up to the next.
    assert_eq!(found[..2], [0x3f80_0000, 2]);
    assert_eq!(found[2..4], [0x3f80_0001, 0]);
    assert_eq!(found[4..6], [0x3400_0001, 1]);
    assert_eq!(found[6..8], [0x3f80_0000, 0]);
}

/// The lowest of three, by number or by magnitude, where a NaN loses or wins.
#[test]
fn the_least_of_three() {
    let body = "
        mov.f32 %f1, 0fc0400000; mov.f32 %f2, 0f3f800000; mov.f32 %f3, 0f7fc00000;
        min.f32 %f4, %f1, %f2, %f3; max.f32 %f5, %f1, %f3, %f2; max.NaN.f32 %f6, %f1, %f2, %f3;
        min.abs.f32 %f7, %f1, %f2, %f3; max.abs.f32 %f8, %f1, %f2, %f3;
        st.global.f32 [%rd1], %f4; st.global.f32 [%rd1+4], %f5; st.global.f32 [%rd1+8], %f6;
        st.global.f32 [%rd1+12], %f7; st.global.f32 [%rd1+16], %f8;";
    let found = warp("sm_100", body, &[]);
    let want = [-3f32, 1.0, f32::from_bits(0x7fff_ffff), 1.0, 3.0].map(f32::to_bits);
    assert_eq!(found[..5], want);
}

#[test]
fn the_extreme_of_a_warp() {
    let body = "
        cvt.rn.f32.u32 %f1, %r1; sub.f32 %f1, %f1, 0f41200000;
        redux.sync.min.f32 %f2, %f1, -1; redux.sync.max.abs.f32 %f3, %f1, -1;
        setp.eq.u32 %p1, %r1, 7; selp.f32 %f4, 0f7fc00000, %f1, %p1;
        redux.sync.max.f32 %f5, %f4, -1; redux.sync.max.NaN.f32 %f6, %f4, -1;
        st.global.f32 [%rd1], %f2; st.global.f32 [%rd1+4], %f3;
        st.global.f32 [%rd1+8], %f5; st.global.f32 [%rd1+12], %f6;";
    let found = warp("sm_100a", body, &[]);
    let want = [-10f32, 21.0, 21.0, f32::from_bits(0x7fff_ffff)].map(f32::to_bits);
    assert_eq!(found[..4], want);
}

/// Narrow floats: the first operand on top, saturated, NaN as the largest where there is none.
#[test]
fn narrow_conversions() {
    let body = "
        mov.f32 %f1, 0f3fc00000; mov.f32 %f2, 0fc2c80000; mov.f32 %f3, 0f7fc00000; mov.f32 %f4, 0f3e000000;
        cvt.rn.satfinite.e2m1x2.f32 %c1, %f1, %f2; cvt.rn.satfinite.relu.e2m1x2.f32 %c2, %f3, %f2;
        cvt.u32.u8 %r2, %c1; cvt.u32.u8 %r3, %c2;
        cvt.rn.satfinite.e2m3x2.f32 %rs1, %f4, %f2; cvt.rn.satfinite.e3m2x2.f32 %rs2, %f4, %f3;
        cvt.rz.satfinite.ue8m0x2.f32 %rs3, %f1, %f2; cvt.rp.satfinite.ue8m0x2.f32 %rs4, %f3, %f2;
        cvt.rn.f16x2.e2m1x2 %r4, %c1; cvt.rn.bf16x2.ue8m0x2 %r5, %rs3; cvt.rn.f16x2.e2m3x2 %r6, %rs1;
        cvt.rp.ue8m0x2.bf16x2 %rs5, %r7;
        st.global.u32 [%rd1], %r2; st.global.u32 [%rd1+4], %r3; cvt.u32.u16 %r10, %rs1; st.global.u32 [%rd1+8], %r10;
        cvt.u32.u16 %r10, %rs2; st.global.u32 [%rd1+12], %r10; cvt.u32.u16 %r10, %rs3; st.global.u32 [%rd1+16], %r10;
        cvt.u32.u16 %r10, %rs4; st.global.u32 [%rd1+20], %r10; st.global.u32 [%rd1+24], %r4;
        st.global.u32 [%rd1+28], %r5; st.global.u32 [%rd1+32], %r6;
        cvt.u32.u16 %r10, %rs5; st.global.u32 [%rd1+36], %r10;
        cvt.rs.satfinite.e2m1x4.f32 %rs6, {%f1, %f2, %f3, %f4}, %r8; cvt.u32.u16 %r10, %rs6; st.global.u32 [%rd1+40], %r10;
        cvt.rs.satfinite.e4m3x4.f32 %r11, {%f1, %f2, %f3, %f4}, %r8; st.global.u32 [%rd1+44], %r11;
        cvt.rs.bf16x2.f32 %r11, %f1, %f2, %r8; st.global.u32 [%rd1+48], %r11;";
    let body = format!("mov.b32 %r7, 0x40c03f80; mov.b32 %r8, 0xffffffff; {body}");
    let found = warp("sm_100a", &body, &[]);
    let want = [
        0x3f,        // 1.5, and -100 saturated to -6
        0x70,        // NaN as 6, and -100 as 0
        0x013f,      // 0.125 exactly, and -7.5
        0x021f,      // 0.125 is a subnormal code, and NaN is 28
        0x7f85,      // 2^0, and 2^6 below 100
        0xff86,      // NaN, and 2^7 above 100
        0x3e00_c600, // 1.5 and -6
        0x3f80_4280, // 1 and 64
        0x3000_c780, // 0.125 and -7.5
        0x827f,      // 6 rounded up to 8, and 1
        0x3f71,      // 0.125 with all random bits rounds up to 0.5
        0x3ced_7f20, // 1.5, -100 away from zero to -104, NaN, 0.125
        0x3fc0_c2c8,
    ];
    let names = [
        "e2m1",
        "relu",
        "e2m3",
        "e3m2",
        "rz",
        "rp",
        "f16",
        "bf16",
        "f16 of e2m3",
        "bf16 to ue8m0",
        "rs e2m1",
        "rs e4m3",
        "rs bf16",
    ];
    for ((found, want), name) in found.iter().zip(want).zip(names) {
        assert_eq!(*found, want, "{name}: {found:#x} for {want:#x}");
    }
}

/// Zeros in shared memory, and stores and reductions that go out by themselves.
#[test]
fn stores_that_go_by_themselves() {
    let body = "
        mov.u32 %r2, tile; shl.b32 %r3, %r1, 2; add.u32 %r4, %r2, %r3; st.shared.u32 [%r4], %r1;
        bar.warp.sync -1; setp.ne.u32 %p1, %r1, 0; mov.b64 %rd4, 64;
        @!%p1 st.bulk.weak.shared::cta [%r2], %rd4, 0;
        bar.warp.sync -1; ld.shared.u32 %r5, [%r4];
        st.async.mmio.release.sys.global.u32 [%rd3], %r5;
        red.async.mmio.release.sys.global.add.u32 [%rd1+128], %r1;";
    let found = warp("sm_100", body, &[]);
    for (i, &word) in found[..32].iter().enumerate() {
        assert_eq!(word, if i < 16 { 0 } else { i as u32 });
    }
    assert_eq!(found[32], 31 * 16);
}
