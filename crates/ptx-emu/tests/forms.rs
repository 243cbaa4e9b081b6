//! Every instruction form that public Hopper kernels use, and many siblings, must lower; what
//! does not exist must be refused with its name and line.

use ptx_emu::lower::{CompileError, Problem, compile};

/// A kernel around some lines, with registers of every kind declared.
fn kernel(lines: &str) -> String {
    format!(
        ".version 9.0\n.target sm_100a\n.address_size 64\n\
         .extern .shared .align 1024 .b8 dynamic[];\n\
         .global .align 8 .b8 table[64];\n\
         .const .align 4 .f32 factor = 0f3F800000;\n\
         .extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n\
         .func (.param .b32 result) twice(.param .b32 x) {{ .reg .b32 %r<3>; \
         ld.param.b32 %r1, [x]; add.s32 %r2, %r1, %r1; st.param.b32 [result], %r2; ret; }}\n\
         .visible .entry k(.param .u64 pointer, .param .align 64 .b8 map[128])\n{{\n\
         .reg .pred %p<8>; .reg .b8 %c<4>; .reg .b16 %rs<16>; .reg .b32 %r<300>;\n\
         .reg .f32 %f<300>; .reg .b64 %rd<20>; .reg .f64 %fd<20>; .reg .b128 %q<4>;\n\
         .shared .align 8 .b8 bar[64];\n.local .align 16 .b8 depot[64];\n\
         {lines}\nret;\n}}\n"
    )
}

#[track_caller]
fn accepts(lines: &str) {
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Err(error) = compile(&kernel(line)) {
            panic!("{line}\n  {error}");
        }
    }
}

#[test]
fn integer_arithmetic() {
    accepts(
        "add.s32 %r1, %r2, %r3;
         add.sat.s32 %r1, %r2, 7;
         add.s64 %rd1, %rd2, -8;
         add.u64 %rd1, %rd2, table;
         add.u16 %rs1, %rs2, %rs3;
         add.u16x2 %r1, %r2, %r3;
         add.cc.u32 %r1, %r2, %r3;
         addc.cc.u32 %r1, %r2, %r3;
         addc.u64 %rd1, %rd2, 0;
         sub.s16 %rs1, %rs2, 1;
         sub.s32 %r1, 0, %r2;
         sub.s64 %rd1, %rd2, %rd3;
         subc.cc.s32 %r1, %r2, %r3;
         mul.lo.s32 %r1, %r2, %r3;
         mul.lo.s64 %rd1, %rd2, %rd3;
         mul.hi.u32 %r1, %r2, -858993459;
         mul.hi.u64 %rd1, %rd2, %rd3;
         mul.wide.s32 %rd1, %r2, 4;
         mul.wide.u16 %r1, %rs2, %rs3;
         mul.wide.u32 %rd1, %r2, %r3;
         mul24.lo.s32 %r1, %r2, %r3;
         mad.lo.s32 %r1, %r2, %r3, %r4;
         mad.lo.s64 %rd1, %rd2, %rd3, %rd4;
         mad.hi.sat.s32 %r1, %r2, %r3, %r4;
         mad.wide.s32 %rd1, %r2, %r3, %rd4;
         mad.wide.u32 %rd1, %r2, 512, %rd4;
         mad24.hi.u32 %r1, %r2, %r3, %r4;
         mad.lo.cc.u32 %r1, %r2, %r3, %r4;
         madc.hi.u32 %r1, %r2, %r3, %r4;
         div.s32 %r1, %r2, %r3;
         div.u32 %r1, %r2, 10;
         div.u64 %rd1, %rd2, %rd3;
         rem.s32 %r1, %r2, %r3;
         rem.u64 %rd1, %rd2, 3;
         abs.s32 %r1, %r2;
         neg.s32 %r1, %r2;
         neg.s64 %rd1, %rd2;
         min.s32 %r1, %r2, %r3;
         min.u32 %r1, %r2, %r3;
         min.s16x2 %r1, %r2, %r3;
         max.s32 %r1, %r2, %r3;
         max.relu.s32 %r1, %r2, %r3;
         max.u64 %rd1, %rd2, %rd3;
         sad.u32 %r1, %r2, %r3, %r4;
         dp4a.u32.s32 %r1, %r2, %r3, %r4;
         dp2a.lo.s32.u32 %r1, %r2, %r3, %r4;",
    );
}

