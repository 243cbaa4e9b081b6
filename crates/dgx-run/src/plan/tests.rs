use std::path::PathBuf;

use super::*;
use dgx_core::config::target::{self, default_device};
use dgx_core::diagnostic::SourceFile;
use dgx_core::domain::Distribution;

const VARIANT: &str = "/*dgx
summary  = \"x\"
arch     = \"sm_90a\"
params   = { STAGES = [1, 2] }
requires = [\"k % BK == 0\"]
tiles    = \"cdiv(m, BM) * (n / BN)\"
order    = \"-m\"
tune     = { choose = { BN = [128, 64] }, minimise = \"cdiv(sum(tiles), sms) * BN\" }
[const]
BM = 128
BK = 512
[[scratch]]
name  = \"half_a\"
bytes = \"m * k * 2\"
[[scratch]]
name  = \"ticket\"
bytes = 4
per   = \"call\"
zero  = true
[[map]]
name    = \"A\"
tensor  = \"a\"
box     = [64, \"BM\"]
swizzle = \"none\"
[[map]]
name    = \"H\"
tensor  = \"half_a\"
dims    = [\"k\", \"m\"]
box     = [64, \"BM\"]
swizzle = \"128B\"
[[launch]]
kernel = \"go\"
grid   = [\"sum(tiles)\", \"groups\"]
block  = 128
smem   = \"STAGES * 1024\"
*/
";

fn plan_of(
    variant: &str,
    shapes: &str,
    contenders: &str,
    machine: PlanTarget,
) -> Result<Plan, InputError> {
    plan_within(variant, shapes, contenders, machine, Steps::MOST_IN_ALL)
}

fn plan_within(
    variant: &str,
    shapes: &str,
    contenders: &str,
    machine: PlanTarget,
    steps: u64,
) -> Result<Plan, InputError> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.cu"), variant).unwrap();
    let catalog = Catalog::open(&[PathBuf::from(folder.path())]).unwrap();
    let text = format!(
        "question = \"?\"\ncontenders = {contenders}\nbaseline = \"x[STAGES=1]\"\n{shapes}"
    );
    let file = SourceFile {
        path: "r.toml".into(),
        text: text.into(),
    };
    Plan::within(Round::from_source(file)?, &catalog, &machine, steps)
}

const RAGGED: &str = "[[shapes]]\nname = \"r\"\nm = [40, 300]\nn = 256\nk = 512\n";

#[test]
fn a_ragged_call_in_numbers() {
    let plan = plan_of(VARIANT, RAGGED, "[\"x\"]", PlanTarget::of(default_device())).unwrap();
    assert_eq!(plan.contenders.len(), 2);
    assert_eq!(plan.builds.len(), 2);
    let PlanOutcome::Run { build, call } = &plan.cells[1].outcome else {
        panic!("supported");
    };
    // BN = 64 halves the width of a tile and still fits one wave.
    assert_eq!(plan.builds[*build].constants["BN"], 64);
    for (name, value) in [("SCRATCH_HALF_A", "0"), ("MAP_H", "1"), ("MAPS", "2")] {
        let define = (name.to_owned(), value.to_owned());
        assert!(plan.builds[*build].unit.defines.contains(&define), "{name}");
    }
    assert_eq!(call.group_order, [1, 0], "largest m first");
    assert_eq!(call.tile_begin, [0, 12]);
    assert_eq!(call.tile_count, 16);
    assert_eq!(
        call.scratch[0].size,
        ScratchSize::PerGroup(vec![300 * 1024, 40 * 1024])
    );
    assert_eq!(call.scratch[1].size, ScratchSize::PerCall(4));
    assert_eq!(call.maps[0].groups[1].dims, [256, 40]);
    assert_eq!(call.maps[1].groups[0].strides, [1024]);
    assert_eq!(call.launches[0].grid, [16, 2, 1]);
    assert_eq!(call.launches[0].smem, 2048);
    let json = serde_json::to_string(call).unwrap();
    assert_eq!(serde_json::from_str::<OperatorCall>(&json).unwrap(), *call);
}

#[test]
fn tiles_are_dealt_by_their_cost() {
    let variant = VARIANT
        .replacen("tune ", "deal = { workers = 3, cost = \"m\" }\ntune ", 1)
        .replacen(
            "cdiv(sum(tiles), sms) * BN",
            "BN == 64 ? makespan : makespan + 1",
            1,
        )
        .replacen("BM = 128", "BM = 512", 1);
    let plan = plan_of(
        &variant,
        RAGGED,
        "[\"x\"]",
        PlanTarget::of(default_device()),
    )
    .unwrap();
    let PlanOutcome::Run { build, call } = &plan.cells[0].outcome else {
        panic!("supported");
    };
    // BN = 128: two tiles of 300 and two of 40, done after 300. BN = 64: four
    // and four, after 600.
    assert_eq!(plan.builds[*build].constants["BN"], 128);
    assert!(!plan.builds[*build].constants.contains_key("makespan"));
    assert_eq!(call.tile_begin, [0, 2]);
    // Worker 0 has tile 0, worker 1 tile 1, worker 2 tiles 2 and 3; 4 is no tile.
    let deal = TileLists {
        workers: 3,
        tiles: vec![4, 4, 3, 4, 4, 4],
        cost: 680,
        makespan: 300,
    };
    assert!((deal.evenness() - 680.0 / 900.0).abs() < 1e-9);
    assert_eq!(call.deal, Some(deal));
}

/// Dealing a million tiles once is cheap; a variant that requests it many times fails its own cells
/// and does not take the user's evening.
#[test]
fn dealing_counts_as_steps() {
    let dealt = VARIANT
        .replacen("tune ", "deal = { workers = 3, cost = 1 }\ntune ", 1)
        .replacen("cdiv(sum(tiles), sms) * BN", "makespan", 1)
        .replacen("\"cdiv(m, BM) * (n / BN)\"", "5000", 1);
    // Two groups, for two choices and once more for the better one.
    let plan = |steps| {
        plan_within(
            &dealt,
            RAGGED,
            "[\"x\"]",
            PlanTarget::of(default_device()),
            steps,
        )
    };
    assert!(plan(40_000).is_ok());
    let failure = plan(25_000).map(|_| ()).unwrap_err();
    assert!(failure.message().contains("more steps"), "{failure}");
}

#[test]
fn a_contender_has_so_many_steps_over_all_shapes() {
    let shapes = |count: usize| -> String {
        let shape = |n| format!("[[shapes]]\nm = {n}\nn = 256\nk = 512\n");
        (1..=count).map(shape).collect()
    };
    let plan = |count| {
        plan_within(
            VARIANT,
            &shapes(count),
            "[\"x\"]",
            PlanTarget::of(default_device()),
            2000,
        )
    };
    assert!(plan(1).is_ok());
    let failure = plan(100).map(|_| ()).unwrap_err();
    assert!(failure.message().contains("more steps"), "{failure}");
}

#[test]
fn a_let_is_what_stands_in_its_place() {
    let written_out = VARIANT
        .replacen(
            "tune ",
            "deal = { workers = 3, cost = \"cdiv(m, BM)\" }\ntune ",
            1,
        )
        .replacen(
            "box     = [64, \"BM\"]",
            "box     = [\"cdiv(m, BM)\", \"BM\"]",
            1,
        )
        .replacen("BK = 512", "BK = 512\nMOST = \"most(cdiv(m, BM))\"", 1);
    let named = written_out.replace("cdiv(m, BM)", "rows").replacen(
        "[const]",
        "[let]\nrows = \"cdiv(m, BM)\"\n[const]",
        1,
    );
    let [one, other] = [written_out, named].map(|variant| {
        plan_of(
            &variant,
            RAGGED,
            "[\"x\"]",
            PlanTarget::of(default_device()),
        )
        .unwrap()
    });
    assert!(matches!(one.cells[0].outcome, PlanOutcome::Run { .. }));
    assert_eq!(one.cells, other.cells);
    let constants = |plan: &Plan| plan.builds[0].constants.clone();
    assert_eq!(constants(&one), constants(&other));
    let unmet = VARIANT.replacen("k % BK == 0", "rows < 2", 1).replacen(
        "[const]",
        "let = { rows = \"cdiv(m, BM)\" }\n[const]",
        1,
    );
    let plan = plan_of(&unmet, RAGGED, "[\"x\"]", PlanTarget::of(default_device())).unwrap();
    let PlanOutcome::Unsupported { reason } = &plan.cells[0].outcome else {
        panic!("unsupported");
    };
    assert_eq!(reason, "requires rows < 2, but rows = 3 in group 1");
}

/// Of two picks the cheaper runs; one that rules the shape out is not offered.
#[test]
fn a_picker_with_costs_runs_the_cheapest_that_can() {
    let picker = "/*dgx
summary = \"p\"
arch    = \"sm_90a\"
[[pick]]
contender = \"x[STAGES=1]\"
cost      = [{ ns = 2.5, of = \"1000\" }, { ns = 4, of = \"sum(m)\" }]
[[pick]]
contender = \"x[STAGES=2]\"
cost      = [{ ns = 1000, of = \"STAGES\" }, { ns = 3, of = \"sum(m) + 500 * STAGES\" }]
[[pick]]
contender = \"few\"
cost      = [{ ns = 0, of = \"minimum\" }]
*/
";
    let few = VARIANT
        .replace("k % BK == 0", "m <= 2")
        .replace("STAGES = [1, 2]", "STAGES = [3]");
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("x", VARIANT), ("p", picker), ("few", &few)] {
        std::fs::write(folder.path().join(format!("{name}.cu")), text).unwrap();
    }
    let catalog = Catalog::open(&[PathBuf::from(folder.path())]).unwrap();
    let shape = |m: u32| format!("[[shapes]]\nm = {m}\nn = 256\nk = 512\n");
    let text = format!(
        "question = \"?\"\ncontenders = [\"p\"]\nbaseline = \"p\"\n{}{}{}",
        shape(2),
        shape(100),
        shape(3000)
    );
    let file = SourceFile {
        path: "r.toml".into(),
        text: text.into(),
    };
    let round = Round::from_source(file).unwrap();
    let shape = round.shapes[0].clone();
    let machine = PlanTarget::of(default_device());
    let plan = Plan::new(round, &catalog, &machine).unwrap();
    let stages = plan.cells.iter().map(|cell| match &cell.outcome {
        PlanOutcome::Run { build, .. } => plan.builds[*build].constants["STAGES"],
        _ => 0,
    });
    assert_eq!(stages.collect::<Vec<_>>(), [3, 1, 2]);
    // An image for another tiling is not what would run today.
    let variant = catalog.variant("p").unwrap();
    let known = Known::default();
    let offers = offers(&variant, &shape, &machine, &known, &Steps::default()).unwrap();
    let last = offers.unwrap().pop().unwrap();
    let mut constants = plan.builds[0].constants.clone();
    constants.insert("OTHER".to_owned(), 7);
    assert!(last.agrees(&constants));
    constants.insert("BN".to_owned(), 7);
    assert!(!last.agrees(&constants));
}

#[test]
fn a_picker_runs_what_it_picks() {
    let picker = "/*dgx
summary = \"p\"
arch    = \"sm_90a\"
[[pick]]
contender = \"y[STAGES=1]\"
[[pick]]
contender = \"x[STAGES=2]\"
when      = \"most(m) > 100 && sms == 132\"
[[pick]]
contender = \"x[STAGES=1]\"
when      = \"groups == 1\"
*/
";
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.cu"), VARIANT).unwrap();
    std::fs::write(folder.path().join("p.cu"), picker).unwrap();
    // A contender that does not run on the device is skipped.
    let other = VARIANT.replace("sm_90a", "sm_100a");
    std::fs::write(folder.path().join("y.cu"), other).unwrap();
    let catalog = Catalog::open(&[PathBuf::from(folder.path())]).unwrap();
    let shapes = "[[shapes]]\nm = 7\nn = 256\nk = 512\n\
        [[shapes]]\nname = \"few\"\nm = [7, 8]\nn = 256\nk = 512\n";
    let text = format!(
        "question = \"?\"\ncontenders = [\"p\", \"x\"]\nbaseline = \"p\"\n{RAGGED}{shapes}"
    );
    let file = SourceFile {
        path: "r.toml".into(),
        text: text.into(),
    };
    let plan = Plan::new(
        Round::from_source(file).unwrap(),
        &catalog,
        &PlanTarget::of(default_device()),
    )
    .unwrap();
    let work = |contender: usize, shape: usize| &plan.cells[contender * 3 + shape].outcome;
    let (PlanOutcome::Run { build, call }, PlanOutcome::Run { call: same, .. }) =
        (work(0, 0), work(2, 0))
    else {
        panic!("supported");
    };
    assert_eq!(call, same, "on the ragged shape as x[STAGES=2]");
    assert_eq!(plan.builds[*build].contender.as_str(), "p");
    assert_eq!(plan.builds[*build].constants["STAGES"], 2);
    let PlanOutcome::Run { build, .. } = work(0, 1) else {
        panic!("supported");
    };
    assert_eq!(plan.builds[*build].constants["STAGES"], 1);
    let PlanOutcome::Unsupported { reason } = work(0, 2) else {
        panic!("nobody of its picks runs");
    };
    let told = "it picks y[STAGES=1]: it is compiled for sm_100a and runs nowhere else";
    assert!(reason.starts_with(told), "{reason}");
    let remedy = "; --target b200 emulates it";
    assert!(reason.ends_with(remedy), "{reason}");
}

#[test]
fn what_a_variant_rules_out_is_a_cell_with_a_reason() {
    let shapes = "[[shapes]]\nm = 1\nn = 128\nk = 256\n";
    let plan = plan_of(VARIANT, shapes, "[\"x\"]", PlanTarget::of(default_device())).unwrap();
    let PlanOutcome::Unsupported { reason } = &plan.cells[0].outcome else {
        panic!("k is no multiple of BK");
    };
    assert_eq!(reason, "requires k % BK == 0, but k = 256, BK = 512");
    assert!(plan.builds.is_empty());
}

#[test]
fn names_that_do_not_resolve_point_into_the_round() {
    let cases = [
        ("[\"y\"]", "there is no variant `y`"),
        ("[\"../x\"]", "a name is not a path"),
        ("[\"x[STAGE=1]\"]", "no parameter `STAGE`"),
        ("[\"x[STAGES=9]\"]", "no STAGES = 9"),
        ("[\"x\", \"x[STAGES=1]\"]", "selected twice"),
    ];
    for (contenders, expected) in cases {
        let error = plan_of(
            VARIANT,
            RAGGED,
            contenders,
            PlanTarget::of(default_device()),
        )
        .unwrap_err();
        assert!(error.message().contains(expected), "{error}");
        assert!(error.location().unwrap().starts_with("r.toml:2:"));
    }
}

#[test]
fn expressions_that_fail_point_into_the_cu() {
    let cases = [
        (
            "\"STAGES * 1024\"",
            "\"1 / (STAGES - 1)\"",
            "division by zero",
        ),
        ("\"STAGES * 1024\"", "\"-STAGES\"", "out of range"),
        ("\"STAGES * 1024\"", "\"m\"", "ambiguous"),
        ("\"m * k * 2\"", "\"m * 9223372036854775807\"", "overflows"),
        (
            "order ",
            "deal = { workers = 3, cost = \"-m\" }\norder ",
            "a tile's cost of -",
        ),
        (
            "order ",
            "deal = { workers = \"groups / 9\", cost = 1 }\norder ",
            "`deal.workers` is 0",
        ),
    ];
    for (from, to, expected) in cases {
        let variant = VARIANT.replacen(from, to, 1);
        let error = plan_of(
            &variant,
            RAGGED,
            "[\"x\"]",
            PlanTarget::of(default_device()),
        )
        .unwrap_err();
        assert!(error.message().contains(expected), "{error}");
        assert!(error.location().unwrap().contains("x.cu:"), "{error}");
    }
}

#[test]
fn a_shape_beyond_memory_is_refused_at_its_line() {
    let mut device = default_device().clone();
    device.limits.memory = Bytes(1 << 20);
    let shapes = "[[shapes]]\nm = 4096\nn = 4096\nk = 4096\n";
    let error = plan_of(VARIANT, shapes, "[\"x\"]", PlanTarget::of(&device)).unwrap_err();
    assert!(error.message().contains("does not fit"), "{error}");
}

#[test]
fn a_baseline_outside_the_list_competes_too() {
    let plan = plan_of(
        VARIANT,
        RAGGED,
        "[\"x[STAGES=2]\"]",
        PlanTarget::of(default_device()),
    )
    .unwrap();
    let ids: Vec<&str> = plan.contenders.iter().map(|c| c.id.as_str()).collect();
    assert_eq!(ids, ["x[STAGES=2]", "x[STAGES=1]"]);
}

#[test]
fn a_call_beyond_the_hosts_memory_is_a_row() {
    let small = PlanTarget {
        host: Some(Bytes(1 << 20)),
        ..PlanTarget::of(default_device())
    };
    let shapes = "[[shapes]]\nm = 4096\nn = 4096\nk = 4096\n";
    let plan = plan_of(VARIANT, shapes, "[\"x\"]", small).unwrap();
    assert!(!plan.runs(0));
    let PlanOutcome::Unsupported { reason } = &plan.cells[0].outcome else {
        panic!("{:?}", plan.cells[0]);
    };
    assert!(
        reason.contains("of host memory, 1.0 MiB is free"),
        "{reason}"
    );
}

#[test]
fn code_for_another_chip_is_a_cell_with_a_reason_and_is_not_compiled() {
    let blackwell = target::find("b200").unwrap();
    let plan = plan_of(VARIANT, RAGGED, "[\"x\"]", PlanTarget::of(&blackwell)).unwrap();
    assert!(plan.builds.is_empty());
    for cell in &plan.cells {
        let PlanOutcome::Unsupported { reason } = &cell.outcome else {
            panic!("{cell:?}");
        };
        assert!(reason.contains("sm_90a"), "{reason}");
        assert!(reason.contains("this device is sm_100"), "{reason}");
    }
    let plain = VARIANT.replacen("sm_90a", "sm_90", 1);
    let plan = plan_of(&plain, RAGGED, "[\"x\"]", PlanTarget::of(&blackwell)).unwrap();
    assert!(plan.runs(0), "PTX runs on later chips");
}

#[test]
fn scales_of_blackwell_are_drawn_without_a_sign_wherever_data_are() {
    let drawn = |device: &str| {
        let round = format!(
            "{RAGGED}[validate]\ndistributions = [\"corner\"]\n[measure]\ndistribution = \"corner\"\n"
        );
        let machine = target::find(device).unwrap();
        let plan = plan_of(VARIANT, &round, "[\"x\"]", PlanTarget::of(&machine)).unwrap();
        let validated = plan.round.validation.distributions[0];
        (validated, plan.round.measurement.distribution)
    };
    let (signed, unsigned) = (Distribution::Corner, Distribution::CornerUnsigned);
    assert_eq!(drawn("h200"), (signed, signed));
    assert_eq!(drawn("b200"), (unsigned, unsigned));
}

#[test]
fn packed_elements_have_strides_in_bytes() {
    let map = "[[map]]\nname = \"P\"\ntensor = \"a\"\ntype = \"u4\"\nbox = [256, 8]\nswizzle = \"128B\"\n\
               [[map]]\nname = \"S\"\ntensor = \"sfa_atoms\"\nbox = [256, 4, 1]\nswizzle = \"none\"\n*/";
    let variant = VARIANT.replacen("*/", map, 1);
    let plan = plan_of(
        &variant,
        RAGGED,
        "[\"x\"]",
        PlanTarget::of(default_device()),
    )
    .unwrap();
    let PlanOutcome::Run { call, .. } = &plan.cells[0].outcome else {
        panic!("{:?}", plan.cells[0]);
    };
    let map = |name| call.maps.iter().find(|m| m.name == name).unwrap();
    let nibbles = &map("P").groups[0];
    assert_eq!(
        (&*nibbles.dims, &*nibbles.strides),
        (&[512, 300][..], &[256][..])
    );
    let atoms = &map("S").groups[0];
    assert_eq!(
        (&*atoms.dims, &*atoms.strides),
        (&[256, 8, 3][..], &[512, 4096][..])
    );
}

mod mutated {
    use proptest::prelude::*;

    use super::*;
    use dgx_core::diagnostic::render;

    /// Random text for a file.
    const SCRAPS: [&str; 24] = [
        "",
        "\"",
        "[",
        "]",
        "=",
        "\n",
        "0",
        "-1",
        "9223372036854775807",
        "1e999",
        "nan",
        "sum(",
        ")",
        " / 0",
        "% 0",
        "m",
        "tiles",
        "\u{1b}[2J",
        "µ",
        "\\u0000",
        "*/",
        "((((((((",
        "4096",
        "[[launch]]\n",
    ];

    fn boundary(text: &str, mut at: usize) -> usize {
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    }

    fn mutate(text: &str, edits: &[(usize, usize, usize)]) -> String {
        let mut text = text.to_owned();
        for (at, len, scrap) in edits {
            let start = boundary(&text, at % (text.len() + 1));
            let end = boundary(&text, (start + len).min(text.len()));
            text.replace_range(start..end.max(start), SCRAPS[scrap % SCRAPS.len()]);
        }
        text
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn a_round_and_a_variant_are_read_or_refused(
            variant_edits in proptest::collection::vec((0..4000_usize, 0..12_usize, 0..24_usize), 0..4),
            shape_edits in proptest::collection::vec((0..4000_usize, 0..12_usize, 0..24_usize), 0..3),
        ) {
            let variant = mutate(VARIANT, &variant_edits);
            let shapes = mutate(RAGGED, &shape_edits);
            if let Err(error) = plan_of(&variant, &shapes, "[\"x\"]", PlanTarget::of(default_device())) {
                let shown = render(&error, false);
                prop_assert!(!shown.contains('\u{1b}'), "{}", shown);
            }
        }
    }
}
