mod kernel;

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml_edit::DocumentMut;

use super::{examined_round, machine};
use crate::cli::Globals;
use dgx_core::config::{Round, target};
use dgx_core::diagnostic::{CommandError, InputError, SourceFile};
use dgx_core::domain::{Device, Exit, Joined, Status, typed};
use dgx_core::operator::{self, Operator};
use dgx_run::catalog::{Catalog, DEFAULT_FOLDER, Variant, check_name, front_matter};
use dgx_run::operator::naive;
use dgx_run::plan::{Plan, PlanTarget};
use dgx_run::sweep::BackendChoice;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  dgx new mine                       a short, slow, correct kernel
  dgx new mine --from interleaved    a copy of a design of any operator, to change
  dgx new mine --operator softmax    a kernel of an operator, made from its file
  dgx new --operator my-norm         a template: operator, kernel and round
  dgx new mine --operator rms-norm --kernel norm.cu:rms_norm
                                     an existing kernel, unchanged

Then: dgx watch configs/mine.toml, and edit. `dgx schema variant` lists the keys.")]
pub(crate) struct Args {
    /// Name of the variant, and of its round
    #[arg(required_unless_present = "operator")]
    name: Option<String>,
    /// Design to copy [default: the simplest kernel of the operator]
    #[arg(long, value_name = "DESIGN", requires = "name")]
    from: Option<String>,
    /// Operator of the kernel; without NAME: name of a new operator to create
    #[arg(long, value_name = "OPERATOR")]
    operator: Option<String>,
    #[command(flatten)]
    kernel: kernel::KernelArgs,
}

/// Where rounds lie.
const ROUNDS: &str = "configs";
/// The name of the first design of a new operator.
const FIRST: &str = "naive";
/// The template of a new operator.
const TEMPLATE: &str = include_str!("operator.toml");

/// Writes a variant that passes validation, and a round that contains it.
pub(super) fn run(args: Args, globals: &Globals) -> Result<Exit, CommandError> {
    let name = args.name.as_deref().unwrap_or(FIRST);
    check_name(name).map_err(|why| refused(name, &why, "choose another name"))?;
    let home = globals
        .variants
        .first()
        .map_or(Path::new(DEFAULT_FOLDER), PathBuf::as_path);
    let (here, _) = machine::device(None, BackendChoice::Auto)?;
    if let (true, Some(operator)) = (args.kernel.is_given(), &args.operator) {
        let operator = operator::find(operator)?;
        return args.kernel.run(name, &operator, home, &here);
    }
    let catalog = match home.is_dir() {
        true => Some(Catalog::open(&globals.variants)?),
        false => None,
    };
    let (operator, template) = operator_of(&args, catalog.as_ref())?;
    let catalog = catalog.map(|catalog| catalog.of(&operator));
    // Designs of several operators may share a name; rounds may not.
    let round = match (&args.name, &args.operator) {
        (None, Some(operator)) => operator,
        _ => name,
    };
    let round = Path::new(ROUNDS).join(format!("{round}.toml"));
    let known = |catalog: &Catalog| catalog.knows(name).is_ok();
    if catalog.as_ref().is_some_and(known) {
        return Err(taken(name, "there is a variant of that name"));
    }
    let (sources, beside) = match (&args.from, &catalog) {
        (None, _) => {
            let folder = args.operator.as_ref().map(|operator| home.join(operator));
            let path = folder.as_deref().unwrap_or(home).join(format!("{name}.cu"));
            let by_hand = "write the kernel by hand: `dgx schema variant` lists the keys";
            let kernel = naive(&operator, &here.chip.target());
            let kernel = kernel.map_err(|why| refused(name, &why, by_hand))?;
            (vec![(path, kernel)], None)
        }
        (Some(from), Some(catalog)) => {
            let parent = Parent::find(from, catalog)?;
            (parent.copies(name)?, Some(parent.contender()))
        }
        (Some(from), None) => {
            let why = format!("there is no `{from}`: {} has no variants", home.display());
            let remedy = "leave out --from, or run dgx in the checkout";
            return Err(refused(name, &why, remedy));
        }
    };
    let files: Vec<NewFile> = template.into_iter().chain(sources).collect();
    // All of them first: an error must not leave some of the files behind.
    for path in files.iter().map(|(path, _)| path).chain([&round]) {
        refuse_existing(name, path)?;
    }
    for (path, text) in &files {
        write(path, text)?;
    }
    let texts = round_texts(&operator, name, beside.as_deref());
    let fitting = fitting_round(&texts, &round, &operator, &here, globals);
    let fits = fitting.as_ref().ok().and_then(Option::as_ref);
    // Written even if it has a mistake, whose message points into it.
    write(&round, fits.map_or(texts[0].as_str(), |fit| fit.text))?;
    for path in files.iter().map(|(path, _)| path).chain([&round]) {
        say!("wrote {}", path.display());
    }
    tell_next(&round, fitting?.as_ref());
    Ok(Exit::Done)
}