#[test]
fn bits() {
    accepts(
        "and.b16 %rs1, %rs2, 255;
         and.b32 %r1, %r2, %r3;
         and.b64 %rd1, %rd2, %rd3;
         and.pred %p1, %p2, %p3;
         or.b16 %rs1, %rs2, %rs3;
         or.b32 %r1, %r2, %r3;
         or.b64 %rd1, %rd2, 4611686293305294848;
         or.pred %p1, %p2, !%p3;
         xor.b32 %r1, %r2, %r3;
         xor.pred %p1, %p2, %p3;
         not.b32 %r1, %r2;
         not.pred %p1, %p2;
         cnot.b32 %r1, %r2;
         shl.b16 %rs1, %rs2, 4;
         shl.b32 %r1, %r2, %r3;
         shl.b64 %rd1, %rd2, 3;
         shr.s32 %r1, %r2, 31;
         shr.s64 %rd1, %rd2, %r3;
         shr.u16 %rs1, %rs2, 8;
         shr.u32 %r1, %r2, 5;
         shr.u64 %rd1, %rd2, 4;
         shf.l.wrap.b32 %r1, %r2, %r3, 7;
         shf.r.clamp.b32 %r1, %r2, %r3, %r4;
         lop3.b32 %r1, %r2, %r3, %r4, 0xEA;
         lop3.or.b32 %r1|%p1, %r2, %r3, %r4, 128, !%p2;
         prmt.b32 %r1, %r2, %r3, 0x7610U;
         prmt.b32.f4e %r1, %r2, %r3, %r4;
         bfe.u32 %r1, %r2, 4, 8;
         bfe.s64 %rd1, %rd2, %r3, %r4;
         bfi.b32 %r1, %r2, %r3, 4, 8;
         bfi.b64 %rd1, %rd2, %rd3, 32, 32;
         bfind.shiftamt.u32 %r1, %r2;
         bfind.s64 %r1, %rd2;
         bmsk.clamp.b32 %r1, %r2, %r3;
         szext.wrap.s32 %r1, %r2, %r3;
         popc.b32 %r1, %r2;
         popc.b64 %r1, %rd2;
         clz.b32 %r1, %r2;
         brev.b32 %r1, %r2;
         fns.b32 %r1, %r2, %r3, %r4;",
    );
}

#[test]
fn floats() {
    accepts(
        "abs.f32 %f1, %f2;
         abs.ftz.f32 %f1, %f2;
         abs.bf16x2 %r1, %r2;
         neg.f32 %f1, %f2;
         neg.f16 %rs1, %rs2;
         add.f32 %f1, %f2, 0f3F800000;
         add.rz.ftz.sat.f32 %f1, %f2, %f3;
         add.f64 %fd1, %fd2, 0d3FF0000000000000;
         add.f16 %rs1, %rs2, %rs3;
         add.rn.bf16 %rs1, %rs2, %rs3;
         add.f16x2 %r1, %r2, %r3;
         add.rn.f32x2 %rd1, %rd2, %rd3;
         add.f32.bf16 %f1, %rs2, %f3;
         sub.f16 %rs1, %rs2, %rs3;
         sub.bf16x2 %r1, %r2, %r3;
         sub.f32 %f1, %f2, %f3;
         sub.f32.f16 %f1, %rs2, %f3;
         mul.bf16 %rs1, %rs2, %rs3;
         mul.f16 %rs1, %rs2, %rs3;
         mul.f32 %f1, %f2, %f3;
         mul.rn.f64 %fd1, %fd2, %fd3;
         mad.rn.f32 %f1, %f2, %f3, %f4;
         fma.rn.f32 %f1, %f2, 0f3FB8AA3B, %f4;
         fma.rn.f64 %fd1, %fd2, %fd3, %fd4;
         fma.rn.relu.bf16x2 %r1, %r2, %r3, %r4;
         fma.rn.f16 %rs1, %rs2, %rs3, %rs4;
         fma.rn.f32x2 %rd1, %rd2, %rd3, %rd4;
         fma.rn.f32.f16 %f1, %rs2, %rs3, %f4;
         div.full.f32 %f1, %f2, %f3;
         div.approx.ftz.f32 %f1, %f2, %f3;
         div.rn.f32 %f1, %f2, %f3;
         div.rn.f64 %fd1, %fd2, %fd3;
         min.f32 %f1, %f2, %f3;
         min.NaN.f32 %f1, %f2, %f3;
         max.f32 %f1, %f2, %f3, %f4;
         max.NaN.f16x2 %r1, %r2, %r3;
         max.ftz.NaN.xorsign.abs.f32 %f1, %f2, %f3;
         rcp.approx.ftz.f32 %f1, %f2;
         rcp.rn.f64 %fd1, %fd2;
         rcp.approx.ftz.f64 %fd1, %fd2;
         sqrt.rn.f32 %f1, %f2;
         sqrt.approx.f32 %f1, %f2;
         rsqrt.approx.f32 %f1, %f2;
         rsqrt.approx.f64 %fd1, %fd2;
         sin.approx.f32 %f1, %f2;
         cos.approx.ftz.f32 %f1, %f2;
         lg2.approx.f32 %f1, %f2;
         ex2.approx.f32 %f1, %f2;
         ex2.approx.ftz.bf16x2 %r1, %r2;
         ex2.approx.f16 %rs1, %rs2;
         tanh.approx.f32 %f1, %f2;
         tanh.approx.bf16x2 %r1, %r2;
         copysign.f32 %f1, %f2, %f3;
         testp.notanumber.f32 %p1, %f2;
         testp.finite.f64 %p1, %fd2;",
    );
}

