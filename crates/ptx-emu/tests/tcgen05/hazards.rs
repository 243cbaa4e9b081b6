//! What is read before it was waited for is poison, and named.

use super::{Bench, Tile, WAIT};
use ptx_emu::{Fill, MapElement, MmaMode, Swizzle, TensorMap, Tiled};

/// f16 ones, 16 of them a row: every element of the product is 16.
fn ones() -> Bench {
    let mut input = vec![0; 16384];
    let one: [u8; 32] = std::array::from_fn(|i| if i % 2 == 1 { 0x3c } else { 0 });
    let (a, b) = (Tile::plain(0), Tile::plain(8192));
    for row in 0..128 {
        a.put(&mut input, row, &one);
        b.put(&mut input, row, &one);
    }
    Bench {
        input,
        issue: format!(
            "{} {} mov.b32 %r18, {:#x};\n\
             tcgen05.mma.cta_group::1.kind::f16 [%r6], %rd9, %rd10, %r18, %p0;",
            a.descriptor("%rd9"),
            b.descriptor("%rd10"),
            8 << 24 | 1 << 17 | 1 << 4
        ),
        ..Bench::default()
    }
}

#[test]
fn the_right_kernel_is_right() {
    let words = ones().words(MmaMode::Fast);
    assert!(words.iter().all(|word| f32::from_bits(*word) == 16.0));
}

#[test]
fn a_load_without_the_wait_for_its_commit() {
    let bench = Bench {
        wait: Some("bar.sync 0;".to_owned()),
        // It comes too late.
        epilogue: Some(format!(
            "{WAIT}\ntcgen05.dealloc.cta_group::1.sync.aligned.b32 %r6, 512;"
        )),
        ..ones()
    };
    let remark = bench.remark(0);
    assert!(
        remark.contains("tensor memory read before the tcgen05.mma"),
        "{remark}"
    );
    assert!(remark.contains("wait for its tcgen05.commit"), "{remark}");
    let (words, _) = bench.run(0, MmaMode::Fast).expect("it runs");
    assert!(words.iter().all(|word| f32::from_bits(*word).is_nan()));
}

#[test]
fn a_register_without_wait_ld() {
    let bench = Bench {
        after: Some(
            "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r20}, [%r8];\nadd.u32 %r21, %r20, 1;\n\
             st.global.b32 [%rd4], %r21;\ntcgen05.wait::ld.sync.aligned;"
                .to_owned(),
        ),
        ..ones()
    };
    for seed in 0..2 {
        let remark = bench.remark(seed);
        assert!(remark.contains("read before tcgen05.wait::ld"), "{remark}");
    }
}

#[test]
fn a_store_without_wait_st() {
    let bench = Bench {
        before: "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r8+8], {%r1};".to_owned(),
        after: Some(
            "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r20}, [%r8+8];\n\
             tcgen05.wait::ld.sync.aligned; st.global.b32 [%rd4], %r20;"
                .to_owned(),
        ),
        ..ones()
    };
    let remark = bench.remark(0);
    assert!(
        remark.contains("column 8") && remark.contains("wait::st"),
        "{remark}"
    );
}

#[test]
fn columns_that_nobody_wrote() {
    let bench = Bench {
        after: Some(
            "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r20}, [%r8+77];\n\
             tcgen05.wait::ld.sync.aligned; st.global.b32 [%rd4], %r20;"
                .to_owned(),
        ),
        ..ones()
    };
    let remark = bench.remark(0);
    assert!(remark.contains("column 77"), "{remark}");
}

