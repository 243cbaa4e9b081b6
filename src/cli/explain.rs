use std::path::{Path, PathBuf};

use super::Globals;
use super::runs;
use crate::catalog::Catalog;
use crate::config::Round;
use crate::diagnostic::{CommandError, InputError, SourceFile};
use crate::domain::{Bytes, ContenderId, Exit, Status};
use crate::lineage::lineage;
use crate::plan::{LaunchGeometry, Machine, Plan, Work};
use crate::present::{self, Align, Column, Grid, Style, percent};
use crate::rank::{Ranking, roofline};
use crate::record::Run;
use crate::record::schema::{Build, KernelResources};

/// Warps an SM can hold, on every architecture this operator targets.
const WARPS_PER_SM: f64 = 64.0;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Contender to explain
    #[arg(value_name = "CONTENDER")]
    contender: String,
    /// Run file to explain it from [default: the newest in results/]
    #[arg(value_name = "RUN")]
    run: Option<PathBuf>,
    /// Explain from a round file alone, before anything ran
    #[arg(long, value_name = "CONFIG", conflicts_with = "run")]
    round: Option<PathBuf>,
}

pub fn run(args: Args, globals: &Globals) -> Result<Exit, CommandError> {
    let style = runs::style(globals);
    if let Some(path) = &args.round {
        return before(&args.contender, path, globals, &style);
    }
    let run = runs::load(args.run.as_deref())?;
    let id = runs::contender(&run, &args.contender)?;
    let ranking = Ranking::of(&run);
    println!("{}", heading(&run, &id, &style));
    println!("\n{}", kernels(&run, &id, &style));
    for remark in run.remarks(&id) {
        println!(" {}", style.doubtful(style.fold(remark, 3)));
    }
    let launches = planned(&run, &id, globals);
    println!(
        "\n{}",
        shapes(&run, &ranking, &id, launches.as_ref(), &style)
    );
    print_counters(&run, &id, &style);
    print_failures(&run, &id, &style);
    let nodes = lineage(&run, &ranking);
    println!("\n{}", present::lineage_tree(&nodes));
    println!("\n{}", run.path.display());
    Ok(Exit::Done)
}

fn heading(run: &Run, id: &ContenderId, style: &Style) -> String {
    let record = run.contender(id);
    let summary = record.map_or("the yardstick", |r| r.summary.as_str());
    let mut text = format!("{}  {summary}", style.bold(id));
    if let Some(claim) = record.and_then(|r| r.claim.as_ref()) {
        let why = claim
            .why
            .as_ref()
            .map_or(String::new(), |w| format!(": {w}"));
        text.push_str(&format!(
            "\nclaims {:.2}× over {}{why}",
            claim.geomean, claim.over
        ));
    }
    text
}

/// What each kernel takes of an SM; the same kernel built alike for several
/// shapes is told once.
fn kernels(run: &Run, id: &ContenderId, style: &Style) -> String {
    let mut grid = Grid::new(vec![
        Column::new("kernel", Align::Left, 9),
        Column::new("threads", Align::Right, 8),
        Column::new("regs", Align::Right, 9),
        Column::new("spills", Align::Right, 9),
        Column::new("smem", Align::Right, 9),
        Column::new("occupancy", Align::Right, 9),
        Column::new("CTAs/SM", Align::Right, 7),
        Column::new("shapes", Align::Left, 3),
    ]);
    let builds: Vec<&Build> = run
        .builds
        .iter()
        .filter(|b| b.contender == *id && b.ok)
        .collect();
    for build in &builds {
        let shapes = match build.shapes.len() == run.header.shapes.len() {
            true => "all".to_owned(),
            false => build.shapes.join(", "),
        };
        for kernel in &build.kernels {
            let smem = Bytes(kernel.static_smem.0 + kernel.dynamic_smem.0);
            grid.push(vec![
                kernel.name.clone(),
                kernel.threads.to_string(),
                kernel.registers.to_string(),
                format!("{} B", kernel.spill_bytes),
                smem.to_string(),
                percent(kernel.occupancy),
                format!("{:.0}", resident(kernel)),
                shapes.clone(),
            ]);
        }
    }
    match grid.rows.is_empty() {
        true => "No kernel of it was built.".to_owned(),
        false => grid.render(style),
    }
}

