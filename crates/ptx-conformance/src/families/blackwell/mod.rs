//! What Blackwell adds to threads: wide accesses, packed and narrow numbers, matrices of bytes,
//! and clusters that take over others.

pub(super) mod copies;

use crate::case::{Case, Launch};
use crate::elementwise::Elementwise;
use crate::kernel::Kernel;
use crate::values::Ty::{self, *};
use crate::values::{all8x2, all16, boundaries_f32, dense_f32, finite_fp8};

use super::BLACKWELL;

/// The family's cases.
pub(super) fn cases() -> Vec<Case> {
    [
        wide_accesses(),
        pairs_of_singles(),
        mixed_precision(),
        three_sources(),
        narrow_floats(),
        scale_factors(),
        stochastic(),
        with_scales(),
        zeros(),
        reductions(),
        byte_matrices(),
        cancelled_clusters(),
    ]
    .concat()
}

/// One warp that loads 32 bytes a lane and stores them reversed.
fn wide_accesses() -> Vec<Case> {
    let forms = [
        ("ld.global.v8.b32", "st.global.v8.b32", 'r', 8),
        (
            "ld.global.L2::evict_last.v8.b32",
            "st.global.L2::evict_first.v8.b32",
            'r',
            8,
        ),
        ("ld.global.nc.v4.b64", "st.global.v4.b64", 'l', 4),
        (
            "ld.relaxed.gpu.global.v8.b32",
            "st.relaxed.gpu.global.v8.b32",
            'r',
            8,
        ),
    ];
    let case = |(load, store, class, count): (&str, &str, char, usize)| {
        let list = |reversed: bool| {
            let mut names: Vec<String> = (20..20 + count).map(|i| format!("%{class}{i}")).collect();
            if reversed {
                names.reverse();
            }
            format!("{{{}}}", names.join(", "))
        };
        Kernel::new(format!("{load}/reversed"), Launch::single(32))
            .target(BLACKWELL)
            .forms([load, store])
            .input((0..1024).map(|i| (i % 251) as u8).collect())
            .output(1024)
            .body(&format!(
                "mad.wide.u32 %l0, %thread, 32, %in0;\nmad.wide.u32 %l1, %thread, 32, %out0;\n\
                 {load} {}, [%l0];\n{store} [%l1], {};",
                list(false),
                list(true)
            ))
            .case()
    };
    forms.into_iter().map(case).collect()
}

/// `form` over operands of one type, for Blackwell.
fn op(form: &str, operands: &[Ty], result: Ty) -> Elementwise {
    Elementwise::op(form, operands, result).target(BLACKWELL)
}

fn pairs_of_singles() -> Vec<Case> {
    let mut cases = Vec::new();
    for round in ["rn", "rz", "rm", "rp"] {
        for ftz in ["", ".ftz"] {
            for name in ["add", "sub", "mul"] {
                let form = format!("{name}.{round}{ftz}.f32x2");
                // The edges of two singles, the second operand's in the other order.
                cases.push(
                    Elementwise::new(&form)
                        .target(BLACKWELL)
                        .crossed(&[F32, F32])
                        .result(U64)
                        .body(&format!(
                            "{{ .reg .b64 %x, %y; mov.b64 %x, {{%a, %b}}; mov.b64 %y, {{%b, %a}};\n\
                             {form} %d, %x, %y; }}"
                        ))
                        .case(),
                );
            }
            let form = format!("fma.{round}{ftz}.f32x2");
            cases.push(
                Elementwise::new(&form)
                    .target(BLACKWELL)
                    .crossed(&[F32, F32, F32])
                    .result(U64)
                    .body(&format!(
                        "{{ .reg .b64 %x, %y, %z; mov.b64 %x, {{%a, %b}}; mov.b64 %y, {{%b, %c}};\n\
                         mov.b64 %z, {{%c, %a}}; {form} %d, %x, %y, %z; }}"
                    ))
                    .case(),
            );
        }
    }
    cases
}

