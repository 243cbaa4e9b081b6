use ptx_machine::Machine;

use super::*;

fn read(text: &str) -> Result<Device, InputError> {
    device(&SourceFile {
        path: "t.toml".into(),
        text: text.into(),
    })
}

#[test]
fn all_that_are_built_in_are_right_and_say_where_every_number_is_from() {
    for (name, device) in BUILT_IN.iter() {
        let model = device.model.as_ref().unwrap();
        let given = |name: &&&str| model.number(name).is_some();
        let numbers = Machine::NAMES.iter().filter(given).count();
        assert_eq!(device.origins.len(), 12 + 3 + numbers - 1, "{name}");
        assert_eq!(model.tmem.is_some(), device.chip.multiplies_fp4(), "{name}");
        assert!(device.ceiling(crate::domain::Timing::Modelled).is_some());
        assert_eq!(find(name).unwrap(), *device);
    }
    assert_eq!(default_device().name, "NVIDIA H200");
    let folder = std::fs::read_dir(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../configs/targets"
    ))
    .unwrap();
    assert_eq!(folder.count(), COMMITTED.len(), "one is not built in");
}

#[test]
fn what_is_said_to_be_the_h200s_is() {
    let numbers = |name: &str| {
        let (_, text) = COMMITTED.iter().find(|(known, _)| *known == name).unwrap();
        toml::from_str::<toml::Table>(text).unwrap()
    };
    let h200 = numbers("h200");
    for name in ["h100", "b200"] {
        let target = numbers(name);
        let from = |key: &str| target["sources"][key].as_str().unwrap().to_owned();
        let (mut borrowed, model) = (0, target["model"].as_table().unwrap());
        for (key, number) in model {
            let source = number["from"].as_str().unwrap();
            if ["h200", "hopper"].contains(&source) {
                assert!(from(source).contains("(h200.toml)"), "{name}: {source}");
                assert_eq!(
                    number["value"], h200["model"][key]["value"],
                    "{name}: {key}"
                );
                borrowed += 1;
            }
        }
        assert!(borrowed > 30, "{name} has {borrowed} of the H200's");
    }
}

#[test]
fn a_card_is_known_by_its_name_or_else_by_its_chip() {
    let chip = Chip::parse("sm_90");
    let bandwidth = |name: &str, chip| Some(like(name, chip)?.peaks.bandwidth);
    assert_eq!(bandwidth("NVIDIA H100 80GB HBM3", chip), Some(3.35e12));
    assert_eq!(bandwidth("NVIDIA H20", chip), Some(4.8e12));
    assert_eq!(bandwidth("NVIDIA B200", None), Some(8.0e12));
    assert_eq!(like("NVIDIA A100", Chip::parse("sm_80")), None);
}

