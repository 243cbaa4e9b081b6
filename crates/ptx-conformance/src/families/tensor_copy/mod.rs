//! Tensor copies: 1D to 5D, every swizzle, boxes beyond every edge, stores, reductions,
//! multicast, and maps edited on the device.

mod loads;
mod maps;
mod stores;

use std::fmt::Write;

use crate::case::{Case, Launch, MapBuffer, MapSpec, MapType, Swizzle};
use crate::kernel::Kernel;
use crate::values::Ty::{self, *};

/// The family's cases.
pub(super) fn cases() -> Vec<Case> {
    [loads::cases(), stores::cases(), maps::cases()].concat()
}

/// Dumps `bytes` of the tile to the output at `offset`, 16 bytes a thread and turn.
fn dump(bytes: usize, offset: usize, label: &str) -> String {
    format!(
        "mul.lo.u32 %r10, %thread, 16;\nDUMP{label}:\nsetp.ge.u32 %p5, %r10, {bytes};\n@%p5 bra DUMPED{label};\nadd.u32 %r11, %r1, %r10;\n\
         ld.shared.v2.b64 {{%l10, %l11}}, [%r11];\ncvt.u64.u32 %l12, %r10;\nadd.u64 %l12, %l12, %out0;\nst.global.v2.b64 [%l12+{offset}], {{%l10, %l11}};\n\
         add.u32 %r10, %r10, 2048;\nbra DUMP{label};\nDUMPED{label}:\n"
    )
}

/// Fills `bytes` of the tile from the input, as a store's source or a load's background.
fn fill(bytes: usize, buffer: &str) -> String {
    format!(
        "mul.lo.u32 %r10, %thread, 16;\nFILL:\nsetp.ge.u32 %p5, %r10, {bytes};\n@%p5 bra FILLED;\nadd.u32 %r11, %r1, %r10;\ncvt.u64.u32 %l12, %r10;\n\
         add.u64 %l12, %l12, {buffer};\nld.global.v2.b64 {{%l10, %l11}}, [%l12];\nst.shared.v2.b64 [%r11], {{%l10, %l11}};\nadd.u32 %r10, %r10, 2048;\nbra FILL;\nFILLED:\n"
    )
}

/// Fills the tile with a pattern, so that bytes a load leaves alone are known.
fn clear(bytes: usize) -> String {
    format!(
        "mul.lo.u32 %r10, %thread, 16;\nmov.b64 %l10, 0x1122334455667788;\nCLEAR:\nsetp.ge.u32 %p5, %r10, {bytes};\n@%p5 bra CLEARED;\n\
         add.u32 %r11, %r1, %r10;\nst.shared.v2.b64 [%r11], {{%l10, %l10}};\nadd.u32 %r10, %r10, 2048;\nbra CLEAR;\nCLEARED:\n"
    )
}

const INIT: &str = "mov.u32 %r1, tile;\nmov.u32 %r0, bar;\nsetp.eq.u32 %p1, %thread, 0;\n@%p1 mbarrier.init.shared::cta.b64 [%r0], 1;\n\
    fence.mbarrier_init.release.cluster;\nfence.proxy.async.shared::cta;\nbar.sync 0;\nmov.b64 %l0, map0;\ncvta.param.u64 %l0, %l0;\n";

/// Waits for the barrier's phase, and traps after about 20 ms: a copy that signals another
/// number of bytes than expected is to fail, not to hang.
fn wait(label: &str, parity: usize) -> String {
    format!(
        "mov.b32 %r23, 0;\nWAIT{label}:\nmbarrier.test_wait.parity.shared::cta.b64 %p0, [%r0], {parity};\n@%p0 bra LANDED{label};\n\
         nanosleep.u32 1000;\nadd.u32 %r23, %r23, 1;\nsetp.lt.u32 %p0, %r23, 20000;\n@%p0 bra WAIT{label};\ntrap;\nLANDED{label}:\n"
    )
}

fn box_bytes(map: &MapSpec) -> usize {
    let elements: usize = map
        .extent
        .iter()
        .zip(&map.element_strides)
        .map(|(e, s)| e.div_ceil(*s) as usize)
        .product();
    elements * map.element.bytes()
}

