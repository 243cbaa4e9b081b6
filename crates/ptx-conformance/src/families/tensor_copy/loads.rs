//! From global into shared memory.

use super::*;

/// Loads.
pub(super) fn cases() -> Vec<Case> {
    [
        ranks(),
        swizzles(),
        element_types(),
        fills(),
        spellings(),
        multicasts(),
    ]
    .concat()
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