#[test]
fn mistakes_are_placed_and_told() {
    let h200 = COMMITTED[0].1;
    let sms = "sms = { value = 132, from = \"driver\" }";
    let cases = [
        (sms, "sm = 1", "unknown key `sm`", "did you mean `sms`?"),
        (sms, "", "the key `sms` is missing", "add `sms"),
        (
            sms,
            "sms = 132",
            "integer `132`, expected a number with its source, { value = …, from = \"…\" }",
            "write a number",
        ),
        (
            sms,
            "sms = { value = 132 }",
            "the key `from` is missing",
            "add `from",
        ),
        (
            sms,
            "sms = { value = 132, from = \"drivr\" }",
            "limits.sms is from an unknown source",
            "did you mean `driver`?",
        ),
        (
            "value = 132,",
            "value = 132, unit = 1,",
            "unknown key `unit`",
            "use one of value, from",
        ),
        (
            "value = 132,",
            "value = -1,",
            "limits.sms = -1",
            "give between 1",
        ),
        (
            "value = 132,",
            "value = 0,",
            "limits.sms = 0",
            "give between 1",
        ),
        (
            "value = 132,",
            "value = 1.5,",
            "is not a whole number",
            "how many",
        ),
        (
            "value = 132,",
            "value = nan,",
            "limits.sms = NaN",
            "between",
        ),
        (
            "value = 132,",
            "value = 1e99,",
            "limits.sms = 1e99 is out of range",
            "between",
        ),
        (
            "value = 1024, from = \"guide\" }\nregisters",
            "value = 999_999, from = \"guide\" }\nregisters",
            "limits.shared_reserved = 999999 is more than limits.shared_per_sm",
            "one of the two",
        ),
        (
            "value = 132,",
            "value = \"x\",",
            "expected a number",
            "write a number",
        ),
        (
            "value = 1980,",
            "value = -1980,",
            "peaks.clock_mhz",
            "between",
        ),
        (
            "value = 4.8e12,",
            "value = inf,",
            "peaks.bandwidth",
            "between",
        ),
        (
            "value = 4.8e12,",
            "value = 4.8,",
            "peaks.bandwidth = 4.8 is out of range",
            "between",
        ),
        (
            "value = 232_448,",
            "value = 332_448,",
            "limits.shared_per_block",
            "one of the two",
        ),
        (
            "\"sm_90\"",
            "\"sm_90a\"",
            "\"sm_90a\" is not a chip",
            "without a letter",
        ),
        (
            "\"sm_90\"",
            "\"hopper\"",
            "\"hopper\" is not a chip",
            "sm_90",
        ),
        (
            "\"NVIDIA H200\"",
            "\"\"",
            "is not a name for a device",
            "driver",
        ),
        (
            "driver = \"the",
            "driver = \" \" # ",
            "is not a name for a source",
            "describe the origin",
        ),
        (
            "[peaks]",
            "[peak]",
            "unknown key `peak`",
            "did you mean `peaks`?",
        ),
    ];
    for (from, to, message, remedy) in cases {
        let text = h200.replacen(from, to, 1);
        assert_ne!(text, h200, "{from}");
        let error = read(&text).expect_err(to);
        assert!(
            error.message().contains(message),
            "{to}: {}",
            error.message()
        );
        assert!(error.remedy().contains(remedy), "{to}: {}", error.remedy());
        // A missing value is reported at its table.
        let at = if to.is_empty() { "[limits]" } else { from };
        let line = h200[..h200.find(at).unwrap()].matches('\n').count() + 1;
        let place = error.location().unwrap_or_default();
        assert!(
            place.starts_with(&format!("t.toml:{line}:")),
            "{to}: {place}"
        );
    }
    assert!(
        find("h300")
            .unwrap_err()
            .remedy()
            .contains("h200, h100, b200")
    );
}

/// The H200 with this value for a number after its `[model]`, and the line of it; the numbers
/// themselves may be fitted again.
fn rewritten(key: &str, value: &str) -> (String, usize) {
    let h200 = COMMITTED[0].1;
    let model = h200.find("[model]").unwrap();
    let at = model + h200[model..].find(&format!("\n{key} = ")).unwrap() + 1;
    let end = at + h200[at..].find('\n').unwrap();
    let old = &h200[at..end];
    let new = match old.split_once("value = ") {
        Some((before, rest)) => {
            let after = rest.find(',').unwrap();
            format!("{before}value = {value}{}", &rest[after..])
        }
        None => format!("{key} = {value}"),
    };
    let line = h200[..at].matches('\n').count() + 1;
    (h200[..at].to_owned() + &new + &h200[end..], line)
}

#[test]
fn a_model_that_cannot_be_is_refused_where_it_says_so() {
    let range = "is out of range";
    let cases = [
        ("clock_mhz", "2850", "is more than peaks.clock_mhz = 1980"),
        ("rested_clock_mhz", "2850", "more than peaks.clock_mhz"),
        (
            "clock_drop_mhz",
            "1500",
            "more than half of model.clock_mhz",
        ),
        ("memory_bandwidth", "5e12", "is more than peaks.bandwidth"),
        (
            "wgmma_column",
            "0.25",
            "= 8192 is more than peaks.tensor_flops",
        ),
        ("wgmma_column", "0", range),
        ("mufu_interval", "0", range),
        ("l2_port", "0", range),
        (
            "mufu_latency",
            "-24",
            "model.mufu_latency = -24 is out of range",
        ),
        (
            "l2_bandwidth",
            "nan",
            "model.l2_bandwidth = NaN is out of range",
        ),
        ("launch_micros", "inf", range),
        (
            "median",
            "-0.035",
            "calibration.median = -0.035 is out of range",
        ),
        (
            "worst",
            "0.00001",
            "calibration.worst = 0.00001 is out of range",
        ),
        ("p90", "nan", "calibration.p90 = NaN is out of range"),
        ("run", "\"\"", "is not a name for a run"),
        ("cells", "0", "calibration.cells = 0 compares nothing"),
    ];
    for (key, value, message) in cases {
        let (text, line) = rewritten(key, value);
        let error = read(&text).expect_err(key);
        let told = error.message();
        assert!(told.contains(message), "{key} = {value}: {told}");
        let place = error.location().unwrap_or_default();
        assert!(
            place.starts_with(&format!("t.toml:{line}:")),
            "{key}: {place}"
        );
    }
    assert!(read(&rewritten("mufu_latency", "0").0).is_ok());
}

