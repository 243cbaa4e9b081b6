//! From a file of answers to the numbers that explain them.

use std::collections::HashMap;

use super::answers::{Answer, Answers};
use super::each::each;
use super::fit::{Fit, Question, fit};
use super::measure::{compiled, could_not_run, failed};
use super::parameters::parameters;
use super::probe::{Case, Probe, cases};
use super::traced::Traced;
use dgx_core::diagnostic::{CommandError, InputError};
use dgx_core::domain::{Chip, Device};
use dgx_run::compile::{Compiler, Image};
use dgx_run::sweep::Progress;

/// What answers were for, and what could be made of them.
#[derive(Debug)]
pub struct Fitting {
    pub fit: Fit,
    /// Answers to what is not asked of this chip, or is asked otherwise by now.
    pub foreign: Vec<String>,
    /// Cases without an answer.
    pub unanswered: usize,
}

/// Fits the model of `device` to `answers`.
pub fn fit_answers(
    answers: &Answers,
    device: &Device,
    compiler: &Compiler,
) -> Result<Fitting, CommandError> {
    let asked = &answers.asked.device.name;
    if *asked != device.name {
        return Err(InputError::new(
            format!(
                "the answers are of {asked}, and the target is {}",
                device.name
            ),
            "fit the target of the card that was asked: --target",
        )
        .into());
    }
    let machine = device.model.as_ref();
    let machine = machine.ok_or_else(|| could_not_run("the target has no model"))?;
    let Known {
        known,
        foreign,
        unanswered,
    } = Known::among(&answers.answers, device.chip);
    if known.is_empty() {
        return Err(InputError::new(
            "it has no answer to a case that this dgx can emulate",
            "measure again: dgx calibrate --measure",
        )
        .into());
    }
    let chosen: Vec<(&Probe, &Case)> = known.iter().map(|k| (k.0, k.1)).collect();
    let images = compiled(&chosen, device.chip, compiler)?;
    let progress = Progress::begin();
    let bar = progress.stage("trace", known.len());
    let asked: Vec<_> = known.iter().zip(&images).collect();
    let questions: Result<Vec<Question>, CommandError> =
        each(&asked, |((_, case, answer), image)| {
            bar.at(case.name.as_str());
            let question = question(case, answer, image);
            bar.step(1.0);
            question
        })
        .into_iter()
        .collect();
    bar.done("");
    Ok(Fitting {
        fit: fit(machine, &device.peaks, &questions?, &progress),
        foreign,
        unanswered,
    })
}

fn question(case: &'static Case, answer: &Answer, image: &Image) -> Result<Question, CommandError> {
    Ok(Question {
        traced: Traced::of(case, image).map_err(|why| failed(case, &why))?,
        time: answer.median(),
        mhz: answer.median_mhz(),
    })
}

/// Whether a case is worth emulating: one that is long only for its clock.
fn wanted(case: &Case) -> bool {
    let mut clocks = parameters().iter().filter(|p| p.by_clock);
    !case.long || clocks.any(|parameter| parameter.is_about(&case.name))
}

/// What is asked of a chip, as far as a file answers it.
struct Known<'a> {
    known: Vec<(&'static Probe, &'static Case, &'a Answer)>,
    foreign: Vec<String>,
    unanswered: usize,
}

impl<'a> Known<'a> {
    fn among(answers: &'a [Answer], chip: Chip) -> Self {
        let by_name = answers.iter().map(|answer| (answer.name.as_str(), answer));
        let by_name: HashMap<&str, &Answer> = by_name.collect();
        let answer = |case: &Case| {
            let answer = by_name.get(case.name.as_str()).copied();
            answer.filter(|answer| answer.is_to(case))
        };
        let asked = || cases().filter(|(_, case)| case.suits(chip));
        let (mut known, mut unanswered) = (Vec::new(), 0);
        for (probe, case) in asked().filter(|(_, case)| wanted(case)) {
            match answer(case) {
                Some(answer) => known.push((probe, case, answer)),
                None => unanswered += 1,
            }
        }
        let foreign = |answer: &&Answer| !asked().any(|(_, case)| answer.is_to(case));
        let foreign = answers.iter().filter(foreign);
        Self {
            known,
            foreign: foreign.map(|answer| answer.name.clone()).collect(),
            unanswered,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_what_a_chip_does_not_have_are_not_its_own() {
        for chip in ["sm_90a", "sm_100a"] {
            let chip = Chip::parse(chip).expect("a chip");
            let others = cases().filter(|(_, case)| !case.suits(chip));
            let mut answers: Vec<Answer> = others.map(|(_, case)| Answer::to(case, 0)).collect();
            let known = Known::among(&answers, chip);
            assert_eq!(known.foreign.len(), answers.len());
            assert!(known.known.is_empty() && !answers.is_empty());
            let all = known.unanswered;
            answers.extend(cases().map(|(_, case)| Answer::to(case, 0)));
            let known = Known::among(&answers, chip);
            assert_eq!((known.known.len(), known.unanswered), (all, 0));
        }
    }
}