#[test]
fn comparisons() {
    let types = [
        ("s16", "%rs"),
        ("u16", "%rs"),
        ("b16", "%rs"),
        ("f16", "%rs"),
        ("bf16", "%rs"),
        ("s32", "%r"),
        ("u32", "%r"),
        ("b32", "%r"),
        ("f32", "%f"),
        ("s64", "%rd"),
        ("u64", "%rd"),
        ("b64", "%rd"),
        ("f64", "%fd"),
    ];
    for (ty, reg) in types {
        for cmp in ["eq", "ne", "lt", "le", "gt", "ge"] {
            accepts(&format!("setp.{cmp}.{ty} %p1, {reg}1, {reg}2;"));
        }
        if ty.contains('f') {
            for cmp in ["equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"] {
                accepts(&format!("setp.{cmp}.{ty} %p1|%p2, {reg}1, {reg}2;"));
            }
        }
    }
    accepts(
        "setp.lo.u32 %p1, %r1, %r2;
         setp.hs.u64 %p1, %rd1, 5;
         setp.lt.and.s32 %p1|%p2, %r1, %r2, !%p3;
         setp.gt.or.ftz.f32 %p1, %f1, 0f00000000, %p2;
         @%p1 setp.eq.xor.s32 %p1|%p2, %r1, 0, %p2;
         setp.lt.f16x2 %p1|%p2, %r1, %r2;
         setp.lt.and.bf16x2 %p1|_, %r1, %r2, %p3;
         set.lt.u32.f32 %r1, %f1, %f2;
         set.ge.and.f32.s32 %f1, %r1, %r2, %p1;
         set.eq.f16x2.f16x2 %r1, %r2, %r3;
         selp.b32 %r1, %r2, %r3, %p1;
         selp.b64 %rd1, 0, %rd3, %p1;
         selp.f32 %f1, %f2, 0f00000000, %p1;
         selp.u16 %rs1, 1, 0, %p1;
         selp.s32 %r1, -1, %r3, %p1;
         selp.f64 %fd1, %fd2, %fd3, %p1;
         slct.u32.s32 %r1, %r2, %r3, %r4;
         slct.ftz.f64.f32 %fd1, %fd2, %fd3, %f4;",
    );
}

#[test]
fn conversions() {
    accepts(
        "cvt.f32.bf16 %f1, %rs1;
         cvt.f32.f16 %f1, %rs1;
         cvt.f64.f32 %fd1, %f1;
         cvt.rn.f32.f64 %f1, %fd1;
         cvt.rn.bf16.f32 %rs1, %f1;
         cvt.rn.relu.bf16.f32 %rs1, %f1;
         cvt.rn.f16.f32 %rs1, %f1;
         cvt.rn.f16.s32 %rs1, %r1;
         cvt.rn.f16x2.e4m3x2 %r1, %rs1;
         cvt.rn.relu.f16x2.e5m2x2 %r1, %rs1;
         cvt.rn.f16x2.f32 %r1, %f1, %f2;
         cvt.rn.bf16x2.f32 %r1, %f1, %f2;
         cvt.rz.relu.f16x2.f32 %r1, %f1, %f2;
         cvt.rn.f32.s32 %f1, %r1;
         cvt.rn.f32.s64 %f1, %rd1;
         cvt.rn.f32.u32 %f1, %r1;
         cvt.rp.f32.u64 %f1, %rd1;
         cvt.rn.f64.s32 %fd1, %r1;
         cvt.rn.satfinite.e4m3x2.f32 %rs1, %f1, %f2;
         cvt.rn.satfinite.e5m2x2.f32 %rs1, %f1, %f2;
         cvt.rn.satfinite.relu.e4m3x2.f16x2 %rs1, %r1;
         cvt.rn.satfinite.e2m1x2.f32 %c1, %f1, %f2;
         cvt.rn.f16x2.e2m1x2 %r1, %c1;
         cvt.rn.satfinite.e2m3x2.f32 %rs1, %f1, %f2;
         cvt.rn.f16x2.e3m2x2 %r1, %rs1;
         cvt.rp.satfinite.ue8m0x2.f32 %rs1, %f1, %f2;
         cvt.rz.satfinite.ue8m0x2.bf16x2 %rs1, %r1;
         cvt.rn.bf16x2.ue8m0x2 %r1, %rs1;
         cvt.rna.tf32.f32 %r1, %f1;
         cvt.rn.satfinite.tf32.f32 %r1, %f1;
         cvt.rzi.s32.f32 %r1, %f1;
         cvt.rzi.s32.f64 %r1, %fd1;
         cvt.rni.sat.u8.f32 %r1, %f1;
         cvt.rmi.ftz.f32.f32 %f1, %f2;
         cvt.rpi.f64.f64 %fd1, %fd2;
         cvt.ftz.sat.f32.f32 %f1, %f2;
         cvt.s64.s32 %rd1, %r1;
         cvt.u16.u32 %rs1, %r1;
         cvt.u32.u16 %r1, %rs1;
         cvt.s32.s16 %r1, %rs1;
         cvt.s32.s8 %r1, %r2;
         cvt.s8.s32 %r1, %r2;
         cvt.sat.u8.s16 %rs1, %rs2;
         cvt.u32.u64 %r1, %rd1;
         cvt.u64.u16 %rd1, %rs1;
         cvt.u64.u32 %rd1, %tid.x;
         cvt.u8.u64 %rs1, %rd1;
         cvt.pack.sat.u8.s32.b32 %r1, %r2, %r3, %r4;
         cvt.pack.sat.u2.s32.b32 %r1, %r2, %r3, %r4;
         cvt.pack.sat.s16.s32 %r1, %r2, %r3;
         cvta.global.u64 %rd1, table;
         cvta.param.u64 %rd1, %rd2;
         cvta.to.global.u64 %rd1, %rd2;
         cvta.to.shared.u64 %rd1, %rd2;
         cvta.shared::cluster.u64 %rd1, %rd2;
         cvta.local.u64 %rd1, depot;
         isspacep.shared::cta %p1, %rd1;
         mapa.shared::cluster.u32 %r1, %r2, %r3;
         mapa.u64 %rd1, %rd2, 1;
         getctarank.shared::cluster.u32 %r1, %r2;
         getctarank.u64 %r1, %rd2;",
    );
}

