//! Tensor copies: pairs of CTAs, four rows at once, 4- and 6-bit elements.

use ptx_emu::{Fill, Launch, LaunchError, MapElement, Swizzle, TensorMap, TensorMapError, Tiled};

use crate::{config, kernel, run};

/// Loads a box into `tile` and waits for `%r20` bytes, in the CTAs that say so; then every thread
/// stores its words of the tile.
const LOAD: &str = "
    mov.u32 %r30, tile; mov.u32 %r31, bar; mov.b64 %rd5, map; cvta.param.u64 %rd5, %rd5;
    setp.ne.u32 %p1, %r1, 0;
    @!%p1 mbarrier.init.shared::cta.b64 [bar], 1;
    @!%p1 fence.mbarrier_init.release.cluster;
    @!%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], {bytes};
    barrier.cluster.arrive; barrier.cluster.wait;
    {copy}
    WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0; @!%p2 bra WAIT;
    HEARD: barrier.cluster.arrive; barrier.cluster.wait;
    mov.u32 %r40, %cluster_ctarank; shl.b32 %r41, %r40, 10; add.u32 %r41, %r41, %r1;
    LOOP: and.b32 %r44, %r41, 1023; shl.b32 %r42, %r44, 2; add.u32 %r43, %r30, %r42;
    ld.shared.u32 %r45, [%r43];
    mul.wide.u32 %rd6, %r41, 4; add.s64 %rd6, %rd1, %rd6; st.global.u32 [%rd6], %r45;
    add.u32 %r41, %r41, 64; and.b32 %r46, %r41, 1023;
    setp.gt.u32 %p4, %r46, %r44; @%p4 bra LOOP;";

fn load(
    cluster: u32,
    seed: u64,
    bytes: u32,
    copy: &str,
    input: &[u32],
    map: impl FnOnce(u64) -> TensorMap,
) -> Result<Vec<u32>, LaunchError> {
    let body = LOAD
        .replace("{bytes}", &bytes.to_string())
        .replace("{copy}", copy);
    let launch = Launch::new("k")
        .grid([cluster, 1, 1])
        .block([64, 1, 1])
        .cluster([cluster, 1, 1])
        .config(config("sm_100a", seed));
    run(&kernel("sm_100a", &body), launch, input, |at| Some(map(at)))
}

/// 64 rows of 32 words, which are their own index.
fn counted() -> Vec<u32> {
    (0..2048).collect()
}

fn rows(at: u64, box_rows: u32, swizzle: Swizzle) -> TensorMap {
    TensorMap::tiled(Tiled {
        element: MapElement::U32,
        address: at,
        dims: &[32, 64],
        strides: &[128],
        box_dims: &[32, box_rows],
        element_strides: &[1, 1],
        swizzle,
        fill: Fill::Zero,
    })
    .expect("a map")
}

/// Both CTAs load four rows and signal the even one's barrier, found as the manual and as CUTLASS
/// do it; only that one waits, for the bytes of both.
#[test]
fn a_pair_signals_the_even_ctas_barrier() {
    let leaders = [
        "mapa.shared::cluster.u32 %r32, %r31, 0;",
        "and.b32 %r32, %r31, 0xfeffffff;",
    ];
    for (seed, leader) in (0..4).flat_map(|seed| leaders.map(|leader| (seed, leader))) {
        let copy = format!(
            "mov.u32 %r50, %cluster_ctarank; shl.b32 %r2, %r50, 2; mov.u32 %r3, 0; {leader}
             @!%p1 cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes [%r30], [%rd5, {{%r3, %r2}}], [%r32];
             setp.ne.u32 %p5, %r50, 0; @%p5 bra HEARD;"
        );
        let found = load(2, seed, 1024, &copy, &counted(), |at| {
            rows(at, 4, Swizzle::None)
        });
        let found = found.unwrap_or_else(|e| panic!("{e}"));
        for cta in 0..2 {
            let right = (0..128).all(|i| found[1024 * cta + i] == (128 * cta + i) as u32);
            assert!(right, "seed {seed} {leader} CTA {cta}");
        }
    }
}

