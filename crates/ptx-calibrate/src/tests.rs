//! Every case is named, compiled and called, by the emulator, as a card would
//! call it: what hangs, faults or reports no time there is no question.

use std::collections::BTreeSet;

use ptx_time::Machine;

use super::answers::{Answer, Answers};
use super::each::each;
use super::fit::{Question, Standing, fit};
use super::measure::trial;
use super::parameters::parameters;
use super::probe::{Case, Probe, Read, cases, probes, unit};
use super::traced::Traced;
use dgx_core::config::target::default_device;
use dgx_core::domain::Chip;
use dgx_run::backend::cuda::WARP_STAMPS;
use dgx_run::backend::emu::probing;
use dgx_run::compile::{Image, Nvrtc};
use dgx_run::sweep::Progress;

#[test]
fn every_case_has_a_name_of_its_own_and_fits_a_card() {
    let mut names = BTreeSet::new();
    for (_, case) in cases() {
        assert!(names.insert(&case.name), "{} twice", case.name);
        assert!(!case.name.contains('{'), "{} is not filled in", case.name);
        let whole = case.grid % case.cluster == 0;
        assert!(case.block <= 1024 && whole, "{}", case.name);
    }
    assert!(names.len() < 950, "{} cases", names.len());
}

/// What a case is tried on: Hopper, where that has its instructions.
fn chip(case: &Case) -> Chip {
    let arch = case.arch.as_deref().unwrap_or("sm_90a");
    Chip::parse(arch).expect("a chip")
}

/// On a B200 nothing but wgmma is missing, and each probe compiles for it.
#[test]
fn most_can_be_put_to_a_b200() {
    let blackwell = Chip::parse("sm_100a").expect("a chip");
    let suits = |(_, case): &(&Probe, &Case)| case.suits(blackwell);
    for (_, case) in cases().filter(|asked| !suits(asked)) {
        assert_eq!(case.arch.as_deref(), Some("sm_90a"), "{}", case.name);
    }
    let compiler = Nvrtc::find().expect("scripts/nvrtc gets a compiler");
    let first = |probe: &'static Probe| {
        let case = probe.cases.iter().find(|case| case.suits(blackwell))?;
        Some((probe, case))
    };
    let asked: Vec<_> = probes().iter().filter_map(first).collect();
    assert_eq!(asked.len(), probes().len() - 1, "all but wgmma");
    let failed = each(&asked, |(probe, case)| {
        let unit = unit(probe, case, blackwell);
        let headers = unit
            .headers
            .texts()
            .map(|(name, text)| (name.to_owned(), text));
        let headers: Vec<(String, String)> = headers.collect();
        let compiled = compiler.compile(&unit.name, &unit.source, &unit.flags(), &headers);
        let why = match compiled {
            Ok(compiled) if compiled.cubin.is_some() => return None,
            Ok(compiled) => compiled.log,
            Err(error) => error.to_string(),
        };
        Some(format!("{}: {why}", case.name))
    });
    let failed: Vec<String> = failed.into_iter().flatten().collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

fn compiled(probe: &Probe, case: &Case) -> Result<Image, String> {
    let compiler = Nvrtc::find().expect("scripts/nvrtc gets a compiler");
    let unit = unit(probe, case, chip(case));
    let headers: Vec<(String, String)> = unit
        .headers
        .texts()
        .map(|(name, text)| (name.to_owned(), text))
        .collect();
    let compiled = compiler
        .compile(&unit.name, &unit.source, &unit.flags(), &headers)
        .map_err(|e| e.to_string())?;
    if compiled.log.contains("Potential Performance Loss") {
        return Err(compiled.log);
    }
    Ok(Image {
        key: String::new(),
        cubin: compiled.cubin.ok_or(compiled.log)?,
        ptx: compiled.ptx,
        kernels: Vec::new(),
        remarks: Vec::new(),
    })
}

