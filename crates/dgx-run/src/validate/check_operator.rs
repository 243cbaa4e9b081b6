//! Whether an operator's file can distinguish right from wrong: tests its tolerance on its own
//! data.

use std::collections::BTreeSet;
use std::sync::Mutex;

use super::Allowed;
use crate::operator::{
    GroupOperands, GroupOracle, Operands, Oracle, OutputValues, written_outputs,
};
use dgx_core::diagnostic::InputError;
use dgx_core::domain::{Distribution, Group, Shape};
use dgx_core::operator::{Mistake, Operator, built_in};

/// The data that an operator is tried on.
const DATA: [Distribution; 2] = [Distribution::Benchmark, Distribution::Full];
const SEED: u64 = 1;

/// Refuses an operator whose value is never a number on its own data, or whose tolerance accepts
/// zeros or one of its mistakes in every trial.
pub fn check_operator(operator: &Operator) -> Result<(), InputError> {
    // A test tries the built-in ones.
    static TRIED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let known = built_in(&operator.name).is_some_and(|own| own == operator);
    let mut tried = TRIED.lock().unwrap_or_else(|held| held.into_inner());
    if known || tried.contains(&operator.digest) {
        return Ok(());
    }
    tried_on(operator, &trials(operator))?;
    tried.insert(operator.digest.clone());
    Ok(())
}

/// Data of a small problem, and the expected result.
struct SmallProblem {
    operands: Operands,
    oracle: Oracle,
}

impl SmallProblem {
    fn group(&self) -> &GroupOperands {
        &self.operands.groups[0]
    }

    /// Whether these values are accepted as an output.
    fn accepts(&self, operator: &Operator, output: usize, values: &[f64]) -> bool {
        let (answer, own) = (&self.oracle.groups[output], &operator.outputs[output]);
        let allowed = Allowed::of(own, answer);
        let written = OutputValues::rounded(own.tensor.element, values.iter().copied());
        let mut places = 0..answer.len();
        places.all(|place| {
            let tolerance = allowed.at(place / answer.columns);
            tolerance.accepts(written.at(place), answer.c(place))
        })
    }
}

fn trials(operator: &Operator) -> Vec<SmallProblem> {
    let shared = std::sync::Arc::new(operator.clone());
    let problems = operator.small.iter().flat_map(|small| {
        let sizes = operator.sizes.iter().zip(small);
        let group = Group::new(sizes.map(|(name, size)| (name.as_str(), *size as u32)));
        DATA.map(|distribution| (group.clone(), distribution))
    });
    let trial = |(group, distribution): (Group, Distribution)| {
        let shape = Shape {
            name: "small".to_owned(),
            groups: vec![group],
        };
        let operands = Operands::draw(&shared, &shape, distribution, SEED);
        let oracle = Oracle::compute(&operands);
        SmallProblem { operands, oracle }
    };
    problems.map(trial).collect()
}

fn tried_on(operator: &Operator, trials: &[SmallProblem]) -> Result<(), InputError> {
    for (place, output) in operator.outputs.iter().enumerate() {
        let name = &output.tensor.name;
        let answers = || trials.iter().map(|trial| &trial.oracle.groups[place]);
        if !answers().any(|answer| (0..answer.len()).any(|at| answer.c(at).is_finite())) {
            let message = format!("`{name}` is NaN or infinite everywhere on its own data");
            let remedy = "give the inputs a `range` that the value is defined on";
            return Err(operator.error(output.place.clone(), message, remedy));
        }
        let rounded = |trial: &SmallProblem| {
            let answer = &trial.oracle.groups[place];
            let values: Vec<f64> = (0..answer.len()).map(|at| answer.c(at)).collect();
            trial.accepts(operator, place, &values)
        };
        if !trials.iter().all(rounded) {
            let element = output.tensor.element.name();
            let message =
                format!("the right result, rounded to {element}, does not pass for `{name}`");
            let remedy = "give a larger rtol, or leave it out: it then follows from the type";
            return Err(operator.error(output.place.clone(), message, remedy));
        }
        let zeros = |answer: &GroupOracle| vec![0.0; answer.len()];
        let telling = |trial: &&SmallProblem| {
            let answer = &trial.oracle.groups[place];
            (0..answer.len()).any(|at| answer.c(at) != 0.0)
        };
        let pass = |t: &SmallProblem| t.accepts(operator, place, &zeros(&t.oracle.groups[place]));
        let is_zero = !trials.iter().any(|trial| telling(&trial));
        if is_zero || trials.iter().filter(telling).any(pass) {
            let (at, key) = tolerance_of(operator, place);
            let message = format!("all zeros pass for `{name}` on its own data: {key}");
            return Err(operator.error(
                at,
                message,
                remedy(key, "give the inputs another `range`"),
            ));
        }
    }
    for mistake in &operator.mistakes {
        let mut all = trials.iter();
        if all.all(|trial| passes(operator, trial, mistake)) {
            let (name, (_, key)) = (&mistake.name, tolerance_of(operator, mistake.output));
            let message = format!("the mistake {name:?} passes on the operator's own data: {key}");
            let alike =
                "give the inputs another `range`, or remove the mistake that the data cannot show";
            let remedy = remedy(key, alike);
            return Err(operator.error(mistake.place.clone(), message, remedy));
        }
    }
    Ok(())
}