/// Blocks of a kernel an SM holds at once.
fn resident(kernel: &KernelResources) -> f64 {
    let warps = f64::from(kernel.threads.div_ceil(32).max(1));
    (kernel.occupancy * WARPS_PER_SM / warps).round()
}

/// Launch geometry per shape, where the variants here still plan like the run did.
struct Geometry {
    shapes: Vec<(String, Vec<LaunchGeometry>)>,
}

fn planned(run: &Run, id: &ContenderId, globals: &Globals) -> Option<Geometry> {
    let config = &run.header.config;
    let file = SourceFile {
        path: config.path.clone().into(),
        text: config.text.as_str().into(),
    };
    let machine = Machine {
        sms: run.header.device.sms,
        memory: run.header.device.memory,
    };
    let mut round = Round::from_source(file).ok()?;
    crate::rounds::settle_baseline(&mut round, Path::new(runs::RESULTS)).ok()?;
    let catalog = Catalog::open(&globals.variants).ok()?;
    let plan = Plan::new(round, &catalog, &machine).ok()?;
    geometry(&plan, id)
}

fn geometry(plan: &Plan, id: &ContenderId) -> Option<Geometry> {
    let place = plan.contenders.iter().position(|c| c.id == *id)?;
    let cells = plan.cells.iter().filter(|c| c.contender == place);
    let shapes = cells.filter_map(|cell| match &cell.work {
        Work::Run { call, .. } => {
            Some((plan.shapes[cell.shape].name.clone(), call.launches.clone()))
        }
        Work::Unsupported { .. } => None,
    });
    Some(Geometry {
        shapes: shapes.collect(),
    })
}

/// Blocks over what the device holds at once: 1.1 waves take as long as 2.
fn waves(launch: &LaunchGeometry, kernel: &KernelResources, sms: u32) -> Option<f64> {
    let blocks = launch.grid.iter().map(|d| f64::from(*d)).product::<f64>();
    let room = resident(kernel) * f64::from(sms);
    (room > 0.0).then(|| blocks / room)
}

fn shapes(
    run: &Run,
    ranking: &Ranking,
    id: &ContenderId,
    geometry: Option<&Geometry>,
    style: &Style,
) -> String {
    let mut grid = Grid::new(vec![
        Column::new("shape", Align::Left, 9),
        Column::new("verdict", Align::Left, 8),
        Column::new("µs", Align::Right, 9),
        Column::new("floor µs", Align::Right, 5),
        Column::new("roofline", Align::Right, 7),
        Column::new("bound", Align::Left, 6),
        Column::new("MHz", Align::Right, 2),
        Column::new("K tiles", Align::Right, 4),
        Column::new("waves", Align::Left, 6),
    ]);
    for shape in &run.header.shapes {
        let Some(cell) = ranking.cell(id, &shape.name) else {
            continue;
        };
        let time = cell.time.as_ref();
        let floor = roofline::floor(&run.header.device, shape, time.and_then(|t| t.clock_mhz));
        grid.push(vec![
            shape.name.clone(),
            cell.status.map_or("–".to_owned(), |s| s.to_string()),
            time.map_or(String::new(), |t| t.estimate().to_string()),
            floor.map_or(String::new(), |f| f.to_string()),
            time.and_then(|t| t.roofline).map_or(String::new(), percent),
            time.and_then(|t| t.bound.clone()).unwrap_or_default(),
            time.and_then(|t| t.clock_mhz)
                .map_or(String::new(), |c| format!("{c:.0}")),
            k_tiles(run, id, shape),
            geometry.map_or(String::new(), |g| wave_text(run, id, &shape.name, g)),
        ]);
    }
    grid.without_empty_columns().render(style)
}

/// K tiles against stages, where the variant calls them `BK` and `STAGES`.
fn k_tiles(run: &Run, id: &ContenderId, shape: &crate::domain::Shape) -> String {
    let build = build_for(run, id, &shape.name);
    let constant = |name: &str| build.and_then(|b| b.constants.get(name)).copied();
    let Some(bk) = constant("BK").filter(|bk| *bk > 0) else {
        return String::new();
    };
    let most = shape
        .groups
        .iter()
        .map(|g| i64::from(g.k))
        .max()
        .unwrap_or(0)
        / bk;
    match constant("STAGES") {
        Some(stages) => format!("{most} / {stages} stages"),
        None => most.to_string(),
    }
}

