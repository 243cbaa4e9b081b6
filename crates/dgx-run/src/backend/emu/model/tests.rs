use super::*;
use dgx_core::operator;
use dgx_core::record::synthetic::group;

use dgx_core::config::target::default_device;

fn geometry(blocks: u32) -> LaunchGeometry {
    LaunchGeometry {
        kernel: "k".to_owned(),
        grid: [blocks, 1, 1],
        block: [128, 1, 1],
        cluster: [1; 3],
        smem: 0,
        pdl: false,
        ..LaunchGeometry::default()
    }
}

#[test]
fn the_first_and_the_last_cta_are_watched_and_some_between() {
    let groups = [7, 9].map(|m| group(m, 128, 256));
    let watched = |blocks| {
        watch(
            &geometry(blocks),
            (operator::default_operator(), &groups),
            4,
            true,
        )
        .ctas
    };
    assert_eq!(watched(1), [0]);
    assert_eq!(watched(2), [0, 1]);
    assert_eq!(watched(6), [0, 1, 2, 3, 4, 5]);
    assert_eq!(watched(132), [0, 26, 52, 78, 104, 131]);
}

#[test]
fn more_are_watched_where_some_take_longer_than_others() {
    let watched = |depths: &[u32]| {
        let groups = depths.iter().map(|&k| group(1, 128, k));
        watch(
            &geometry(132),
            (operator::default_operator(), &groups.collect::<Vec<_>>()),
            4,
            true,
        )
        .ctas
        .len()
    };
    assert_eq!(watched(&[256, 256]), 6);
    assert_eq!(watched(&[256, 512, 256]), 12);
    assert_eq!(watched(&[256, 512, 768, 1024, 1280, 1536]), 24);
}

#[test]
fn more_are_watched_where_each_group_has_the_ctas_of_the_largest() {
    let watched = |rows: &[u32], grid: [u32; 3]| {
        let groups: Vec<Group> = rows.iter().map(|&m| group(m, 128, 256)).collect();
        let geometry = LaunchGeometry {
            grid,
            ..geometry(1)
        };
        let operator = operator::default_operator();
        watch(&geometry, (operator, &groups), 4, true).ctas.len()
    };
    let rows = [100, 1, 7];
    assert_eq!(watched(&rows, [50, 3, 1]), 24);
    assert_eq!(watched(&rows, [3, 50, 1]), 24);
    assert_eq!(watched(&rows, [50, 2, 1]), 6, "no side counts groups");
    assert_eq!(watched(&[7; 3], [50, 3, 1]), 6, "all are alike");
    let many: Vec<u32> = (1..65).collect();
    assert_eq!(watched(&many, [50, 64, 1]), 96);
}

#[test]
fn between_two_that_are_watched_one_is_drawn() {
    let watch = |only| {
        watch(
            &geometry(132),
            (operator::default_operator(), &[group(7, 128, 256)]),
            4,
            only,
        )
    };
    let all: Vec<Vec<u64>> = (0..200).map(|key| drawn(&watch(false), key)).collect();
    for ctas in &all {
        assert_eq!(ctas.len(), 5);
        let fixed = watch(false).ctas;
        for (ends, cta) in fixed.windows(2).zip(ctas) {
            assert!((ends[0] + 1..ends[1]).contains(cta), "{ctas:?}");
        }
    }
    let seen: HashSet<u64> = all.into_iter().flatten().collect();
    assert!(seen.len() > 120, "{}", seen.len());
    assert_eq!(drawn(&watch(true), 7).len(), DRAWN_ALONE);
    let few = Watch {
        ctas: vec![0, 1, 2],
        only: false,
    };
    assert!(drawn(&few, 7).is_empty());
}

#[test]
fn the_longer_time_counts_where_drawn_ctas_take_longer() {
    let call = |micros: f64| CallTimes {
        micros,
        clock_mhz: 1000.0,
        launches: Vec::new(),
    };
    let told = |whole, drawn| {
        let found = longer(call(10.0), call(whole), || Ok(call(drawn)), 5);
        found.map(|(call, said)| (call.micros, said))
    };
    assert_eq!(told(11.0, 20.0), Ok((10.0, None)), "it repeats");
    assert_eq!(told(8.0, 8.0), Ok((10.0, None)));
    let (micros, said) = told(16.0, 19.0).unwrap();
    assert_eq!(micros, 19.0, "the fixed ones do not shorten it");
    let said = said.unwrap();
    let words = "outside the fixed sample take longer: 19.0 µs by 5 of them, 10.0 µs without";
    assert!(said.contains(words), "{said}");
    assert_eq!(told(19.0, 14.0).unwrap().0, 19.0);
    assert!(told(16.0, 20.5).unwrap_err().contains("20.5 µs"));
}

#[test]
fn a_time_that_no_run_file_holds_is_none() {
    assert_eq!(possible(11.0), Ok(()));
    for micros in [0.0, 2e9, f64::NAN, f64::INFINITY] {
        let why = possible(micros).unwrap_err();
        assert!(why.contains("is no time: 0.001 to 1e9"), "{why}");
    }
}

fn ended(geometry: &LaunchGeometry, trace: Trace) -> EndedLaunch<'_> {
    EndedLaunch {
        geometry,
        report: Report {
            counters: ptx_emu::Counters::default(),
            most: ptx_emu::Most::default(),
            seed: 0,
            ctas_per_sm: 1,
            early_read: None,
            printed: Vec::new(),
        },
        whole: trace.clone(),
        trace,
        hazards: Vec::new(),
        wake: Wake::default(),
        unwatched: Bytes(0),
    }
}

#[test]
fn a_cubin_that_says_nothing_gives_a_reason_and_no_time() {
    let geometry = geometry(1);
    let ended = ended(&geometry, Trace::default());
    let image = Image {
        key: String::new(),
        ptx: String::new(),
        cubin: b"no cubin".to_vec(),
        kernels: Vec::new(),
        remarks: Vec::new(),
    };
    let why = modelled(default_device(), &image, &[ended]).unwrap_err();
    assert!(why.contains("cubin cannot be read"), "{why}");
}
