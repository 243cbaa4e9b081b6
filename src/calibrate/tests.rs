//! Every case is named, compiled and called, by the emulator, as a card would
//! call it: what hangs, faults or reports no time there is no question.

use std::collections::BTreeSet;

use rayon::prelude::*;

use super::answers::{Answer, Answers};
use super::measure::trial;
use super::probe::{Case, Probe, Read, cases, probes, unit};
use crate::backend::cuda::WARP_STAMPS;
use crate::backend::emu::probing::stamps;
use crate::compile::{Image, Nvrtc};

#[test]
fn every_case_has_a_name_of_its_own_and_fits_a_card() {
    let mut names = BTreeSet::new();
    for (_, case) in cases() {
        assert!(names.insert(&case.name), "{} twice", case.name);
        assert!(!case.name.contains('{'), "{} is not filled in", case.name);
        let whole = case.grid % case.cluster == 0;
        assert!(case.block <= 1024 && whole, "{}", case.name);
    }
    assert!(names.len() < 450, "{} cases", names.len());
}

/// Compiles a case and calls one cluster of it.
fn call(probe: &Probe, case: &Case) -> Result<(), String> {
    let compiler = Nvrtc::find().expect("scripts/nvrtc gets a compiler");
    let unit = unit(probe, case);
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
    let image = Image {
        key: String::new(),
        cubin: compiled.cubin.ok_or(compiled.log)?,
        ptx: compiled.ptx,
        kernels: Vec::new(),
        remarks: Vec::new(),
    };
    let place = match case.read {
        Read::Cycles | Read::Micros => 0,
        Read::Nanos => WARP_STAMPS,
    };
    match stamps(&trial(case, &image), [case.data, case.scratch], place)? {
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
    let failed: Vec<String> = asked
        .par_iter()
        .filter_map(|(probe, case)| {
            let why = call(probe, case).err()?;
            Some(format!("{}: {why}", case.name))
        })
        .collect();
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
    answer.values = vec![3.0, 1.0, 2.5];
    assert_eq!(answer.median(), 2.5);
    let header = r#"{"type":"header","schema":1,"started":"2026-11-15T18:27:17+00:00","argv":["dgx"],"dgx":"0.1.0","git":null,"host":{"os":"linux","arch":"x86_64","cpu":"x","cores":16},"device":{"backend":"cuda","timing":"measured","name":"NVIDIA H200","uuid":null,"driver":null,"sms":132,"l2":62914560,"memory":150109880320,"clock_mhz":1980.0,"bandwidth":4814304000000.0,"tensor_flops_per_clock":4096.0,"smem_per_block":232448},"compiler":"NVRTC 13.0","times":5}"#;
    let mut answers = Answers::from_text(header).expect("a header alone is a file");
    answers.answers.push(answer);
    let text = answers.to_text().unwrap();
    assert_eq!(Answers::from_text(&text), Ok(answers));
    let refused = |text: &str| Answers::from_text(text).unwrap_err();
    assert!(refused("").contains("no header"));
    assert!(refused(&header.replace(r#""schema":1"#, r#""schema":2"#)).contains("schema 2"));
    assert!(refused(&format!("{header}\n{header}")).contains("line 2"));
    assert!(refused(text.lines().last().unwrap()).contains("no header before"));
    assert!(refused(&text.replace(r#""times""#, r#""tmies""#)).contains("line 1"));
}