/// Halves added to and multiplied into singles.
fn mixed_precision() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, half) in [("f16", F16), ("bf16", Bf16)] {
        for round in ["rn", "rz"] {
            cases.push(op(&format!("add.{round}.f32.{name}"), &[half, F32], F32).case());
            cases.push(op(&format!("sub.{round}.f32.{name}"), &[half, F32], F32).case());
            cases.push(op(&format!("fma.{round}.f32.{name}"), &[half, half, F32], F32).case());
        }
    }
    cases
}

fn three_sources() -> Vec<Case> {
    let mut cases = Vec::new();
    for name in ["min", "max"] {
        for modifiers in ["", ".ftz", ".NaN", ".abs", ".ftz.NaN.abs"] {
            let form = format!("{name}{modifiers}.f32");
            let named = op(&form, &[F32, F32, F32], F32);
            cases.push(named.forms([format!("{form} of three")]).case());
        }
    }
    // The names of two-source forms are taken by another family.
    for case in &mut cases {
        case.name.push_str("/three");
    }
    cases
}

/// Types of two: name, result register and the finite magnitudes, whose boundaries decide ties.
fn magnitudes(mantissa: u32, exponent: u32) -> Vec<f64> {
    let bias = (1 << (exponent - 1)) - 1;
    let codes = 1u32 << (mantissa + exponent);
    let value = |code: u32| {
        let (biased, fraction) = (code >> mantissa, code & ((1 << mantissa) - 1));
        let scale = f64::from(1 << mantissa);
        match biased {
            0 => f64::from(fraction) / scale * 2f64.powi(1 - bias),
            _ => (1.0 + f64::from(fraction) / scale) * 2f64.powi(biased as i32 - bias),
        }
    };
    (0..codes).map(value).collect()
}

/// The byte of a pair of e2m1 in a 16-bit register.
const FROM_BYTE: &str = "mov.b16 %d, {%byte, %byte}; }";

fn narrow_floats() -> Vec<Case> {
    let types = [("e2m1x2", 1, 2), ("e2m3x2", 3, 2), ("e3m2x2", 2, 3)];
    let mut cases = Vec::new();
    for (name, mantissa, exponent) in types {
        let four = name == "e2m1x2";
        for relu in ["", ".relu"] {
            let form = format!("cvt.rn.satfinite{relu}.{name}.f32");
            let mut values = boundaries_f32(&magnitudes(mantissa, exponent));
            values.extend(F32.edges());
            let other: Vec<u64> = values.iter().rev().copied().collect();
            let case = op(&form, &[F32, F32], U16).with([values, other]);
            let case = match four {
                true => case.body(&format!(
                    "{{ .reg .b8 %byte; {form} %byte, %a, %b; {FROM_BYTE}"
                )),
                false => case,
            };
            cases.push(case.case());
            let form = format!("cvt.rn{relu}.f16x2.{name}");
            let codes: Vec<u64> = all8x2();
            let case = op(&form, &[U16], U32).with([codes]);
            let case = match four {
                true => case.body(&format!(
                    "{{ .reg .b8 %byte, %rest; mov.b16 {{%byte, %rest}}, %a; {form} %d, %byte; }}"
                )),
                // The upper two bits of a 6-bit code are zero.
                false => case.body(&format!("and.b16 %a, %a, 0x3f3f; {form} %d, %a;")),
            };
            cases.push(case.case());
        }
    }
    cases
}

fn scale_factors() -> Vec<Case> {
    let mut cases = Vec::new();
    for round in ["rz", "rp"] {
        for finite in ["", ".satfinite"] {
            let form = format!("cvt.{round}{finite}.ue8m0x2.f32");
            let mut values = dense_f32();
            values.extend(F32.edges());
            let other = values.iter().rev().copied().collect();
            cases.push(op(&form, &[F32, F32], U16).with([values, other]).case());
            let form = format!("cvt.{round}{finite}.ue8m0x2.bf16x2");
            let pairs = all16()
                .into_iter()
                .map(|x| x << 16 | (x ^ 0x5555))
                .collect();
            cases.push(op(&form, &[U32], U16).with([pairs]).case());
        }
    }
    let form = "cvt.rn.bf16x2.ue8m0x2";
    cases.push(op(form, &[U16], U32).with([all16()]).case());
    cases
}

