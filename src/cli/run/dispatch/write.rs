//! Writes costs into the front matter and leaves the rest of the file unchanged.

use toml_edit::{DocumentMut, TomlError, Value};

use crate::cost_fit::Costs;
use dgx_core::config::target::replace;
use dgx_core::diagnostic::{InputError, SourceFile};
use dgx_run::catalog::front_matter;

/// `file` with other coefficients in the costs of its picks.
pub(super) fn with_costs(file: &SourceFile, costs: &Costs) -> Result<SourceFile, InputError> {
    let refuse = |why: String| {
        let message = format!("cannot rewrite {}: {why}", file.path.display());
        InputError::new(
            message,
            "write each cost as a list of { ns = …, of = \"…\" }",
        )
    };
    let range = front_matter(file)?;
    let matter = file.text[range.clone()].parse();
    let mut matter: DocumentMut = matter.map_err(|why: TomlError| refuse(why.to_string()))?;
    for (pick, nanos) in costs.iter().enumerate() {
        for (term, nanos) in nanos.iter().enumerate() {
            let picks = matter.get_mut("pick").and_then(|p| p.get_mut(pick));
            let cost = picks.and_then(|pick| pick.get_mut("cost"));
            let figure = cost.and_then(|cost| cost.get_mut(term)?.get_mut("ns"));
            let figure = figure.ok_or_else(|| refuse(format!("pick {pick} has no term {term}")))?;
            replace(figure, rounded(*nanos));
        }
    }
    let text = format!(
        "{}{matter}{}",
        &file.text[..range.start],
        &file.text[range.end..]
    );
    Ok(SourceFile {
        path: file.path.clone(),
        text: text.into(),
    })
}

/// Four digits: the fit determines no more.
fn rounded(nanos: f64) -> Value {
    let number: f64 = format!("{nanos:.3e}").parse().unwrap_or(nanos);
    number.into()
}
