use std::collections::BTreeMap;
use std::path::PathBuf;

use super::binding::binding;
use super::examined_round::examined_round;
use super::machine;
use crate::cli::Globals;
use crate::cli::named;
use crate::cli::runs;
use crate::cli::select::Shapes;
use crate::present::{Column, CounterRow, Style, Table, counters_tables, percent, rendered};
use crate::table::{Value, maybe, row};
use dgx_core::config::{Baseline, Round, Selection};
use dgx_core::diagnostic::{CommandError, InputError};
use dgx_core::domain::roofline::{Ceiling, Resource};
use dgx_core::domain::{ContenderId, Device, Exit, Timing};
use dgx_core::interrupt::{self, SignalMessages};
use dgx_core::rank::{Ranking, Timed};
use dgx_core::record::Run;
use dgx_core::record::schema::Build;
use dgx_run::catalog::{Catalog, Contender, Variant};
use dgx_run::explain::{CallFit, KernelFit, builds_by_shape, remarks};
use dgx_run::plan::{Plan, PlanOutcome, PlanTarget};
use dgx_run::sweep::{BackendChoice, Progress, inspect};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Contender: a variant, or one of its parameter choices
    contender: String,
    /// A round for its shapes, or a run for its shapes and times [default: the newest
    /// run if that has the contender, else configs/CONTENDER.toml, else the newest run]
    #[arg(value_name = "ROUND|RUN", value_parser = named::round_or_run())]
    of: Option<PathBuf>,
    #[command(flatten)]
    shapes: Shapes,
    #[arg(long, value_name = "TARGET", help = machine::target_help(
        "Device to plan for",
        ", or a file like those in configs/targets/ [default: the run's, else the GPU here, else h200]",
    ))]
    target: Option<String>,
    #[command(flatten)]
    compile: machine::CompileLimitFlags,
}

const EXPLAINING: SignalMessages = SignalMessages {
    first: None,
    second: "stopped; the output above is incomplete",
};

/// Compiles a contender and shows what bounds it, shape by shape; times stand
/// beside it where a run has them.
pub(super) fn run(args: Args, globals: &Globals) -> Result<Exit, CommandError> {
    let catalog = Catalog::open(&globals.variants)?;
    let (mut round, run) = examined_round(args.of.as_deref(), &args.contender, &catalog)?;
    args.shapes.keep_in_round(&mut round)?;
    // Times of another device do not apply to this one.
    let run = run.filter(|_| args.target.is_none());
    let device = match &run {
        Some(run) => runs::device_of(run)?,
        None => machine::device(args.target.as_deref(), BackendChoice::Auto)?.0,
    };
    let ceiling = match &run {
        Some(run) => run.header.device.ceiling(),
        None => device.ceiling(Timing::Measured),
    };
    let plan = plan_for(&args.contender, round, &catalog, &device)?;
    let compiler = machine::compiler(args.compile.limits())?;
    interrupt::install(EXPLAINING);
    let progress = Progress::begin();
    let inspected = progress.during("explain", "compiling", || inspect(&compiler, &plan));
    let builds = inspected?.builds;
    let ranking = run.as_ref().map(Ranking::of);
    let style = runs::style(globals);
    for (index, contender) in plan.contenders.iter().enumerate() {
        let own: Vec<Build> = builds
            .iter()
            .filter(|build| build.contender == contender.id)
            .cloned()
            .collect();
        introduce(contender, &style);
        show(&plan, index, &own, ceiling, ranking.as_ref(), &style);
        match &run {
            Some(run) => print_counters(run, &contender.id, &style),
            None => say!("{}\n", style.fold(&assumed(&device), 2)),
        }
        let binds = progress.during("explain", &format!("what binds {}", contender.id), || {
            binding(&plan, index, &device, &compiler, &style)
        });
        say!("{binds}");
    }
    Ok(Exit::Done)
}

/// The numbers behind the minimum times if no run gives them, each with its source.
fn assumed(device: &Device) -> String {
    let by = |key: &str| device.origins.get(key).map_or("unknown", String::as_str);
    let Device { name, peaks, .. } = device;
    format!(
        "Planned for the {name}: {} SMs ({}), {:.0} MHz ({}), {:.2} TB/s ({}), {:.0} tensor \
         operations per clock and SM ({}).",
        device.limits.sms,
        by("limits.sms"),
        peaks.clock_mhz,
        by("peaks.clock_mhz"),
        peaks.bandwidth / 1e12,
        by("peaks.bandwidth"),
        peaks.tensor_flops.unwrap_or(0.0),
        by("peaks.tensor_flops"),
    )
}

