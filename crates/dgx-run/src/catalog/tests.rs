use std::path::Path;

use super::*;

const GOOD: &str = "/*dgx
summary = \"two of everything\"
arch    = \"sm_90a\"
params  = { STAGES = [1, 3], BN = [64] }
tiles   = \"cdiv(m, BM)\"
[const]
ZED = 4
BM  = \"ZED * 32\"
[[scratch]]
name  = \"half_a\"
bytes = \"m * k * 2\"
[[map]]
name    = \"A\"
tensor  = \"half_a\"
dims    = [\"k\", \"m\"]
box     = [64, \"BM\"]
swizzle = \"128B\"
[[launch]]
kernel = \"go\"
grid   = [\"sum(tiles)\", 2]
block  = 128
*/
";

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

/// Constants and `let`s, in the order they become known.
fn definitions(variant: &Variant) -> Vec<&str> {
    let definitions = variant.definitions.iter();
    definitions.map(|d| d.name.as_str()).collect()
}

fn open(folder: &Path) -> Catalog {
    Catalog::open(&[folder.to_owned()]).unwrap()
}

fn error_of(text: &str) -> InputError {
    let folder = folder(&[("x.cu", text)]);
    open(folder.path()).variant("x").unwrap_err()
}

#[test]
fn parameters_expand_in_the_order_listed() {
    let folder = folder(&[("x.cu", GOOD)]);
    let variant = open(folder.path()).variant("x").unwrap();
    let ids: Vec<String> = variant
        .contenders(&BTreeMap::new())
        .iter()
        .map(|c| c.id.to_string())
        .collect();
    assert_eq!(ids, ["x[BN=64,STAGES=1]", "x[BN=64,STAGES=3]"]);
    let fixed = BTreeMap::from([("STAGES".to_owned(), 3)]);
    assert_eq!(variant.contenders(&fixed).len(), 1);
}

#[test]
fn constants_follow_those_they_name() {
    let folder = folder(&[("x.cu", GOOD)]);
    let variant = open(folder.path()).variant("x").unwrap();
    assert_eq!(definitions(&variant), ["ZED", "BM"]);
}

#[test]
fn a_broken_variant_hurts_only_who_names_it() {
    let folder = folder(&[("x.cu", GOOD), ("y.cu", "int main;")]);
    let catalog = open(folder.path());
    assert!(catalog.variant("x").is_ok());
    let error = catalog.variant("y").unwrap_err();
    assert!(error.message().contains("front matter"));
}

#[test]
fn names_are_never_paths() {
    let folder = folder(&[("x.cu", GOOD)]);
    let catalog = open(folder.path());
    for name in ["../x", "/etc/x", "a/b", "..", "", "x\u{1b}[31m"] {
        let error = catalog.variant(name).unwrap_err();
        assert!(error.message().contains("cannot be a variant"), "{error}");
    }
    assert_eq!(
        catalog.variant("xx").unwrap_err().remedy(),
        "did you mean `x`?"
    );
}

#[test]
fn no_name_is_longer_than_a_run_file_takes() {
    let [most, more] = [200, 201].map(|length| "n".repeat(length));
    let plain = GOOD.replacen("params  = { STAGES = [1, 3], BN = [64] }\n", "", 1);
    let folder = folder(&[
        (&format!("{most}.cu"), &plain),
        (&format!("{more}.cu"), &plain),
    ]);
    let catalog = open(folder.path());
    assert!(catalog.variant(&most).is_ok());
    let error = catalog.variant(&more).unwrap_err();
    assert!(error.message().contains("1 to 200 characters"), "{error}");
}

#[test]
fn nobody_is_called_as_the_yardstick_is() {
    for name in ["cublas", "cuBLAS", "CUBLAS", "cu-blas", "cublas.", "copy"] {
        let folder = folder(&[("x.cu", GOOD), (&format!("{name}.cu"), GOOD)]);
        let refused = match Catalog::open(&[folder.path().to_owned()]) {
            Ok(catalog) => catalog.variant(name).unwrap_err(),
            Err(refused) => refused,
        };
        let message = refused.message();
        assert!(message.contains("that is a yardstick's name"), "{message}");
        assert!(message.contains(name), "{message}");
    }
}

#[test]
fn mistakes_are_placed_in_the_cu() {
    let (tiles, long) = ("tiles", &*"S".repeat(200));
    let cases = [
        (("ZED = 4", "ZED = \"BM\""), "`BM` is not known yet here"),
        (("ZED = 4", "ZED = \"tiles\""), "`tiles` is not known yet"),
        (("ZED = 4", "m = 4"), "already has a meaning"),
        (("ZED = 4", "STAGES = 4"), "defined twice"),
        (("ZED = 4", "MAP_A = 4"), "already has a meaning"),
        (("[1, 3]", "[1, 1]"), "different values"),
        (("[1, 3]", "[]"), "different values"),
        (("STAGES", long), "1 to 200 characters"),
        (
            (tiles, "claim = { geomean = 1001, over = \"y\" }\ntiles"),
            "no speedup",
        ),
        (
            (tiles, "claim = { geomean = 1e300, over = \"y\" }\ntiles"),
            "no speedup",
        ),
        (
            (tiles, "claim = { geomean = 0.0005, over = \"y\" }\ntiles"),
            "no speedup",
        ),
        (
            (tiles, "claim = { geomean = nan, over = \"y\" }\ntiles"),
            "no speedup",
        ),
        (
            ("\"half_a\"\ndims", "\"half_b\"\ndims"),
            "no tensor `half_b`",
        ),
        (("[64, \"BM\"]", "[64]"), "a box of 1 dimensions"),
        (("dims    = [\"k\", \"m\"]\n", ""), "no default `dims`"),
        (("\"128B\"", "\"256B\""), "unknown value `256B`"),
        (("[\"sum(tiles)\", 2]", "[1, 1, 1, 1]"), "4 dimensions"),
        (("sum(tiles)", "sum(tiles"), "is missing here"),
        (("block ", "blok "), "unknown key `blok`"),
        (("tiles   = \"cdiv(m, BM)\"\n", ""), "unknown name `tiles`"),
        (
            (
                "tiles   = \"cdiv(m, BM)\"\n",
                "deal = { workers = 1, cost = 1 }\n",
            ),
            "`deal` without `tiles`",
        ),
        (("ZED = 4", "makespan = 4"), "already has a meaning"),
        (("ZED = 4", "ZED = \"makespan\""), "unknown name `makespan`"),
        (
            ("summary = \"two of everything\"\n", ""),
            "`summary` is missing",
        ),
    ];
    for ((from, to), expected) in cases {
        let text = GOOD.replacen(from, to, 1);
        assert_ne!(text, GOOD, "{from}");
        let error = error_of(&text);
        assert!(error.message().contains(expected), "{error}");
        assert!(error.location().is_some(), "{error}");
    }
}

#[test]
fn a_pick_names_one_contender_that_picks_nobody() {
    let head = "/*dgx\nsummary = \"p\"\narch = \"sm_90a\"\n";
    let pick = |what: &str| format!("{head}[[pick]]\ncontender = \"{what}\"\n*/\n");
    let cost =
        |term: &str| format!("{head}[[pick]]\ncontender = \"x[STAGES=1]\"\ncost = [{term}]\n*/\n");
    let both = GOOD.replacen("[[launch]]", "[[pick]]\ncontender = \"x\"\n[[launch]]", 1);
    let cases = [
        (pick("xx"), "there is no variant `xx`"),
        (pick("x"), "`x` is 2 contenders"),
        (pick("x[STAGES=2]"), "`x` has no STAGES = 2"),
        (pick("x[DEPTH=2]"), "no parameter `DEPTH`"),
        (pick("p"), "picks others itself"),
        (both, "of its own"),
        (pick("x[STAGES=1]\"\nwhen = \"wide"), "unknown name `wide`"),
        (cost("{ ns = 1, of = \"wide\" }"), "unknown name `wide`"),
        (cost("{ ns = -1, of = \"m\" }"), "-1 ns is no cost"),
        (
            cost(&"{ ns = 1, of = \"m\" },".repeat(11)),
            "a cost of 11 terms, 10 at most",
        ),
        (
            cost("{ ns = 1, of = \"m\" }")
                .replace("*/", "[[pick]]\ncontender = \"x[STAGES=3]\"\n*/"),
            "a pick without `cost`",
        ),
    ];
    for (text, expected) in cases {
        let folder = folder(&[("x.cu", GOOD), ("p.cu", &text)]);
        let error = open(folder.path()).variant("p").unwrap_err();
        assert!(error.message().contains(expected), "{error}");
        assert!(error.location().is_some(), "{error}");
    }
    let folder = folder(&[("x.cu", GOOD), ("p.cu", &pick("x[STAGES=3]"))]);
    let picker = open(folder.path()).variant("p").unwrap();
    assert_eq!(picker.picks[0].contender.id.as_str(), "x[BN=64,STAGES=3]");
}

/// `x` is GOOD, and `y` extends it with `more`.
fn extending(more: &str) -> Result<Arc<Variant>, InputError> {
    let child = format!("/*dgx\nsummary = \"y\"\nextend = \"x\"\n{more}*/\n");
    let folder = folder(&[("x.cu", GOOD), ("y.cu", &child)]);
    open(folder.path()).variant("y")
}

#[test]
fn what_is_not_said_anew_is_the_extended_variants() {
    let variant = extending("").unwrap();
    assert_eq!(variant.arch, "sm_90a");
    assert_eq!(variant.parent.as_deref(), Some("x"));
    assert_eq!(variant.summary, "y");
    assert_eq!(variant.contenders(&BTreeMap::new()).len(), 2);
    assert_eq!(definitions(&variant), ["ZED", "BM"]);
    assert_eq!(variant.maps[0].operand, OperandRef::Scratch(0));
    assert_eq!(variant.launches[0].grid[0].text, "sum(tiles)");
    assert!(variant.extended[0].contains("two of everything"));
}

#[test]
fn a_name_takes_the_place_of_the_extended_one() {
    // A parameter is fixed.
    let variant = extending("const = { NEW = \"BM\", BM = \"ZED\", STAGES = 2 }\n").unwrap();
    assert_eq!(definitions(&variant), ["ZED", "BM", "NEW", "STAGES"]);
    assert_eq!(variant.definitions[1].formula.text, "ZED");
    assert_eq!(variant.params.keys().collect::<Vec<_>>(), ["BN"]);
    // A constant becomes a parameter, or is tuned.
    let variant = extending("params = { ZED = [1, 2] }\n").unwrap();
    assert_eq!(variant.contenders(&BTreeMap::new()).len(), 4);
    assert_eq!(definitions(&variant), ["BM"]);
    let tune = "tune = { choose = { ZED = [1, 2] }, minimise = \"BM\" }\n";
    assert_eq!(definitions(&extending(tune).unwrap()), ["BM"]);
}

#[test]
fn named_lists_are_merged_and_the_others_replaced() {
    let variant = extending(
        "requires = []
[[scratch]]
name  = \"half_a\"
bytes = 64
[[scratch]]
name  = \"more\"
bytes = 8
[[map]]
name    = \"C\"
tensor  = \"c\"
box     = [64, 64]
swizzle = \"128B\"
[[launch]]
kernel = \"other\"
grid   = 1
block  = 32
",
    )
    .unwrap();
    let slots: Vec<(&str, usize)> = variant.scratch.iter().map(|s| (&*s.name, s.slot)).collect();
    assert_eq!(slots, [("half_a", 0), ("more", 1)]);
    assert_eq!(variant.scratch[0].bytes.text, "64");
    let maps: Vec<&str> = variant.maps.iter().map(|m| &*m.name).collect();
    assert_eq!(maps, ["A", "C"]);
    assert_eq!(variant.launches.len(), 1);
    assert_eq!(variant.launches[0].kernel, "other");
}

#[test]
fn mistakes_in_extending_are_placed() {
    let per = "[[scratch]]\nname = \"half_a\"\nbytes = 1\nper = \"call\"\n";
    let many: String = (0..255).map(|i| format!("C{i} = {i}\n")).collect();
    let many = format!("[const]\n{many}");
    let twice = "let = { ZED = 1 }\nconst = { ZED = 1 }\n";
    for (more, expected, place) in [
        (
            "const = { ZED = \"BM\" }\n",
            "`BM` is not known yet",
            "y.cu:4:",
        ),
        (
            "const = { ZED = \"ZEE\" }\n",
            "unknown name `ZEE`",
            "y.cu:4:",
        ),
        (twice, "defined twice", "y.cu:4:"),
        (per, "has another `per`", "y.cu:5:"),
        ("[[pick]]\ncontender = \"x\"\n", "of its own", "y.cu:5:"),
        ("extend = \"x\"\n", "duplicate key", "y.cu:4:"),
        (&many, "257 constants and lets", "y.cu:1:"),
    ] {
        let error = extending(more).unwrap_err();
        assert!(error.message().contains(expected), "{error}");
        assert!(error.location().unwrap().contains(place), "{error}");
    }
}

#[test]
fn an_extended_variant_that_is_no_use_is_named() {
    let child = |parent: &str| format!("/*dgx\nsummary = \"c\"\nextend = \"{parent}\"\n*/\n");
    let broken = GOOD.replacen("block ", "blok ", 1);
    let tuned = GOOD.replacen(
        "[const]",
        "tune = { choose = { T = [1] }, minimise = 1 }\n[const]\nU = \"T\"",
        1,
    );
    let other = format!(
        "{}tune = {{ choose = {{ V = [1] }}, minimise = 1 }}\n*/\n",
        child("tuned").trim_end().trim_end_matches("*/")
    );
    let picker =
        "/*dgx\nsummary = \"p\"\narch = \"sm_90a\"\n[[pick]]\ncontender = \"x[STAGES=1]\"\n*/\n";
    let mut files = vec![
        ("x.cu".to_owned(), GOOD.to_owned()),
        ("broken.cu".to_owned(), broken),
        ("tuned.cu".to_owned(), tuned),
        ("other.cu".to_owned(), other),
        ("picker.cu".to_owned(), picker.to_owned()),
    ];
    for (name, parent) in [
        ("lost", "xx"),
        ("of-broken", "broken"),
        ("of-that", "of-broken"),
        ("itself", "itself"),
        ("hen", "egg"),
        ("egg", "hen"),
        ("of-picker", "picker"),
        ("up", "../x"),
    ] {
        files.push((format!("{name}.cu"), child(parent)));
    }
    for generation in 0..10 {
        let parent = match generation {
            0 => "x".to_owned(),
            _ => format!("g{}", generation - 1),
        };
        files.push((format!("g{generation}.cu"), child(&parent)));
    }
    let borrowed: Vec<(&str, &str)> = files.iter().map(|(n, t)| (&**n, &**t)).collect();
    let folder = folder(&borrowed);
    let catalog = open(folder.path());
    for (name, expected, place) in [
        ("lost", "there is no variant `xx`", "lost.cu:3:"),
        (
            "of-broken",
            "unknown key `blok` (`of-broken` extends it)",
            "broken.cu:21:",
        ),
        (
            "of-that",
            "(`of-broken` extends it) (`of-that` extends it)",
            "broken.cu:21:",
        ),
        ("itself", "itself → itself", "itself.cu:3:"),
        ("hen", "hen → egg → hen", "egg.cu:3:"),
        ("egg", "egg → hen → egg", "hen.cu:3:"),
        ("of-picker", "nothing to extend", "of-picker.cu:3:"),
        ("up", "cannot be a variant", "up.cu:3:"),
        (
            "other",
            "unknown name `T` (`other` extends it)",
            "tuned.cu:",
        ),
        ("g9", "more than 8", "g1.cu:3:"),
    ] {
        let error = catalog.variant(name).unwrap_err();
        assert!(error.message().contains(expected), "{name}: {error}");
        assert!(error.location().unwrap().contains(place), "{name}: {error}");
    }
    assert!(catalog.variant("g7").is_ok());
}

#[test]
fn a_let_is_known_once_what_it_names_is() {
    let lets = "[let]\nrows = \"align(m, GRAIN)\"\nhalf = \"rows / 2\"\n[const]\nGRAIN = 8\n\
                MOST = \"most(half)\"\n";
    let folder = |lets: &str| folder(&[("x.cu", &GOOD.replacen("[const]\n", lets, 1))]);
    let good = folder(lets);
    let variant = open(good.path()).variant("x").unwrap();
    let names = ["GRAIN", "ZED", "BM", "rows", "half", "MOST"];
    assert_eq!(definitions(&variant), names);
    let per_group = variant.definitions.iter().filter(|d| d.per_group);
    assert_eq!(per_group.count(), 2);
    for (from, to, expected) in [
        ("GRAIN = 8", "GRAIN = \"most(half)\"", "not known yet"),
        (
            "align(m, GRAIN)",
            "align(m, GRAINS)",
            "unknown name `GRAINS`",
        ),
        ("align(m, GRAIN)", "half", "`half` is not known yet"),
        ("align(m, GRAIN)", "tiles", "`tiles` is not known yet"),
        ("rows =", "m =", "already has a meaning"),
        ("rows =", "GRAIN =", "defined twice"),
    ] {
        let text = lets.replacen(from, to, 1);
        assert_ne!(text, lets, "{from}");
        let bad = folder(&text);
        let error = open(bad.path()).variant("x").unwrap_err();
        assert!(error.message().contains(expected), "{error}");
        assert!(error.location().is_some(), "{error}");
    }
}

#[test]
fn a_name_in_two_folders_hurts_only_who_uses_it() {
    let one = folder(&[("x.cu", GOOD), ("y.cu", GOOD)]);
    let two = folder(&[("x.cu", GOOD)]);
    let folders = [one.path().to_owned(), two.path().to_owned()];
    let catalog = Catalog::open(&folders).unwrap();
    let error = catalog.variant("x").unwrap_err();
    assert!(error.message().contains("two variants are named `x`"));
    assert!(catalog.variant("y").is_ok());
}

#[test]
fn what_cannot_be_a_variant_is_kept_with_its_reason() {
    let names = [
        "a b.cu",
        "cublas.cu",
        "-x.cu",
        "x\u{1b}[31m.cu",
        ".hidden.cu",
    ];
    let folder = folder(&names.map(|name| (name, GOOD)));
    std::fs::create_dir(folder.path().join("dir.cu")).unwrap();
    std::os::unix::fs::symlink("nowhere", folder.path().join("dangling.cu")).unwrap();
    std::fs::write(folder.path().join("y.cu"), GOOD).unwrap();
    let catalog = open(folder.path());
    let found: Vec<&str> = catalog.names().collect();
    let all = ["-x", "a b", "cublas", "dangling", "dir", "x\u{1b}[31m", "y"];
    assert_eq!(found, all);
    for name in &all[..6] {
        let error = catalog.variant(name).unwrap_err();
        assert!(!error.message().contains('\u{1b}'), "{error}");
    }
    assert!(catalog.variant("y").is_ok());
}

/// Front matter with its own arch, or that of its folder.
fn source(arch: &str, more: &str) -> String {
    let launch = "[[launch]]\nkernel = \"go\"\ngrid = 1\nblock = 32\n";
    let launch = if more.contains("extend") { "" } else { launch };
    format!("/*dgx\nsummary = \"x\"\n{arch}\n{more}\n{launch}*/\n")
}

const HOPPER: Chip = Chip { major: 9, minor: 0 };
const BLACKWELL: Chip = Chip {
    major: 10,
    minor: 0,
};
const ULTRA: Chip = Chip {
    major: 10,
    minor: 3,
};

#[test]
fn the_device_decides_which_source_a_name_means() {
    let hopper = source("arch = \"sm_90a\"", "");
    let own = source("", "");
    let folder = folder(&[
        ("x.cu", &hopper),
        ("sm_100a/x.cu", &own),
        ("sm_100f/x.cu", &own),
        ("sm_100a/only.cu", &own),
        ("sm_100a/beside.cuh", ""),
        ("notes/x.cu", "no variant"),
    ]);
    let catalog = open(folder.path());
    let arch = |name, chip| catalog.variant_on(name, chip).unwrap().arch.clone();
    assert_eq!(arch("x", HOPPER), "sm_90a");
    assert_eq!(arch("x", BLACKWELL), "sm_100a");
    assert_eq!(arch("x", ULTRA), "sm_100f");
    // A variant without a source for the chip names its own; the plan has the reason.
    assert_eq!(arch("only", HOPPER), "sm_100a");
    let names: Vec<&str> = catalog.names().collect();
    assert_eq!(names, ["only", "x"]);
    assert_eq!(catalog.sources("x").len(), 3);
    assert!(catalog.knows("only").is_ok() && catalog.knows("none").is_err());
}

#[test]
fn front_matter_is_inherited_from_a_source_of_the_same_kind() {
    let folder = folder(&[
        ("x.cu", &source("arch = \"sm_90a\"", "const = { BK = 128 }")),
        ("sm_100a/x.cu", &source("", "const = { BK = 256 }")),
        ("y.cu", &source("", "extend = \"x\"")),
        ("sm_100a/y.cu", &source("", "extend = \"x\"")),
        (
            "plain.cu",
            &source("arch = \"sm_90a\"", "const = { BK = 64 }"),
        ),
        ("sm_100a/z.cu", &source("", "extend = \"plain\"")),
    ]);
    let catalog = open(folder.path());
    let of = |name, chip| {
        let variant = catalog.variant_on(name, chip).unwrap();
        let step = variant.definitions[0].formula.text.clone();
        (variant.arch.clone(), step)
    };
    let told = |arch: &str, step: &str| (arch.to_owned(), step.to_owned());
    assert_eq!(of("y", HOPPER), told("sm_90a", "128"));
    assert_eq!(of("y", BLACKWELL), told("sm_100a", "256"));
    assert_eq!(of("z", BLACKWELL), told("sm_100a", "64"));
}

#[test]
fn a_picker_picks_what_runs_on_the_device() {
    let hopper = source("arch = \"sm_90a\"", "");
    let picker = "/*dgx\nsummary = \"p\"\narch = \"sm_90a\"\n[[pick]]\ncontender = \"x\"\n*/";
    let own = source("", "");
    let folder = folder(&[("x.cu", &hopper), ("sm_100a/x.cu", &own), ("p.cu", picker)]);
    let catalog = open(folder.path());
    let picked = catalog.variant_on("p", BLACKWELL).unwrap();
    assert_eq!(picked.picks[0].contender.variant.arch, "sm_100a");
}

#[test]
fn a_source_says_nothing_else_than_its_folder() {
    let other = source("arch = \"sm_90a\"", "");
    let folder = folder(&[("sm_100a/x.cu", &other)]);
    let error = open(folder.path()).variant("x").unwrap_err();
    assert_eq!(error.message(), "`arch` is not that of its folder, sm_100a");
}

#[test]
fn packed_nibbles_and_atoms_have_their_own_extents() {
    let map = |tensor: &str, more: &str| {
        format!("[[map]]\nname = \"T\"\ntensor = \"{tensor}\"\nswizzle = \"none\"\n{more}\n")
    };
    for (tensor, more, dims) in [
        ("a", "box = [64, 8]", "k / 2 | m"),
        ("b2", "type = \"u4\"\nbox = [64, 8]", "k | n"),
        ("a", "type = \"u4-align16\"\nbox = [128, 8]", "k | m"),
        (
            "sfa_atoms",
            "box = [256, 4, 1]",
            "256 | k / 64 | cdiv(m, 128)",
        ),
        (
            "sfb1_atoms",
            "type = \"u8\"\nbox = [256, 4, 1]",
            "512 | k / 64 | cdiv(n, 128)",
        ),
    ] {
        let text = source("arch = \"sm_100a\"", "");
        let text = text.replace("*/", &format!("{}*/", map(tensor, more)));
        let folder = folder(&[("x.cu", &text)]);
        let variant = open(folder.path()).variant("x").unwrap();
        let found = variant.maps[0].dims.iter();
        let found: Vec<&str> = found.map(|d| &*d.text).collect();
        assert_eq!(found.join(" | "), dims, "{tensor}");
    }
}