/// Shared bytes a box may take: rows narrower than the swizzle are given its whole span.
fn tile_bytes(map: &MapSpec) -> usize {
    let row = map.extent[0] as usize * map.element.bytes();
    let pitch = match map.swizzle {
        Swizzle::None => row,
        swizzle => row.max(swizzle.span() as usize),
    };
    (box_bytes(map) / row * pitch).next_multiple_of(16)
}

fn buffer_bytes(map: &MapSpec) -> usize {
    match map.strides.last() {
        Some(&stride) => (stride * map.dims[map.dims.len() - 1]) as usize,
        None => map.dims[0] as usize * map.element.bytes(),
    }
}

/// Words that differ from their neighbours, so that a misplaced element shows.
fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes.div_ceil(2))
        .flat_map(|i| {
            (i as u16)
                .wrapping_mul(0x0101)
                .wrapping_add(i as u16 >> 8)
                .to_le_bytes()
        })
        .take(bytes)
        .collect()
}

fn coordinates(at: &[i32]) -> String {
    let words: Vec<String> = at.iter().map(i32::to_string).collect();
    format!("{{{}}}", words.join(", "))
}

fn declaration(bytes: usize) -> String {
    format!(
        ".shared .align 1024 .b8 tile[{}];\n.shared .align 8 .b64 bar;",
        bytes.max(16)
    )
}

/// Loads the box at each of `places` in turn and dumps what landed.
fn load(name: String, form: &str, map: MapSpec, places: &[&[i32]], input: Vec<u8>) -> Case {
    let bytes = box_bytes(&map);
    let slot = tile_bytes(&map);
    let mut body = format!(
        "{INIT}{}fence.proxy.async.shared::cta;\nbar.sync 0;\n",
        clear(slot)
    );
    for (turn, place) in places.iter().enumerate() {
        let _ = write!(
            body,
            "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r0], {bytes};\n@%p1 {form} [%r1], [%l0, {at}], [%r0];\n\
             {wait}{dump}\
             fence.proxy.async.shared::cta;\nbar.sync 0;\n",
            at = coordinates(place),
            wait = wait(&turn.to_string(), turn & 1),
            dump = dump(slot, turn * slot, &turn.to_string()),
        );
    }
    Kernel::new(name, Launch::single(128))
        .declare(&declaration(slot))
        .input(input)
        .output(places.len() * slot)
        .map(map)
        .body(&body)
        .case()
}

fn load_form(rank: usize) -> String {
    format!("cp.async.bulk.tensor.{rank}d.shared::cluster.global.mbarrier::complete_tx::bytes")
}

fn plain_load(label: &str, map: MapSpec, places: &[&[i32]]) -> Case {
    let form = load_form(map.dims.len());
    let input = pattern(buffer_bytes(&map));
    load(format!("{form}/{label}"), &form, map, places, input)
}

const INPUT: MapBuffer = MapBuffer::Input(0);

/// A tensor and box of each rank, with places inside, across the low edge, across the
/// high edge, and wholly outside. The innermost coordinate is a multiple of 16 bytes, as the
/// hardware demands.
fn ranked(rank: usize, buffer: MapBuffer) -> (MapSpec, Vec<Vec<i32>>) {
    let dims = [24, 10, 7, 5, 4];
    let extent = [16, 4, 3, 2, 2];
    let map = MapSpec::dense(buffer, MapType::U16, &dims[..rank], &extent[..rank]);
    let mut places = vec![vec![0; rank], [8, 3, 2, 1, 1][..rank].to_vec()];
    for axis in 0..rank {
        let mut low = vec![0; rank];
        low[axis] = -((extent[axis] / 2).max(1) as i32);
        let mut high = vec![0; rank];
        high[axis] = dims[axis] as i32 - (extent[axis] / 2).max(1) as i32;
        places.extend([low, high]);
    }
    places.push([-8, -1, -1, -1, -1][..rank].to_vec());
    places.push(vec![104; rank]);
    places.push([-104, 3, 2, 1, 1][..rank].to_vec());
    (map, places)
}