/// A file to write, and its text.
type NewFile = (PathBuf, String);

/// The named operator, or that of the design to copy; and its file, if it is new.
fn operator_of(
    args: &Args,
    catalog: Option<&Catalog>,
) -> Result<(Arc<Operator>, Option<NewFile>), CommandError> {
    match (&args.operator, &args.from, catalog) {
        (Some(operator), None, _) if args.name.is_none() => {
            let (operator, file) = new_operator(operator)?;
            Ok((Arc::new(operator), Some(file)))
        }
        (Some(operator), ..) => Ok((Arc::new(operator::find(operator)?), None)),
        (None, Some(from), Some(catalog)) => {
            Ok((examined_round::operator_of(from, catalog)?, None))
        }
        _ => Ok((Arc::clone(operator::default_operator()), None)),
    }
}

/// An operator that does not exist yet, and its file.
fn new_operator(name: &str) -> Result<(Operator, NewFile), CommandError> {
    if operator::known().any(|known| known == name) {
        let message = format!("operator `{name}` exists; give the new variant a name");
        let remedy = format!("dgx new mine --operator {name}");
        return Err(InputError::new(message, remedy).into());
    }
    check_name(name).map_err(|why| refused(name, &why, "choose another name"))?;
    if name == "include" || name.starts_with("sm_") {
        let why = "its designs would lie in a folder that has another meaning";
        return Err(refused(name, why, "choose another name"));
    }
    let path = Path::new("operators").join(format!("{name}.toml"));
    let text = TEMPLATE.replace("NAME", name);
    let source = SourceFile {
        path: path.clone(),
        text: text.as_str().into(),
    };
    Ok((Operator::from_source(source)?, (path, text)))
}

/// Lists the next commands.
fn tell_next(round: &Path, fitting: Option<&FittingRound<'_>>) {
    let round = typed(round);
    let target = fitting.and_then(|fit| fit.target);
    let passes = match fitting {
        Some(_) => "it passes; this times it",
        None => "validates it, then times it",
    };
    // A design for another chip than the one here is emulated.
    let flag = target.map_or(String::new(), |target| format!(" --target {target}"));
    let passed = target.map_or(String::new(), |_| format!(" --{flag}"));
    say!("\nnext: dgx sweep {round}{flag}    {passes}");
    say!("      dgx watch {round}{passed}    sweeps again whenever a file of it is saved");
}

/// The design that a new one is copied from.
struct Parent {
    sources: Vec<Arc<Variant>>,
}

impl Parent {
    fn find(name: &str, catalog: &Catalog) -> Result<Self, CommandError> {
        catalog.knows(name).map_err(|missing| {
            let (message, remedy) = missing.explain();
            InputError::new(message, remedy)
        })?;
        let sources = catalog.sources(name).into_iter();
        let sources = sources.collect::<Result<Vec<_>, InputError>>()?;
        if let Some(failing) = sources.iter().find(|source| source.expect != Status::Ok) {
            let message = format!("`{name}` is declared {}, not ok", failing.expect);
            return Err(InputError::new(message, "begin from a design that is right").into());
        }
        Ok(Self { sources })
    }

    /// One of its contenders, for comparison.
    fn contender(&self) -> String {
        let contenders = self.sources[0].contenders(&Default::default());
        let first = contenders.first();
        first.map_or_else(
            || self.sources[0].name.clone(),
            |c| c.id.as_str().to_owned(),
        )
    }

    /// Its sources under another name, each in its own folder, with copies of the headers that
    /// define the design: changing one design does not change the other.
    fn copies(&self, name: &str) -> Result<Vec<NewFile>, CommandError> {
        let mut copies = Vec::new();
        for source in &self.sources {
            let written = source.beside.as_ref().unwrap_or(&source.file);
            let folder = written.path.parent().unwrap_or(Path::new("."));
            let ending = source.language.ending();
            let renamed = renamed(source, name)?;
            let text = match &source.beside {
                Some(_) => {
                    copies.push((folder.join(format!("{name}.toml")), renamed));
                    source.file.text.to_string()
                }
                None => renamed,
            };
            let text = with_own_headers(&text, source, name);
            copies.push((folder.join(format!("{name}.{ending}")), text));
            for (header, text) in own_headers(source) {
                let path = folder.join(own_name(header, name));
                copies.push((path, with_own_headers(text, source, name)));
            }
        }
        Ok(copies)
    }
}

