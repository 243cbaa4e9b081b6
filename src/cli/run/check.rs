use std::path::{Path, PathBuf};

use super::machine;
use crate::cli::select::Shapes;
use crate::cli::{Globals, named, runs};
use crate::present::{Column, Folders, Style, Table};
use crate::table::row;
use dgx_core::config::Yardstick;
use dgx_core::diagnostic::{CommandError, InputError, nearest};
use dgx_core::domain::{Bytes, ContenderId, Device, Exit, Joined, Status, counted, typed};
use dgx_core::files;
use dgx_core::operator::Operator;
use dgx_core::record::schema::Build;
use dgx_core::speech::{self, Level};
use dgx_run::backend::emu::map_refusal;
use dgx_run::catalog::Catalog;
use dgx_run::compile::{CompilerKind, geometry};
use dgx_run::plan::{BuildSpec, Plan, PlanTarget, PlannedCell};
use dgx_run::sweep::{BackendChoice, RefusedCell, inspect};
use dgx_run::validate::check_operator;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Rounds or operator files
    #[arg(value_name = "ROUND", required = true, value_parser = named::round())]
    rounds: Vec<PathBuf>,
    #[command(flatten)]
    shapes: Shapes,
    #[arg(long, value_name = "TARGET", help = machine::target_help(
        "Device to plan for",
        ", or a file like those in configs/targets/ [default: the GPU here, else h200]",
    ))]
    target: Option<String>,
    /// Read and plan only, without NVRTC
    #[arg(long)]
    no_compile: bool,
    #[command(flatten)]
    compile: machine::CompileLimitFlags,
}

/// Operators lie in folders of that name, or define an output.
fn is_operator(path: &Path) -> bool {
    let folder = path.parent().and_then(Path::file_name);
    let has_output = || {
        let text = files::read_text(path, files::LARGEST).unwrap_or_default();
        text.lines()
            .any(|line| line.trim_start().starts_with("[out."))
    };
    folder.is_some_and(|folder| folder == "operators") || has_output()
}

/// Reads, resolves and evaluates everything that a sweep would, but runs nothing.
pub(super) fn run(args: Args, globals: &Globals) -> Result<Exit, CommandError> {
    let (operators, rounds): (Vec<&PathBuf>, Vec<&PathBuf>) =
        args.rounds.iter().partition(|path| is_operator(path));
    for path in operators {
        let operator = Operator::read(path)?;
        check_operator(&operator)?;
        inform!("{} passes its checks: {}", operator.name, operator.summary);
    }
    if rounds.is_empty() {
        return Ok(Exit::Done);
    }
    let catalog = Catalog::open(&globals.variants)?;
    let (device, _) = machine::device(args.target.as_deref(), BackendChoice::Auto)?;
    let machine = PlanTarget::of(&device);
    let mut plans = Vec::new();
    for path in rounds {
        let mut round = runs::round(path)?;
        args.shapes.keep_in_round(&mut round)?;
        check_operator(&round.operator)?;
        let plan = Plan::new(round, &catalog, &machine)?;
        refuse_unsupported(&plan)?;
        refuse_gate_on_absent_contenders(&plan)?;
        warn_of_unknown_names(&plan, &catalog.of(&plan.round.operator));
        plans.push(plan);
    }
    let compiler = match args.no_compile {
        true => None,
        false => {
            let compiler = machine::compiler(args.compile.limits());
            Some(compiler.map_err(|error| error.advising("--no-compile checks without it"))?)
        }
    };
    let style = runs::style(globals);
    let (mut refused, mut surprised) = (false, false);
    for plan in &plans {
        summarise(plan, &device, &style);
        refused |= print_mistakes(plan) != Exit::Done;
        let mut unlaunchable = unlaunchable(plan);
        if let Some(compiler) = &compiler {
            warn_of_python(plan);
            let inspection = inspect(compiler, plan)?;
            let table = resources(&inspection.builds);
            if !table.rows.is_empty() {
                say!("{}", table.render(&style));
            }
            surprised |= report_failures(plan, &inspection.builds);
            unlaunchable.extend(inspection.refused);
        }
        refused |= report_refusals(plan, &unlaunchable);
    }
    let exit = match (refused, surprised) {
        (true, _) => Exit::Usage,
        (false, true) => Exit::Unexpected,
        (false, false) => Exit::Done,
    };
    if speech::level() >= Level::Usual {
        say!("{}", style.dim(style.fold(&next(&args, exit, globals), 6)));
    }
    Ok(exit)
}

/// The next command: what a valid round is for, or how to check an invalid one again.
fn next(args: &Args, exit: Exit, globals: &Globals) -> String {
    let rounds = args.rounds.iter().map(typed);
    let folders = Folders::named(&globals.variants).flags();
    let target = args.target.as_ref();
    let target = target.map_or(String::new(), |t| format!(" --target {}", typed(t)));
    let step = |round: String| match exit {
        Exit::Done => format!("dgx sweep {round}{target}{folders}"),
        _ => format!("dgx check {round}{target}{folders}"),
    };
    let first = match exit {
        Exit::Done => "",
        _ => "correct it, then ",
    };
    format!("next: {first}{}", rounds.map(step).joined(" · "))
}

