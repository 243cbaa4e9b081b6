//! A user's kernel, imported unchanged: a copy of its file, and `NAME.toml` beside it, which lists
//! the kernel's arguments.

use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

use super::{ROUNDS, dense, refuse_existing, refused, round_text, write};
use dgx_core::diagnostic::{CommandError, InputError, nearest};
use dgx_core::domain::{Device, Exit, Joined, counted, typed};
use dgx_core::files;
use dgx_core::operator::Operator;
use dgx_run::catalog::{Catalog, DeclaredKernel, DeclaredParam, Language, declared};

#[derive(Debug, clap::Args)]
pub(crate) struct KernelArgs {
    /// Existing kernel, copied into variants/; needs --operator: FILE, or
    /// FILE:KERNEL if the file has several, e.g. "gemm.cu:gemm<128, half>"
    #[arg(
        long,
        value_name = "FILE[:KERNEL]",
        conflicts_with = "from",
        requires = "operator",
        requires = "name"
    )]
    kernel: Option<String>,
    /// With --kernel: its grid, x,y,z
    #[arg(long, value_name = "EXPR", requires = "kernel")]
    grid: Option<String>,
    /// With --kernel: threads of a block, x,y,z
    #[arg(long, value_name = "EXPR", requires = "kernel")]
    block: Option<String>,
    /// With --kernel: its arguments in order, e.g. x,w,y,m,n,eps [default: found
    /// by the names of its parameters]
    #[arg(long, value_name = "ARG,…", requires = "kernel")]
    args: Option<String>,
}

impl KernelArgs {
    pub(super) fn is_given(&self) -> bool {
        self.kernel.is_some()
    }

    /// Writes the design `name` of `operator`, with a round.
    pub(super) fn run(
        &self,
        name: &str,
        operator: &Operator,
        home: &Path,
        here: &Device,
    ) -> Result<Exit, CommandError> {
        let written = self.kernel.as_deref().unwrap_or_default();
        let (path, function) = file_and_function(written);
        let language = Language::of(&path).filter(|language| *language == Language::Cuda);
        if language.is_none() {
            let why = format!("{} is not a .cu file", path.display());
            let remedy =
                "for PTX and Python write NAME.toml beside the file: see `dgx schema variant`";
            return Err(refused(name, &why, remedy));
        }
        let text = files::read_text(&path, files::LARGEST).map_err(|why| {
            let why = format!("cannot read {}: {why}", path.display());
            refused(name, &why, "name a .cu file")
        })?;
        let kernel = chosen(&declared(&text), function.as_deref(), &path)?;
        let folder = home.join(&operator.name);
        let targets = [
            folder.join(format!("{name}.cu")),
            folder.join(format!("{name}.toml")),
            Path::new(ROUNDS).join(format!("{name}.toml")),
        ];
        for file in &targets {
            refuse_existing(name, file)?;
        }
        if text.trim_start().starts_with("/*dgx") {
            let why = format!("{} has front matter", path.display());
            return Err(refused(name, &why, "copy it into the variants as it is"));
        }
        // Files included in quotes lie beside it.
        let include = text
            .contains("#include \"")
            .then(|| seen_from(&folder, &path));
        let instance = self.instance(&kernel, function)?;
        let launch = self.matter(&kernel, &instance, operator)?;
        let head = format!(
            "summary = {}\narch    = {}\n",
            value(&format!("{instance} of {written}")),
            value(&here.chip.target()),
        );
        readable(name, operator, here, &format!("{head}\n{launch}"))?;
        let include = include.map(|folder| format!("include = [{}]\n", value(&folder)));
        let matter = format!("{head}{}\n{launch}", include.unwrap_or_default());
        let texts = [
            text,
            matter,
            round_text(operator, name, None, &dense(operator, 1)),
        ];
        for (file, text) in targets.iter().zip(texts) {
            write(file, &text)?;
            say!("wrote {}", file.display());
        }
        let round = typed(&targets[2]);
        say!("\nnext: dgx check {round}    does it take what it is given?");
        say!("      dgx sweep {round}    is it right, and how fast?");
        Ok(Exit::Done)
    }

