use clap::ValueEnum;
use schemars::Schema;
use schemars::generate::SchemaSettings;

use super::Globals;
use crate::export;
use dgx_core::config;
use dgx_core::diagnostic::CommandError;
use dgx_core::domain::Exit;
use dgx_core::operator;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  dgx schema round > round.schema.json
  then, as the first line of a round file:  #:schema ./round.schema.json

An editor with a TOML language server (taplo, Even Better TOML) completes and
checks the keys from then on. This repository's rounds need no such line: its
.taplo.toml names schemas/round.json.")]
pub(super) struct Args {
    /// What to describe
    #[arg(value_enum)]
    of: Described,
}

/// What has a schema. Each is derived from the types that read or write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Described {
    /// A round file
    Round,
    /// An operator's file
    Operator,
    /// The front matter of a variant
    #[cfg(feature = "run")]
    Variant,
    /// What --export-json of sweep, show, compare, attach writes
    Export,
    /// What gate --export-json writes
    Gate,
    /// What sanitize --export-json writes
    Sanitize,
}

pub(super) fn run(args: Args, _globals: &Globals) -> Result<Exit, CommandError> {
    say!("{}", text(args.of));
    Ok(Exit::Done)
}

fn text(of: Described) -> String {
    // A schema is a JSON value already.
    serde_json::to_string_pretty(&schema(of)).unwrap_or_default()
}