#[test]
fn moves() {
    accepts(
        "mov.b16 %rs1, 0x3C00;
         mov.b32 %r1, %f1;
         mov.b32 %r1, {%rs1, %rs2};
         mov.b32 {%rs1, _}, %r1;
         mov.b32 %r1, {%c1, %c2, %c1, %c2};
         mov.b64 %rd1, {%r1, %r2};
         mov.b64 {%rs1, %rs2, %rs3, %rs4}, %rd1;
         mov.b64 {%r1, %r2}, %rd1;
         mov.b64 {_, %r2}, 81985529216486895;
         mov.b128 %q1, {%rd1, %rd2};
         mov.b128 {%rd1, %rd2}, %q1;
         mov.b128 %q1, %q2;
         mov.f32 %f1, 0fFF800000;
         mov.f32 %f1, 1.5;
         mov.f64 %fd1, %fd2;
         mov.pred %p1, %p2;
         mov.pred %p1, %is_explicit_cluster;
         mov.s32 %r1, -1;
         mov.u16 %rs1, 7;
         mov.u32 %r1, %tid.x;
         mov.u32 %r1, dynamic;
         mov.u32 %r1, bar+8;
         mov.u32 %r1, %laneid;
         mov.u32 %r1, %cluster_ctarank;
         mov.u32 %r1, %cluster_nctaid.y;
         mov.u32 %r1, %clock;
         mov.u32 %r1, %lanemask_lt;
         mov.u32 %r1, %dynamic_smem_size;
         mov.u32 %r1, WARP_SZ;
         mov.u32 %r1, %envreg3;
         mov.u64 %rd1, %clock64;
         mov.u64 %rd1, %globaltimer;
         mov.u64 %rd1, table+16;
         mov.u64 %rd1, dynamic;
         mov.b64 %rd1, map;
         mov.b64 %rd1, twice;
         activemask.b32 %r1;",
    );
}

#[test]
fn memory() {
    accepts(
        "ld.f32 %f1, [%rd1];
         ld.global.L2::128B.u16 %rs1, [%rd1];
         ld.global.L1::no_allocate.L2::cache_hint.v4.b32 {%r1, %r2, %r3, %r4}, [%rd1], %rd2;
         ld.global.b16 %rs1, [%rd1+2];
         ld.global.s32 %r1, [%rd1+-4];
         ld.global.s8 %r1, [%rd1];
         ld.global.s8 %rs1, [%rd1];
         ld.global.s32 %rd1, [%rd2];
         ld.global.u8 %rs1, [table+3];
         ld.global.v2.f32 {%f1, %f2}, [%rd1];
         ld.global.nc.v2.u64 {%rd1, %rd2}, [%rd3];
         ld.global.ca.nc.u32 %r1, [%rd1];
         ld.volatile.global.u32 %r1, [%rd1];
         ld.acquire.gpu.global.u32 %r1, [%rd1];
         ld.relaxed.sys.global.u64 %rd2, [%rd1];
         ld.mmio.relaxed.sys.global.u32 %r1, [%rd1];
         ld.const.f32 %f1, [factor];
         ld.local.u32 %r1, [depot+8];
         ld.local.u32 %r1, [%rd1];
         ld.param.b32 %r1, [pointer+4];
         ld.param.u64 %rd1, [pointer];
         ld.param.v4.u8 {%rs1, %rs2, %rs3, %rs4}, [map];
         ld.param.v2.u64 {%rd1, %rd2}, [map+16];
         ld.param.u8 %rs1, [map+1];
         ld.shared.b32 %r1, [%r2+128];
         ld.shared.v2.b16 {%rs1, %rs2}, [%r1];
         ld.shared.v4.f32 {%f1, %f2, %f3, %f4}, [dynamic+16];
         ld.shared.b128 %q1, [%r1];
         ld.shared::cluster.u32 %r1, [%r2];
         ld.shared.u32 %r1, [1024];
         ldu.global.u32 %r1, [%rd1];
         st.global.b16 [%rd1], %rs1;
         st.global.f32 [%rd1+4], 0f00000000;
         st.global.u8 [%rd1], %r1;
         st.global.v4.u16 [%rd1], {%rs1, %rs2, %rs3, %rs4};
         st.global.wt.b16 [%rd1], %rs1;
         st.global.cs.v2.f64 [%rd1], {%fd1, %fd2};
         st.release.gpu.global.u32 [%rd1], %r1;
         st.local.f64 [%rd1], %fd1;
         st.local.v2.f32 [depot], {%f1, %f2};
         st.local.v4.u8 [%rd1], {%rs1, %rs2, %rs3, %rs4};
         st.shared.v2.u64 [%r1], {%rd1, %rd2};
         st.shared.v4.u32 [%rd1], {%r1, %r2, %r3, %r4};
         st.shared::cta.b32 [%r1], %r2;
         st.shared::cluster.u32 [%r1], 5;
         st.global.b128 [%rd1], %q1;
         st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%r1], {%r2, %r3}, [%r4];
         prefetch.global.L2 [%rd1];
         prefetch.global.L2::evict_last [%rd1];
         prefetchu.L1 [%rd1];
         prefetch.tensormap [%rd1];
         prefetch.param.tensormap [map];
         discard.global.L2 [%rd1], 128;
         applypriority.global.L2::evict_normal [%rd1], 128;
         createpolicy.fractional.L2::evict_last.b64 %rd1, 1.0;
         createpolicy.fractional.L2::evict_first.L2::evict_unchanged.b64 %rd1, 0.5;",
    );
}