    /// The front matter that launches it.
    fn matter(
        &self,
        kernel: &DeclaredKernel,
        instance: &str,
        operator: &Operator,
    ) -> Result<String, CommandError> {
        let args = self.given(kernel, operator)?;
        let threads = kernel.threads.map(|threads| threads.to_string());
        let block = self.block.clone().or(threads);
        if self.grid.is_none() && block.is_none() && !std::io::stdin().is_terminal() {
            let remedy = "e.g. --grid 'cdiv(m, 128)' --block 128";
            return Err(InputError::new("--grid and --block are missing", remedy).into());
        }
        let missing = |flag: &str, what: &str, example: &str| {
            let message = format!("{flag} is missing: {what}");
            InputError::new(message, format!("add {flag} {example}"))
        };
        let no_grid = missing("--grid", "its grid", "'cdiv(m, 128)'");
        let grid = answer("its grid", self.grid.clone(), no_grid)?;
        let no_block = missing("--block", "threads of a block", "128");
        let block = answer("threads of a block", block, no_block)?;
        let args = args.iter().map(|arg| value(arg)).joined(", ");
        Ok(format!(
            "[[launch]]\nkernel = {}\ngrid   = {}\nblock  = {}\nargs   = [{}]\n",
            value(instance),
            extent(&grid),
            extent(&block),
            args,
        ))
    }

    /// The kernel with its template arguments.
    fn instance(
        &self,
        kernel: &DeclaredKernel,
        function: Option<String>,
    ) -> Result<String, CommandError> {
        let name = function.unwrap_or_else(|| kernel.name.clone());
        match kernel.is_template && !name.contains('<') {
            false => Ok(name),
            true => {
                let message = format!("{name} is a template: name an instance of it");
                let file = self.kernel.as_deref().unwrap_or_default();
                let file = file.split_once(".cu").map_or(file, |(stem, _)| stem);
                let remedy = format!("e.g. --kernel '{file}.cu:{name}<float, 4>'");
                Err(InputError::new(message, remedy).into())
            }
        }
    }

    /// The argument for each parameter.
    fn given(
        &self,
        kernel: &DeclaredKernel,
        operator: &Operator,
    ) -> Result<Vec<String>, CommandError> {
        if let Some(args) = &self.args {
            let args: Vec<String> = split(args).iter().map(|arg| (*arg).to_owned()).collect();
            let params: Vec<&str> = kernel.params.iter().map(|param| &*param.name).collect();
            if args.len() != params.len() {
                let (given, name) = (counted(args.len(), "argument"), &kernel.name);
                let declared = counted(params.len(), "parameter");
                let message = format!("--args gives {given}, and {name} takes {declared}");
                let remedy = format!("give one for each of {}", params.join(", "));
                return Err(InputError::new(message, remedy).into());
            }
            return Ok(args);
        }
        let known = names(operator);
        let given = kernel
            .params
            .iter()
            .map(|param| match guess(param, operator) {
                Some(name) => Ok(name),
                None => {
                    let what = format!(
                        "which argument is `{}`? One of {}, or an expression",
                        param.text,
                        known.join(", ")
                    );
                    let names = kernel.params.iter().map(|p| &*p.name).joined(", ");
                    let each = kernel.params.iter().map(|_| "ARG").joined(",");
                    let remedy = format!("add --args {each}, one for each of {names}");
                    answer(&what, None, InputError::new(what.as_str(), remedy))
                }
            });
        given.collect()
    }
}

/// `gemm.cu:gemm<128>` → its two parts.
fn file_and_function(text: &str) -> (PathBuf, Option<String>) {
    match text.split_once(".cu:") {
        Some((stem, function)) => (format!("{stem}.cu").into(), Some(function.to_owned())),
        None => (text.into(), None),
    }
}

fn chosen(
    kernels: &[DeclaredKernel],
    function: Option<&str>,
    path: &Path,
) -> Result<DeclaredKernel, CommandError> {
    let names = || kernels.iter().map(|kernel| &*kernel.name);
    let list = names().joined(", ");
    let shown = path.display();
    let error = |message: String, remedy: String| Err(InputError::new(message, remedy).into());
    let Some(function) = function else {
        return match kernels {
            [only] => Ok(only.clone()),
            [] => error(
                format!("{shown} declares no kernel"),
                "name a file with a __global__ function".to_owned(),
            ),
            _ => error(
                format!("{shown} has several kernels: {list}"),
                format!("name one: --kernel {shown}:{}", kernels[0].name),
            ),
        };
    };
    let plain = function.split('<').next().unwrap_or_default().trim();
    let plain = plain.rsplit("::").next().unwrap_or_default();
    match kernels.iter().find(|kernel| kernel.name == plain) {
        Some(kernel) => Ok(kernel.clone()),
        None => error(
            format!("{shown} has no kernel `{plain}`"),
            match nearest(plain, names()) {
                Some(close) => format!("did you mean `{close}`?"),
                None => format!("it has {list}"),
            },
        ),
    }
}

