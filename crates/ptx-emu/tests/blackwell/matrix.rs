//! Matrices of bytes, and products of narrow floats.

use crate::warp;

/// A tile of 256 bytes, each its own offset, at `%r30`.
const TILE: &str = "
    mov.u32 %r30, tile; shl.b32 %r2, %r1, 3; add.u32 %r3, %r30, %r2;
    mad.lo.u32 %r4, %r2, 0x01010101, 0x03020100; add.u32 %r5, %r4, 0x04040404;
    st.shared.u32 [%r3], %r4; st.shared.u32 [%r3+4], %r5; bar.warp.sync -1;
    and.b32 %r6, %r1, 15; shl.b32 %r6, %r6, 4; add.u32 %r6, %r30, %r6;";

#[test]
fn bytes_are_loaded_transposed() {
    let body = format!(
        "{TILE} ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {{%r10, %r11}}, [%r6];
         st.global.u32 [%rd3], %r10; st.global.u32 [%rd3+128], %r11;"
    );
    let found = warp("sm_100a", &body, &[]);
    for (register, lane) in (0..2).flat_map(|r| (0..32).map(move |lane| (r, lane))) {
        let bytes = found[32 * register + lane].to_le_bytes();
        for (e, byte) in bytes.into_iter().enumerate() {
            let (row, column) = (4 * (lane % 4) + e, lane / 4 + 8 * register);
            assert_eq!(usize::from(byte), 16 * row + column, "lane {lane}");
        }
    }
}

#[test]
fn packed_elements_are_spread_and_transposed() {
    let body = format!(
        "{TILE} ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8x16.b4x16_p64 {{%r10, %r11}}, [%r6];
         ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8x16.b6x16_p32 {{%r12, %r13}}, [%r6];
         st.global.u32 [%rd3], %r10; st.global.u32 [%rd3+128], %r11;
         st.global.u32 [%rd3+256], %r12; st.global.u32 [%rd3+384], %r13;"
    );
    let found = warp("sm_100a", &body, &[]);
    for (register, lane) in (0..4).flat_map(|r| (0..32).map(move |lane| (r, lane))) {
        let bytes = found[32 * register + lane].to_le_bytes();
        let bits = if register < 2 { 4 } else { 6 };
        for (e, byte) in bytes.into_iter().enumerate() {
            let (row, element) = (4 * (lane % 4) + e, lane / 4 + 8 * (register % 2));
            let first = 16 * row + element * bits / 8;
            let two = first | (first + 1) << 8;
            let want = two >> (element * bits % 8) & ((1 << bits) - 1);
            assert_eq!(usize::from(byte), want, "register {register} lane {lane}");
        }
    }
}

#[test]
fn nibbles_are_spread_to_bytes() {
    let body = format!(
        "{TILE} ldmatrix.sync.aligned.m8n16.x2.shared.b8x16.b4x16_p64 {{%r10, %r11}}, [%r6];
         ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b6x16_p32 {{%r12}}, [%r6];
         st.global.u32 [%rd3], %r10; st.global.u32 [%rd3+128], %r11; st.global.u32 [%rd3+256], %r12;"
    );
    let found = warp("sm_100a", &body, &[]);
    for lane in 0..32 {
        for e in 0..4 {
            let (row, element) = (lane / 4, 4 * (lane % 4) + e);
            let byte = |register: usize| usize::from(found[32 * register + lane].to_le_bytes()[e]);
            for register in 0..2 {
                let packed = 16 * (8 * register + row) + element / 2;
                assert_eq!(
                    byte(register),
                    packed >> (4 * (element % 2)) & 15,
                    "lane {lane}"
                );
            }
            let first = 16 * row + element * 6 / 8;
            let two = first | (first + 1) << 8;
            assert_eq!(byte(2), two >> (element * 6 % 8) & 63, "lane {lane}");
        }
    }
}

#[test]
fn bytes_are_stored_transposed() {
    let body = format!(
        "{TILE} mad.lo.u32 %r10, %r1, 0x04040404, 0x03020100; add.u32 %r11, %r10, 0x80808080;
         stmatrix.sync.aligned.m16n8.x2.trans.shared.b8 [%r6], {{%r10, %r11}}; bar.warp.sync -1;
         ld.shared.u32 %r12, [%r3]; ld.shared.u32 %r13, [%r3+4];
         mul.wide.u32 %rd4, %r1, 8; add.s64 %rd4, %rd1, %rd4; st.global.v2.u32 [%rd4], {{%r12, %r13}};"
    );
    let found = warp("sm_100a", &body, &[]);
    let bytes: Vec<u8> = found.iter().flat_map(|word| word.to_le_bytes()).collect();
    for (matrix, lane) in (0..2).flat_map(|m| (0..32).map(move |lane| (m, lane))) {
        for e in 0..4 {
            let (row, column) = (2 * (lane % 4) + e % 2, lane / 4 + 8 * (e / 2));
            let want = (4 * lane + e + 128 * matrix) as u8;
            assert_eq!(
                bytes[128 * matrix + 16 * row + column],
                want,
                "lane {lane} byte {e}"
            );
        }
    }
}

/// All ones: the product is K times the scales, plus C.
#[test]
fn scaled_products_of_ones() {
    let cases = [
        (
            "kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3",
            "m16n8k64",
            0x2222_2222u32,
            0x4040_4040u32,
            64.0 * 4.0,
        ),
        (
            "kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0",
            "m16n8k64",
            0x2222_2222,
            0x8080_8080,
            64.0 * 4.0,
        ),
        (
            "kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e2m1.e2m1.f32.ue8m0",
            "m16n8k32",
            0x0808_0808,
            0x8080_8080,
            32.0 * 4.0,
        ),
    ];
    for (kind, shape, ones, twos, sum) in cases {
        let body = format!(
            "mov.b32 %r10, {ones}; mov.b32 %r11, {twos}; mov.f32 %f1, 0f3f000000;
             mma.sync.aligned.{shape}.row.col.{kind} {{%f2, %f3, %f4, %f5}}, {{%r10, %r10, %r10, %r10}}, {{%r10, %r10}}, {{%f1, %f1, %f1, %f1}}, %r11, {{0, 1}}, %r11, {{0, 3}};
             st.global.f32 [%rd3], %f2; st.global.f32 [%rd3+128], %f5;"
        );
        let found = warp("sm_120a", &body, &[]);
        assert!(
            found[..64]
                .iter()
                .all(|&word| f32::from_bits(word) == sum + 0.5),
            "{kind}"
        );
    }
    let body = "mov.b32 %r10, 0x38383838; mov.b32 %r12, 0x08080808; mov.b32 %r11, 0x3c003c00;
        mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f16.e4m3.e2m1.f16 {%r20, %r21}, {%r10, %r10, %r10, %r10}, {%r12, %r12}, {%r11, %r11};
        st.global.u32 [%rd3], %r20; st.global.u32 [%rd3+128], %r21;";
    let found = warp("sm_120a", body, &[]);
    assert!(
        found[..64].iter().all(|&word| word == 0x5020_5020),
        "{:#x}",
        found[0]
    );
}
