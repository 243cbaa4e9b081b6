//! A new design of any operator, with its round; and a new operator.

use std::path::{Path, PathBuf};

use super::{ENDING, ROUNDS, first_headers, opening, refuse_existing, refused, taken, tell, write};
use dgx_core::diagnostic::{CommandError, InputError};
use dgx_core::domain::{Device, Exit, Joined};
use dgx_core::operator::{self, Operator, default_operator};
use dgx_run::catalog::Catalog;
use dgx_run::operator::naive;

/// The template of a new operator.
const TEMPLATE: &str = include_str!("operator.toml");
/// The name of the first design of a new operator.
const FIRST: &str = "naive";

/// The names of the files to write.
pub(super) struct Request<'a> {
    /// `None` if the operator is new too.
    pub(super) design: Option<&'a str>,
    pub(super) operator: &'a str,
    /// The folder of designs.
    pub(super) home: &'a Path,
}

impl Request<'_> {
    pub(super) fn run(
        &self,
        catalog: Option<&Catalog>,
        here: &Device,
    ) -> Result<Exit, CommandError> {
        let (operator, file) = self.operator()?;
        let design = self.design.unwrap_or(FIRST);
        let round = self.round(design);
        refuse_existing(design, &round)?;
        let source = self.home.join(self.operator).join(format!("{design}.cu"));
        let known = |catalog: &Catalog| catalog.of(&operator).knows(design).is_ok();
        if source.exists() || catalog.is_some_and(known) {
            return Err(taken(design, "there is a variant of that name"));
        }
        let kernel = naive(&operator, &here.chip.target()).map_err(|why| {
            refused(
                design,
                &why,
                "write the kernel by hand: `dgx schema variant` lists the keys",
            )
        })?;
        let mut written = Vec::new();
        if let Some((path, text)) = file {
            written.push(write(&path, &text)?);
        }
        if operator == **default_operator() {
            first_headers(self.home, &mut written)?;
        }
        written.push(write(&source, &kernel)?);
        written.push(write(&round, &round_text(&operator, design, None))?);
        tell(&written, &round, None);
        Ok(Exit::Done)
    }

    /// The operator, and its file if that is to be written.
    fn operator(&self) -> Result<(Operator, Option<(PathBuf, String)>), CommandError> {
        let name = self.operator;
        let exists = operator::known().any(|known| known == name);
        match (exists, self.design) {
            (_, Some(_)) => Ok((dgx_core::operator::find(name)?, None)),
            (true, None) => {
                let message = format!("operator `{name}` exists; give the new variant a name");
                let remedy = format!("dgx new mine --operator {name}");
                Err(InputError::new(message, remedy).into())
            }
            (false, None) => {
                dgx_run::catalog::check_name(name)
                    .map_err(|why| refused(name, &why, "choose another name"))?;
                if name == "include" || name.starts_with("sm_") {
                    let why = "its designs would lie in a folder that has another meaning";
                    return Err(refused(name, why, "choose another name"));
                }
                let path = Path::new("operators").join(format!("{name}.toml"));
                let text = TEMPLATE.replace("NAME", name);
                let source = dgx_core::diagnostic::SourceFile {
                    path: path.clone(),
                    text: text.as_str().into(),
                };
                Ok((Operator::from_source(source)?, Some((path, text))))
            }
        }
    }

    /// Designs of several operators may share a name; rounds may not.
    fn round(&self, design: &str) -> PathBuf {
        let name = self.design.map_or(self.operator, |_| design);
        Path::new(ROUNDS).join(format!("{name}.toml"))
    }
}

/// A round of an operator's small problems.
pub(super) fn round_text(operator: &Operator, design: &str, beside: Option<&str>) -> String {
    let shapes = operator.small.iter().map(|sizes| {
        let pairs = operator.sizes.iter().zip(sizes);
        let sizes = pairs
            .map(|(name, size)| format!("{name} = {size}"))
            .joined(", ");
        format!("  {{ {sizes} }},\n")
    });
    let shapes: String = shapes.collect();
    let (name, opening) = (&operator.name, opening(design, beside));
    format!(
        "# The small problems of {name}, to be quick while {design} is being written.\n\
         # `dgx schema round` lists what else a round can say.\n\
         operator   = {name:?}\n\
         {opening}\
         \n\
         shapes = [\n{shapes}]\n\
         {ENDING}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operator_to_begin_from_is_sound() {
        let request = Request {
            design: None,
            operator: "mine",
            home: Path::new("variants"),
        };
        let (operator, file) = request.operator().expect("a sound operator");
        assert_eq!(operator.name, "mine");
        assert!(file.is_some_and(|(_, text)| !text.contains("NAME")));
    }
}
