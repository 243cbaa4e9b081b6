use std::path::{Path, PathBuf};

use ptx_time::Spent;

use super::explain::plan_for;
use super::{Globals, runs};
use crate::backend::emu::machine;
use crate::catalog::Catalog;
use crate::compile::Limits;
use crate::config::{Round, target};
use crate::diagnostic::{CommandError, InputError, nearest};
use crate::domain::{BackendKind, ContenderId, Exit, Micros, Shape, Timing};
use crate::present::{Align, Column, Grid, Style, belief_in, percent, signed_percent, speedup};
use crate::profile::{
    LaunchProfile, Profile, RoleShare, Sources, Stage, StageTime, Subject, chrome, page, spent_word,
};
use crate::rank::{Ranking, Timed};
use crate::record::schema::DeviceRecord;
use crate::sweep::CompiledCell;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Contender: a variant, or one of its parameter choices
    contender: String,
    /// The round whose shapes are meant
    #[arg(value_name = "ROUND.toml", default_value = super::explain::DEFAULT_ROUND)]
    round: PathBuf,
    /// One of the round's shapes [default: its first]
    #[arg(long, value_name = "SHAPE")]
    shape: Option<String>,
    /// What to model for: h200, h100, b200, a file, or one with numbers
    /// changed, e.g. h200,sms=144 [default: h200]
    #[arg(long, value_name = "TARGET")]
    target: Option<String>,
    /// Set beside it what a run measured of the same cell
    #[arg(long, value_name = "RUN.jsonl")]
    over: Option<PathBuf>,
    /// Write the shares as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the timeline as a Chrome trace, for Perfetto
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Write shares and timeline as one HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// The bar that round 3 set before an epilogue is worth work.
const EPILOGUE_BAR: f64 = 0.05;
/// Shares below this are not told.
const LEAST: f64 = 0.0005;
/// Characters of the longest bar.
const BAR: f64 = 16.0;

/// Shows where the time of one cell goes, in virtual time.
pub(super) fn run(args: Args, globals: &Globals) -> Result<Exit, CommandError> {
    let read = [Some(args.round.as_path()), args.over.as_deref()];
    runs::probe(
        [&args.json, &args.trace, &args.html],
        read.into_iter().flatten(),
    )?;
    let mut round = Round::read(&args.round)?;
    let shape = shape(&round, args.shape.as_deref(), &args.round)?;
    let bar = bar(&round);
    round.shapes = vec![shape];
    let device = match &args.target {
        Some(word) => target::find(word)?,
        None => target::usual().clone(),
    };
    let machine =
        machine(&device).map_err(|why| InputError::new(why, "choose another --target"))?;
    let catalog = Catalog::open(&globals.variants)?;
    let plan = plan_for(&args.contender, round, &catalog, &device)?;
    let contender = match plan.contenders.as_slice() {
        [only] => &only.id,
        several => return Err(ambiguous(&args.contender, several.iter().map(|c| &c.id))),
    };
    let over = match &args.over {
        Some(path) => Some(measured(path, contender, &plan.shapes[0].name)?),
        None => None,
    };
    let compiler = runs::compiler(
        Limits::default(),
        "run through scripts/dgx, which fetches NVRTC",
    )?;
    let cell = CompiledCell::new(&plan, 0, 0, &compiler)?;
    let record = DeviceRecord::new(BackendKind::Emu, &device);
    let profile = cell.traced(|traced| {
        let call = traced.replay(machine, true)?;
        let subject = Subject {
            contender,
            shape: &cell.shape.name,
            target: &device.name,
            belief: belief_in(&record).unwrap_or_default(),
            machine,
        };
        Ok(Profile::new(subject, call, &traced.laid()))
    })?;

    let mut lines = vec![epilogue(&profile, &bar)];
    lines.extend(over.map(|over| over.beside(profile.micros)));
    say!("{}", text(&profile, &lines, &runs::style(globals)));
    let sources = Sources::read(&cell.image.ptx);
    runs::write_all([
        (&args.json, &|| profile.json()),
        (&args.trace, &|| chrome(&profile, &sources)),
        (&args.html, &|| page(&profile, &sources, &lines)),
    ])?;
    Ok(Exit::Done)
}

/// The shape that is meant, or the round's first.
pub(super) fn shape(round: &Round, name: Option<&str>, path: &Path) -> Result<Shape, CommandError> {
    let Some(name) = name else {
        return Ok(round.shapes[0].clone());
    };
    let found = round.shapes.iter().find(|shape| shape.name == name);
    found.cloned().ok_or_else(|| {
        let names: Vec<&str> = round.shapes.iter().map(|s| s.name.as_str()).collect();
        let remedy = match nearest(name, names.iter().copied()) {
            Some(close) => format!("did you mean `{close}`?"),
            None => format!("it has {}", names.join(", ")),
        };
        let message = format!("there is no shape `{name}` in {}", path.display());
        InputError::new(message, remedy).into()
    })
}

fn ambiguous<'a>(name: &str, ids: impl Iterator<Item = &'a ContenderId>) -> CommandError {
    let all: Vec<&str> = ids.map(ContenderId::as_str).collect();
    let message = format!("`{name}` is {} contenders", all.len());
    InputError::new(message, format!("name one of {}", all.join(", "))).into()
}

/// The share below which an epilogue is not worth work, and who says so.
struct Bar {
    share: f64,
    says: String,
}

