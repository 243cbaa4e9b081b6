//! What a GPU traps, named with the line that did it.

use super::Bench;

/// A kernel that does nothing but what `issue` says.
fn issuing(text: &str) -> Bench {
    Bench {
        issue: text.to_owned(),
        after: Some(String::new()),
        ..Bench::default()
    }
}

fn all(text: &str) -> Bench {
    Bench {
        before: text.to_owned(),
        after: Some(String::new()),
        ..Bench::default()
    }
}

fn ending(text: &str) -> Bench {
    Bench {
        after: Some(String::new()),
        epilogue: Some(text.to_owned()),
        ..Bench::default()
    }
}

#[test]
fn columns_must_be_freed_as_they_were_taken() {
    for (text, message) in [
        ("", "the CTA ended with 512 columns of tensor memory"),
        (
            "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r6, 256;",
            "of 256 columns from 0 on, where 512 were allocated",
        ),
        (
            "add.u32 %r6, %r6, 32; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r6, 32;",
            "of 32 columns from 32 on, where no tcgen05.alloc began",
        ),
        (
            "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r6, 512; \
             tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r6, 512;",
            "where no tcgen05.alloc began",
        ),
        (
            "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 512;",
            "after tcgen05.relinquish_alloc_permit",
        ),
        (
            "mov.u32 %r18, 48; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r6, %r18;",
            "of 48 columns: 32, 64, 128, 256 or 512",
        ),
    ] {
        let fault = ending(text).fault(0);
        assert!(fault.contains(message), "{fault}");
        assert!(fault.contains("PTX line"), "{fault}");
    }
}

#[test]
fn a_warp_has_its_own_quarter() {
    let fault = all("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r20}, [%r6];").fault(0);
    assert!(fault.contains("tcgen05.ld of lane 0: warp"), "{fault}");
    assert!(fault.contains("(warp number modulo 4)"), "{fault}");
    for (text, message) in [
        (
            "add.u32 %r8, %r8, 510; tcgen05.ld.sync.aligned.32x32b.x4.b32 {%r20,%r21,%r22,%r23}, [%r8];",
            "columns 510 to 513",
        ),
        (
            "add.u32 %r8, %r8, 0x80000; tcgen05.ld.sync.aligned.16x64b.x1.b32 {%r20}, [%r8];",
            "not a multiple of 16",
        ),
        (
            "add.u32 %r8, %r8, %r1; tcgen05.st.sync.aligned.32x32b.x1.b32 [%r8], {%r20};",
            "its address differs between the lanes",
        ),
        (
            "setp.eq.u32 %p6, %r1, 3; @%p6 tcgen05.wait::ld.sync.aligned;",
            "needs all 32 lanes of the warp",
        ),
    ] {
        let fault = all(text).fault(0);
        assert!(fault.contains(message), "{fault}");
    }
}