#[test]
fn atomics() {
    accepts(
        "atom.global.cas.b16 %rs1, [%rd1], %rs2, %rs3;
         atom.global.add.u32 %r1, [%rd1], %r2;
         atom.add.f32 %f1, [%rd1], %f2;
         atom.global.gpu.acq_rel.cas.b64 %rd1, [%rd2], %rd3, %rd4;
         atom.acquire.gpu.global.exch.b32 %r1, [%rd1], 0;
         atom.shared.inc.u32 %r1, [%r2], %r3;
         atom.shared::cluster.max.s32 %r1, [%r2], %r3;
         atom.global.add.noftz.f16x2 %r1, [%rd1], %r2;
         atom.global.add.noftz.bf16 %rs1, [%rd1], %rs2;
         atom.global.v2.f32.add {%f1, %f2}, [%rd1], {%f3, %f4};
         atom.global.exch.b128 %q1, [%rd1], %q2;
         atom.global.cas.b128 %q1, [%rd1], %q2, %q3;
         atom.global.and.b32 _, [%rd1], %r1;
         red.global.add.f64 [%rd1], %fd1;
         red.relaxed.gpu.global.add.s32 [%rd1], 1;
         red.release.sys.global.or.b32 [%rd1], %r1;
         red.global.add.noftz.v4.bf16x2 [%rd1], {%r1, %r2, %r3, %r4};
         red.global.v4.f32.add [%rd1], {%f1, %f2, %f3, %f4};
         red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r1], %r2, [%r3];",
    );
}

#[test]
fn control_and_warp() {
    accepts(
        "L: bra L;
         L: @%p1 bra.uni L;
         @!%p1 bra L; L: exit;
         { L: bra L; } { L: bra L; }
         A: B: t: .branchtargets A, B; brx.idx %r1, t;
         trap;
         brkpt;
         pmevent 7;
         @%p1 ret;
         nanosleep.u32 32;
         setmaxnreg.dec.sync.aligned.u32 24;
         setmaxnreg.inc.sync.aligned.u32 240;
         griddepcontrol.wait;
         griddepcontrol.launch_dependents;
         { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call.uni (b), twice, (a); ld.param.b32 %r2, [b]; }
         call (%r1), twice, (%r2);
         { .param .b64 a; .param .b64 b; .param .b32 c; st.param.b64 [a], %rd1; call.uni (c), vprintf, (a, b); }
         p: .callprototype (.param .b32 _) _ (.param .b32 _); mov.b64 %rd1, twice; call (%r1), %rd1, (%r2), p;
         shfl.sync.bfly.b32 %r1, %r2, 16, 31, -1;
         shfl.sync.idx.b32 %r1|%p1, %r2, %r3, 0x1f, 0xffffffff;
         shfl.sync.up.b32 %f1, %f2, 1, 0, -1;
         shfl.sync.down.b32 %r1, %r2, 1, 31, %r3;
         vote.sync.ballot.b32 %r1, %p1, -1;
         vote.sync.any.pred %p1, !%p2, 0xffffffff;
         match.any.sync.b32 %r1, %r2, -1;
         match.all.sync.b64 %r1|%p1, %rd2, -1;
         redux.sync.add.s32 %r1, %r2, -1;
         redux.sync.max.abs.NaN.f32 %f1, %f2, -1;
         redux.sync.xor.b32 %r1, %r2, -1;
         elect.sync %r1|%p1, -1;
         elect.sync _|%p1, 0xffffffff;
         mov.v4.u32 {%r1, %r2, %r3, %r4}, %tid;
         .pragma \"nounroll\";",
    );
}

