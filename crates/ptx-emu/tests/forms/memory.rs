//! Memory, atomics, control flow, barriers and copies.

use crate::accepts;

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

#[test]
fn textures() {
    accepts(
        "tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r1}];
         tex.2d.v4.u32.f32 {%r1, %r2, %r3, %r4}, [%rd1, {%f1, %f2}];
         tex.3d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f1, %f2, %f3, %f3}];
         tex.a2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%r1, %f2, %f3, %f3}];
         tex.level.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f1, %f2}], %f5;
         tld4.r.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f1, %f2}];
         suld.b.2d.v2.b32.trap {%r1, %r2}, [%rd1, {%r3, %r4}];
         suld.b.1d.b8.clamp %rs1, [%rd1, {%r1}];
         sust.b.3d.v4.b32.zero [%rd1, {%r1, %r2, %r3, %r3}], {%r1, %r2, %r3, %r4};",
    );
}