/// Compiles a case and calls one cluster of it.
fn call(probe: &Probe, case: &Case) -> Result<(), String> {
    let image = compiled(probe, case)?;
    let place = match case.read {
        Read::Cycles | Read::Micros => 0,
        Read::Nanos => WARP_STAMPS,
    };
    let called = probing::call(&trial(case, &image), [case.data, case.scratch])?;
    match called.stamped(place) {
        true => Ok(()),
        false => Err("it reported no time".to_owned()),
    }
}

#[test]
fn the_emulator_can_be_asked_too() {
    // Neighbours are alike, and compiling them all would take a minute.
    let some = |probe: &'static Probe| probe.cases.iter().step_by(9).map(move |case| (probe, case));
    let asked = probes().iter().flat_map(some);
    let asked: Vec<_> = asked.filter(|(_, case)| !case.long).collect();
    let failed = each(&asked, |(probe, case)| {
        let why = call(probe, case).err()?;
        Some(format!("{}: {why}", case.name))
    });
    let failed: Vec<String> = failed.into_iter().flatten().collect();
    assert!(
        failed.is_empty(),
        "{} of {}:\n{}",
        failed.len(),
        asked.len(),
        failed.join("\n")
    );
}

#[test]
fn answers_are_read_as_they_were_written() {
    let (_, case) = cases().next().expect("there are cases");
    let mut answer = Answer::to(case, 32);
    answer.values = vec![3.0, 1.0, 2.5, 4.0, 2.0];
    assert_eq!(answer.median(), 2.5);
    let header = r#"{"type":"header","schema":1,"started":"2026-11-15T18:27:17+00:00","argv":["dgx"],"dgx":"0.1.0","git":null,"host":{"os":"linux","arch":"x86_64","cpu":"x","cores":16},"device":{"backend":"cuda","timing":"measured","name":"NVIDIA H200","uuid":null,"driver":null,"sms":132,"l2":62914560,"memory":150109880320,"clock_mhz":1980.0,"bandwidth":4814304000000.0,"tensor_flops_per_clock":4096.0,"smem_per_block":232448},"compiler":"NVRTC 13.0","times":5}"#;
    let header = format!("{header}\n");
    let mut answers = Answers::from_text(&header).expect("a header alone is a file");
    answers.answers.push(answer);
    answers.asked.cases = Some(1);
    let text = answers.to_text().unwrap();
    assert_eq!(Answers::from_text(&text), Ok(answers));
    let refused = |text: &str| Answers::from_text(text).unwrap_err();
    assert!(refused("").contains("no header"));
    // Of another format nothing else is said, whatever else is new in it.
    let newer = header.replace(r#""schema":1"#, r#""schema":2,"new":0"#);
    assert!(refused(&newer).contains("line 1: schema 2 is not known"));
    assert!(refused(&header.replace(r#""schema":1,"#, "")).contains("no schema"));
    assert!(refused(&format!("{header}{header}")).contains("line 2: a second header"));
    assert!(refused(text.lines().last().unwrap()).contains("no header before"));
    assert!(refused(&text.replace(r#""times""#, r#""tmies""#)).contains("line 1"));
    let (first, last) = text.split_once('\n').unwrap();
    for (cut, why) in [
        (&text[..text.len() - 1], "its last line does not end"),
        (&text[..text.len() - 9], "line 2: EOF"),
        (&text[..=first.len()], "1 cases were asked, and 0 answers"),
        (&format!("{text}{last}"), "line 3: the answer to"),
        (&text.replace("3.0,", ""), "called 5 times, and 4 answers"),
        (&text.replace("3.0,", "-3.0,"), "is no time"),
        (&text.replace("3.0,", "3e300,"), "is no time"),
        (&text.replace("3.0,", "null,"), "line 2: invalid type: null"),
    ] {
        let told = refused(cut);
        assert!(told.contains(why), "{told}");
    }
}

/// Cases as if a card with the numbers of `machine` had answered them.
fn answered(names: &[&str], machine: &Machine) -> Vec<Question> {
    let asked = cases().filter(|(_, case)| names.contains(&case.name.as_str()));
    let asked: Vec<_> = asked.collect();
    assert_eq!(asked.len(), names.len());
    let question = |&(probe, case): &(&Probe, &'static Case)| {
        let image = compiled(probe, case).expect("it compiles");
        let traced = Traced::of(case, &image).expect("it ends");
        let told = traced.put_to(machine).expect("the replay ends");
        Question {
            traced,
            time: told.time,
            mhz: Some(told.mhz),
        }
    };
    each(&asked, question)
}

#[test]
fn a_fit_finds_the_numbers_that_answers_were_made_with() {
    let device = default_device();
    let machine = device.model.as_ref().expect("the H200 is modelled");
    let changes = [
        ("clock_mhz", 0.95),
        ("mufu_interval", 1.5),
        ("mufu_latency", 0.8),
        ("shared_latency", 1.4),
        ("l2_latency", 0.7),
        ("memory_bandwidth", 0.8),
        ("barrier_latency", 1.6),
        ("launch_micros", 1.2),
    ];
    let mut other = machine.clone();
    for (name, factor) in changes {
        *other.number_mut(name).expect(name) *= factor;
    }
    let names = [
        "clock/six-bits/1",
        "pipes/ex2/4-warps",
        "pipes/ex2/latency",
        "shared/lds4/latency",
        "global/l2",
        "stream/read/all/cold/1048576",
        "sync/bar/128",
        "start/empty/132/small",
    ];
    let questions = answered(&names, &other);
    let found = fit(machine, &device.peaks, &questions, &Progress::begin());
    let after = |name: &str| {
        let number = found.fitted.iter().find(|number| number.name == name);
        number
            .map(|number| (number.after, number.standing))
            .expect(name)
    };
    for (name, _) in changes {
        let (found, made) = (after(name).0, other.number(name).unwrap());
        let off = found / made - 1.0;
        assert!(off.abs() < 0.02, "{name}: {found} for {made}");
    }
    for case in &found.cases {
        let off = case.error().expect("it ends");
        assert!(off.abs() < 0.01, "{}: {off}", case.name);
    }
    // What no case asks for is as it was.
    for name in ["wgmma_column", "sms", "remote_latency"] {
        let kept = machine.number(name).map(|n| (n, Standing::Unasked));
        assert_eq!(Some(after(name)), kept);
    }
    // The same answers give the same numbers.
    let again = fit(machine, &device.peaks, &questions, &Progress::begin());
    assert_eq!(again.fitted, found.fitted);
}

/// What no value can explain leaves its number alone, and the others are fitted
/// as if nobody had asked.
#[test]
fn answers_that_cannot_be_explained_move_nothing() {
    let device = default_device();
    let machine = device.model.as_ref().expect("the H200 is modelled");
    let mut questions = answered(&["pipes/ex2/latency", "pipes/popc/latency"], machine);
    // Nothing of a chain of 512 takes a tenth of a cycle.
    questions[1].time /= 200.0;
    let found = fit(machine, &device.peaks, &questions, &Progress::begin());
    let number = |name: &str| {
        let number = found.fitted.iter().find(|number| number.name == name);
        number
            .map(|n| (n.standing, n.after == n.before))
            .expect(name)
    };
    assert_eq!(number("convert_latency"), (Standing::Unexplained, true));
    assert_eq!(number("mufu_latency"), (Standing::Fitted, true));
    assert_eq!(number("l1_latency"), (Standing::Unasked, true));
}

#[test]
fn every_number_that_is_fitted_is_one_and_has_cases() {
    let machine = default_device()
        .model
        .as_ref()
        .expect("the H200 is modelled");
    let mut names = BTreeSet::new();
    for parameter in parameters() {
        let name = parameter.name.as_str();
        assert!(names.insert(name), "{name} twice");
        let value = machine.number(name);
        let value = value.unwrap_or_else(|| panic!("{name} is no number of a machine"));
        let (low, high) = parameter.bounds(machine, &default_device().peaks);
        assert!((low..=high).contains(&value), "{name} = {value}");
        assert!(
            cases().any(|(_, case)| parameter.is_about(&case.name)),
            "no case is about {name}"
        );
    }
}
