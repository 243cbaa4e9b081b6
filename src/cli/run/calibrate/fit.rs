use std::path::{Path, PathBuf};

use super::super::machine;
use super::{Args, Only, read};
use crate::agreement::Errors;
use crate::cli::{Globals, runs};
use crate::export;
use crate::present::{Column, Table, percent, signed_percent};
use dgx_core::config::target;
use dgx_core::diagnostic::{CommandError, SourceFile};
use dgx_core::domain::Exit;
use ptx_calibrate::{Answers, CaseFit, Fit, Fitted, Standing, fit_answers};

/// The number of worst-fitting cases that are printed.
const WORST: usize = 15;

pub(super) fn run(path: &Path, args: &Args, globals: &Globals) -> Result<Exit, CommandError> {
    let answers = read(path)?;
    let source = target::source(&args.target)?;
    let device = target::device(&source)?;
    runs::probe([&args.output], [path])?;
    let compiler = machine::compiler(args.compile.limits())?;
    let fitting = fit_answers(&answers, &device, &compiler)?;
    let style = runs::style(globals);
    let fit = &fitting.fit;
    say!("{}", numbers(&fit.fitted).render(&style));
    say!("\n{}", cases(fit, &args.only).render(&style));
    say!("\n{}", summary(fit));
    if fitting.unanswered > 0 {
        say!("{} cases have no answer there", fitting.unanswered);
    }
    if !fitting.foreign.is_empty() {
        let names = fitting.foreign.join(", ");
        let text = format!("no such case in these answers: {names}");
        say!("{}", style.fold(&text, 2));
    }
    let found = |number: &&Fitted| number.standing == Standing::Fitted;
    let found = fit.fitted.iter().filter(found);
    let numbers = found.map(|number| (number.name, number.after));
    let fitted = target::with_numbers(&source, numbers, &origin(path, &answers))?;
    keep(&args.output, &fitted)?;
    Ok(Exit::Done)
}

/// Writes the target if one was asked for. A target that a reader would refuse is refused now.
pub(super) fn keep(output: &Option<PathBuf>, target: &SourceFile) -> Result<(), CommandError> {
    let Some(path) = output else {
        return Ok(());
    };
    target::device(target)?;
    export::write(path, &target.text)?;
    say!("written to {}", path.display());
    Ok(())
}

fn origin(path: &Path, answers: &Answers) -> String {
    let asked = &answers.asked;
    let day = asked.started.split('T').next().unwrap_or_default();
    let (file, name) = (path.display(), &asked.device.name);
    format!("dgx calibrate --fit {file}, answered by an {name} on {day}")
}

fn numbers(fitted: &[Fitted]) -> Table {
    let mut grid = Table::new(vec![
        Column::left("number"),
        Column::right("before"),
        Column::right("after"),
        Column::right("cases").weight(7),
        Column::right("error before").weight(8),
        Column::right("after").weight(8),
        Column::left(""),
    ]);
    for number in fitted {
        let error = |of: fn((f64, f64)) -> f64| match number.errors {
            Some(errors) => percent(of(errors)),
            None => String::new(),
        };
        grid.push(vec![
            number.name.to_owned(),
            figure(number.before),
            figure(number.after),
            match number.cases {
                0 => String::new(),
                cases => cases.to_string(),
            },
            error(|errors| errors.0),
            error(|errors| errors.1),
            kept(number.standing).to_owned(),
        ]);
    }
    grid
}

/// Why a number keeps its value.
fn kept(standing: Standing) -> &'static str {
    match standing {
        Standing::Fitted => "",
        Standing::Unasked => "kept: no case asks for it",
        Standing::Unmoved => "kept: no case depends on it",
        Standing::Unexplained => "kept: no value explains its cases",
        Standing::Unbounded => "kept: its cases ask for what cannot be",
    }
}

/// Formatted with the digits that the fit determines.
fn figure(value: f64) -> String {
    match value.abs() {
        v if v >= 1e7 => format!("{value:e}"),
        _ => format!("{value}"),
    }
}

/// The cases with `only` in their names, or the worst-fitting ones.
fn cases(fit: &Fit, only: &Only) -> Table {
    let title = match only.is_all() {
        true => "fits worst",
        false => "case",
    };
    let mut grid = Table::new(vec![
        Column::left(title),
        Column::right("answer"),
        Column::right("before").weight(8),
        Column::right("after"),
        Column::right("error"),
    ]);
    let mut cases: Vec<&CaseFit> = fit.cases.iter().collect();
    cases.retain(|case| only.lets_in(case.name));
    if only.is_all() {
        let off = |case: &CaseFit| case.error().map_or(f64::INFINITY, |e| e.ln_1p().abs());
        cases.sort_by(|a, b| off(b).total_cmp(&off(a)));
        cases.truncate(WORST);
    }
    for case in cases {
        let time_text =
            |time: Option<f64>| time.map_or("never ends".to_owned(), |t| format!("{t:.1}"));
        grid.push(vec![
            case.name.to_owned(),
            format!("{:.1}", case.answer),
            time_text(case.before),
            time_text(case.after),
            case.error().map(signed_percent).unwrap_or_default(),
        ]);
    }
    grid
}

fn summary(fit: &Fit) -> String {
    let ended = Errors::over(fit.cases.iter().filter_map(CaseFit::error));
    let Some(errors) = ended else {
        return "no case ends".to_owned();
    };
    let sentence = format!(
        "{} cases: half of them within {}, nine of ten within {}",
        errors.cells,
        percent(errors.median),
        percent(errors.p90)
    );
    match fit.cases.len() - errors.cells {
        0 => sentence,
        endless => format!("{sentence}; {endless} more never end"),
    }
}