#[test]
fn operands_that_do_not_exist() {
    let mma = |shape: u32, tail: &str| {
        format!(
            "mov.b64 %rd9, 0x0000401000080000; add.u64 %rd9, %rd9, %rd8; mov.b32 %r18, {shape:#x};\n\
             tcgen05.mma.cta_group::1.kind::{tail}"
        )
    };
    let f16 = "f16 [%r6], %rd9, %rd9, %r18, %p0;";
    let scaled = |kind: &str, block: &str| {
        format!("{kind}.block_scale{block} [%r6], %rd9, %rd9, %r18, [%r6+256], [%r6+264], %p0;")
    };
    let ok = 8 << 24 | 1 << 17 | 1 << 4;
    for (text, message) in [
        (
            mma(4 << 24 | 1 << 4, f16),
            "has no 64 × 0 with cta_group::1",
        ),
        (mma(ok | 1 << 29, f16), "bits 0x20000000 must be zero"),
        (mma(ok | 1 << 3, f16), "only integers saturate"),
        (
            mma(ok, "f16 [%r6+508], %rd9, %rd9, %r18, %p0;"),
            "D of tcgen05.mma reaches column 515 of 512",
        ),
        (
            mma(ok, "f16 [%r6], [%r6+4], %rd9, %r18, %p0;"),
            "D in columns 0 to 7 and A in 4 to 11 overlap",
        ),
        (
            mma(ok, "f16 [%r8], %rd8, %rd9, %r18, %p0;"),
            "has other bits than 0b001 at 46 to 48",
        ),
        (
            "mov.b64 %rd9, 0x6000401000080000; mov.b32 %r18, 0x8020010;\n\
             tcgen05.mma.cta_group::1.kind::f16 [%r6], %rd9, %rd9, %r18, %p0;"
                .to_owned(),
            "has swizzle 3",
        ),
        (
            "mov.b64 %rd9, 0x0000401000083fff; mov.b32 %r18, 0x8020010;\n\
             tcgen05.mma.cta_group::1.kind::f16 [%r6], %rd9, %rd9, %r18, %p0;"
                .to_owned(),
            "tcgen05.mma operand read of 16 bytes at",
        ),
        (
            mma(
                0x0a10_0480,
                "mxf4nvf4.block_scale.block16 [%r6], %rd9, %rd9, %r18, [%r6+256], [%r6+264], %p0;",
            ),
            "bits 0x2000000 must be zero",
        ),
        (
            mma(0x2810_0480, &scaled("mxf4nvf4", ".block16")),
            "scale ids 1 (A) and 0 (B) do not go with 4 scales a row",
        ),
        (
            mma(0x8810_0480, &scaled("mxf4nvf4", ".block16")),
            "bit 31 asks for K = 96, which only sm_103a has",
        ),
        (
            mma(0x0810_0480, &scaled("mxf4nvf4", ".block32")),
            "Mxf4nvf4 with 2 scales a row does not take Ue4m3 (bit 23)",
        ),
        (
            mma(0x0010_0480, &scaled("mxf4nvf4", ".block16")),
            "Mxf4nvf4 has no 0 × 64 with cta_group::1",
        ),
        (
            mma(0x0811_0480, &scaled("mxf4nvf4", ".block16")),
            "4- and 6-bit operands are K-major",
        ),
        (
            mma(
                0x0810_0480,
                "mxf4nvf4.block_scale.block16 [%r6], %rd9, %rd9, %r18, [%r6+256], [%r6+60], %p0;",
            ),
            "D in columns 0 to 63 and B's scales in 60 to 61 overlap",
        ),
        (
            mma(
                0x0810_0480,
                "mxf4nvf4.block_scale.block16 [%r6], %rd9, %rd9, %r18, [%r6+0x100080], [%r6+136], %p0;",
            ),
            "A's scales begin in lane 16",
        ),
        (
            mma(
                0x0810_0480,
                "mxf4nvf4.block_scale.block16 [%r6], %rd9, %rd9, %r18, [%r6+128], [%r6+0x010088], %p0;",
            ),
            "B's scales begin in lane 1",
        ),
        (
            mma(ok | 1 << 7, "tf32 [%r6], %rd9, %rd9, %r18, %p0;"),
            "Tf32 does not multiply types 1 and 0",
        ),
        (
            "tcgen05.cp.cta_group::1.128x256b [%r6+508], %rd8;".to_owned(),
            "tcgen05.cp reaches column 515 of 512",
        ),
        (
            "add.u32 %r18, %r6, 0x100000; tcgen05.shift.cta_group::1.down [%r18];".to_owned(),
            "multiple of 32",
        ),
        (
            "mov.u32 %r17, spare; \
             tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.b64 [%r17];"
                .to_owned(),
            "of cta_group::2 in a CTA that has used cta_group::1",
        ),
    ] {
        let fault = issuing(&text).fault(1);
        assert!(fault.contains(message), "{message}\n{fault}");
    }
}

#[test]
fn freed_columns_must_be_idle() {
    let bench = Bench {
        issue:
            "mov.b64 %rd9, 0x0000401000080000; add.u64 %rd9, %rd9, %rd8; mov.b32 %r18, 0x8020010;\n\
                tcgen05.mma.cta_group::1.kind::f16 [%r6], %rd9, %rd9, %r18, %p0;"
                .to_owned(),
        wait: Some(String::new()),
        after: Some(String::new()),
        ..Bench::default()
    };
    let fault = bench.fault(0);
    assert!(
        fault.contains("while the tcgen05.mma issued at PTX line"),
        "{fault}"
    );
}

