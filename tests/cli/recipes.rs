//! The recipes for other machines: files and commands that they name exist and are the right ones.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::workspace::in_repository;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn text(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// Words of a command that are programs of this repository.
fn own_programs(command: &str) -> Vec<PathBuf> {
    let words = command
        .split_whitespace()
        .map(|word| word.trim_matches('"'));
    let own = words.filter(|word| word.starts_with("scripts/") || word.starts_with(".ci/"));
    // Who says something is not run.
    own.filter(|word| !word.ends_with(':'))
        .map(PathBuf::from)
        .collect()
}

fn is_program(path: &Path) -> bool {
    let about = fs::metadata(root().join(path));
    about.is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

#[test]
fn the_workflow_runs_what_ci_runs() {
    let flow: Value = serde_norway::from_str(&text(".github/workflows/ci.yml")).expect("YAML");
    assert_eq!(flow["on"]["push"]["branches"], serde_json::json!(["main"]));
    assert!(flow["on"].get("pull_request").is_some(), "{flow}");
    let jobs = flow["jobs"].as_object().expect("jobs");
    assert!(
        jobs.values().all(|job| job["runs-on"].is_string()),
        "{flow}"
    );
    let steps = jobs
        .values()
        .flat_map(|job| job["steps"].as_array().expect("steps"));
    let mut programs = Vec::new();
    let mut by_root = false;
    for step in steps {
        let (uses, run) = (step["uses"].as_str(), step["run"].as_str());
        // Root's files are nobody else's, and root's PATH has no cargo.
        let words = run.unwrap_or_default();
        let as_root = words.starts_with("sudo ") && !words.contains("chown");
        assert!(!as_root || words.contains("env \"PATH=$PATH\""), "{step}");
        by_root |= as_root;
        by_root &= !words.contains("chown -R");
        let writes = !own_programs(words).is_empty();
        assert!(
            as_root || !by_root || !writes,
            "root has written there: {step}"
        );
        assert!(uses.is_some() != run.is_some(), "one or the other: {step}");
        // A version that stays what it is.
        assert!(uses.is_none_or(|action| action.contains('@')), "{step}");
        programs.extend(own_programs(run.unwrap_or_default()));
    }
    let ci = Path::new(".ci/run");
    assert_eq!(
        programs.iter().filter(|p| *p == ci).count(),
        1,
        "{programs:?}"
    );
    // And those that it runs in turn.
    let commands = text(".ci/run");
    let lines = commands.lines().filter(|line| !line.starts_with('#'));
    let within: Vec<PathBuf> = lines.flat_map(own_programs).collect();
    for wanted in ["scripts/test", "scripts/gate", "scripts/test-slurm"] {
        assert!(within.contains(&wanted.into()), "{wanted}: {within:?}");
        assert!(text("CONTRIBUTING.md").contains(wanted), "{wanted}");
    }
    for program in programs.iter().chain(&within) {
        assert!(is_program(program), "{}", program.display());
    }
}

/// What stands after `instruction` in a recipe, one for each time it is used.
fn instructions<'a>(recipe: &'a str, instruction: &str) -> Vec<&'a str> {
    let lines = recipe.lines();
    lines
        .filter_map(|line| line.strip_prefix(instruction)?.strip_prefix(' '))
        .collect()
}