#[test]
fn without_the_pair_the_barrier_is_the_datas_own() {
    let copy = "mapa.shared::cluster.u32 %r32, %r31, 0; mov.u32 %r2, 0; mov.u32 %r3, 0;
        @!%p1 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r30], [%rd5, {%r3, %r2}], [%r32];";
    let fault = load(2, 1, 512, copy, &counted(), |at| rows(at, 4, Swizzle::None)).unwrap_err();
    let told = fault.to_string();
    assert!(
        told.contains("with .cta_group::2 one of the same pair"),
        "{told}"
    );
}

/// A multicast of the pair signals, for each CTA it reaches, the barrier as even as the one named.
#[test]
fn a_multicast_pair_signals_its_even_cta() {
    let copy = "mov.u32 %r50, %cluster_ctarank; mov.u32 %r2, 8; mov.u32 %r3, 0; mov.u16 %rs1, 3;
        setp.ne.u32 %p5, %r50, 0; or.pred %p6, %p5, %p1;
        @!%p6 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.cta_group::2 [%r30], [%rd5, {%r3, %r2}], [%r31], %rs1;
        // The odd CTA hears nothing, and goes by the other's word.
        @%p5 bra HEARD;";
    let found = load(2, 0, 1024, copy, &counted(), |at| {
        rows(at, 4, Swizzle::None)
    });
    let found = found.unwrap_or_else(|e| panic!("{e}"));
    for cta in 0..2 {
        assert!(
            (0..128).all(|i| found[1024 * cta + i] == 256 + i as u32),
            "CTA {cta}"
        );
    }
}

#[test]
fn gathering_takes_four_rows_from_anywhere() {
    let copy = "mov.u32 %r2, 5; mov.u32 %r3, 63; mov.u32 %r4, 64; mov.u32 %r5, -1; mov.u32 %r6, 0;
        @!%p1 cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [%r30], [%rd5, {%r6, %r3, %r2, %r4, %r5}], [%r31];";
    for swizzle in [Swizzle::None, Swizzle::B128] {
        let found = load(1, 1, 512, copy, &counted(), |at| rows(at, 1, swizzle));
        let found = found.unwrap_or_else(|e| panic!("{e}"));
        for (row, from) in [Some(63), Some(5), None, None].into_iter().enumerate() {
            for word in 0..32 {
                // Sixteen bytes change places by the row they stand in.
                let chunk = match swizzle {
                    Swizzle::None => word / 4,
                    _ => (word / 4) ^ row,
                };
                let want = from.map_or(0, |from: u32| from * 32 + word as u32);
                assert_eq!(found[32 * row + 4 * chunk + word % 4], want, "row {row}");
            }
        }
    }
    let fault = load(1, 1, 512, copy, &counted(), |at| rows(at, 4, Swizzle::None)).unwrap_err();
    assert!(fault.to_string().contains("boxes with one row"), "{fault}");
}

#[test]
fn scattering_puts_four_rows_anywhere() {
    let body = "
        mov.u32 %r30, tile; mov.b64 %rd5, map; cvta.param.u64 %rd5, %rd5;
        shl.b32 %r2, %r1, 2; add.u32 %r3, %r30, %r2;
        add.u32 %r4, %r1, 1000; st.shared.u32 [%r3], %r4;
        add.u32 %r4, %r4, 64; st.shared.u32 [%r3+256], %r4;
        fence.proxy.async.shared::cta; bar.sync 0;
        setp.ne.u32 %p1, %r1, 0; @%p1 bra DONE;
        mov.u32 %r10, 0; mov.u32 %r11, 9; mov.u32 %r12, 2; mov.u32 %r13, 77; mov.u32 %r14, 60;
        cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [%rd5, {%r10, %r11, %r12, %r13, %r14}], [%r30];
        cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
        // What was stored comes back for the test to see.
        DONE: bar.sync 0; mov.u32 %r20, %r1;
        COPY: mul.wide.u32 %rd6, %r20, 4; add.s64 %rd7, %rd2, %rd6; ld.global.u32 %r21, [%rd7];
        add.s64 %rd7, %rd1, %rd6; st.global.u32 [%rd7], %r21; add.u32 %r20, %r20, 64;
        setp.lt.u32 %p2, %r20, 2048; @%p2 bra COPY;";
    let launch = Launch::new("k")
        .block([64, 1, 1])
        .config(config("sm_100a", 1));
    let found = run(&kernel("sm_100a", body), launch, &counted(), |at| {
        Some(rows(at, 1, Swizzle::None))
    })
    .unwrap_or_else(|e| panic!("{e}"));
    for i in 0..2048u32 {
        let want = match i / 32 {
            9 => 1000 + i % 32,
            2 => 1032 + i % 32,
            60 => 1096 + i % 32,
            _ => i,
        };
        assert_eq!(found[i as usize], want, "word {i}");
    }
}