#[test]
fn a_number_that_is_unknown_or_missing_is_told() {
    let h200 = COMMITTED[0].1;
    let renamed = |name: &str| read(&h200.replace("\nwake_latency =", name)).unwrap_err();
    let error = renamed("\nwake_latenci =");
    assert_eq!(error.message(), "unknown key `wake_latenci`");
    assert!(error.remedy().contains("did you mean `wake_latency`?"));
    let error = renamed("\nsms =");
    assert!(error.remedy().contains("limits.sms"), "{}", error.remedy());
    let error = renamed("\n# ");
    assert_eq!(error.message(), "the key `wake_latency` is missing");
    assert!(error.remedy().contains("add `wake_latency"));
    let line = h200[..h200.find("[model]").unwrap()].matches('\n').count() + 1;
    assert_eq!(error.location(), Some(format!("t.toml:{line}:1")));
}

#[test]
fn numbers_of_tensor_memory_are_all_there_or_none() {
    let b200 = COMMITTED.iter().find(|(name, _)| *name == "b200");
    let b200 = b200.expect("it is built in").1;
    let changed = |old: &str, new: &str| {
        assert!(b200.contains(old), "{old}");
        read(&b200.replace(old, new)).unwrap_err()
    };
    let column = "\ntmem_product_column = { value = 0.5,";
    for (old, new, message) in [
        (
            column,
            "\ntmem_product_column = { value = 0.25,",
            "= 65536 is more than peaks.tensor_flops",
        ),
        (
            column,
            "\ntmem_product_column = { value = 0,",
            "model.tmem_product_column = 0 is out of range",
        ),
        (
            "\ntmem_load_latency = { value = 23,",
            "\ntmem_load_latency = { value = -1,",
            "model.tmem_load_latency = -1 is out of range",
        ),
        (
            "\ntmem_alloc_latency =",
            "\n# ",
            "the key `tmem_alloc_latency` is missing",
        ),
    ] {
        let told = changed(old, new);
        assert!(told.message().contains(message), "{}", told.message());
    }
    let lines = b200.lines().filter(|line| !line.starts_with("tmem_"));
    let none = read(&lines.collect::<Vec<_>>().join("\n")).unwrap();
    assert_eq!(none.model.unwrap().tmem, None);
}

#[test]
fn who_was_never_compared_says_who_was() {
    let told = |name: &str| find(name).unwrap().calibration.unwrap().device;
    for name in ["h200", "h100", "b200"] {
        assert_eq!(told(name), "NVIDIA H200", "{name}");
    }
}

#[test]
fn a_calibration_holds_for_the_numbers_it_is_of() {
    let h200 = source("h200").unwrap();
    let own = device(&h200).unwrap();
    assert!(own.calibration.is_some(), "digest = {:?}", own.digest());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    let calibrated = |from: &str, to: &str| {
        assert!(h200.text.contains(from), "{from}");
        std::fs::write(&path, h200.text.replacen(from, to, 1)).unwrap();
        let device = find(path.to_str().unwrap()).unwrap();
        device
            .calibration
            .is_some_and(|known| known.device == device.name)
    };
    assert!(calibrated("", ""));
    assert!(!calibrated("sms = { value = 132", "sms = { value = 264"));
    assert!(!calibrated(
        "mufu_latency = { value = 17,",
        "mufu_latency = { value = 16,"
    ));
    assert!(!calibrated(
        "l2 = { value = 62_914_560",
        "l2 = { value = 62_914_559"
    ));
    // As in files of earlier versions.
    assert!(!calibrated("\ndigest = ", "\n# digest = "));
}