#[test]
fn barriers() {
    accepts(
        "bar.sync 0;
         bar.sync %r1, 128;
         bar.cta.sync 1, 256;
         bar.arrive 1, 128;
         bar.warp.sync -1;
         bar.red.popc.u32 %r1, 0, %p1;
         bar.red.and.pred %p1, 1, 64, !%p2;
         barrier.sync 2, 64;
         barrier.cta.sync.aligned 0;
         barrier.red.or.pred %p1, 0, %p2;
         barrier.cluster.arrive;
         barrier.cluster.arrive.relaxed.aligned;
         barrier.cluster.arrive.release.aligned;
         barrier.cluster.wait;
         barrier.cluster.wait.acquire.aligned;
         barrier.cluster.wait.aligned;
         membar.gl;
         fence.acq_rel.gpu;
         fence.sc.sys;
         fence.mbarrier_init.release.cluster;
         fence.proxy.alias;
         fence.proxy.async;
         fence.proxy.async.global;
         fence.proxy.async.shared::cta;
         fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;
         fence.proxy.tensormap::generic.release.sys;
         mbarrier.init.shared.b64 [%r1], 1;
         mbarrier.init.shared::cta.b64 [bar+8], %r1;
         mbarrier.inval.shared::cta.b64 [%r1];
         mbarrier.expect_tx.shared::cta.b64 [%r1], 4096;
         mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r1], 4096;
         mbarrier.complete_tx.shared::cluster.b64 [%r1], 16;
         mbarrier.arrive.b64 %rd1, [%rd2];
         mbarrier.arrive.shared::cta.b64 _, [%r1];
         mbarrier.arrive.shared::cta.b64 %rd1, [%r1], 2;
         mbarrier.arrive.shared::cluster.b64 _, [%r1];
         mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r1], %r2;
         mbarrier.arrive.release.cta.shared::cta.b64 %rd1, [%r1];
         mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], %r2;
         mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 %rd1, [%r1], 32768;
         mbarrier.arrive.expect_tx.shared::cluster.b64 _, [%r1], %r2;
         mbarrier.arrive.noComplete.shared::cta.b64 %rd1, [%r1], 3;
         mbarrier.arrive_drop.shared::cta.b64 %rd1, [%r1];
         mbarrier.test_wait.shared::cta.b64 %p1, [%r1], %rd1;
         mbarrier.test_wait.parity.shared::cta.b64 %p1, [%r1], %r2;
         mbarrier.try_wait.shared.b64 %p1, [%r1], %rd1;
         mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], %r2;
         mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p1, [%r1], %r2, 0x989680;
         mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [%r1], 1;
         mbarrier.pending_count.b64 %r1, %rd1;",
    );
}

#[test]
fn copies() {
    accepts(
        "cp.async.ca.shared.global [%r1], [%rd1], 4;
         cp.async.cg.shared::cta.global [%r1], [%rd1], 16, %r2;
         cp.async.cg.shared.global.L2::cache_hint.L2::128B [%r1], [%rd1], 16, %rd2;
         cp.async.ca.shared.global [%r1], [%rd1], 8, !%p1;
         cp.async.commit_group;
         cp.async.wait_group 2;
         cp.async.wait_all;
         cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%r1];
         cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], %r2, [%r3];
         cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.L2::cache_hint [%r1], [%rd1], 64, [%r3], %rd4;
         cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%rd1], %r2, [%r3], %rs1;
         cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r1], [%r2], 128, [%r3];
         cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], %r2;
         cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint.cp_mask [%rd1], [%r1], 16, %rd2, %rs1;
         cp.async.bulk.prefetch.L2.global [%rd1], 1024;
         cp.async.bulk.commit_group;
         cp.async.bulk.wait_group 0;
         cp.async.bulk.wait_group.read 1;
         cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%rd1], [%r1], 64;
         cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.bf16 [%rd1], [%r1], 64;
         cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [%r1], [%r2], 64, [%r3];
         cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2}], [%r3];
         cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1, {%r1, %r2}], [%r3];
         cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%r1], [%rd1, {%r2, %r3}], [%r4], %rd2;
         cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint [%r1], [%rd1, {%r2, %r3}], [%r4], %rs1, %rd2;
         cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [map, {0, 64}], [bar];
         cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r3}], [%r4];
         cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%rd1, {%r1, %r2, %r3}], [%r4];
         cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%rd1, {%r2, %r3, %r4}], [%r5], %rs1;
         cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r3, %r4, %r5}], [%r6], {%rs1, %rs2};
         cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r3, %r4, %r5, %r6}], [%r7];
         cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r3, %r4, %r5, %r6}], [%r7];
         cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%rd1, {%r1, %r2}];
         cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%rd1, {%r1, %r2}], [%r3];
         tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r1], %rd1;
         tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r1], 1, %r2;
         tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%r1], 0, %rd2;
         tensormap.replace.tile.rank.global.b1024.b32 [%rd1], 2;
         tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%r1], 3;
         tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd1], [%r1], 128;",
    );
}