fn build_for<'r>(run: &'r Run, id: &ContenderId, shape: &str) -> Option<&'r Build> {
    let serves = |b: &&Build| b.contender == *id && b.ok && b.shapes.iter().any(|s| s == shape);
    run.builds.iter().find(serves)
}

fn wave_text(run: &Run, id: &ContenderId, shape: &str, geometry: &Geometry) -> String {
    let launches = geometry
        .shapes
        .iter()
        .find(|(s, _)| s == shape)
        .map(|(_, l)| l);
    let build = build_for(run, id, shape);
    let (Some(launches), Some(build)) = (launches, build) else {
        return String::new();
    };
    let each = launches.iter().filter_map(|launch| {
        let kernel = build.kernels.iter().find(|k| k.name == launch.kernel)?;
        Some(format!(
            "{:.2}",
            waves(launch, kernel, run.header.device.sms)?
        ))
    });
    each.collect::<Vec<_>>().join(" + ")
}

fn print_counters(run: &Run, id: &ContenderId, style: &Style) {
    let mut grid = Grid::new(vec![
        Column::new("counter", Align::Left, 9),
        Column::new("first shape", Align::Right, 9),
    ]);
    let Some(shape) = run.header.shapes.first() else {
        return;
    };
    let Some(verdict) = run.verdict(id, &shape.name) else {
        return;
    };
    for (name, value) in &verdict.counters {
        grid.push(vec![name.clone(), format!("{value}")]);
    }
    if !grid.rows.is_empty() {
        grid.columns[1].title = shape.name.clone();
        println!("\n{}", grid.render(style));
    }
}

fn print_failures(run: &Run, id: &ContenderId, style: &Style) {
    let mut told: Vec<&str> = Vec::new();
    for shape in &run.header.shapes {
        let Some(verdict) = run.verdict(id, &shape.name) else {
            continue;
        };
        let story = verdict.detail.as_deref().or(verdict.reason.as_deref());
        let Some(story) = story.filter(|s| verdict.status != Status::Ok && !told.contains(s))
        else {
            continue;
        };
        told.push(story);
        println!("\n{} on {}:", style.bad(verdict.status), shape.name);
        for line in story.lines() {
            println!("  {line}");
        }
    }
}

/// What the plan alone says, before anything was compiled or run.
fn before(name: &str, path: &Path, globals: &Globals, style: &Style) -> Result<Exit, CommandError> {
    let round = runs::round(path)?;
    let catalog = Catalog::open(&globals.variants)?;
    let plan = Plan::new(round, &catalog, &Machine::H200)?;
    let chosen: Vec<&crate::catalog::Contender> = plan
        .contenders
        .iter()
        .filter(|c| c.id.as_str() == name || c.id.variant() == name)
        .collect();
    if chosen.is_empty() {
        let names: Vec<String> = plan.contenders.iter().map(|c| c.id.to_string()).collect();
        let message = format!("`{name}` is not a contender of {}", path.display());
        return Err(InputError::new(message, format!("it has {}", names.join(", "))).into());
    }
    for contender in chosen {
        println!(
            "{}  {}",
            style.bold(&contender.id),
            contender.variant.summary
        );
        let Some(geometry) = geometry(&plan, &contender.id) else {
            continue;
        };
        let mut grid = Grid::new(vec![
            Column::new("shape", Align::Left, 9),
            Column::new("kernel", Align::Left, 9),
            Column::new("grid", Align::Left, 9),
            Column::new("block", Align::Left, 9),
            Column::new("dynamic smem", Align::Right, 8),
            Column::new("blocks/SM", Align::Right, 7),
        ]);
        for (shape, launches) in &geometry.shapes {
            for launch in launches {
                let blocks = launch.grid.iter().map(|d| f64::from(*d)).product::<f64>();
                grid.push(vec![
                    shape.clone(),
                    launch.kernel.clone(),
                    launch.grid.map(|d| d.to_string()).join("×"),
                    launch.threads_per_block().to_string(),
                    Bytes(u64::from(launch.smem)).to_string(),
                    format!("{:.2}", blocks / f64::from(Machine::H200.sms)),
                ]);
            }
        }
        println!("{}\n", grid.render(style));
    }
    println!("Planned for an H200; registers and occupancy are known after compiling.");
    Ok(Exit::Done)
}