/// Every rounding boundary with random bits of every kind.
fn stochastic() -> Vec<Case> {
    let types: [(&str, bool, Vec<f64>); 7] = [
        ("f16x2", false, crate::values::finite_f16(97)),
        ("bf16x2", false, crate::values::finite_bf16(97)),
        ("e4m3x4", true, finite_fp8(3)),
        ("e5m2x4", true, finite_fp8(2)),
        ("e2m3x4", true, magnitudes(3, 2)),
        ("e3m2x4", true, magnitudes(2, 3)),
        ("e2m1x4", true, magnitudes(1, 2)),
    ];
    let mut cases = Vec::new();
    for (name, four, finite) in types {
        for relu in ["", ".relu"] {
            let form = format!("cvt.rs{relu}.satfinite.{name}.f32");
            let mut values = boundaries_f32(&finite);
            values.extend(F32.edges());
            values.truncate(4096);
            let other: Vec<u64> = values.iter().rev().copied().collect();
            let mut bits = U32.random(77, values.len());
            let edges = [
                0,
                u64::from(u32::MAX),
                0x8000_8000,
                0x7fff_7fff,
                0x00ff_ff00,
            ];
            for (place, edge) in bits.iter_mut().step_by(7).zip(edges.into_iter().cycle()) {
                *place = edge;
            }
            let case = Elementwise::new(&form)
                .target(BLACKWELL)
                .operand(F32, values)
                .operand(F32, other)
                .operand(U32, bits);
            let case = match (four, name) {
                (false, _) => case.result(U32).body(&format!("{form} %d, %a, %b, %c;")),
                (true, "e2m1x4") => {
                    let case = case.result(U16);
                    case.body(&format!("{form} %d, {{%a, %b, %b, %a}}, %c;"))
                }
                _ => case
                    .result(U32)
                    .body(&format!("{form} %d, {{%a, %b, %b, %a}}, %c;")),
            };
            cases.push(case.case());
        }
    }
    cases
}

/// The forms of a later PTX: what becomes bf16 or fixed point, with a power of two for each.
fn with_scales() -> Vec<Case> {
    let scales = |count: usize| {
        let mut scales = U16.random(91, count);
        let edges = [0x7f7f, 0x00ff, 0xff00, 0xfe01, 0x8080];
        for (place, edge) in scales.iter_mut().step_by(3).zip(edges.into_iter().cycle()) {
            *place = edge;
        }
        scales
    };
    let mut cases = Vec::new();
    for scaled in ["", ".scaled::n2::ue8m0"] {
        let operand = if scaled.is_empty() { "" } else { ", %c" };
        for relu in ["", ".relu"] {
            let form = format!("cvt.rn.satfinite{relu}{scaled}.s2f6x2.f32");
            let mut values =
                boundaries_f32(&(0..128).map(|i| f64::from(i) / 64.0).collect::<Vec<_>>());
            values.extend(F32.edges());
            let other: Vec<u64> = values.iter().rev().copied().collect();
            let factors = scales(values.len());
            let case = Elementwise::new(&form)
                .target(BLACKWELL)
                .operand(F32, values)
                .operand(F32, other)
                .operand(U16, factors)
                .result(U16);
            cases.push(case.body(&format!("{form} %d, %a, %b{operand};")).case());
        }
        for from in ["e4m3x2", "e5m2x2", "e2m3x2", "e3m2x2", "e2m1x2", "s2f6x2"] {
            let form = format!("cvt.rn{scaled}.bf16x2.{from}");
            let codes = all8x2();
            let factors = scales(codes.len());
            let mask = match from {
                "e2m3x2" | "e3m2x2" => "and.b16 %a, %a, 0x3f3f; ",
                _ => "",
            };
            let (open, source) = match from {
                "e2m1x2" => (
                    "{ .reg .b8 %byte, %rest; mov.b16 {%byte, %rest}, %a; ",
                    "%byte",
                ),
                _ => ("{ ", "%a"),
            };
            let case = Elementwise::new(&form)
                .target(BLACKWELL)
                .operand(U16, codes.clone())
                .operand(U16, codes)
                .operand(U16, factors)
                .result(U32);
            let body = format!("{mask}{open}{form} %d, {source}{operand}; }}");
            cases.push(case.body(&body).case());
        }
    }
    for case in &mut cases {
        case.ptx = case.ptx.replace(".version 9.0", ".version 9.2");
    }
    cases
}