#[test]
fn a_missing_commit_hangs() {
    let bench = issuing("bra ISSUED;");
    let fault = bench.fault(0);
    assert!(
        fault.contains("deadlock") && fault.contains("1 of 1 arrivals missing"),
        "{fault}"
    );
    // Nothing was multiplied that could be committed.
    let named = "no tcgen05.commit names it (the last tcgen05.mma is at PTX line ";
    assert!(!fault.contains(named), "{fault}");
    let product = "mov.b64 %rd9, 0x0000401000080000; add.u64 %rd9, %rd9, %rd8; \
                   mov.b32 %r18, 0x8020010;\n\
                   tcgen05.mma.cta_group::1.kind::f16 [%r6], %rd9, %rd9, %r18, %p0; bra ISSUED;";
    let fault = issuing(product).fault(0);
    assert!(fault.contains(named), "{fault}");
    // Who is held up elsewhere may have meant to commit later: the barrier it waits at is to blame.
    let held = product.replace(
        "bra ISSUED;",
        "mov.u32 %r16, spare; HELD: mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r16], 0; \
         @!%p4 bra HELD;",
    );
    let fault = issuing(&held).fault(0);
    assert_eq!(fault.matches(named).count(), 1, "{fault}");
    let first = fault.lines().next().expect("a warp that waits");
    assert!(first.contains("spare") && first.contains(named), "{fault}");
}

#[test]
fn an_allocation_that_cannot_be_had_waits() {
    let text = ".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry k()\n{\n\
         .reg .b32 %r<4>; .shared .align 4 .b32 slot;\n\
         tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 512;\n\
         tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;\nret;\n}\n";
    let module = ptx_emu::Module::load(text).expect("it lowers");
    let launch = ptx_emu::Launch::new("k")
        .block([32, 1, 1])
        .config(ptx_emu::Config {
            limits: ptx_emu::DeviceLimits::B200,
            ..ptx_emu::Config::default()
        });
    let fault = launch
        .run(&module, &mut ptx_emu::Memory::new())
        .expect_err("a deadlock")
        .to_string();
    assert!(
        fault.contains("32 columns wanted, 0 of 512 are free"),
        "{fault}"
    );
}

/// What ptxas does not assemble, and what is not emulated.
#[test]
fn refused_when_the_module_is_loaded() {
    let f16 = "tcgen05.mma.cta_group::1.kind::f16";
    for (line, message) in [
        (
            "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 48;".to_owned(),
            "48 columns of tensor memory",
        ),
        (
            "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 1024;".to_owned(),
            "1024 columns",
        ),
        (
            "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;\n\
             tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r1, 32;"
                .to_owned(),
            "by single CTAs or by pairs, not both",
        ),
        (
            "tcgen05.ld.sync.aligned.32x32b.x3.b32 {%r1,%r2,%r3}, [%r4];".to_owned(),
            "32x32b.x3",
        ),
        (
            "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale [%r1], %rd1, %rd2, %r2, [%r3], [%r4], %p1;"
                .to_owned(),
            ".block16 or .block32",
        ),
        (
            "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16 [%r1], %rd1, %rd2, %r2, \
             [%r3], [%r4], {%r5,%r6,%r7,%r8}, %p1;"
                .to_owned(),
            "a mask of lanes",
        ),
        (format!("{f16}.block_scale [%r1], %rd1, %rd2, %r2, %p1;"), "no .block_scale"),
        (format!("{f16} [%r1], %rd1, %rd2, %r2, %p1, 16;"), "0 to 15"),
        (
            "tcgen05.mma.ws.sp.cta_group::1.kind::f16 [%r1], %rd1, %rd2, [%r3], %r2, %p1;".to_owned(),
            "sparse tcgen05.mma.ws is not emulated",
        ),
        ("tcgen05.cp.cta_group::1.32x128b [%r1], %rd1;".to_owned(), "warpx4"),
        ("wgmma.fence.sync.aligned;".to_owned(), "wgmma"),
    ] {
        let text = format!(
            ".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry k()\n{{\n\
             .reg .pred %p<3>; .reg .b32 %r<20>; .reg .b64 %rd<9>; .shared .align 4 .b32 slot;\n\
             {line}\nret;\n}}\n"
        );
        let module = ptx_emu::Module::load(&text).expect("it parses");
        let refusal = module.refused().get("k").expect("it is refused").to_string();
        assert!(refusal.contains(message), "{refusal}");
    }
}