/// A plan of the round with only this contender.
pub(super) fn plan_for(
    name: &str,
    round: Round,
    catalog: &Catalog,
    device: &Device,
) -> Result<Plan, CommandError> {
    plan_for_machine(name, round, catalog, &PlanTarget::of(device))
}

/// As [`plan_for`], on a host that may lack memory.
pub(super) fn plan_for_machine(
    name: &str,
    mut round: Round,
    catalog: &Catalog,
    machine: &PlanTarget<'_>,
) -> Result<Plan, CommandError> {
    let wrong = |why: String| InputError::new(why, "write NAME or NAME:PARAM=1; see `dgx list`");
    let selection = Selection::parse(name, 0..0).map_err(wrong)?;
    let own = catalog.of(&round.operator);
    let variant = own.variant_on(&selection.variant, machine.device.chip)?;
    let chosen = variant.contenders(&selection.params);
    let Some(first) = chosen.first() else {
        return Err(no_contender(&variant, name, &selection.params).into());
    };
    round.baseline = Baseline::Contender(Selection::parse(first.id.as_str(), 0..0).map_err(wrong)?);
    round.contenders = vec![selection];
    Ok(Plan::new(round, catalog, machine)?)
}

/// The error that a variant has no contender with these parameters.
pub(super) fn no_contender(
    variant: &Variant,
    name: &str,
    params: &BTreeMap<String, i64>,
) -> InputError {
    let (message, remedy) = variant.refused(params).unwrap_or_else(|| {
        (
            format!("`{name}` is not one of its parameter choices"),
            "write NAME or NAME:PARAM=1; see `dgx list`".to_owned(),
        )
    });
    InputError::new(message, remedy)
}

fn introduce(contender: &Contender, style: &Style) {
    let variant = &contender.variant;
    let name = contender.id.to_string();
    say!("{}", style.titled(&name, &variant.summary));
    let parent = variant.parent.as_ref();
    let lineage = parent.map_or(String::new(), |parent| format!(", a change to {parent}"));
    say!("{}{lineage}\n", variant.file.path.display());
}

fn show(
    plan: &Plan,
    contender: usize,
    builds: &[Build],
    ceiling: Option<Ceiling>,
    ranking: Option<&Ranking>,
    style: &Style,
) {
    for message in builds.iter().filter_map(|build| build.message.as_ref()) {
        say!("does not compile:\n{message}\n");
    }
    let mut kernels: Vec<KernelFit> = Vec::new();
    for kernel in builds.iter().flat_map(|build| &build.kernels) {
        let fit = KernelFit::of(&plan.device.limits, kernel);
        if !kernels.contains(&fit) {
            kernels.push(fit);
        }
    }
    say!("{}\n", kernel_table(&kernels).render(style));
    let served = builds_by_shape(builds);
    let id = &plan.contenders[contender].id;
    let measured = |shape: &str| ranking?.cell(id, shape)?.time.as_ref();
    let mut calls = Vec::new();
    for cell in plan.cells.iter().filter(|c| c.contender == contender) {
        let shape = &plan.shapes[cell.shape];
        match (&cell.outcome, served.get(shape.name.as_str())) {
            (PlanOutcome::Run { call, .. }, Some(build)) => {
                let clock = measured(&shape.name).and_then(|time| time.clock_mhz);
                let ceiling = ceiling.map(|ceiling| ceiling.at(clock));
                calls.push(CallFit::of(
                    (&plan.round.operator, shape),
                    call,
                    build,
                    &plan.device.limits,
                    ceiling,
                ));
            }
            (PlanOutcome::Unsupported { reason }, _) => say!("{}: {reason}", shape.name),
            (PlanOutcome::Broken(why), _) => say!("{}: {why}", shape.name),
            _ => {}
        }
    }
    say!("{}", call_table(&calls, measured).render(style));
    if let Some(clocks) = clocks(&calls, measured) {
        say!("{}", style.fold(&format!("- {clocks}"), 2));
    }
    for remark in builds.iter().flat_map(|build| &build.remarks) {
        say!("ptxas: {remark}");
    }
    for remark in remarks(&kernels, &calls) {
        say!("{}", style.fold(&format!("- {remark}"), 2));
    }
    say!("");
}