fn zeros() -> Vec<Case> {
    let form = "st.bulk.weak.shared::cta";
    vec![
        Kernel::new(form, Launch::single(32))
            .target(BLACKWELL)
            .declare(".shared .align 16 .b8 tile[128];")
            .output(128)
            .body(&format!(
                "mov.u32 %r0, tile;\nmad.lo.u32 %r1, %thread, 4, %r0;\nst.shared.b32 [%r1], %r1;\nbar.sync 0;\n\
                 mov.b64 %l0, 72;\nsetp.eq.u32 %p0, %thread, 0;\n@%p0 {form} [%r0+8], %l0, 0;\nbar.sync 0;\n\
                 ld.shared.b32 %r2, [%r1];\nsetp.ne.u32 %p1, %r2, 0;\nselp.b32 %r2, 1, 0, %p1;\n\
                 mad.wide.u32 %l1, %thread, 4, %out0;\nst.global.b32 [%l1], %r2;"
            ))
            .case(),
    ]
}

fn reductions() -> Vec<Case> {
    let mut cases = Vec::new();
    for name in ["min", "max"] {
        for modifiers in ["", ".abs", ".NaN", ".abs.NaN"] {
            let form = format!("redux.sync.{name}{modifiers}.f32");
            // Whole warps only: the last one is filled up.
            let mut values = F32.edges();
            values.extend(F32.random(5, 1024 - values.len() % 32));
            values.truncate(values.len() / 128 * 128);
            let case = Elementwise::new(&form)
                .target(BLACKWELL)
                .operand(F32, values)
                .result(F32);
            cases.push(case.body(&format!("{form} %d, %a, -1;")).case());
        }
    }
    cases
}