/// A pitch about the epilogue that promises so much needs at least so much of
/// one; where there is none, what round 3 agreed on.
fn bar(round: &Round) -> Bar {
    let about = |text: &str| text.to_lowercase().contains("epilogue");
    let pitches = round.pitches.iter();
    let promised = pitches
        .filter(|pitch| about(&pitch.design) || about(&pitch.idea))
        .find_map(|pitch| Some((pitch, pitch.claim?.1)))
        .filter(|(_, most)| *most > 1.0);
    match promised {
        Some((pitch, most)) => Bar {
            share: 1.0 - 1.0 / most,
            says: format!(
                "the {} that {} needs for its {}",
                percent(1.0 - 1.0 / most),
                pitch.design,
                speedup(most)
            ),
        },
        None => Bar {
            share: EPILOGUE_BAR,
            says: format!("the {} bar of round 3", percent(EPILOGUE_BAR)),
        },
    }
}

/// The answer to the question of round 3.
fn epilogue(profile: &Profile, bar: &Bar) -> String {
    let share = profile.share(Stage::Epilogue);
    let side = match share < bar.share {
        true => "below",
        false => "above",
    };
    format!(
        "The epilogue is {} of the time, {side} {}: without it the call would be at most {} as \
         fast.",
        percent(share),
        bar.says,
        speedup(1.0 / (1.0 - share).max(0.01))
    )
}

/// The same cell as a run has it.
struct Over {
    micros: Micros,
    timing: Timing,
    on: String,
    file: String,
}

fn measured(path: &Path, contender: &ContenderId, shape: &str) -> Result<Over, CommandError> {
    let run = runs::load(Some(path))?;
    let id = runs::contender(&run, contender.as_str())?;
    let missing = |what: String| {
        let remedy = format!("`dgx show {}` prints what it has", path.display());
        InputError::new(format!("{what} in {}", path.display()), remedy)
    };
    let shapes = &run.header.shapes;
    if !shapes.iter().any(|known| known.name == shape) {
        return Err(missing(format!("there is no shape `{shape}`")).into());
    }
    let ranking = Ranking::of(&run);
    let time = ranking.cell(&id, shape).and_then(|cell| cell.time.as_ref());
    let time = time.ok_or_else(|| missing(format!("{id} has no time on {shape}")))?;
    Ok(Over {
        micros: Timed::estimate(time),
        timing: run.timing(),
        on: run.header.device.name.clone(),
        file: path.display().to_string(),
    })
}

impl Over {
    fn beside(&self, modelled: Micros) -> String {
        let Self {
            micros,
            timing,
            on,
            file,
        } = self;
        format!(
            "{file} has {micros} µs ({} on {on}): the model is off by {}.",
            timing.as_str(),
            signed_percent(modelled.0 / micros.0 - 1.0)
        )
    }
}

fn text(profile: &Profile, lines: &[String], style: &Style) -> String {
    let mut out = vec![
        style.bold(format!(
            "{} on {}: {} µs, modelled for {}",
            profile.contender, profile.shape, profile.micros, profile.target
        )),
        style.fold(&profile.belief, 0),
        String::new(),
    ];
    out.extend(bars(&profile.stages, profile.micros));
    out.push(String::new());
    out.extend(lines.iter().map(|line| style.fold(line, 0)));
    for launch in &profile.launches {
        out.push(String::new());
        out.push(style.fold(&about(launch, profile.clock_mhz), 2));
        if profile.launches.len() > 1 {
            out.extend(bars(&launch.stages, launch.micros));
        }
        out.push(roles(launch).render(style));
    }
    out.join("\n")
}

fn bars(stages: &[StageTime], whole: Micros) -> Vec<String> {
    let shown = stages.iter().filter(|part| part.micros.0 > 0.0);
    shown
        .map(|part| {
            let (name, what) = part.stage.words();
            let share = part.micros.0 / whole.0;
            let bar = "█".repeat((share * BAR).round() as usize);
            let (micros, share) = (part.micros.to_string(), percent(share));
            format!("{name:<10} {micros:>7} µs {share:>6}  {bar:<16} {what}")
        })
        .collect()
}

fn about(launch: &LaunchProfile, clock_mhz: f64) -> String {
    let rounds = match launch.rounds {
        1 => String::new(),
        n => format!(", {n} one after the other"),
    };
    let idle = match launch.idle > 0.0 {
        true => format!(
            "; SMs without a CTA: {} of their time",
            percent(launch.idle)
        ),
        false => String::new(),
    };
    let unsure = match launch.homeless > 0.01 {
        true => format!(
            "; {} of what warps did has no instruction in the cubin",
            percent(launch.homeless)
        ),
        false => String::new(),
    };
    format!(
        "{}: {} µs at {clock_mhz:.0} MHz, {} CTAs on {} of {} SMs{rounds}{idle}; tensor cores busy \
         {} of it{unsure}. What its warps' time goes to:",
        launch.kernel,
        launch.micros,
        launch.ctas,
        launch.active_sms,
        launch.sms,
        percent(launch.tensor),
    )
}

/// What warps' time goes to, line by line; a column for each role.
fn roles(launch: &LaunchProfile) -> Grid {
    let mut columns = vec![Column::new("", Align::Left, 9)];
    columns.extend(launch.roles.iter().map(|role| {
        let title = format!("{} × {}", role.warps, role.role.word());
        Column::new(title, Align::Right, 8)
    }));
    let mut grid = Grid::new(columns);
    let mut row = |name: &str, share: &dyn Fn(&RoleShare) -> f64| {
        let shares: Vec<f64> = launch.roles.iter().map(share).collect();
        if shares.iter().all(|share| *share < LEAST) {
            return;
        }
        let words = shares.into_iter().map(|share| match share < LEAST {
            true => String::new(),
            false => percent(share),
        });
        grid.push([name.to_owned()].into_iter().chain(words).collect());
    };
    for spent in Spent::ALL {
        row(spent_word(spent), &|role| role.spent[spent as usize]);
    }
    row("ended", &|role| role.ended);
    grid
}
