use super::*;
use crate::diagnostic::{InputError, SourceFile};

const GOOD: &str = "question   = \"Which?\"
contenders = [\"two-pass\", \"pipelined[STAGES=2]\", \"pipelined\"]
baseline   = \"two-pass\"
[[shapes]]
m = 256
n = 4096
k = 7168
[[shapes]]
name = \"ragged\"
m = [40, 76]
n = 128
k = [256, 512]
[[grid]]
m = [1, 7]
n = [128, 256]
k = 256
[gate]
min_geomean = 1.4
max_smem = 204800
[jury]
candidates = [\"a\", \"b\"]
[[jury.juror]]
name = \"one\"
criteria = { zeal = 0.75, art = 0.25 }
scores = { b = [1, 2], a = [3, 4] }
announced = { a = 3.3 }
";

fn read(text: &str) -> Result<Round, InputError> {
    Round::from_source(SourceFile {
        path: "configs/x.toml".into(),
        text: text.into(),
    })
}

#[test]
fn shapes_of_every_spelling() {
    let round = read(GOOD).unwrap();
    let names: Vec<&str> = round.shapes.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "256x4096x7168",
            "ragged",
            "1x128x256",
            "1x256x256",
            "7x128x256",
            "7x256x256"
        ]
    );
    let ragged = &round.shapes[1].groups;
    let names = ragged.iter().map(|group| group.to_string());
    assert_eq!(names.collect::<Vec<_>>(), ["40x128x256", "76x128x512"]);
    assert_eq!(round.name, "x");
}

#[test]
fn selections_fix_none_or_some_parameters() {
    let round = read(GOOD).unwrap();
    assert!(round.contenders[0].params.is_empty());
    assert_eq!(round.contenders[1].variant, "pipelined");
    assert_eq!(round.contenders[1].params["STAGES"], 2);
    for bad in ["x[", "x[A]", "x[A=b]", "x[A=1,A=2]", "x[]"] {
        assert!(Selection::parse(bad, 0..0).is_err(), "{bad}");
    }
}

#[test]
fn criteria_keep_their_written_order() {
    let jury = read(GOOD).unwrap().jury.unwrap();
    assert_eq!(jury.jurors[0].criteria[0].0, "zeal");
    assert_eq!(jury.jurors[0].scores, [vec![3.0, 4.0], vec![1.0, 2.0]]);
    assert_eq!(jury.jurors[0].announced, [Some(3.3), None]);
}

#[test]
fn an_unknown_size_is_answered_with_the_sizes() {
    let error = read(&GOOD.replacen("k = 7168", "q = 7168", 1)).unwrap_err();
    assert_eq!(error.message(), "unknown key `q`");
    let remedy = error.remedy();
    assert!(remedy.contains("m, n, k"), "{remedy}");
    let error = read(&GOOD.replacen("k = 7168", "gruops = 7168", 1)).unwrap_err();
    assert!(error.remedy().contains("did you mean `groups`?"));
}

#[test]
fn every_mistake_is_placed() {
    let long = format!("{:?}", "x".repeat(201));
    let long_round = format!("name = {long}\nquestion ");
    let cases = [
        ("m = 256", "m = 0", "sizes start at 1"),
        ("m = 256", "m = -3", "sizes start at 1"),
        ("m = 256", "m = 2.5", "found floating point"),
        ("m = 256", "m = 4294967296", "beyond any memory"),
        ("n = 4096", "n = 100", "not a multiple of 128"),
        ("k = 7168", "k = 7000", "not a multiple of 256"),
        ("k = 7168\n", "", "`k` is missing"),
        ("n = 4096\nk = 7168\n", "", "`n` and `k` are missing"),
        (
            "k = 7168\n",
            "k = 7168\ngroups = [{ m = 1, n = 128, k = 256 }]\n",
            "either `groups`, or all of `m`, `n` and `k`",
        ),
        (
            "[[shapes]]\n",
            "yardstick = \"cutlass\"\n[[shapes]]\n",
            "unknown yardstick `cutlass`",
        ),
        (
            "m = [40, 76]",
            "m = [40, 76, 1]",
            "`k` has 2 entries and `m` has 3",
        ),
        ("m = [40, 76]", "m = []", "a shape of 0 groups"),
        ("name = \"ragged\"\n", "", "has no name"),
        ("\"ragged\"", "\"256x4096x7168\"", "a second shape named"),
        ("\"ragged\"", "\"../x\"", "cannot be a shape's name"),
        ("\"ragged\"", &long, "1 to 200 characters"),
        ("question ", &long_round, "1 to 200 characters"),
        (
            "[gate]",
            "[[pitch]]\ndesign = \"d\"\nidea = \"i\"\nclaim = [1, 1001]\n[gate]",
            "from 0.001 to 1000",
        ),
        ("min_geomean = 1.4", "min_geomean = nan", "out of range"),
        (
            "min_geomean = 1.4",
            "min_geomean = 1e308",
            "min_geomean = 1e308 is out of range",
        ),
        ("min_geomean", "min_gomean", "unknown key `min_gomean`"),
        ("[gate]", "[gates]", "unknown key `gates`"),
        (
            "max_smem = 204800",
            "counters = { atomics = 0 }",
            "atomics = 0 is out of range",
        ),
        (
            "max_smem = 204800",
            "counters = { bank_conflicts = 1 }",
            "`bank_conflicts` is not a counter",
        ),
        (
            "[gate]",
            "[measure]\nprocesses = 65\n[gate]",
            "processes = 65 is out of range",
        ),
        ("[gate]", "[validate]\nseed = -1\n[gate]", "a seed of -1"),
        (
            "[gate]",
            "[validate]\ndistributions = [\"full\", \"full\"]\n[gate]",
            "`full` is listed twice",
        ),
        (
            "[gate]",
            "[validate]\ndistributions = [\"ful\"]\n[gate]",
            "unknown value `ful`",
        ),
        (
            "\"pipelined[STAGES=2]\"",
            "\"pipelined[STAGES]\"",
            "not KEY=integer",
        ),
        (
            "[\"two-pass\", \"pipelined[STAGES=2]\", \"pipelined\"]",
            "[]",
            "no contenders",
        ),
        ("question   = \"Which?\"", "question = \"\"", "not one line"),
        ("0.75", "0.5", "weights add up to 0.75"),
        ("b = [1, 2]", "b = [1, 20]", "from 0 to 10"),
        ("b = [1, 2]", "c = [1, 2]", "not a candidate"),
        (
            "baseline   = \"two-pass\"",
            "baseline = 3",
            "expected a contender's name",
        ),
    ];
    for (from, to, expected) in cases {
        let text = GOOD.replacen(from, to, 1);
        assert_ne!(text, GOOD, "{from}");
        let error = read(&text).expect_err(to);
        assert!(error.message().contains(expected), "{to}: {error}");
        assert!(error.location().is_some() && !error.remedy().is_empty());
    }
}

#[test]
fn a_tolerance_that_passes_everything_is_refused() {
    let text = format!("{GOOD}[validate]\nrtol = 1.0\n");
    assert!(read(&text).unwrap_err().message().contains("rtol"));
}