fn registers(prefix: &str, count: u32) -> String {
    let names: Vec<String> = (0..count).map(|at| format!("{prefix}{at}")).collect();
    format!("{{{}}}", names.join(", "))
}

#[test]
fn wgmma_in_every_shape() {
    accepts(
        "wgmma.fence.sync.aligned;
         wgmma.commit_group.sync.aligned;
         wgmma.wait_group.sync.aligned 0;",
    );
    let types = [
        ("f32", "f16", "f16", 16, 2, true),
        ("f16", "f16", "f16", 16, 2, true),
        ("f32", "bf16", "bf16", 16, 2, true),
        ("f32", "tf32", "tf32", 8, 0, true),
        ("f32", "e4m3", "e5m2", 32, 0, true),
        ("f16", "e5m2", "e5m2", 32, 0, true),
        ("s32", "s8", "u8", 32, 0, false),
        ("s32", "b1", "b1", 256, 0, false),
    ];
    for (d, a, b, k, transposes, signs) in types {
        for n in (8..=256).step_by(8) {
            if d == "s32" && n > 24 && n % 16 != 0 {
                continue;
            }
            let count = if d == "f16" { n / 4 } else { n / 2 };
            let acc = registers("%f", count);
            let popc = if a == "b1" { ".and.popc" } else { "" };
            let shape = format!("wgmma.mma_async.sync.aligned.m64n{n}k{k}.{d}.{a}.{b}{popc}");
            let scale = if signs { ", 1, -1" } else { "" };
            let trans_ss = if transposes == 2 { ", 0, 1" } else { "" };
            let trans_rs = if transposes == 2 { ", 1" } else { "" };
            accepts(&format!("{shape} {acc}, %rd1, %rd2, %p1{scale}{trans_ss};"));
            accepts(&format!(
                "{shape} {acc}, {{%r1, %r2, %r3, %r4}}, %rd2, 1{scale}{trans_rs};"
            ));
        }
    }
}

#[test]
fn matrices() {
    accepts(
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r2];
         ldmatrix.sync.aligned.x4.trans.m8n8.shared.b16 {%r1, %r2, %r3, %r4}, [%r5+32];
         ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r1, %r2}, [%r3];
         ldmatrix.sync.aligned.m8n16.x2.shared.b8x16.b4x16_p64 {%r1, %r2}, [%r3];
         stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r5], {%r1, %r2, %r3, %r4};
         stmatrix.sync.aligned.m8n8.x4.trans.shared::cta.b16 [%r5], {%r1, %r2, %r3, %r4};
         stmatrix.sync.aligned.x4.trans.m8n8.shared.b16 [%r5], {%r1, %r2, %r3, %r4};
         stmatrix.sync.aligned.m16n8.x2.trans.shared.b8 [%r5], {%r1, %r2};
         movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r2;
         mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4};
         mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r7, %r8}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%r7, %r8};
         mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2}, {%r5}, {%f1, %f2, %f3, %f4};
         mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4};
         mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2}, {%r5}, {%f1, %f2, %f3, %f4};
         mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4};
         mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32 {%r11, %r12, %r13, %r14}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%r11, %r12, %r13, %r14};
         mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32 {%r11, %r12, %r13, %r14}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%r11, %r12, %r13, %r14};
         mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r11, %r12}, {%r1}, {%r5}, {%r11, %r12};
         mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {%r11, %r12, %r13, %r14}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%r11, %r12, %r13, %r14};
         mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%fd1, %fd2}, {%fd3}, {%fd4}, {%fd1, %fd2};
         mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%fd1, %fd2, %fd3, %fd4}, {%fd5, %fd6, %fd7, %fd8}, {%fd9, %fd10}, {%fd1, %fd2, %fd3, %fd4};
         mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8}, {%r1, %r2}, {%r5, %r6}, {%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8};
         mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6, %r7, %r8}, {%f1, %f2, %f3, %f4}, %r9, 0;
         mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e3m2.e2m1.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4};
         mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4}, %r7, {0, 1}, %r8, {2, 0};",
    );
}