#[test]
fn the_container_is_made_of_what_is_here() {
    let recipe = text("Containerfile");
    let known = ["FROM", "WORKDIR", "COPY", "RUN", "ENV", "ENTRYPOINT"];
    let folded = recipe.replace("\\\n", " ");
    for line in folded
        .lines()
        .filter(|l| !l.is_empty() && !l.starts_with('#'))
    {
        let first = line.split(' ').next().unwrap_or_default();
        assert!(known.contains(&first), "{line}");
    }
    // The toolchain is the one that is promised to do.
    let manifest: toml::Table = text("Cargo.toml").parse().expect("TOML");
    let least = manifest["workspace"]["package"]["rust-version"].as_str();
    let image = format!("rust:{}-bookworm AS build", least.expect("a version"));
    assert_eq!(
        instructions(&recipe, "FROM"),
        [&image, "debian:bookworm-slim"]
    );
    // What is copied is here, or was built.
    for copied in instructions(&recipe, "COPY") {
        let (from, to) = copied.rsplit_once(' ').expect("two places");
        match from.strip_prefix("--from=build ") {
            Some(built) => {
                assert_eq!(
                    (built, to),
                    ("/src/target/release/dgx", "/usr/local/bin/dgx")
                );
                let build = "cargo build --release --locked --bin dgx";
                assert!(instructions(&recipe, "RUN").contains(&build));
            }
            None => assert!(root().join(from).exists(), "{from}"),
        }
    }
    // NVRTC lands where dgx is told to look: the wheel's major version says where.
    let script = text("scripts/nvrtc");
    let wheel = script.split("nvidia-cuda-nvrtc==").nth(1).expect("a wheel");
    let major = wheel.split('.').next().expect("a version");
    let place = format!("/opt/dgx/.dgx/nvrtc/nvidia/cu{major}/lib/libnvrtc.so.{major}");
    assert_eq!(instructions(&recipe, "ENV"), [format!("DGX_NVRTC={place}")]);
    assert!(
        recipe.contains("COPY scripts/nvrtc /opt/dgx/scripts/nvrtc\nRUN /opt/dgx/scripts/nvrtc\n")
    );
    // What was built here does not go along.
    let left = text(".dockerignore");
    let left: Vec<&str> = left.lines().collect();
    assert!(
        left.contains(&"target") && left.contains(&".dgx"),
        "{left:?}"
    );
}

/// The YAML that docs/ci.md has to copy, each by the file it is for.
fn copied() -> Vec<(String, Value)> {
    let page = text("docs/ci.md");
    let blocks = page.split("```yaml\n# ").skip(1);
    let blocks = blocks.map(|block| block.split("```").next().expect("an end"));
    let parsed = blocks.map(|block| {
        let (file, yaml) = block.split_once('\n').expect("a file");
        let yaml = serde_norway::from_str(yaml).unwrap_or_else(|e| panic!("{file}: {e}"));
        (file.to_owned(), yaml)
    });
    parsed.collect()
}

/// Every string in it, line by line.
fn lines(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => text.lines().map(str::to_owned).collect(),
        Value::Array(items) => items.iter().flat_map(lines).collect(),
        Value::Object(fields) => fields.values().flat_map(lines).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn the_recipes_for_other_projects_use_commands_that_are_here() {
    let recipes = copied();
    let files: Vec<&str> = recipes.iter().map(|(file, _)| file.as_str()).collect();
    assert_eq!(files, [".github/workflows/kernels.yml", ".gitlab-ci.yml"]);
    let wheel = text("scripts/nvrtc");
    let wheel = wheel.split("wheels=('").nth(1).expect("a wheel");
    let wheel = wheel.split('\'').next().expect("its end");
    for (file, recipe) in &recipes {
        let lines = lines(recipe);
        let mut verbs = Vec::new();
        for line in lines.iter().filter(|line| line.starts_with("dgx ")) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let help = in_repository(&[words[1], "--help"]);
            assert!(help.ends_with("[exit 0]"), "{file}: {line}\n{help}");
            for flag in words.iter().filter(|word| word.starts_with("--")) {
                assert!(help.contains(&format!("{flag} <")), "{file}: {line}");
            }
            verbs.push(words[1]);
        }
        assert_eq!(verbs, ["check", "sweep", "gate"], "{file}");
        // The compiler is the one that scripts/nvrtc gets, where dgx looks.
        let pip = lines.iter().find(|line| line.contains("pip install --"));
        assert!(pip.is_some_and(|line| line.contains(wheel)), "{file}");
        let major = wheel.split(['=', '.']).nth(2).expect("a version");
        let place = format!("nvrtc/nvidia/cu{major}/lib/libnvrtc.so.{major}");
        assert!(lines.iter().any(|l| l.ends_with(&place)), "{file}");
    }
    let manifest: toml::Table = text("Cargo.toml").parse().expect("TOML");
    let least = manifest["workspace"]["package"]["rust-version"].as_str();
    let image = format!("rust:{}-bookworm", least.expect("a version"));
    assert_eq!(recipes[1].1["kernels"]["image"], image);
}