/// Headers that every design includes and none changes.
fn is_common(header: &str) -> bool {
    header.starts_with("dgx/ptx/") || ["dgx/abi.cuh", "dgx/stamp.cuh"].contains(&header)
}

fn own_headers(source: &Variant) -> impl Iterator<Item = (&str, &str)> {
    let files = source.headers.files();
    files.filter(|(header, _)| !is_common(header))
}

/// `dgx/sm100/mainloop.cuh` of `mine` is `mine-sm100-mainloop.cuh`.
fn own_name(header: &str, name: &str) -> String {
    let header = header.strip_prefix("dgx/").unwrap_or(header);
    format!("{name}-{}", header.replace('/', "-"))
}

/// A text that includes its own headers by their new names.
fn with_own_headers(text: &str, source: &Variant, name: &str) -> String {
    own_headers(source).fold(text.to_owned(), |text, (header, _)| {
        let own = format!("\"{}\"", own_name(header, name));
        let text = text.replace(&format!("<{header}>"), &own);
        text.replace(&format!("\"{header}\""), &own)
    })
}

/// The file with its front matter rewritten for the new design.
fn renamed(source: &Variant, name: &str) -> Result<String, CommandError> {
    let (text, range) = match &source.beside {
        Some(beside) => (&beside.text, 0..beside.text.len()),
        None => (&source.file.text, front_matter(&source.file)?),
    };
    let broken = |why: toml_edit::TomlError| {
        let message = format!("{}: {why}", source.file.path.display());
        InputError::new(message, "fix its front matter first")
    };
    let mut matter: DocumentMut = text[range.clone()].parse().map_err(broken)?;
    matter["summary"] = toml_edit::value(format!("{name}: {}, and what is changed", source.name));
    matter["parent"] = toml_edit::value(source.name.as_str());
    for own in ["round", "claim", "expect", "source"] {
        matter.remove(own);
    }
    let matter = matter.to_string();
    Ok(format!(
        "{}{matter}{}",
        &text[..range.start],
        &text[range.end..]
    ))
}

/// What the sizes of an operator's small problems are multiplied by, until a design can run them.
const SCALES: [u64; 4] = [1, 2, 4, 8];

/// The rounds that a new variant may run, of the smallest shapes first; those without groups last,
/// because not every design takes them.
fn round_texts(operator: &Operator, name: &str, beside: Option<&str>) -> Vec<String> {
    let grouped = SCALES.iter().filter(|_| operator.groups);
    let grouped = grouped.map(|scale| dense_and_ragged(operator, *scale));
    let shapes = grouped.chain(SCALES.map(|scale| dense(operator, scale)));
    let text = |shapes: String| round_text(operator, name, beside, &shapes);
    shapes.map(text).collect()
}

/// A round that a new variant can run.
struct FittingRound<'t> {
    text: &'t str,
    /// Where, if not here.
    target: Option<&'static str>,
}

/// The round that the new variant runs with the smallest shapes, here or else on a target that must
/// be named; or none.
fn fitting_round<'t>(
    texts: &'t [String],
    path: &Path,
    operator: &Operator,
    here: &Device,
    globals: &Globals,
) -> Result<Option<FittingRound<'t>>, CommandError> {
    let catalog = Catalog::open(&globals.variants)?.of(operator);
    let others = target::built_in().map(|(name, device)| (Some(name), device));
    for (target, device) in std::iter::once((None, here)).chain(others) {
        for (place, text) in texts.iter().enumerate() {
            let source = SourceFile {
                path: path.to_owned(),
                text: text.as_str().into(),
            };
            let plan = Round::from_source(source)
                .and_then(|round| Plan::new(round, &catalog, &PlanTarget::of(device)));
            let runs = |plan: &Plan| plan.cells.iter().all(|cell| cell.run().is_some());
            match plan {
                Ok(plan) if runs(&plan) => return Ok(Some(FittingRound { text, target })),
                // A target or larger sizes do not mend the text or the variant.
                Err(mistake) if place == 0 && target.is_none() => return Err(mistake.into()),
                _ => {}
            }
        }
    }
    // The author will know suitable shapes.
    remark!("warning: it cannot run the shapes of its round; put in some that it can");
    Ok(None)
}

/// An operator's small problems as shapes of a round, their sizes multiplied by `scale`.
fn dense(operator: &Operator, scale: u64) -> String {
    let shapes = operator.small.iter().map(|sizes| {
        let pairs = operator.sizes.iter().zip(sizes);
        let sizes = pairs
            .map(|(name, size)| format!("{name} = {}", size * scale))
            .joined(", ");
        format!("  {{ {sizes} }},\n")
    });
    shapes.collect()
}