/// Scales are read by each quarter of the lanes for itself: all four must have them.
#[test]
fn scales_in_one_quarter_only() {
    let mut bench = ones();
    bench.before = "mov.b32 %r20, 0x38383838;\n\
        tcgen05.st.sync.aligned.32x32b.x4.b32 [%r8+256], {%r20,%r20,%r20,%r20};\n\
        setp.ne.u32 %p5, %r2, 0; @%p5 mov.b32 %r20, 0x40404040;\n\
        tcgen05.st.sync.aligned.32x32b.x1.b32 [%r8+264], {%r20};\n\
        tcgen05.wait::st.sync.aligned; tcgen05.fence::before_thread_sync; bar.sync 0;\n\
        tcgen05.fence::after_thread_sync;"
        .to_owned();
    let mma = "tcgen05.mma.cta_group::1.kind::f16 [%r6], %rd9, %rd10, %r18, %p0;";
    let scaled = "mov.b32 %r18, 0x08020480;\n\
        tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16 \
        [%r6], %rd9, %rd10, %r18, [%r6+256], [%r6+264], %p0;";
    assert!(bench.issue.contains(mma));
    bench.issue = bench.issue.replace(mma, scaled);
    let remark = bench.remark(0);
    assert!(
        remark.contains("B's scales differ between the four quarters of the lanes"),
        "{remark}"
    );
    bench.before = bench.before.replace(
        "x4.b32 [%r8+256], {%r20,%r20,%r20,%r20}",
        "x1.b32 [%r8+256], {%r20}",
    );
    let remark = bench.remark(0);
    let told = "reads A's scales from column 257 of tensor memory, which was not written in all";
    assert!(remark.contains(told), "{remark}");
}

#[test]
fn a_tile_overwritten_before_it_was_read() {
    let mut bench = ones();
    // The thread overwrites A after it issued the product, which reads it when it is waited for.
    bench.issue += "\nst.shared.b32 [%r3], 0; fence.proxy.async.shared::cta;";
    let (words, _) = bench.run(0, MmaMode::Fast).expect("it runs");
    assert_eq!(f32::from_bits(words[0]), 14.0);
}

#[test]
fn a_product_before_its_copy_has_come() {
    let mut bench = ones();
    bench.issue = format!(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [spare], 1024;\n\
         cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd1], 1024, [spare];\n{}",
        bench.issue
    );
    let remark = bench.remark(0);
    assert!(
        remark.contains("tcgen05.mma issued before the copy issued at"),
        "{remark}"
    );
}

#[test]
fn a_first_product_that_adds() {
    let mut bench = ones();
    bench.issue = format!("setp.eq.b32 %p0, 0, 0;\n{}", bench.issue);
    let remark = bench.remark(1);
    assert!(remark.contains("enable-input-d must be false"), "{remark}");
}

#[test]
fn a_missing_elect_is_named() {
    let bench = ones();
    let text = bench.text().replace("@%p3 bra ISSUED;", "@%p2 bra ISSUED;");
    let module = ptx_emu::Module::load(&text).expect("it lowers");
    let mut memory = ptx_emu::Memory::new();
    let out = memory.alloc(1 << 16).expect("room");
    let params = ptx_emu::Params::new().pointer(out).pointer(out).u32(16384);
    let launch = ptx_emu::Launch::new("k")
        .block([128, 1, 1])
        .params(params)
        .config(ptx_emu::Config {
            limits: ptx_emu::DeviceLimits::B200,
            ..ptx_emu::Config::default()
        });
    let told = match launch.run(&module, &mut memory) {
        Ok(report) => report.early_read.expect("a remark").to_string(),
        Err(error) => error.to_string(),
    };
    assert!(told.contains("executed by 32 threads of a warp"), "{told}");
}