/// Whether a mistake is accepted as its output.
fn passes(operator: &Operator, trial: &SmallProblem, mistake: &Mistake) -> bool {
    let group = trial.group();
    let sizes = operator.sizes_in(&group.group).unwrap_or_default();
    let answers = &trial.oracle.groups[..mistake.output];
    let above = written_outputs(operator, &sizes, answers);
    let problem = group.problem_with(operator, &above);
    let tensor = &operator.outputs[mistake.output].tensor;
    let evaluator = problem.evaluator(&mistake.value, tensor);
    let evaluator = evaluator.expect("operands drawn for the operator");
    let values = evaluator.rows(0..evaluator.row_count());
    trial.accepts(operator, mistake.output, &values)
}

const LOOSE: &str = "the tolerance is too large";
const SMALL: &str = "the values are too alike";

/// What to do about a tolerance that is too large, or else about values that are too alike.
fn remedy(key: &str, alike: &'static str) -> &'static str {
    match key {
        LOOSE => "give a smaller atol, or leave it out: it then follows from the type",
        _ => alike,
    }
}

/// The place of an output's absolute tolerance, or of its value if it has none, and the mistake
/// there.
fn tolerance_of(operator: &Operator, output: usize) -> (std::ops::Range<usize>, &'static str) {
    let own = &operator.outputs[output];
    let from = own.tensor.place.end;
    let text = operator.file.text.get(from..).unwrap_or_default();
    match text
        .find("atol")
        .filter(|_| own.atol.is_some_and(|atol| atol > 0.0))
    {
        Some(at) => (from + at..from + at + 4, LOOSE),
        None => (own.place.clone(), SMALL),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dgx_core::diagnostic::SourceFile;
    use dgx_core::operator::names;

    const SCALED: &str = "summary = \"test\"\nsizes = [\"m\", \"n\"]\nsmall = [{ m = 4, n = 256 }]\n\
        [in.x]\ntype = \"f16\"\nsize = [\"m\", \"n\"]\nrange = [0, 1]\n\
        [out.y]\ntype = \"f16\"\nsize = [\"m\", \"n\"]\n";

    fn report(rest: &str) -> String {
        let file = SourceFile {
            path: "operators/test.toml".into(),
            text: format!("{SCALED}{rest}").into(),
        };
        let operator = Operator::from_source(file).expect("right in itself");
        check_operator(&operator).map_or_else(
            |error| format!("{}; help: {}", error.message(), error.remedy()),
            |()| String::new(),
        )
    }

    #[test]
    fn operators_that_are_built_in_tell_right_from_wrong() {
        for name in names() {
            let operator = built_in(name).unwrap();
            tried_on(operator, &trials(operator)).unwrap_or_else(|e| panic!("{name}: {e}"));
        }
    }

    #[test]
    fn tolerances_that_accept_what_is_wrong_are_refused() {
        let above = report(
            "value = \"x + 1\"\n[out.z]\ntype = \"f16\"\nsize = [\"m\", \"n\"]\n\
             value = \"y * x\"\n[out.z.mistake]\nsame = \"y * x + 0 * x\"\n",
        );
        assert!(above.contains("the mistake \"same\" passes"), "{above}");
        assert!(above.contains("or remove the mistake"), "{above}");
        assert_eq!(report("value = \"softmax(x, -1)\"\n"), "");
        let zeros = report("value = \"softmax(x, -1)\"\natol = 0.1\n");
        assert!(zeros.contains("all zeros pass for `y`"), "{zeros}");
        let mistake = report("value = \"x + 1\"\natol = 0.01\n[mistake]\nfew = \"x + 1.001\"\n");
        assert!(mistake.contains("the mistake \"few\" passes"), "{mistake}");
        let nan = report("value = \"log(x - 2)\"\n");
        assert!(nan.contains("`y` is NaN or infinite everywhere"), "{nan}");
        let nothing = report("value = \"x - x\"\n");
        assert!(nothing.contains("all zeros pass"), "{nothing}");
        assert!(
            nothing.ends_with("help: give the inputs another `range`"),
            "{nothing}"
        );
    }
}