/// All names that arguments may have.
fn names(operator: &Operator) -> Vec<String> {
    let fields = operator.fields().into_iter().map(|field| field.name);
    let constants = operator.constants.iter().map(|(name, _)| name.clone());
    fields
        .chain(operator.sizes.clone())
        .chain(constants)
        .collect()
}

/// Guesses a parameter's argument by its name: a tensor, a size or a constant of that name, or a
/// usual word for the only tensor of its kind.
fn guess(param: &DeclaredParam, operator: &Operator) -> Option<String> {
    let word = param.name.to_ascii_lowercase();
    let word = word.trim_matches('_');
    let bare = ["d_", "p_", "g_"]
        .iter()
        .find_map(|prefix| word.strip_prefix(prefix));
    let bare = bare.unwrap_or(word);
    let bare = bare.strip_suffix("_ptr").unwrap_or(bare);
    let is_tensor = |name: &str| operator.fields().iter().any(|field| field.name == name);
    let is_constant = |name: &str| operator.constants.iter().any(|(own, _)| own == name);
    let fits = |name: &String| is_tensor(name) == param.is_pointer;
    let named = names(operator)
        .into_iter()
        .find(|name| *name == bare && fits(name));
    named.or_else(|| {
        let [inputs, outputs] = [operator.inputs.len(), operator.outputs.len()];
        Some(match (bare, param.is_pointer) {
            ("out" | "output" | "dst" | "result", true) if outputs == 1 => {
                operator.outputs[0].tensor.name.clone()
            }
            ("in" | "inp" | "input" | "src", true) if inputs == 1 => {
                operator.inputs[0].name.clone()
            }
            ("epsilon", false) if is_constant("eps") => "eps".to_owned(),
            ("rows", false) if operator.sizes.len() == 2 => operator.sizes[0].clone(),
            ("cols" | "columns", false) if operator.sizes.len() == 2 => operator.sizes[1].clone(),
            _ => return None,
        })
    })
}

/// Refuses front matter that no sweep could read, before a file is written.
fn readable(
    name: &str,
    operator: &Operator,
    here: &Device,
    matter: &str,
) -> Result<(), CommandError> {
    let failed = |error: std::io::Error| {
        let message = format!("cannot write a temporary file: {error}");
        CommandError::could_not_run(message, "set TMPDIR to a folder you can write")
    };
    let home = tempfile::tempdir().map_err(failed)?;
    let folder = home.path().join(&operator.name);
    std::fs::create_dir(&folder).map_err(failed)?;
    std::fs::write(folder.join(format!("{name}.cu")), "").map_err(failed)?;
    std::fs::write(folder.join(format!("{name}.toml")), matter).map_err(failed)?;
    let catalog = Catalog::open(&[home.path().to_owned()])?.of(operator);
    let read = catalog.variant_on(name, here.chip);
    read.map(|_| ())
        .map_err(|error| refused(name, error.message(), error.remedy()))
}

/// The given value, or the user's answer; without a terminal it must be given.
fn answer(what: &str, given: Option<String>, missing: InputError) -> Result<String, CommandError> {
    if let Some(given) = given {
        return Ok(given);
    }
    if !std::io::stdin().is_terminal() {
        return Err(missing.into());
    }
    let mut stderr = std::io::stderr();
    let _ = write!(stderr, "{what}: ");
    let _ = stderr.flush();
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    match (read, line.trim()) {
        (Ok(1..), text) if !text.is_empty() => Ok(text.to_owned()),
        _ => Err(missing.into()),
    }
}

/// A number or a table unchanged, everything else in quotes.
fn value(text: &str) -> String {
    match text.parse::<f64>().is_ok() || text.starts_with('{') {
        true => text.to_owned(),
        false => toml_edit::value(text).to_string(),
    }
}

/// `cdiv(m, 128), 4` → two; commas inside brackets separate nothing.
fn split(text: &str) -> Vec<&str> {
    let mut depth = 0;
    let parts = text.split(|c: char| {
        depth += i32::from("([{<".contains(c)) - i32::from(")]}>".contains(c));
        c == ',' && depth == 0
    });
    parts.map(str::trim).collect()
}

/// One dimension, or a list.
fn extent(text: &str) -> String {
    let parts: Vec<String> = split(text).iter().map(|part| value(part)).collect();
    match &parts[..] {
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}

/// The folder of `file` as seen from another.
fn seen_from(folder: &Path, file: &Path) -> String {
    let home = file.parent().unwrap_or(Path::new(""));
    let climb: PathBuf = folder.components().map(|_| "..").collect();
    let seen = match home.is_absolute() || folder.is_absolute() {
        true => home.to_owned(),
        false => climb.join(home),
    };
    seen.display().to_string()
}
