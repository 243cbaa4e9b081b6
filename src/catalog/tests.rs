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
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
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
fn constants_keep_their_written_order() {
    let folder = folder(&[("x.cu", GOOD)]);
    let variant = open(folder.path()).variant("x").unwrap();
    let names: Vec<&str> = variant.constants.iter().map(|(n, _)| n.as_str()).collect();
    assert_eq!(names, ["ZED", "BM"]);
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
    for name in ["cublas", "cuBLAS", "CUBLAS", "cu-blas", "cublas."] {
        let folder = folder(&[("x.cu", GOOD), (&format!("{name}.cu"), GOOD)]);
        let refused = match Catalog::open(&[folder.path().to_owned()]) {
            Ok(catalog) => catalog.variant(name).unwrap_err(),
            Err(refused) => refused,
        };
        let message = refused.message();
        assert!(
            message.contains("that is the yardstick's name"),
            "{message}"
        );
        assert!(message.contains(name), "{message}");
    }
}

#[test]
fn mistakes_are_placed_in_the_cu() {
    let (tiles, long) = ("tiles", &*"S".repeat(200));
    let cases = [
        (("ZED = 4", "ZED = \"BM\""), "unknown name `BM`"),
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
        (("\"128B\"", "\"256B\""), "unknown variant `256B`"),
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
    let both = GOOD.replacen("[[launch]]", "[[pick]]\ncontender = \"x\"\n[[launch]]", 1);
    let cases = [
        (pick("xx"), "there is no variant `xx`"),
        (pick("x"), "`x` is 2 contenders"),
        (pick("x[STAGES=2]"), "no choice of its parameters"),
        (pick("x[DEPTH=2]"), "no parameter `DEPTH`"),
        (pick("p"), "picks others itself"),
        (both, "of its own"),
        (pick("x[STAGES=1]\"\nwhen = \"wide"), "unknown name `wide`"),
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