/// These, and a shape with all of them as groups (of a single problem, twice the same).
fn dense_and_ragged(operator: &Operator, scale: u64) -> String {
    let groups = operator.small.len().max(2);
    let problems = || operator.small.iter().cycle().take(groups);
    let names = operator.sizes.iter().enumerate();
    let sizes = names.map(|(place, name)| {
        let sizes: Vec<u64> = problems().map(|sizes| sizes[place] * scale).collect();
        let alike = sizes.iter().all(|size| *size == sizes[0]);
        match alike && place > 0 {
            true => format!("{name} = {}", sizes[0]),
            false => format!("{name} = {sizes:?}"),
        }
    });
    let (dense, sizes) = (dense(operator, scale), sizes.joined(", "));
    format!("{dense}  {{ name = \"ragged\", {sizes} }},\n")
}

/// A round of these shapes.
fn round_text(operator: &Operator, design: &str, beside: Option<&str>, shapes: &str) -> String {
    let (question, contenders) = match beside {
        Some(other) => (
            format!("Is {design} right, and is it faster than {other}?"),
            format!("{design:?}, {other:?}"),
        ),
        None => (format!("Is {design} right?"), format!("{design:?}")),
    };
    let (name, baseline) = (&operator.name, beside.unwrap_or(design));
    format!(
        "# The small problems of {name}, to be quick while {design} is being written.\n\
         # `dgx schema round` lists what else a round can say.\n\
         operator   = {name:?}\n\
         question   = {question:?}\n\
         contenders = [{contenders}]\n\
         baseline   = {baseline:?}\n\
         \n\
         shapes = [\n{shapes}]\n\
         \n[validate]\nseed = 1\n\n[gate]\ncorrect = true\n"
    )
}

/// Writes a file that must not exist yet.
fn write(path: &Path, text: &str) -> Result<(), CommandError> {
    let failed = |error: std::io::Error| {
        CommandError::could_not_run(
            format!("cannot write {}: {error}", path.display()),
            "check the folder, and that there is no such file",
        )
    };
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let mut file = File::create_new(path).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)
}

fn refuse_existing(name: &str, file: &Path) -> Result<(), CommandError> {
    match file.exists() {
        false => Ok(()),
        true => Err(taken(name, &format!("there is {}", file.display()))),
    }
}

fn taken(name: &str, why: &str) -> CommandError {
    refused(name, why, "choose another name, or remove the file")
}

fn refused(name: &str, why: &str, remedy: &str) -> CommandError {
    InputError::new(format!("`{name}` cannot be created: {why}"), remedy).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guide_shows_the_very_kernel() {
        let guide = include_str!("../../../../docs/variants.md");
        let kernel = naive(operator::default_operator(), "sm_90a").expect("a kernel");
        assert!(
            guide.contains(&kernel),
            "docs/variants.md has another:\n{kernel}"
        );
    }

    #[test]
    fn the_operator_to_begin_from_is_sound() {
        let (operator, (_, text)) = new_operator("mine").expect("a sound operator");
        assert_eq!(operator.name, "mine");
        assert!(!text.contains("NAME"));
    }

    #[test]
    fn a_copy_tells_of_itself_and_compiles_the_same() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let catalog = Catalog::open(&[here.join("variants")]).expect("variants");
        for name in catalog.names() {
            let Ok(parent) = Parent::find(name, &catalog) else {
                continue;
            };
            let copies = parent.copies("mine").expect("copies");
            let is_source = |path: &Path| path.extension().is_some_and(|e| e == "cu");
            let (sources, headers): (Vec<_>, Vec<_>) =
                copies.iter().partition(|(path, _)| is_source(path));
            assert_eq!(sources.len(), catalog.sources(name).len());
            for (path, text) in headers {
                assert!(!text.contains("<dgx/mainloop.cuh>"), "{}", path.display());
            }
            for ((_, text), source) in sources.iter().zip(&parent.sources) {
                let file = SourceFile {
                    path: "mine.cu".into(),
                    text: text.as_str().into(),
                };
                let matter = &text[front_matter(&file).expect("front matter")];
                let words: Vec<&str> = matter.split_whitespace().collect();
                let parent = format!("parent = {name:?}");
                assert!(words.join(" ").contains(&parent), "{matter}");
                assert!(!matter.contains("claim"), "{name}: {matter}");
                let code = |text: &str| text.split_once("*/").map(|(_, code)| code.to_owned());
                let own = with_own_headers(&source.file.text, source, "mine");
                assert_eq!(code(text), code(&own));
            }
        }
    }
}