/// Warns that compiling Python files runs code.
fn warn_of_python(plan: &Plan) {
    let python = |build: &&BuildSpec| matches!(build.unit.compiler, CompilerKind::Triton(_));
    let mut files: Vec<String> = (plan.builds.iter().filter(python))
        .map(|build| build.unit.name.clone())
        .collect();
    files.dedup();
    if !files.is_empty() {
        let files = files.join(" and ");
        inform!("note: to compile {files}, Python runs it with your rights");
    }
}

/// Prints the mistakes of variants that would fail their rows in a sweep.
pub(super) fn print_mistakes(plan: &Plan) -> Exit {
    print_all(plan.mistakes())
}

/// Prints these mistakes, and returns the exit code for them.
pub(super) fn print_all<'m>(mistakes: impl IntoIterator<Item = &'m InputError>) -> Exit {
    let mut exit = Exit::Done;
    for mistake in mistakes {
        CommandError::from(mistake.clone()).print();
        exit = Exit::Usage;
    }
    exit
}

/// A row for each kernel of each image.
fn resources(builds: &[Build]) -> Table {
    let mut grid = Table::new(vec![
        Column::key("contender"),
        Column::key("kernel"),
        Column::right("regs").weight(8),
        Column::right("spills").weight(8),
        Column::right("smem").weight(8),
        Column::right("threads").weight(8),
        Column::right("occupancy").weight(8),
        Column::right("shapes").weight(8),
    ]);
    for build in builds {
        let (contender, shapes) = (&build.contender, build.shapes.len());
        if !build.ok {
            let failed = "does not compile";
            grid.push(row![contender, failed, "", "", "", "", "", shapes]);
        }
        for kernel in &build.kernels {
            grid.push(row![
                contender,
                &kernel.name,
                kernel.registers,
                Bytes(kernel.spill_bytes.into()),
                Bytes(kernel.static_smem.0 + kernel.dynamic_smem.0),
                kernel.threads,
                format!("{:.0} %", 100.0 * kernel.occupancy),
                shapes,
            ]);
        }
    }
    grid
}

/// Prints remarks and compile errors; true if one was not declared.
fn report_failures(plan: &Plan, builds: &[Build]) -> bool {
    let mut surprised = false;
    for build in builds {
        for remark in &build.remarks {
            say!("{}: {remark}", build.contender);
        }
        let contender = plan.contenders.iter().find(|c| c.id == build.contender);
        let expected = contender.is_some_and(|c| c.variant.expect == Status::CompileError);
        surprised |= build.ok == expected;
        if let Some(message) = &build.message {
            say!("{}: {message}", build.contender);
        }
    }
    surprised
}

/// The launches that a device would refuse, as far as the plan alone shows.
fn unlaunchable(plan: &Plan) -> Vec<RefusedCell> {
    let limits = &plan.device.limits;
    let cells = plan.cells.iter();
    cells
        .filter_map(|cell| {
            let (_, call) = cell.run()?;
            let mut launches = call.launches.iter().enumerate();
            let refused = launches.find_map(|(at, launch)| Some((at, geometry(limits, launch)?)));
            let launch = refused.map(|refused| RefusedCell::of(cell, refused));
            let map = || {
                Some(RefusedCell {
                    contender: cell.contender,
                    shape: cell.shape,
                    reason: map_refusal(call)?,
                    launch: None,
                })
            };
            launch.or_else(map)
        })
        .collect()
}

/// Prints the launches that a device would refuse, once for each contender and reason; true if one
/// was not declared.
fn report_refusals(plan: &Plan, refused: &[RefusedCell]) -> bool {
    let mut surprised = false;
    let mut told = Vec::new();
    for cell in refused {
        let contender = &plan.contenders[cell.contender];
        surprised |= contender.variant.expect != Status::LaunchError;
        if !told.contains(&(&contender.id, &cell.reason)) {
            let shape = &plan.shapes[cell.shape].name;
            let message = format!("{} on {shape}: {}", contender.id, cell.reason);
            let launch = |place: usize| contender.variant.launches.get(place);
            let placed = (cell.launch).and_then(|(place, key)| Some((launch(place)?, key)));
            match placed {
                Some((launch, key)) => {
                    CommandError::from(launch.error(key, message)).print();
                }
                None => say!("{message}"),
            }
            told.push((&contender.id, &cell.reason));
        }
    }
    surprised
}

