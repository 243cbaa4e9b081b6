//! Maps edited on the device, and maps that are refused.

use super::stores::send;
use super::*;

/// Edited and refused maps.
pub(super) fn cases() -> Vec<Case> {
    [edited_maps(), refusals()].concat()
}

/// A map copied to shared memory, edited there, published to global memory and used.
fn edited_maps() -> Vec<Case> {
    let edits: &[(&str, &str, &str)] = &[
        (
            "global_address",
            "tensormap.replace.tile.global_address.shared::cta.b1024.b64",
            "[%r20], %l20",
        ),
        (
            "global_dim",
            "tensormap.replace.tile.global_dim.shared::cta.b1024.b32",
            "[%r20], 1, 5",
        ),
        (
            "global_stride",
            "tensormap.replace.tile.global_stride.shared::cta.b1024.b64",
            "[%r20], 0, 192",
        ),
        (
            "box_dim",
            "tensormap.replace.tile.box_dim.shared::cta.b1024.b32",
            "[%r20], 1, 4",
        ),
        (
            "element_stride",
            "tensormap.replace.tile.element_stride.shared::cta.b1024.b32",
            "[%r20], 1, 2",
        ),
        (
            "rank",
            "tensormap.replace.tile.rank.shared::cta.b1024.b32",
            "[%r20], 0",
        ),
        (
            "elemtype",
            "tensormap.replace.tile.elemtype.shared::cta.b1024.b32",
            "[%r20], 10",
        ),
        (
            "interleave_layout",
            "tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32",
            "[%r20], 0",
        ),
        (
            "swizzle_mode",
            "tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32",
            "[%r20], 2",
        ),
        (
            "fill_mode",
            "tensormap.replace.tile.fill_mode.shared::cta.b1024.b32",
            "[%r20], 1",
        ),
    ];
    edits
        .iter()
        .map(|(label, form, operands)| edited_map(label, form, operands))
        .collect()
}

fn edited_map(label: &str, form: &str, operands: &str) -> Case {
    let map = MapSpec::dense(INPUT, MapType::F16, &[48, 16], &[32, 8]);
    // Both edits halve the box.
    let bytes = if matches!(label, "box_dim" | "element_stride") {
        box_bytes(&map) / 2
    } else {
        box_bytes(&map)
    };
    let fence =
        "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned";
    let acquire = "fence.proxy.tensormap::generic.acquire.gpu";
    let input = pattern(4 * buffer_bytes(&map));
    let publish = format!(
        "mov.u32 %r20, staging;\nadd.u64 %l20, %in0, 1024;\nsetp.lt.u32 %p6, %thread, 32;\n@!%p6 bra PUBLISHED;\nmad.lo.u32 %r21, %thread, 4, %r20;\nmul.wide.u32 %l21, %thread, 4;\nadd.u64 %l21, %l21, %l0;\n\
         ld.b32 %r22, [%l21];\nst.shared.b32 [%r21], %r22;\nbar.warp.sync 0xffffffff;\n@%p1 {form} {operands};\nbar.warp.sync 0xffffffff;\nmov.u64 %l22, published;\n\
         {fence} [%l22], [%r20], 128;\nPUBLISHED:\nbar.sync 0;\nmov.u64 %l22, published;\ncvta.global.u64 %l0, %l22;\n{acquire} [%l0], 128;\n"
    );
    // A map of rank 1 is read with one coordinate; the box is then one row.
    let (rank, at, bytes) = if label == "rank" {
        (1, "{8}", 64)
    } else {
        (2, "{24, 3}", bytes)
    };
    Kernel::new(format!("{form}/{label}"), Launch::single(128))
        .forms([form, fence, acquire])
        .module(".global .align 128 .b8 published[128];")
        .declare(&declaration(bytes))
        .declare(".shared .align 128 .b8 staging[128];")
        .input(input)
        .output(bytes)
        .map(map)
        .body(&format!(
            "{INIT}{publish}@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r0], {bytes};\n@%p1 {load} [%r1], [%l0, {at}], [%r0];\n\
             {wait}{dump}",
            wait = wait("", 0),
            load = load_form(rank),
            dump = dump(bytes, 0, "")
        ))
        .case()
}

/// Places the hardware may refuse: what it says about each is the answer.
fn refusals() -> Vec<Case> {
    let mut cases = Vec::new();
    for (label, element, place) in [
        ("unaligned-halves", MapType::U16, [3, 0]),
        ("unaligned-words", MapType::F32, [1, 0]),
        ("unaligned-negative", MapType::U16, [-3, 0]),
    ] {
        let map = MapSpec::dense(INPUT, element, &[48, 16], &[16, 8]);
        cases.push(plain_load(label, map, &[&place]));
    }
    let form = "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group";
    for (label, place) in [
        ("unaligned", [3, 0]),
        ("negative-inner", [-8, 0]),
        ("negative-outer", [0, -1]),
    ] {
        let map = MapSpec::dense(MapBuffer::Output(0), MapType::U16, &[48, 16], &[16, 8]);
        let issue = format!("@%p1 {form} [%l0, {}], [%r1];\n", coordinates(&place));
        let (source, target) = (pattern(box_bytes(&map)), vec![0xcd; buffer_bytes(&map)]);
        cases.push(send(format!("{form}/{label}"), map, source, target, &issue));
    }
    cases
}