/// What is refused, and what the message must say.
#[test]
fn refusals_name_the_cause() {
    let cases = [
        (
            "frobnicate.s32 %r1, %r2;",
            "instruction `frobnicate.s32` is not supported",
        ),
        (
            "tcgen05.wait::ld.sync.aligned;",
            "instruction `tcgen05.wait::ld` is not supported",
        ),
        (
            "add.wibble.s32 %r1, %r2, %r3;",
            "modifier `.wibble` is not supported here",
        ),
        ("add %r1, %r2, %r3;", "missing modifier: a type"),
        ("add.s32 %r1, %r2;", "expected 3 operands, found 2"),
        (
            "add.s32 %r1, %rd2, %r3;",
            "`%rd2` has 64 bits where 32 are needed",
        ),
        ("add.s32 %r1, %r2, %r999;", "`%r999` is not declared"),
        ("add.s32 nothing, %r2, %r3;", "`nothing` is not declared"),
        (
            "add.s32 5, %r2, %r3;",
            "expected a 32-bit register, found `5`",
        ),
        ("bra NOWHERE;", "`NOWHERE` is not declared"),
        ("{ L: } bra L;", "`L` is not declared"),
        ("L: L: bra L;", "`L` is declared twice"),
        (
            "@%r1 bra L; L:",
            "expected a predicate as guard, found `%r1`",
        ),
        ("mov.u32 %r1, %nonsense;", "`%nonsense` is not declared"),
        ("mov.u32 %r1, %tid.q;", "`%tid.q` is not declared"),
        (
            "mov.u32 %r1, table;",
            "the address of `table` needs 64 bits",
        ),
        (
            "ld.shared.u32 %r1, [table];",
            "`table` lies in another state space",
        ),
        (
            "ld.global.v4.u64 {%rd1, %rd2}, [%rd3];",
            "expected a vector of 4, found a vector of 2",
        ),
        (
            "st.const.u32 [factor], %r1;",
            "constant memory is not written",
        ),
        (
            "cvt.s32.f32 %r1, %f1;",
            "missing modifier: a rounding to integer",
        ),
        (
            "cvt.rn.e4m3x2.f32 %rs1, %f1, %f2;",
            "missing modifier: satfinite",
        ),
        (
            "setp.lo.f32 %p1, %f1, %f2;",
            "an unsigned comparison on a float type",
        ),
        (
            "setmaxnreg.inc.sync.aligned.u32 100;",
            "the register count is a multiple of 8 from 24 to 256",
        ),
        (
            "wgmma.mma_async.sync.aligned.m64n12k16.f32.f16.f16 {%f1}, %rd1, %rd2, 1, 1, 1, 0, 0;",
            "wgmma has no such shape for these types",
        ),
        (
            "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2}, %rd1, %rd2, 1, 1, 1, 0, 0;",
            "expected 4 registers, found a vector of 2",
        ),
        (
            "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd1, %rd2, 1, 2, 1, 0, 0;",
            "imm-scale must be 1 or -1",
        ),
        (
            "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.bf16 {%f1, %f2, %f3, %f4}, %rd1, %rd2, 1, 1, 1, 0, 0;",
            "wgmma does not multiply these types",
        ),
        (
            "cp.async.cg.shared.global [%r1], [%rd1], 8;",
            "cp.async copies 4, 8 or 16 bytes, and .cg 16 only",
        ),
        (
            "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2}], [%r3];",
            "2 coordinates are needed, found 1",
        ),
        (
            "cp.async.bulk.tensor.2d.global.global.bulk_group [%rd1, {%r1, %r2}], [%r3];",
            "no bulk copy goes from .global to .global",
        ),
        (
            "mbarrier.arrive.shared::cluster.b64 %rd1, [%r1];",
            "an arrive in shared::cluster gives no state: use `_`",
        ),
        (
            "shfl.bfly.b32 %r1, %r2, 1, 31;",
            "missing modifier: sync (sm_70 and later have no other form)",
        ),
        (
            "atom.global.min.f32 %f1, [%rd1], %f2;",
            "this atomic operation does not exist for this type",
        ),
        ("call.uni absent, ();", "`absent` is not declared"),
        (
            "{ .param .b32 a; call.uni twice, (a, a); }",
            "call passes 2 arguments and takes 0 results where the function has 1 and 1",
        ),
        (".local .b8 huge[1000000];", "local memory is too large"),
        (".reg .b32 %r<5>;", "`%r` is declared twice"),
        (
            ".global .b32 inner;",
            "declare .global and .const variables outside functions",
        ),
    ];
    for (line, message) in cases {
        match compile(&kernel(line)) {
            Err(CompileError::Lower(error)) => {
                assert_eq!(error.problem.to_string(), message, "{line}");
                assert!(error.ptx_line >= 13, "{line}: line {}", error.ptx_line);
            }
            other => panic!("{line}: {:?}", other.map(|_| "accepted")),
        }
    }
}

#[test]
fn an_error_names_instruction_and_both_lines() {
    let text = ".version 9.0\n.target sm_90a\n.file 1 \"kernel.cu\"\n.entry k() {\n\
                .reg .b32 %r<4>;\n.loc 1 42 5\nadd.odd.s32  %r1,\n %r2, %r3;\n}";
    let error = compile(text).expect_err("an unknown modifier");
    assert_eq!(
        error.to_string(),
        "ptx line 7 (kernel.cu:42): modifier `.odd` is not supported here \
         in `add.odd.s32 %r1, %r2, %r3`"
    );
}

#[test]
fn recursion_in_registers_and_missing_bodies_are_refused() {
    let recursive = ".version 9.0\n.func f(.reg .b32 x) { call f, (x); ret; }\n\
                     .entry k() { call f, (1); ret; }";
    let missing = ".version 9.0\n.extern .func g();\n.entry k() { call g; ret; }";
    let problem = |text: &str| match compile(text) {
        Err(CompileError::Lower(error)) => error.problem,
        other => panic!("{:?}", other.map(|_| "accepted")),
    };
    assert_eq!(problem(recursive), Problem::Recursion("f".into()));
    assert_eq!(problem(missing), Problem::NoBody("g".into()));
}