/// The emulator's counters of the contender, shape by shape, if the run was emulated.
fn print_counters(run: &Run, contender: &ContenderId, style: &Style) {
    let shapes = run.header.shapes.iter();
    let rows: Vec<CounterRow> = shapes
        .filter_map(|shape| {
            let counts = run.counts(contender, &shape.name)?.clone();
            let name = shape.name.clone();
            Some(CounterRow { name, counts })
        })
        .collect();
    if !rows.is_empty() {
        let tables = counters_tables(("shape", "one call"), &rows, false);
        say!("{}\n", rendered(&tables, style));
    }
}

fn kernel_table(kernels: &[KernelFit]) -> Table {
    let mut grid = Table::new(vec![
        Column::left("kernel"),
        Column::right("regs").weight(8),
        Column::right("spills").weight(7),
        Column::right("smem").weight(8),
        Column::right("threads").weight(5),
        Column::right("CTAs/SM").weight(8),
        Column::right("occupancy").weight(6),
        Column::left("limited by").weight(7),
    ]);
    for KernelFit {
        resources,
        smem,
        residency,
    } in kernels
    {
        grid.push(row![
            &resources.name,
            resources.registers,
            match resources.spill_bytes {
                0 => "none".to_owned(),
                bytes => format!("{bytes} B"),
            },
            smem,
            resources.threads,
            residency.blocks,
            percent(resources.occupancy),
            residency.limit,
        ]);
    }
    grid
}

/// The clock that the minimum times assume, if the samples have it.
fn clocks<'a>(calls: &[CallFit], measured: impl Fn(&str) -> Option<&'a Timed>) -> Option<String> {
    let read = calls.iter().filter_map(|c| measured(&c.shape)?.clock_mhz);
    let clocks: Vec<f64> = read.collect();
    let least = clocks.iter().copied().min_by(f64::total_cmp)?;
    let most = clocks.iter().copied().max_by(f64::total_cmp)?;
    Some(format!(
        "the least time is at the clock the samples ran at, {least:.0} to {most:.0} MHz"
    ))
}

fn call_table<'a>(calls: &[CallFit], measured: impl Fn(&str) -> Option<&'a Timed>) -> Table {
    let mut grid = Table::new(vec![
        Column::left("shape"),
        Column::left("kernel").weight(6),
        Column::right("CTAs").weight(7),
        Column::right("waves").weight(8),
        Column::right("busy").weight(8),
        Column::right("padding").weight(5),
        Column::right("K steps").weight(4),
        Column::right("stages").weight(4),
        Column::right("scratch").weight(3),
        Column::right("least µs").weight(7),
        Column::left("least by").weight(2),
        Column::right("µs").weight(8),
        Column::right("of least").weight(8),
    ]);
    for call in calls {
        for (index, launch) in call.launches.iter().enumerate() {
            let once = |value: Value| match index {
                0 => value,
                _ => Value::default(),
            };
            let time = measured(&call.shape).map(Timed::estimate);
            let steps = call.k_steps.map(|(least, most)| match least == most {
                true => least.to_string(),
                false => format!("{least} to {most}"),
            });
            let least = call.floor.map(|(micros, _)| micros);
            let of_least = time.zip(least).map(|(time, least)| least.0 / time.0);
            grid.push(row![
                once((&call.shape).into()),
                &launch.kernel,
                launch.blocks,
                maybe(launch.waves.map(|waves| format!("{waves:.2}"))),
                maybe(launch.busy.map(percent)),
                once(maybe(call.padding.map(|p| format!("{:.0} %", 100.0 * p)))),
                once(maybe(steps)),
                once(maybe(call.stages)),
                once(maybe(Some(call.scratch).filter(|bytes| bytes.0 > 0))),
                once(maybe(least)),
                once(maybe(call.floor.map(|(_, bound)| bound_by(bound)))),
                once(maybe(time)),
                once(maybe(of_least.map(percent))),
            ]);
        }
    }
    grid.without_empty_columns()
}

fn bound_by(resource: Resource) -> &'static str {
    match resource {
        Resource::Tensor => "tensor cores",
        Resource::Memory => "memory",
    }
}
