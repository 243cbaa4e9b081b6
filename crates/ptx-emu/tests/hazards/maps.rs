//! Tensor maps that a kernel writes: two proxy fences lie between the write and the copy.

use super::*;
use ptx_emu::{Fill, MapElement, Swizzle, TensorMap, Tiled};

/// Where in `in` the host has left a map of the first words of `in`.
pub(super) const AT: u64 = 32768;

pub(super) fn row(input: DevicePtr) -> TensorMap {
    let map = TensorMap::tiled(Tiled {
        element: MapElement::S32,
        address: input.0,
        dims: &[1024],
        strides: &[],
        box_dims: &[32],
        element_strides: &[1],
        swizzle: Swizzle::None,
        fill: Fill::Zero,
    });
    map.expect("a good map")
}

/// The map comes to shared memory, word by word.
const STAGED: &str = "setp.ge.u32 %p1, %r1, 32; @%p1 bra DONE;
     add.s64 %rd4, %rd8, %rd2; ld.global.u32 %r7, [%rd4+32768]; st.shared.u32 [%r2], %r7;
     add.s64 %rd6, %rd1, 32768; bar.warp.sync -1;";

const CP: &str =
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned";

const ACQUIRE: &str = "fence.proxy.tensormap::generic.acquire.gpu";

/// Lane 0 loads through the map at `%rd6`, and waits.
const LOADED: &str = "setp.ne.u32 %p2, %r19, 0; @%p2 bra DONE;
     mbarrier.init.shared::cta.b64 [%r5], 1; fence.mbarrier_init.release.cluster;
     mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r5], 128;
     add.u32 %r8, %r4, 1024;
     cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%r8], [%rd6, {0}], [%r5]; //here
     WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r5], 0; @!%p3 bra WAIT;
     ld.shared.u32 %r9, [%r8]; st.global.u32 [%rd1], %r9;
     DONE:";

#[test]
fn a_published_map_is_acquired() {
    let found = Planted::new(
        Hazard::ProxyFence,
        format!("{STAGED}\n{CP} [%rd6], [%r4], 128; //there\n<<{ACQUIRE} [%rd6], 128;>>\n{LOADED}"),
    )
    .check();
    assert!(found.remedy.contains("tensormap::generic.acquire"));
    assert_eq!((found.at.name.as_str(), found.at.offset), ("out", 32768));
}

#[test]
fn each_map_is_acquired_for_itself() {
    Planted::new(
        Hazard::ProxyFence,
        format!(
            "{STAGED}\n{CP} [%rd6], [%r4], 128; //there\nadd.s64 %rd7, %rd6, 128;
             {CP} [%rd7], [%r4], 128;\n<<{ACQUIRE} [%rd6], 128;||{ACQUIRE} [%rd7], 128;>>\n{LOADED}"
        ),
    )
    .check();
}

#[test]
fn a_written_map_is_released() {
    Planted::new(
        Hazard::ProxyFence,
        format!(
            "{STAGED}\nadd.s64 %rd7, %rd6, %rd2; st.global.u32 [%rd7], %r7; //there
             <<fence.proxy.tensormap::generic.release.gpu;>>\nbar.warp.sync -1;
             {ACQUIRE} [%rd6], 128;\n{LOADED}"
        ),
    )
    .check();
}

#[test]
fn an_acquire_counts_for_those_behind_it() {
    let body = format!(
        "setp.ge.u32 %p4, %r1, 32; @%p4 bra PUBLISHED;
         add.s64 %rd4, %rd8, %rd2; ld.global.u32 %r7, [%rd4+32768]; st.shared.u32 [%r2], %r7;
         add.s64 %rd6, %rd1, 32768; bar.warp.sync -1;
         {CP} [%rd6], [%r4], 128; //there
         <<{ACQUIRE} [%rd6], 128;>>
         PUBLISHED: bar.sync 0; setp.ne.u32 %p1, %r18, 1; @%p1 bra DONE; add.s64 %rd6, %rd1, 32768;
         {LOADED}"
    );
    Planted::new(Hazard::ProxyFence, body).check();
}