/// Refuses a gate on contenders that do not compete, since it would never be judged.
fn refuse_gate_on_absent_contenders(plan: &Plan) -> Result<(), CommandError> {
    let Some(gate) = &plan.round.gate else {
        return Ok(());
    };
    let ids = || plan.contenders.iter().map(|c| &c.id);
    let competes = |name: &str| {
        let yardstick = plan.round.yardstick.map(Yardstick::as_str);
        yardstick == Some(name) || ids().any(|id| id.as_str() == name || id.variant() == name)
    };
    for name in gate.contenders.iter().chain(&gate.over) {
        if !competes(name) {
            let file = &plan.round.file;
            let gate = file.text.find("[gate]").unwrap_or(0);
            let at = file.text[gate..]
                .find(name.as_str())
                .map_or(gate, |at| gate + at);
            let remedy = match nearest(name, ids().map(ContenderId::as_str)) {
                Some(close) => format!("did you mean `{close}`?"),
                None => "name one of the round's contenders".to_owned(),
            };
            let message = format!("the gate names `{name}`, which does not compete");
            return Err(file.error(at..at + name.len(), message, remedy).into());
        }
    }
    Ok(())
}

/// In a sweep this is a row. A specialised contender may skip shapes, but one that can run none is
/// a mistake in the round.
fn refuse_unsupported(plan: &Plan) -> Result<(), CommandError> {
    let mut idle = vec![true; plan.contenders.len()];
    for cell in (plan.cells.iter()).filter(|cell| cell.unsupported().is_none()) {
        idle[cell.contender] = false;
    }
    let surprising = |cell: &&PlannedCell| {
        let expected = plan.contenders[cell.contender].variant.expect;
        expected != Status::Unsupported && idle[cell.contender]
    };
    // A contender without a source for this chip is unsupported, as in a sweep: a
    // round is written once, for every machine.
    let chip = plan.device.chip;
    let elsewhere = |cell: &&PlannedCell| {
        let contender = &plan.contenders[cell.contender];
        let another = chip.refuses(&contender.variant.arch).is_some();
        another && contender.id != plan.baseline && contender.variant.picks.is_empty()
    };
    let mut told = Vec::new();
    for cell in plan.cells.iter().filter(surprising).filter(elsewhere) {
        let id = &plan.contenders[cell.contender].id;
        if let Some(reason) = cell.unsupported()
            && !told.contains(&id)
        {
            say!("{id} is unsupported: {reason}");
            told.push(id);
        }
    }
    let mut unexpected = plan.cells.iter().filter(surprising);
    let Some(cell) = unexpected.find(|cell| !elsewhere(cell)) else {
        return Ok(());
    };
    let Some(reason) = cell.unsupported() else {
        return Ok(());
    };
    let contender = &plan.contenders[cell.contender];
    let id = &contender.id;
    if chip.refuses(&contender.variant.arch).is_some() {
        let device = &plan.device.name;
        let remedy = format!(
            "plan for that target, or write {} for this one",
            source_for(&contender.variant.file.path, &chip.target()).display()
        );
        let message = format!("{id} does not run on {device}: {reason}");
        return Err(InputError::new(message, remedy).into());
    }
    let shape = &plan.shapes[cell.shape].name;
    let span = plan.round.shape_spans[cell.shape].clone();
    Err(plan
        .round
        .file
        .error(
            span,
            format!("{id} cannot run shape {shape}: {reason}"),
            "change the shape, drop the contender, or widen what the variant requires",
        )
        .into())
}

/// Where the source of a variant for another chip lies.
fn source_for(variant: &Path, target: &str) -> PathBuf {
    let folder = variant.parent().unwrap_or(Path::new(""));
    let name = variant.file_name().unwrap_or_default();
    folder.join(target).join(name)
}

/// Lineage and claims name other variants; an unknown name does not prevent a run, but deserves a
/// warning.
fn warn_of_unknown_names(plan: &Plan, catalog: &Catalog) {
    let mut told = Vec::new();
    for contender in &plan.contenders {
        let variant = &contender.variant;
        let parent = variant.parent.as_deref().map(|name| ("parent", name));
        let over = variant.claim.as_ref().map(|claim| {
            let name = claim.over.split('[').next().unwrap_or(&claim.over);
            ("claim.over", name)
        });
        for (key, name) in parent.into_iter().chain(over) {
            let known =
                catalog.knows(name).is_ok() || Yardstick::ALL.iter().any(|y| y.as_str() == name);
            let warning = format!(
                "warning: {}: `{key}` names `{name}`, which is not there",
                variant.file.path.display()
            );
            if !known && !told.contains(&warning) {
                remark!("{warning}");
                told.push(warning);
            }
        }
    }
}

pub(super) fn summarise(plan: &Plan, device: &Device, style: &Style) {
    let round = &plan.round;
    say!("{}", style.titled(&round.name, &round.question));
    let size = format!(
        "{} × {}, {} to compile, baseline {}, for {}",
        counted(plan.contenders.len(), "contender"),
        counted(plan.shapes.len(), "shape"),
        counted(plan.builds.len(), "image"),
        plan.baseline,
        device.name
    );
    say!("{}", style.fold(&size, 2));
}