fn schema(of: Described) -> Schema {
    let settings = SchemaSettings::draft2020_12();
    match of {
        Described::Round => config::schema(settings.into_generator()),
        Described::Operator => operator::schema(settings.into_generator()),
        #[cfg(feature = "run")]
        Described::Variant => dgx_run::catalog::schema(settings.into_generator()),
        Described::Export => export::schema(settings.for_serialize().into_generator()),
        Described::Gate => export::gate::schema(settings.for_serialize().into_generator()),
        Described::Sanitize => export::hazards::schema(settings.for_serialize().into_generator()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use serde_json::Value;

    use super::*;
    use crate::present::Repetition;
    use dgx_core::gate;
    use dgx_core::rank::{ComparedSide, Ranking, compare_runs};
    use dgx_core::record::synthetic::Synthetic;

    fn root() -> &'static Path {
        Path::new(env!("CARGO_MANIFEST_DIR"))
    }

    /// The committed schemas are those of the types.
    #[test]
    fn committed_schemas_are_those_of_the_types() {
        for of in Described::value_variants() {
            let name = of.to_possible_value().expect("none is hidden");
            let path = root().join(format!("schemas/{}.json", name.get_name()));
            let due = text(*of) + "\n";
            if std::env::var_os("DGX_SCHEMAS").is_some() {
                std::fs::create_dir_all(root().join("schemas")).unwrap();
                std::fs::write(&path, &due).unwrap();
            }
            let found = std::fs::read_to_string(&path).unwrap_or_default();
            assert_eq!(
                found,
                due,
                "{}: write it with DGX_SCHEMAS=1",
                path.display()
            );
        }
    }

    /// The parts of `value` that a schema does not allow. It supports the parts of JSON Schema that
    /// ours use, and panics at others. A crate for this would change the features of half of dgx's
    /// dependencies.
    fn misfits(root: &Value, schema: &Value, value: &Value, at: &str) -> Vec<String> {
        let mut found = Vec::new();
        let Some(rules) = schema.as_object() else {
            if *schema == false {
                found.push(format!("{at} is not to be there"));
            }
            return found;
        };
        for (rule, says) in rules {
            let fits = |one: &Value| misfits(root, one, value, at).is_empty();
            let list = || says.as_array().expect("a list");
            let right = match rule.as_str() {
                "title" | "description" | "default" | "format" | "$schema" | "$defs" => true,
                "$ref" => {
                    let pointer = says.as_str().and_then(|s| s.strip_prefix('#'));
                    let meant = pointer.and_then(|p| root.pointer(p)).expect("it is there");
                    found.extend(misfits(root, meant, value, at));
                    true
                }
                "type" => match says {
                    Value::String(name) => is_a(value, name),
                    several => several
                        .as_array()
                        .expect("a list")
                        .iter()
                        .any(|name| is_a(value, name.as_str().unwrap())),
                },
                "enum" => list().contains(value),
                "const" => says == value,
                "anyOf" | "oneOf" => list().iter().any(fits),
                "allOf" => list().iter().all(fits),
                "multipleOf" => {
                    let of = says.as_i64().unwrap();
                    value.as_i64().is_none_or(|v| v % of == 0)
                }
                "minItems" | "maxItems" => value.as_array().is_none_or(|list| {
                    let (count, limit) = (list.len() as u64, says.as_u64().unwrap());
                    if rule == "minItems" {
                        count >= limit
                    } else {
                        count <= limit
                    }
                }),
                "uniqueItems" => value
                    .as_array()
                    .is_none_or(|list| (1..list.len()).all(|i| !list[..i].contains(&list[i]))),
                "minimum" => value.as_f64().is_none_or(|v| v >= says.as_f64().unwrap()),
                "maximum" => value.as_f64().is_none_or(|v| v <= says.as_f64().unwrap()),
                "required" => list()
                    .iter()
                    .all(|key| value.get(key.as_str().unwrap()).is_some()),
                "items" => {
                    for (i, item) in value.as_array().into_iter().flatten().enumerate() {
                        found.extend(misfits(root, says, item, &format!("{at}[{i}]")));
                    }
                    true
                }
                "properties" | "additionalProperties" => {
                    let known = rules.get("properties").unwrap_or(&Value::Null);
                    for (key, item) in value.as_object().into_iter().flatten() {
                        let one = match (rule.as_str(), known.get(key)) {
                            ("properties", Some(one)) => one,
                            ("additionalProperties", None) if *says == false => {
                                found.push(format!("{at}.{key} is unknown"));
                                continue;
                            }
                            ("additionalProperties", None) => says,
                            _ => continue,
                        };
                        found.extend(misfits(root, one, item, &format!("{at}.{key}")));
                    }
                    true
                }
                unknown => panic!("nothing here checks `{unknown}`"),
            };
            if !right {
                found.push(format!("{at} is not as `{rule}` says: {value}"));
            }
        }
        found
    }

    fn is_a(value: &Value, name: &str) -> bool {
        match name {
            "null" => value.is_null(),
            "boolean" => value.is_boolean(),
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            "string" => value.is_string(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            other => panic!("there is no type {other}"),
        }
    }

    fn is_valid(of: Described, value: &Value) -> bool {
        let schema = schema(of).to_value();
        misfits(&schema, &schema, value, "").is_empty()
    }

    fn accepts(of: Described, value: &Value, what: &str) {
        let schema = schema(of).to_value();
        let misfits = misfits(&schema, &schema, value, "");
        assert!(misfits.is_empty(), "{what}: {misfits:#?}");
    }

    fn toml(text: &str) -> Value {
        let table: toml::Table = text.parse().expect("it is TOML");
        serde_json::to_value(table).expect("TOML is JSON")
    }

    fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(root().join(folder)).expect("a folder");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        let of = |path: &PathBuf| path.extension().is_some_and(|e| e == extension);
        let files: Vec<PathBuf> = paths.filter(of).collect();
        assert!(!files.is_empty());
        files
    }

    #[test]
    fn every_committed_round_fits_and_a_typo_does_not() {
        for path in files("configs", "toml") {
            let text = std::fs::read_to_string(&path).unwrap();
            accepts(Described::Round, &toml(&text), &path.display().to_string());
        }
        let round = "question = \"?\"\ncontenders = [\"a\"]\nbaseline = \"a\"\n";
        for (more, fits) in [
            ("", true),
            ("baselin = 1\n", false),
            ("yardstick = 1\n", false),
            ("[gate]\ncounters = { atomics = 1.0 }\n", true),
            ("[gate]\nmin_geomeen = 1.0\n", false),
            ("[slurm]\narray = \"16%4\"\n", true),
            ("[slurm]\narray = [1]\n", false),
            (
                "[[shapes]]\nm = [1, 2]\nn = 128\nk = 256\nname = \"g\"\n",
                true,
            ),
            ("[[shapes]]\nm = \"1\"\n", false),
            ("[[shapes]]\nm = 0\nn = 128\nk = 256\n", false),
            ("[[shapes]]\nm = 2000000000\nn = 128\nk = 256\n", false),
            (
                "[[shapes]]\nm = []\nn = 128\nk = 256\nname = \"g\"\n",
                false,
            ),
            ("[[shapes]]\nname = \"g\"\ngroups = []\n", false),
            (
                "[[shapes]]\nname = \"g\"\ngroups = [{ m = 0, n = 128, k = 256 }]\n",
                false,
            ),
            (
                "[[shapes]]\nname = \"g\"\ngroups = [{ m = 3, n = 128, k = 256 }]\n",
                true,
            ),
            ("[validate]\ndistributions = [\"foo\"]\n", false),
            ("[validate]\ndistributions = []\n", false),
            ("[validate]\ndistributions = [\"full\", \"full\"]\n", false),
            ("[validate]\ndistributions = [\"full\"]\n", true),
            ("[validate]\ntimeout = 0\n", false),
            ("[validate]\nrtol = 0.2\n", false),
            ("[validate]\natol = -1.0\n", false),
            ("[validate]\nseed = -1\n", false),
            ("[measure]\nmin_blocks = -1\n", false),
            ("[measure]\nmin_blocks = 30\nprocesses = 64\n", true),
            ("[measure]\nprocesses = 0\n", false),
            ("[measure]\nprocesses = 65\n", false),
            ("[measure]\nwarmup = -1\n", false),
            ("[measure]\nmax_seconds = 0.0\n", false),
            ("[measure]\ndistribution = \"foo\"\n", false),
            ("[gate]\nmin_occupancy = 7\n", false),
            ("[gate]\nmin_geomean = 0.0\n", false),
            ("[gate]\nmin_shape = 2000.0\n", false),
            ("[gate]\nmax_smem = 0\n", false),
            ("[gate]\nmax_registers = 256\n", false),
            ("[gate]\ncounters = { nonsense = 1.0 }\n", false),
            ("[gate]\ncounters = { atomics = 0.0 }\n", false),
            ("[slurm]\nretries = -1\n", false),
            (
                "[[pitch]]\ndesign = \"d\"\nidea = \"i\"\nclaim = [1.5]\n",
                false,
            ),
            (
                "[[pitch]]\ndesign = \"d\"\nidea = \"i\"\nclaim = [1.5, 1.8]\n",
                true,
            ),
        ] {
            let text = format!("{round}{more}[[grid]]\nm = 1\nn = 128\nk = 256\n");
            let file = dgx_core::diagnostic::SourceFile {
                path: "r.toml".into(),
                text: text.as_str().into(),
            };
            // The parser and the schema agree.
            assert_eq!(config::Round::from_source(file).is_ok(), fits, "{more}");
            let valid = is_valid(Described::Round, &toml(&text));
            assert_eq!(valid, fits, "{more}");
        }
        // Only the reader knows the operator: which sizes it has, and what
        // they must meet.
        for more in [
            "[[shapes]]\nm = 1\nn = 100\nk = 256\n",
            "[[shapes]]\nm = 1\nn = 128\nk = 128\n",
            "[[shapes]]\nm = 1\nn = 128\n",
            "[[shapes]]\nm = 1\nn = 128\nk = 256\nq = 1\n",
        ] {
            let file = dgx_core::diagnostic::SourceFile {
                path: "r.toml".into(),
                text: format!("{round}{more}").into(),
            };
            assert!(config::Round::from_source(file).is_err(), "{more}");
        }
        for lacking in ["contenders = []\n", "shapes = []\n", "grid = []\n"] {
            let (key, _) = lacking.split_once(' ').expect("a key");
            let others = round.lines().filter(|line| !line.starts_with(key));
            let mut text: String = others.map(|line| format!("{line}\n")).collect();
            text.push_str(lacking);
            if key == "contenders" {
                text.push_str("[[grid]]\nm = 1\nn = 128\nk = 256\n");
            }
            let file = dgx_core::diagnostic::SourceFile {
                path: "r.toml".into(),
                text: text.as_str().into(),
            };
            assert!(config::Round::from_source(file).is_err(), "{text}");
            assert!(!is_valid(Described::Round, &toml(&text)), "{text}");
        }
        let round = &format!("{round}shapes = [{{ m = 1, n = 128, k = 256 }}]\n");
        let winner = round.replace("\"a\"\n", "{ winner_of = \"round1\" }\n");
        assert!(winner.contains("winner_of"));
        accepts(Described::Round, &toml(&winner), "the winner of a round");
    }

    #[test]
    fn every_committed_front_matter_fits() {
        for folder in [
            "variants",
            "variants/rms-norm",
            "variants/sm_100a",
            "tests/fixtures/variants",
        ] {
            for path in files(folder, "cu") {
                let text = std::fs::read_to_string(&path).unwrap();
                let matter = dgx_run::catalog::toml_of(&path, &text).unwrap();
                // The part that docs/variants.md extracts with sed for an editor.
                let lines = text.lines().skip(1).take_while(|l| !l.starts_with("*/"));
                let taken: String = lines.map(|line| line.to_owned() + "\n").collect();
                assert_eq!(toml(&taken), toml(&matter), "{}", path.display());
                accepts(
                    Described::Variant,
                    &toml(&matter),
                    &path.display().to_string(),
                );
            }
        }
        let wrong = toml("summary = \"x\"\nclaims = 1\n");
        assert!(!is_valid(Described::Variant, &wrong));
        for (extent, fits) in [
            ("1", true),
            ("[1, 1, 1]", true),
            ("[]", false),
            ("[1, 1, 1, 1]", false),
        ] {
            for key in ["grid", "block", "cluster"] {
                let mut launch = vec!["kernel = \"k\"".to_owned()];
                launch.extend(["grid", "block"].map(|k| format!("{k} = 1")));
                launch.retain(|line| !line.starts_with(key));
                launch.push(format!("{key} = {extent}"));
                let text = format!("summary = \"x\"\n[[launch]]\n{}\n", launch.join("\n"));
                assert_eq!(is_valid(Described::Variant, &toml(&text)), fits, "{text}");
            }
        }
        let claim = toml("summary = \"x\"\nclaim = { geomean = 0.0, over = \"a\" }\n");
        assert!(!is_valid(Described::Variant, &claim));
    }

    #[test]
    fn exports_fit() {
        for field in [Synthetic::round4(), Synthetic::round4().modelled()] {
            let run = field.run();
            let ranking = Ranking::of(&run);
            let one = export::RunExport::of_run(&run, &ranking);
            let ids: Vec<_> = run.entrants().cloned().collect();
            let compared: Vec<_> = (ids.iter())
                .filter_map(|contender| {
                    let side = ComparedSide::new(&run, &ranking, contender);
                    Some((contender, compare_runs(side, side)?))
                })
                .collect();
            let sides = [(&run, &ranking); 2];
            let agreed = Repetition::of(sides, &compared, false);
            let two = export::RunExport::of_runs(sides, &compared, None, &agreed);
            for document in [one, two] {
                let value: Value = serde_json::from_str(&document.json()).unwrap();
                accepts(Described::Export, &value, "an export");
            }
        }
        let wrong: Value = serde_json::json!({ "version": 2 });
        assert!(!is_valid(Described::Export, &wrong));
    }

    #[test]
    fn exports_of_inquests_fit() {
        let (report, settings) = dgx_core::sanitize::synthetic::half_done();
        let text = export::hazards::json(&report, &settings, &|_| "dgx sanitize".to_owned());
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            value["cells"][0]["hazards"].as_array().map(Vec::len),
            Some(1)
        );
        assert_eq!(value["left"].as_array().map(Vec::len), Some(1));
        accepts(Described::Sanitize, &value, "an report's export");
        let mut other = value;
        other["cells"][0]["hazards"][0]["here"] = Value::Null;
        assert!(!is_valid(Described::Sanitize, &other));
    }

    #[test]
    fn exports_of_gates_fit() {
        let mut field = Synthetic::round4();
        field.entries[1].status = dgx_core::domain::Status::Wrong;
        let run = field.run();
        let ranking = Ranking::of(&run);
        let rules = config::Gate {
            correct: true,
            min_geomean: Some(9.0),
            max_registers: Some(1),
            ..config::Gate::default()
        };
        for over in [
            gate::ComparedWith::Contender(&run.header.baseline),
            gate::ComparedWith::Run(&run, &ranking),
        ] {
            let report = gate::judge(&run, &ranking, &rules, over, false).unwrap();
            let value: Value = serde_json::from_str(&export::gate::json(&report)).unwrap();
            assert!(value["findings"].as_array().is_some_and(|f| f.len() > 2));
            accepts(Described::Gate, &value, "a gate's export");
            let mut other = value;
            other["findings"][0]["ruling"] = Value::Null;
            assert!(!is_valid(Described::Gate, &other));
        }
    }
}