#[test]
fn a_commit_speaks_for_its_own_thread_only() {
    let mut bench = ones();
    // Thread 1 commits what thread 0 has issued.
    bench.issue += "\nbra ISSUED;";
    let text = bench.text();
    let commit = text.find("mov.u32 %r17, bar;").expect("the commit");
    let (head, tail) = text.split_at(commit);
    let rest = tail.split_once("ISSUED:").expect("the label").1;
    let text = format!(
        "{head}ISSUED: bar.sync 0; setp.ne.u32 %p6, %r1, 1; @%p6 bra NEXT;\nmov.u32 %r17, bar;\n\
         tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r17];\nNEXT:{rest}"
    );
    let module = ptx_emu::Module::load(&text).expect("it lowers");
    let mut memory = ptx_emu::Memory::new();
    let out = memory.alloc(1 << 16).expect("room");
    memory.write(out, &bench.input).expect("room");
    let params = ptx_emu::Params::new().pointer(out).pointer(out).u32(16384);
    let launch = ptx_emu::Launch::new("k")
        .block([128, 1, 1])
        .params(params)
        .config(ptx_emu::Config {
            limits: ptx_emu::DeviceLimits::B200,
            ..ptx_emu::Config::default()
        });
    let ran = launch.run(&module, &mut memory);
    let told = match ran {
        Ok(report) => report.early_read.expect("read too early").to_string(),
        Err(error) => error.to_string(),
    };
    assert!(told.contains("before the tcgen05.mma"), "{told}");
}

/// A product that takes A from the collector's buffer needs one before it that has put it there.
#[test]
fn an_operand_the_collector_does_not_hold() {
    let f16 = "tcgen05.mma.cta_group::1.kind::f16";
    let plain = format!("{f16} [%r6], %rd9, %rd10, %r18, %p0;");
    let with = |first: &str, second: &str| {
        let mut bench = ones();
        assert!(bench.issue.contains(&plain));
        let pair = format!(
            "{f16}{first} [%r6], %rd9, %rd10, %r18, %p0;\n{f16}{second} [%r6], %rd11, %rd10, %r18, %p0;"
        );
        bench.issue = bench.issue.replace(&plain, &pair);
        bench
    };
    let same = |first: &str, second: &str| {
        let mut bench = with(first, second);
        bench.issue = bench.issue.replace("%rd11", "%rd9");
        bench
    };
    let (fill, take, last) = (
        ".collector::a::fill",
        ".collector::a::use",
        ".collector::a::lastuse",
    );
    for (first, second) in [(fill, take), (fill, last), (fill, ""), ("", "")] {
        let words = same(first, second).words(MmaMode::Fast);
        assert!(words.iter().all(|word| f32::from_bits(*word) == 16.0));
    }
    let mut other = with(fill, last);
    other.issue = format!("{}\n{}", Tile::plain(8192).descriptor("%rd11"), other.issue);
    for (bench, holds) in [
        (same(last, last), "which holds nothing"),
        (same("", take), "which holds nothing"),
        (same(".collector::a::discard", last), "which holds nothing"),
        (other, "which holds another operand"),
    ] {
        for seed in 0..2 {
            let remark = bench.remark(seed);
            assert!(remark.contains(holds), "{remark}");
            let (words, _) = bench.run(seed, MmaMode::Fast).expect("it runs");
            assert!(words.iter().all(|word| f32::from_bits(*word).is_nan()));
        }
    }
    let stationary = |second: &str| {
        let mut bench = ones();
        let ws = "tcgen05.mma.ws.cta_group::1.kind::f16";
        let pair = format!(
            "mov.b32 %r18, 0x8100010;\n{ws}.collector::b1::fill [%r6], %rd9, %rd10, %r18, %p0;\n\
             {ws}.collector::{second} [%r6], %rd9, %rd10, %r18, %p0;"
        );
        bench.issue = bench.issue.replace(&plain, &pair);
        bench
    };
    let ran = stationary("b1::lastuse")
        .run(0, MmaMode::Fast)
        .expect("it runs");
    assert!(ran.1.early_read.is_none(), "{:?}", ran.1.early_read);
    let remark = stationary("b2::use").remark(0);
    assert!(remark.contains("collector::b2::use"), "{remark}");
}

/// A copy into `tile`: bytes of a row, rows, and the first byte.
#[derive(Clone, Copy)]
struct Copied {
    row: u32,
    rows: u32,
    at: u32,
    /// By a tensor map with a swizzle as wide as a row, or in bulk.
    mapped: bool,
}

