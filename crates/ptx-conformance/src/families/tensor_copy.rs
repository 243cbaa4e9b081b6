//! Tensor copies: 1D to 5D, every swizzle, boxes beyond every edge, stores, reductions,
//! multicast, and maps edited on the device.

use std::fmt::Write;

use crate::case::{Case, Launch, MapBuffer, MapSpec, MapType, Swizzle};
use crate::kernel::Kernel;
use crate::values::Ty::{self, *};

/// The family's cases.
pub fn cases() -> Vec<Case> {
    [
        ranks(),
        swizzles(),
        element_types(),
        fills(),
        spellings(),
        multicasts(),
        stores(),
        reductions(),
        edited_maps(),
        refusals(),
    ]
    .concat()
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

fn ranks() -> Vec<Case> {
    (1..=5)
        .map(|rank| {
            let (map, places) = ranked(rank, INPUT);
            let places: Vec<&[i32]> = places.iter().map(Vec::as_slice).collect();
            plain_load("edges", map, &places)
        })
        .collect()
}

fn swizzles() -> Vec<Case> {
    let mut cases = Vec::new();
    for swizzle in Swizzle::ALL {
        let span = swizzle.span();
        for (inner_bytes, rows) in [(span, 8), (span, 24), (span / 2, 16), (span, 3), (16, 16)] {
            let inner = inner_bytes / 2;
            if inner < 8 {
                continue;
            }
            let map =
                MapSpec::dense(INPUT, MapType::F16, &[96, 40], &[inner, rows]).swizzled(swizzle);
            let places: [&[i32]; 4] = [&[0, 0], &[24, 5], &[-8, -2], &[88, 37]];
            let label = format!("swizzle-{}-box-{inner_bytes}Bx{rows}", swizzle.label());
            if cases.iter().all(|c: &Case| !c.name.ends_with(&label)) {
                cases.push(plain_load(&label, map, &places));
            }
        }
        let map =
            MapSpec::dense(INPUT, MapType::U8, &[160, 12, 5], &[span, 4, 3]).swizzled(swizzle);
        cases.push(plain_load(
            &format!("swizzle-{}-bytes", swizzle.label()),
            map,
            &[&[0, 0, 0], &[16, 9, 3], &[-16, -1, -1]],
        ));
        let map = MapSpec::dense(INPUT, MapType::F32, &[64, 20], &[span / 4, 20]).swizzled(swizzle);
        cases.push(plain_load(
            &format!("swizzle-{}-words", swizzle.label()),
            map,
            &[&[0, 0], &[60, 11]],
        ));
    }
    // Rows wider apart than they are long, and every second row.
    let mut padded = MapSpec::dense(INPUT, MapType::U16, &[40, 12], &[32, 8]);
    padded.strides = vec![112];
    cases.push(plain_load("padded-rows", padded, &[&[0, 0], &[24, 7]]));
    let mut strided = MapSpec::dense(INPUT, MapType::U16, &[40, 24], &[32, 8]);
    strided.element_strides = vec![1, 2];
    cases.push(plain_load(
        "every-second-row",
        strided,
        &[&[0, 0], &[8, 3], &[0, 19], &[0, -3]],
    ));
    cases
}

/// Floats that each element type could alter on the way: subnormals, NaNs, long mantissas.
fn floats(bytes: usize) -> Vec<u8> {
    let edges = F32.edges();
    F32.pack(
        &(0..bytes / 4)
            .map(|i| edges[i % edges.len()] ^ (i as u64 & 0x1fff))
            .collect::<Vec<_>>(),
    )
}

fn element_types() -> Vec<Case> {
    [
        ("u8", MapType::U8),
        ("u16", MapType::U16),
        ("u32", MapType::U32),
        ("s32", MapType::S32),
        ("u64", MapType::U64),
        ("s64", MapType::S64),
        ("f16", MapType::F16),
        ("bf16", MapType::Bf16),
        ("f32", MapType::F32),
        ("f64", MapType::F64),
        ("f32-ftz", MapType::F32Ftz),
        ("tf32", MapType::Tf32),
        ("tf32-ftz", MapType::Tf32Ftz),
    ]
    .into_iter()
    .map(|(label, element)| {
        let form = load_form(2);
        let inner = 64 / element.bytes() as u32;
        let sixteen = 16 / element.bytes() as i32;
        let map = MapSpec::dense(INPUT, element, &[u64::from(inner) * 2, 6], &[inner, 4]);
        let input = floats(buffer_bytes(&map));
        load(
            format!("{form}/element-{label}"),
            &form,
            map,
            &[&[0, 0], &[sixteen, 4], &[-sixteen, -1]],
            input,
        )
    })
    .collect()
}

fn fills() -> Vec<Case> {
    [
        ("f16", MapType::F16),
        ("bf16", MapType::Bf16),
        ("f32", MapType::F32),
        ("f64", MapType::F64),
        ("tf32", MapType::Tf32),
        ("f32-ftz", MapType::F32Ftz),
    ]
    .into_iter()
    .map(|(label, element)| {
        let inner = 64 / element.bytes() as u32;
        let sixteen = 16 / element.bytes() as i32;
        let mut map = MapSpec::dense(INPUT, element, &[u64::from(inner) * 2, 6], &[inner, 4])
            .swizzled(Swizzle::B64);
        map.nan_fill = true;
        let form = load_form(2);
        let input = vec![0x3c; buffer_bytes(&map)];
        load(
            format!("{form}/nan-fill-{label}"),
            &form,
            map,
            &[&[0, 0], &[-sixteen, -1], &[inner as i32 * 2 - sixteen, 4]],
            input,
        )
    })
    .collect()
}

fn spellings() -> Vec<Case> {
    let map = || MapSpec::dense(INPUT, MapType::U16, &[64, 16], &[32, 8]).swizzled(Swizzle::B64);
    let input = || pattern(buffer_bytes(&map()));
    let tile = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes";
    let cta = "cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes";
    let cta_tile = "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes";
    let mut cases: Vec<Case> = [tile, cta, cta_tile]
        .into_iter()
        .map(|form| load(form.to_owned(), form, map(), &[&[0, 0], &[40, 12]], input()))
        .collect();
    let bytes = box_bytes(&map());
    let wait = wait("", 0);
    let hinted = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint";
    let prefetch = "cp.async.bulk.prefetch.tensor.2d.L2.global.tile";
    for (name, setup, copy) in [
        (
            hinted,
            "createpolicy.fractional.L2::evict_first.b64 %l5;\n",
            format!("{hinted} [%r1], [%l0, {{16, 4}}], [%r0], %l5;"),
        ),
        (
            prefetch,
            "@%p1 cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%l0, {16, 4}];\n",
            format!("{tile} [%r1], [%l0, {{16, 4}}], [%r0];"),
        ),
        (
            "prefetch.tensormap",
            "@%p1 prefetch.tensormap [%l0];\n",
            format!("{tile} [%r1], [%l0, {{16, 4}}], [%r0];"),
        ),
    ] {
        cases.push(
            Kernel::new(name, Launch::single(128))
                .declare(&declaration(bytes))
                .input(input())
                .output(bytes)
                .map(map())
                .body(&format!("{INIT}{setup}@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r0], {bytes};\n@%p1 {copy}\n{wait}{}", dump(bytes, 0, "")))
                .case(),
        );
    }
    cases
}

/// One CTA loads for several; each receiver waits on its own barrier at the same offset.
fn multicasts() -> Vec<Case> {
    let mut cases = Vec::new();
    for (ctas, mask, issuer) in [
        (2u32, 0b11u32, 0u32),
        (4, 0b1111, 3),
        (4, 0b1010, 0),
        (8, 0b1011_0001, 5),
    ] {
        for hint in [false, true] {
            let mut form = format!("{}.multicast::cluster", load_form(2));
            let mut operands = "[%r1], [%l0, {8, -2}], [%r0], %h0".to_owned();
            if hint {
                form.push_str(".L2::cache_hint");
                operands.push_str(", %l5");
            }
            let map =
                MapSpec::dense(INPUT, MapType::U16, &[64, 16], &[64, 8]).swizzled(Swizzle::B128);
            let bytes = box_bytes(&map);
            let rendezvous = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";
            let input = pattern(buffer_bytes(&map));
            cases.push(
                Kernel::new(format!("{form}/mask-{mask:b}-of-{ctas}"), Launch::one_cluster(ctas, 128))
                    .declare(&declaration(bytes))
                    .input(input)
                    .output(bytes * ctas as usize)
                    .map(map)
                    .body(&format!(
                        "{INIT}{rendezvous}createpolicy.fractional.L2::evict_first.b64 %l5;\nmov.u32 %r9, %cluster_ctarank;\nmov.b32 %r8, {mask};\nshr.u32 %r8, %r8, %r9;\n\
                         and.b32 %r8, %r8, 1;\nsetp.ne.u32 %p2, %r8, 0;\nand.pred %p3, %p1, %p2;\n@%p3 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r0], {bytes};\n\
                         setp.eq.and.u32 %p4, %r9, {issuer}, %p1;\nmov.b16 %h0, {mask};\n@%p4 {form} {operands};\n@!%p2 bra OVER;\n\
                         {wait}mad.wide.u32 %out0, %r9, {bytes}, %out0;\n{}OVER:\n{rendezvous}",
                        dump(bytes, 0, ""),
                        wait = wait("", 0)
                    ))
                    .case(),
            );
        }
    }
    cases
}

const COMMIT: &str = "@%p1 cp.async.bulk.commit_group;\n@%p1 cp.async.bulk.wait_group 0;\n";

/// Fills the tile from the input and issues `issue` from one thread.
fn send(name: String, map: MapSpec, input: Vec<u8>, target: Vec<u8>, issue: &str) -> Case {
    let bytes = box_bytes(&map).next_multiple_of(16);
    Kernel::new(name, Launch::single(128))
        .declare(&declaration(bytes))
        .input(input)
        .output_from(target)
        .map(map)
        .body(&format!(
            "{INIT}{}fence.proxy.async.shared::cta;\nbar.sync 0;\n{issue}{COMMIT}",
            fill(bytes, "%in0")
        ))
        .case()
}

fn stores() -> Vec<Case> {
    let mut cases = Vec::new();
    let target = |map: &MapSpec| vec![0xcd; buffer_bytes(map)];
    for rank in 1..=5 {
        let form = format!("cp.async.bulk.tensor.{rank}d.global.shared::cta.bulk_group");
        let (map, places) = ranked(rank, MapBuffer::Output(0));
        for (label, place) in [
            ("inside", &places[1]),
            ("high-edge", &places[3]),
            ("far-edge", &places[1 + 2 * rank]),
            ("outside", &places[3 + 2 * rank]),
        ] {
            let issue = format!("@%p1 {form} [%l0, {}], [%r1];\n", coordinates(place));
            let input = pattern(box_bytes(&map).next_multiple_of(16));
            cases.push(send(
                format!("{form}/{label}"),
                map.clone(),
                input,
                target(&map),
                &issue,
            ));
        }
    }
    for swizzle in Swizzle::ALL {
        let form = "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group";
        let map = MapSpec::dense(
            MapBuffer::Output(0),
            MapType::F16,
            &[72, 20],
            &[swizzle.span() / 2, 16],
        )
        .swizzled(swizzle);
        let issue = format!("@%p1 {form} [%l0, {{8, 7}}], [%r1];\n");
        let input = pattern(box_bytes(&map));
        cases.push(send(
            format!("{form}/swizzle-{}", swizzle.label()),
            map.clone(),
            input,
            target(&map),
            &issue,
        ));
    }
    let hinted = "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group.L2::cache_hint";
    let map = MapSpec::dense(MapBuffer::Output(0), MapType::U32, &[32, 8], &[16, 4]);
    let issue = format!(
        "createpolicy.fractional.L2::evict_first.b64 %l5;\n@%p1 {hinted} [%l0, {{4, 2}}], [%r1], %l5;\n"
    );
    cases.push(send(
        hinted.to_owned(),
        map.clone(),
        pattern(box_bytes(&map)),
        target(&map),
        &issue,
    ));
    cases
}

fn reductions() -> Vec<Case> {
    let mut cases = Vec::new();
    for (op, label, element, ty) in [
        ("add", "u32", MapType::U32, U32),
        ("add", "s32", MapType::S32, S32),
        ("add", "u64", MapType::U64, U64),
        ("add", "f16", MapType::F16, F16),
        ("add", "bf16", MapType::Bf16, Bf16),
        ("add", "f32", MapType::F32, F32),
        ("min", "u32", MapType::U32, U32),
        ("min", "s32", MapType::S32, S32),
        ("min", "f16", MapType::F16, F16),
        ("max", "s64", MapType::S64, S64),
        ("max", "u32", MapType::U32, U32),
        ("max", "bf16", MapType::Bf16, Bf16),
        ("inc", "u32", MapType::U32, U32),
        ("dec", "u32", MapType::U32, U32),
        ("and", "u32", MapType::U32, U32),
        ("or", "u32", MapType::U32, U32),
        ("xor", "u64", MapType::U64, U64),
    ] {
        let form =
            format!("cp.reduce.async.bulk.tensor.2d.global.shared::cta.{op}.tile.bulk_group");
        let inner = 64 / element.bytes() as u32;
        let sixteen = 16 / element.bytes() as i32;
        let map = MapSpec::dense(
            MapBuffer::Output(0),
            element,
            &[u64::from(inner) + 8, 10],
            &[inner, 8],
        )
        .swizzled(Swizzle::B64);
        let values = |ty: Ty, bytes: usize, stride: usize| {
            let edges = ty.edges();
            ty.pack(
                &(0..bytes / ty.bytes())
                    .map(|i| edges[i * stride % edges.len()])
                    .collect::<Vec<_>>(),
            )
        };
        let issue = format!("@%p1 {form} [%l0, {{{sixteen}, 4}}], [%r1];\n");
        let (source, target) = (
            values(ty, box_bytes(&map), 5),
            values(ty, buffer_bytes(&map), 1),
        );
        cases.push(send(format!("{form}/{label}"), map, source, target, &issue));
    }
    for rank in [1, 3, 4, 5] {
        let form = format!("cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.add.bulk_group");
        let (map, places) = ranked(rank, MapBuffer::Output(0));
        let map = MapSpec {
            element: MapType::U32,
            ..MapSpec::dense(map.buffer, MapType::U32, &map.dims, &map.extent)
        };
        let issue = format!("@%p1 {form} [%l0, {}], [%r1];\n", coordinates(&places[3]));
        let (source, target) = (pattern(box_bytes(&map)), pattern(buffer_bytes(&map)));
        cases.push(send(format!("{form}/u32"), map, source, target, &issue));
    }
    cases
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
