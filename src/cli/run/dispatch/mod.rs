mod fit;
mod sample;
mod write;

use std::path::PathBuf;

use crate::cli::{Globals, named, runs};
use crate::contest::dispatch_table::dispatch_table_among;
use crate::present;
use dgx_core::diagnostic::CommandError;
use dgx_core::domain::{ContenderId, Exit, Joined, typed};
use dgx_core::gate;
use dgx_core::rank::Ranking;
use dgx_run::catalog::Catalog;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Run file [default: the newest in results/]
    #[arg(value_name = "RUN", value_parser = named::run())]
    run: Option<PathBuf>,
    /// Where to write the variant, e.g. variants/table.cu [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Fit the costs of a variant's picks to these runs
    #[arg(long, value_name = "RUN", num_args = 1.., value_parser = named::run(), conflicts_with_all = ["run", "output"])]
    fit: Vec<PathBuf>,
    /// Runs not used for the fit; prints the regret on them
    #[arg(long, value_name = "RUN", num_args = 1.., value_parser = named::run(), requires = "fit")]
    holdout: Vec<PathBuf>,
    /// The variant whose picks have costs [default: the only one]
    #[arg(long, value_name = "NAME", requires = "fit")]
    variant: Option<String>,
    /// Write the fitted costs into the variant's front matter
    #[arg(long, requires = "fit")]
    write: bool,
}

/// Writes a variant that picks the winner of each shape, for the next run.
pub(super) fn run(args: Args, globals: &Globals) -> Result<Exit, CommandError> {
    if !args.fit.is_empty() {
        return fit::run(&args, globals);
    }
    let run = runs::load(args.run.as_deref())?;
    if run.header.settings.time_only {
        return Err(CommandError::inconclusive(
            "nothing in this run was validated (--time-only), so no contender can be picked",
            "sweep the round without --time-only",
        ));
    }
    runs::probe([&args.output], [run.path.as_path()])?;
    let catalog = Catalog::open(&globals.variants)?.of(&run.operator);
    // A variant that picks others cannot be picked.
    let mut own_work: Vec<ContenderId> = Vec::new();
    let mut arch = String::new();
    let chip = runs::device_of(&run)?.chip;
    for contender in &run.header.contenders {
        let variant = catalog.variant_on(&contender.variant, chip)?;
        if variant.picks.is_empty() {
            own_work.push(contender.id.clone());
            arch.clone_from(&variant.arch);
        }
    }
    let ranking = Ranking::of(&run);
    let gaps = gate::gaps(&run, &ranking);
    if !gaps.is_empty() {
        let lacks = gaps.iter().map(present::gap).joined("; ");
        return Err(CommandError::inconclusive(
            format!("{} is incomplete: {}", run.path.display(), lacks),
            format!(
                "the winners are known once the run is complete: `dgx sweep --resume {}`",
                typed(&run.path)
            ),
        ));
    }
    let table = dispatch_table_among(&run, &ranking, |id| own_work.contains(id));
    let table = table.ok_or_else(|| {
        CommandError::inconclusive(
            "no contender is valid on every shape, so there is no default for other shapes",
            format!("`dgx show {}` shows the status of each", typed(&run.path)),
        )
    })?;
    let single = &table.single;
    if table
        .choices
        .iter()
        .all(|choice| choice.contender == *single)
    {
        remark!(
            "nothing was written: no contender is significantly faster than {single} on any shape, \
             so a variant would always pick {single}"
        );
        return Ok(Exit::Done);
    }
    let text = table.picks(&arch, &run.operator.name);
    match &args.output {
        Some(_) => runs::write_all([(&args.output, &|| text.clone())])?,
        None => say!("{}", text.trim_end()),
    }
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contest::dispatch_table::tests::crossing;
    use dgx_core::config::Round;
    use dgx_core::config::target::default_device;
    use dgx_core::diagnostic::SourceFile;
    use dgx_core::operator;
    use dgx_core::record::synthetic::group;
    use dgx_run::plan::{Plan, PlanOutcome, PlanTarget};

    /// The table is a contender that launches the winner of each shape.
    #[test]
    fn picks_are_a_variant_that_calls_the_winners() {
        let (mut run, ranking) = crossing();
        // Three groups, in another order than the round below gives them.
        run.header.shapes[1].groups =
            vec![group(1, 128, 512), group(7, 128, 512), group(3, 256, 256)];
        let text = dispatch_table_among(&run, &ranking, |_| true)
            .unwrap()
            .picks("sm_90a", &operator::default_operator().name);
        let folder = tempfile::tempdir().unwrap();
        for (who, name) in ["sequential", "interleaved"].iter().enumerate() {
            let variant = format!(
                "/*dgx\nsummary = \"x\"\narch = \"sm_90a\"\nconst = {{ WHO = {who} }}\n\
                 [[launch]]\nkernel = \"go\"\ngrid = 1\nblock = 32\n*/\n"
            );
            std::fs::write(folder.path().join(format!("{name}.cu")), variant).unwrap();
        }
        std::fs::write(folder.path().join("table.cu"), &text).unwrap();
        let catalog = Catalog::open(&[folder.path().to_owned()]).unwrap();
        let round = "question = \"?\"\ncontenders = [\"table\"]\nbaseline = \"table\"\nshapes = [\
            { m = 256, n = 3072, k = 4096 },\
            { name = \"won\", groups = [{ m = 3, n = 256, k = 256 }, { m = 1, n = 128, k = 512 }, { m = 7, n = 128, k = 512 }] },\
            { name = \"else\", groups = [{ m = 3, n = 256, k = 256 }, { m = 1, n = 128, k = 512 }, { m = 7, n = 128, k = 768 }] },\
            { m = 512, n = 4096, k = 7168 }]\n";
        let file = SourceFile {
            path: "r.toml".into(),
            text: round.into(),
        };
        let plan = Plan::new(
            Round::from_source(file).unwrap(),
            &catalog,
            &PlanTarget::of(default_device()),
        );
        let plan = plan.unwrap_or_else(|e| panic!("{e}\n{text}"));
        let called = plan.cells.iter().map(|cell| match &cell.outcome {
            PlanOutcome::Run { build, .. } => plan.builds[*build].constants["WHO"],
            _ => -1,
        });
        assert_eq!(called.collect::<Vec<_>>(), [0, 1, 0, 0], "{text}");
    }
}