/// Sixteen 4-bit elements have eight bytes of sixteen, sixteen 6-bit ones twelve; the barrier hears
/// of the packed bytes.
#[test]
fn packed_elements_are_spaced_out() {
    let input: Vec<u32> = (0..2048u32).map(|i| i.wrapping_mul(0x9e37_79b9)).collect();
    let bytes: Vec<u8> = input.iter().flat_map(|word| word.to_le_bytes()).collect();
    for (element, bits) in [(MapElement::U4Align16, 4), (MapElement::U6Align16, 6)] {
        for swizzle in [Swizzle::None, Swizzle::B128] {
            let stride = 256 * bits / 8;
            let copy = "mov.u32 %r2, 128; mov.u32 %r3, 3;
                @!%p1 cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%r30], [%rd5, {%r2, %r3}], [%r31];";
            let packed = 128 * bits / 8;
            let found = load(1, 1, 4 * packed as u32, copy, &input, |at| {
                TensorMap::tiled(Tiled {
                    element,
                    address: at,
                    dims: &[256, 16],
                    strides: &[stride as u64],
                    box_dims: &[128, 4],
                    element_strides: &[1, 1],
                    swizzle,
                    fill: Fill::Zero,
                })
                .expect("a map")
            })
            .unwrap_or_else(|e| panic!("{e}"));
            let shared: Vec<u8> = found.iter().flat_map(|word| word.to_le_bytes()).collect();
            for (row, chunk) in (0..4).flat_map(|row| (0..8).map(move |chunk| (row, chunk))) {
                let from = (3 + row) * stride + packed + chunk * 2 * bits;
                let place = match swizzle {
                    Swizzle::None => chunk,
                    _ => chunk ^ row,
                };
                assert_eq!(
                    shared[128 * row + 16 * place..][..2 * bits],
                    bytes[from..][..2 * bits],
                    "{element:?} {swizzle:?} row {row} chunk {chunk}"
                );
            }
        }
    }
}

#[test]
fn maps_of_packed_elements_keep_their_rules() {
    let good = Tiled {
        element: MapElement::U4Align16,
        address: 1 << 20,
        dims: &[256, 8],
        strides: &[128],
        box_dims: &[128, 8],
        element_strides: &[1, 1],
        swizzle: Swizzle::B128,
        fill: Fill::Zero,
    };
    assert!(TensorMap::tiled(good).is_ok());
    let bad = [
        Tiled {
            address: (1 << 20) + 16,
            ..good
        },
        Tiled {
            strides: &[144],
            ..good
        },
        Tiled {
            dims: &[192, 8],
            ..good
        },
        Tiled {
            box_dims: &[64, 8],
            ..good
        },
        Tiled {
            swizzle: Swizzle::B64,
            ..good
        },
    ];
    for bad in bad {
        let error = TensorMap::tiled(bad).unwrap_err();
        assert!(matches!(error, TensorMapError::Padded(_)), "{error}");
    }
    let odd = Tiled {
        element: MapElement::U4,
        dims: &[255, 8],
        box_dims: &[128, 8],
        ..good
    };
    assert_eq!(TensorMap::tiled(odd), Err(TensorMapError::OddNibbles(255)));
}
