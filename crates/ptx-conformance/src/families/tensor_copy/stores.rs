//! From shared into global memory, plain and reducing.

use super::*;

/// Stores and reductions.
pub(super) fn cases() -> Vec<Case> {
    [stores(), reductions()].concat()
}

const COMMIT: &str = "@%p1 cp.async.bulk.commit_group;\n@%p1 cp.async.bulk.wait_group 0;\n";

/// Fills the tile from the input and issues `issue` from one thread.
pub(super) fn send(
    name: String,
    map: MapSpec,
    input: Vec<u8>,
    target: Vec<u8>,
    issue: &str,
) -> Case {
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
