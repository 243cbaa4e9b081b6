//! Arithmetic, comparisons, conversions and moves.

use crate::accepts;

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

/// What Blackwell adds; every line was assembled by ptxas 13.4 for the target it is given here.
#[test]
fn blackwell_forms() {
    accepts(
        "ld.global.v8.b32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd1];
         ld.global.L2::evict_last.v8.f32 {%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8}, [%rd1];
         ld.global.v8.s32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, _}, [%rd1];
         ld.global.nc.L1::no_allocate.L2::evict_first.L2::256B.v4.u64 {%rd1, %rd2, %rd3, %rd4}, [%rd1];
         ld.relaxed.gpu.global.v8.b32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd1];
         ld.v8.b32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd1];
         ld.global.v4.f64 {%fd1, %fd2, %fd3, %fd4}, [%rd1];
         st.global.L2::evict_last.v8.b32 [%rd1], {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8};
         add.rz.ftz.f32x2 %rd1, %rd2, %rd3;
         sub.rm.f32x2 %rd1, %rd2, %rd3;
         fma.rp.ftz.f32x2 %rd1, %rd2, %rd3, %rd4;
         max.ftz.NaN.abs.f32 %f1, %f2, %f3, %f4;
         min.NaN.f32 %f1, %f2, %f3, %f4;
         redux.sync.max.abs.NaN.f32 %f1, %f2, -1;
         cvt.rn.satfinite.relu.e2m1x2.f32 %c1, %f1, %f2;
         cvt.rn.satfinite.e2m1x2.f16x2 %c1, %r1;
         cvt.rn.satfinite.e2m3x2.bf16x2 %rs1, %r1;
         cvt.rn.relu.f16x2.e3m2x2 %r1, %rs1;
         cvt.rz.satfinite.ue8m0x2.f32 %rs1, %f1, %f2;
         cvt.rp.ue8m0x2.bf16x2 %rs1, %r1;
         cvt.rn.bf16x2.ue8m0x2 %r1, %rs1;
         cvt.rs.relu.satfinite.f16x2.f32 %r1, %f1, %f2, %r2;
         cvt.rs.bf16x2.f32 %r1, %f1, %f2, %r2;
         cvt.rs.satfinite.e2m1x4.f32 %rs1, {%f1, %f2, %f3, %f4}, %r2;
         cvt.rs.relu.satfinite.e2m3x4.f32 %r1, {%f1, %f2, %f3, %f4}, %r2;
         cvt.rs.satfinite.e5m2x4.f32 %r1, {%f1, %f2, %f3, %f4}, %r2;
         cvt.rn.satfinite.tf32.f32 %r1, %f1;
         cvt.rn.satfinite.e4m3x2.bf16x2 %rs1, %r1;
         cvt.rn.bf16x2.e4m3x2 %r1, %rs1;
         cvt.rn.bf16x2.e2m1x2 %r1, %c1;
         cvt.rn.scaled::n2::ue8m0.bf16x2.e2m1x2 %r1, %c1, %rs2;
         cvt.rn.satfinite.s2f6x2.f32 %rs1, %f1, %f2;
         cvt.rn.satfinite.scaled::n2::ue8m0.s2f6x2.f32 %rs1, %f1, %f2, %rs2;
         cvt.rn.bf16x2.s2f6x2 %r1, %rs1;
         st.bulk.weak.shared::cta [%r1], %rd1, 0;
         st.async.mmio.release.sys.global.u32 [%rd1], %r1;
         red.async.mmio.release.sys.global.add.u32 [%rd1], %r1;
         mbarrier.arrive.expect_tx.relaxed.cluster.shared::cluster.b64 _, [%r1], %r2;
         mbarrier.try_wait.relaxed.cta.shared::cta.b64 %p1, [%r1], %rd1;
         mbarrier.test_wait.parity.relaxed.cluster.shared::cta.b64 %p1, [%r1], %r2;
         mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r1], %r2;
         clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r1], [%r2];
         clusterlaunchcontrol.try_cancel.async.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 [%rd1], [%rd2];
         clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p1, %q1;
         clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r1, %r2, %r3, %r4}, %q1;
         clusterlaunchcontrol.query_cancel.get_first_ctaid::z.b32.b128 %r1, %q1;
         cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r3, %r4, %r5, %r6}], [%r7];
         cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [%rd1, {%r2, %r3, %r4, %r5, %r6}], [%r7];
         cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%r1], [%rd1, {%r2, %r3}], [%r7], %rd2;
         cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster.cta_group::2.L2::cache_hint [%r1], [%rd1, {%r2, %r3, %r4}], [%r7], %rs1, %rd2;
         cp.async.bulk.prefetch.tensor.2d.L2.global.tile::gather4 [%rd1, {%r2, %r3, %r4, %r5, %r6}];
         cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%rd1], [%r1], %r2, %rs1;
         ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8 {%r1, %r2, %r3, %r4}, [%r5];
         ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8x16.b4x16_p64 {%r1, %r2, %r3, %r4}, [%r5];
         ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8x16.b6x16_p32 {%r1, %r2}, [%r5];
         multimem.ld_reduce.relaxed.gpu.global.add.acc::f16.v4.e4m3x4 {%r1, %r2, %r3, %r4}, [%rd1];
         multimem.ld_reduce.relaxed.gpu.global.min.v2.e5m2x2 {%rs1, %rs2}, [%rd1];
         multimem.st.relaxed.gpu.global.e4m3x4 [%rd1], %r1;
         ldmatrix.sync.aligned.m8n16.x4.shared.b8x16.b6x16_p32 {%r1, %r2, %r3, %r4}, [%r5];
         stmatrix.sync.aligned.m16n8.x4.trans.shared.b8 [%r5], {%r1, %r2, %r3, %r4};
         fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;
         fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;
         tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%r1], 15;
         tensormap.replace.tile.swizzle_atomicity.shared::cta.b1024.b32 [%r1], 1;
         mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e3m2.e2m1.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4};
         mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4}, %r7, {0, 1}, %r8, {0, 0};
         mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4}, {%r7}, {%rs1, %rs2}, {%r8}, {%rs1, %rs2};
         mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e3m2.e2m1.f32.ue8m0 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4}, %r7, {3, 1}, %r8, {2, 3};",
    );
}