/// One copy after the other, then a product whose A is read with a swizzle from some byte on: what
/// is said about it.
fn told_of_layout(copies: &[Copied], a: Tile) -> Option<String> {
    const MAPS: u32 = 32768;
    let mut input = vec![0; MAPS as usize];
    let mut issue = String::from("mov.b32 %r30, 0;\n");
    for (number, copied) in (0..).zip(copies) {
        let Copied { row, rows, at, .. } = *copied;
        let map = TensorMap::tiled(Tiled {
            element: MapElement::U8,
            address: 1 << 20,
            dims: &[row.into(), 256],
            strides: &[row.into()],
            box_dims: &[row, rows],
            element_strides: &[1, 1],
            swizzle: match row {
                64 => Swizzle::B64,
                _ => Swizzle::B128,
            },
            fill: Fill::Zero,
        });
        input.extend(map.expect("a map").encode());
        let bytes = row * rows;
        issue += &format!(
            "mbarrier.arrive.expect_tx.shared::cta.b64 _, [spare], {bytes};\n\
             add.u32 %r31, %r3, {at}; add.u64 %rd20, %rd1, {};\n",
            MAPS + 128 * number
        );
        issue += &match copied.mapped {
            true => "tensormap.replace.tile.global_address.global.b1024.b64 [%rd20], %rd1;\n\
                 fence.proxy.tensormap::generic.acquire.gpu [%rd20], 128;\n\
                 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes \
                 [%r31], [%rd20, {%r30, %r30}], [spare];\n"
                .to_owned(),
            false => format!(
                "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes \
                 [%r31], [%rd1], {bytes}, [spare];\n"
            ),
        };
        let parity = number % 2;
        issue += &format!(
            "LANDED{number}: mbarrier.try_wait.parity.shared::cta.b64 %p5, [spare], {parity};\n\
             @!%p5 bra LANDED{number};\n"
        );
    }
    let bench = Bench {
        input,
        issue: issue
            + &format!(
                "{} {} mov.b32 %r18, {:#x};\n\
                 tcgen05.mma.cta_group::1.kind::f16 [%r6], %rd9, %rd10, %r18, %p0;",
                a.descriptor("%rd9"),
                Tile::plain(30720).descriptor("%rd10"),
                8 << 24 | 1 << 17 | 1 << 4
            ),
        ..Bench::default()
    };
    let (_, report) = bench.run(0, MmaMode::Fast).expect("it runs");
    report.early_read.map(|early| early.what)
}

/// A product is held to the layout of the copy that came last to its operand.
#[test]
fn a_later_copy_lays_out_anew_what_it_covers() {
    let [wide, narrow] = [(128, 64, 0), (64, 8, 1024)].map(|(row, rows, at)| Copied {
        row,
        rows,
        at,
        mapped: true,
    });
    let bulk = Copied {
        mapped: false,
        ..narrow
    };
    let of_128 = "has laid it out with a swizzle of 128 bytes";
    let of_64 = "has laid it out with a swizzle of 64 bytes";
    // The copies, and what is said of a product that reads there with a swizzle of 128 bytes (2) or
    // 64 (4).
    let cases: [(&[Copied], u32, u32, Option<&str>); 9] = [
        (&[narrow], 1024, 2, Some(of_64)),
        (&[narrow, wide], 1024, 2, None),
        (&[narrow, wide], 1024, 4, Some(of_128)),
        (&[narrow, wide], 2048, 4, Some(of_128)),
        (&[wide, narrow], 0, 4, Some(of_128)),
        (&[wide, narrow], 1024, 4, None),
        (&[wide, narrow], 2048, 4, Some(of_128)),
        (&[wide, bulk], 1024, 4, None),
        (&[wide, bulk], 8192, 4, None),
    ];
    for (number, (copies, start, swizzle, said)) in cases.into_iter().enumerate() {
        let told = told_of_layout(copies, Tile::coded(start, swizzle));
        match said {
            None => assert_eq!(told, None, "case {number}"),
            Some(said) => {
                let told = told.unwrap_or_default();
                assert!(told.contains(said), "case {number}: {told}");
            }
        }
    }
}