/// A tile of 512 bytes goes to shared memory, from there to registers, and out.
fn byte_matrices() -> Vec<Case> {
    let fill = "mov.u32 %r1, tile;\nmul.lo.u32 %r2, %thread, 16;\nadd.u32 %r3, %r1, %r2;\n\
        mad.wide.u32 %l0, %thread, 16, %in0;\nld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%l0];\n\
        st.shared.v4.b32 [%r3], {%r4, %r5, %r6, %r7};\nbar.sync 0;\n";
    let loads = [
        ("ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8", 2),
        ("ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8", 4),
        ("ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b4x16_p64", 1),
        ("ldmatrix.sync.aligned.m8n16.x2.shared.b8x16.b4x16_p64", 2),
        ("ldmatrix.sync.aligned.m8n16.x4.shared.b8x16.b4x16_p64", 4),
        ("ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b6x16_p32", 1),
        ("ldmatrix.sync.aligned.m8n16.x2.shared.b8x16.b6x16_p32", 2),
        ("ldmatrix.sync.aligned.m8n16.x4.shared.b8x16.b6x16_p32", 4),
    ];
    let stores = [
        ("stmatrix.sync.aligned.m16n8.x1.trans.shared.b8", 1),
        ("stmatrix.sync.aligned.m16n8.x2.trans.shared.b8", 2),
        ("stmatrix.sync.aligned.m16n8.x4.trans.shared.b8", 4),
    ];
    let list = |count: usize| {
        let names: Vec<String> = (20..20 + count).map(|i| format!("%r{i}")).collect();
        format!("{{{}}}", names.join(", "))
    };
    let kernel = |form: &str| {
        Kernel::new(form, Launch::single(32))
            .target(BLACKWELL)
            .declare(".shared .align 128 .b8 tile[512];")
            .input((0..512).map(|i| (i * 7 % 253) as u8).collect())
            .output(512)
    };
    let mut cases = Vec::new();
    for (form, count) in loads {
        let mut body = format!("{fill}{form} {}, [%r3];\n", list(count));
        for register in 0..count {
            body.push_str(&format!(
                "mad.wide.u32 %l1, %thread, 4, %out0;\nst.global.b32 [%l1+{}], %r{};\n",
                128 * register,
                20 + register
            ));
        }
        cases.push(kernel(form).body(&body).case());
    }
    for (form, count) in stores {
        let body = format!(
            "{fill}ld.shared.v4.b32 {{%r20, %r21, %r22, %r23}}, [%r3];\nbar.sync 0;\n\
             {form} [%r3], {};\nbar.sync 0;\nld.shared.v4.b32 {{%r4, %r5, %r6, %r7}}, [%r3];\n\
             mad.wide.u32 %l1, %thread, 16, %out0;\nst.global.v4.b32 [%l1], {{%r4, %r5, %r6, %r7}};",
            list(count)
        );
        cases.push(kernel(form).body(&body).case());
    }
    cases
}

/// More CTAs than a device holds, each adding one for every index it works for: who works for which
/// is open, and that each is worked for once is not.
fn cancelled_clusters() -> Vec<Case> {
    const CTAS: u32 = 8192;
    let forms = [
        (
            "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128",
            1,
        ),
        (
            "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128",
            2,
        ),
    ];
    let case = |(form, cluster): (&str, u32)| {
        let body = format!(
            "mov.u32 %r0, bar;\nmov.u32 %r1, answer;\nmov.u32 %r2, %ctaid.x;\nmov.u32 %r3, 0;\n\
             mov.u32 %r4, %cluster_ctarank;\nsetp.eq.u32 %p1, %thread, 0;\nsetp.eq.u32 %p2, %r4, 0;\n\
             and.pred %p3, %p1, %p2;\n@%p1 mbarrier.init.shared::cta.b64 [%r0], 1;\n\
             fence.mbarrier_init.release.cluster;\n\
             barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n\
             WORK:\nmad.wide.u32 %l0, %r2, 4, %out0;\n@%p1 red.global.add.u32 [%l0], 1;\n\
             @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r0], 16;\n\
             barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n\
             @%p3 {form} [%r1], [%r0];\n\
             WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %p4, [%r0], %r3;\n@!%p4 bra WAIT;\n\
             xor.b32 %r3, %r3, 1;\nld.shared.b128 %answered, [%r1];\n\
             clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p5, %answered;\n\
             fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;\n\
             barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n@!%p5 bra DONE;\n\
             clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {{%r5, %r6, %r7, _}}, %answered;\n\
             clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r8, %answered;\n\
             add.u32 %r2, %r8, %r4;\nbra WORK;\nDONE:"
        );
        let launch = Launch {
            cluster: [cluster, 1, 1],
            ..Launch::linear(CTAS, 32)
        };
        Kernel::new(form, launch)
            .target(BLACKWELL)
            .forms([
                form,
                "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128",
                "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128",
                "clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128",
                "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster",
            ])
            .declare(".reg .b128 %answered;\n.shared .align 8 .b64 bar;\n.shared .align 16 .b8 answer[16];")
            .output_from(vec![0; 4 * CTAS as usize])
            .body(&body)
            .case()
    };
    forms.into_iter().map(case).collect()
}
