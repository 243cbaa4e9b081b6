//! The reports of all processes of a run, joined.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use ptx_cuda::report::{Forms, Kernel, Line, WHOLE};
use serde_json::json;

use crate::table::{Column, Style, Table, Value};
use dgx_core::domain::Joined;
use dgx_run::compile::source_name;

/// Everything that was launched, found and refused.
#[derive(Default)]
pub(super) struct Launched {
    processes: BTreeSet<String>,
    kernels: BTreeMap<String, Kernel>,
    forms: BTreeMap<String, Forms>,
    /// Kernel, kind and text.
    hazards: Vec<(String, String, String)>,
    /// Kernel and text.
    faults: Vec<(String, String)>,
    refused: Vec<String>,
    /// Why times are missing.
    untimed: Vec<String>,
    /// Whether a process could not write its whole report.
    pub(super) is_part: bool,
}

/// The number of forms that a sentence names.
const NAMED: usize = 4;

fn some(forms: &BTreeSet<&str>) -> String {
    let named = forms.iter().copied().take(NAMED).joined(", ");
    let more = if forms.len() > NAMED { ", …" } else { "" };
    named + more
}

/// Maximum length of a name in the table.
const NAME: usize = 48;

/// Shortens a name: drops long template arguments, then everything before the last `::`.
fn short(name: &str) -> String {
    if name.chars().count() <= NAME {
        return name.to_owned();
    }
    let outer = match name.split_once('<') {
        Some((outer, _)) => format!("{outer}<…>"),
        None => name.to_owned(),
    };
    match outer.chars().count() <= NAME {
        true => outer,
        false => outer.rsplit("::").next().unwrap_or(&outer).to_owned(),
    }
}

/// Modelled microseconds of all launches that have a time.
fn micros(kernel: &Kernel) -> f64 {
    kernel.modelled_nanos as f64 / 1e3
}

impl Launched {
    /// Reads the reports in a folder. `untimed` is the reason why no time was modelled.
    pub(super) fn read(folder: &Path, untimed: Option<String>) -> Self {
        let mut all = Self {
            untimed: untimed.into_iter().collect(),
            is_part: !folder.join(WHOLE).exists(),
            ..Self::default()
        };
        let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
        for file in files.filter(|file| file.file_name() != WHOLE) {
            let text = std::fs::read_to_string(file.path()).unwrap_or_default();
            // A process that is killed may leave half a line.
            let lines = text
                .lines()
                .filter_map(|line| serde_json::from_str(line).ok());
            // A process that executes another program writes another file: number-turn.jsonl.
            let name = file.file_name().to_string_lossy().into_owned();
            let process = name.split('-').next().unwrap_or_default();
            all.processes.insert(process.to_owned());
            lines.for_each(|line| all.add(line));
        }
        all
    }

    fn add(&mut self, line: Line) {
        match line {
            // Its launches were refused.
            Line::Kernel(kernel) if kernel.launches == 0 => {}
            Line::Kernel(kernel) => {
                let sum = self.kernels.entry(kernel.kernel.clone()).or_default();
                sum.launches += kernel.launches;
                sum.ended += kernel.ended;
                sum.ctas += kernel.ctas;
                sum.warp_instructions += kernel.warp_instructions;
                sum.host_nanos += kernel.host_nanos;
                sum.timed += kernel.timed;
                sum.modelled_nanos += kernel.modelled_nanos;
                sum.longest = sum.longest.take().max(kernel.longest);
                sum.clusters += kernel.clusters;
                sum.remembered += kernel.remembered;
                sum.unwatched = sum.unwatched.max(kernel.unwatched);
            }
            Line::Forms(forms) => {
                let all = self.forms.entry(forms.kernel.clone()).or_default();
                all.exact.extend(forms.exact);
                all.near.extend(forms.near);
                all.documents.extend(forms.documents);
            }
            Line::Untimed { text, .. } if self.untimed.contains(&text) => {}
            Line::Untimed { text, .. } => self.untimed.push(text),
            Line::Hazard {
                kernel,
                hazard,
                text,
            } => self.hazards.push((kernel, hazard, text)),
            Line::Fault { kernel, text } => self.faults.push((kernel, text)),
            Line::Refused { name } if self.refused.contains(&name) => {}
            Line::Refused { name } => self.refused.push(name),
        }
    }

    fn hazards_of(&self, kernel: &str) -> usize {
        self.hazards.iter().filter(|(of, ..)| of == kernel).count()
    }

    /// The table, then findings and refusals.
    pub(super) fn text(&self, style: &Style) -> String {
        let mut parts = Vec::new();
        if self.is_part {
            parts.push("a part of what was launched is lost: it could not be written".to_owned());
        } else if self.kernels.is_empty() && self.faults.is_empty() && self.refused.is_empty() {
            return "no kernel was launched".to_owned();
        }
        if !self.kernels.is_empty() {
            parts.push(self.table().render(style));
        }
        for (_, _, text) in &self.hazards {
            parts.push(text.clone());
        }
        for (_, text) in &self.faults {
            parts.push(format!("fault: {text}"));
        }
        parts.extend(self.unseen());
        for why in &self.untimed {
            parts.push(format!("no time: {why}"));
        }
        if !self.refused.is_empty() {
            parts.push(format!("not supported: {}", self.refused.join(", ")));
        }
        if !self.forms.is_empty() {
            parts.push(self.exactness());
        }
        parts.join("\n\n")
    }

    /// What the hazard detector did not see, in a sentence.
    fn unseen(&self) -> Option<String> {
        let sum = |of: fn(&Kernel) -> u64| self.kernels.values().map(of).sum::<u64>();
        let (all, seen) = (
            sum(|kernel| kernel.clusters),
            sum(|kernel| kernel.remembered),
        );
        let unwatched = self.kernels.values().map(|kernel| kernel.unwatched).max();
        let mut parts = Vec::new();
        if seen < all {
            parts.push(format!(
                "every access of {seen} of {all} clusters was watched for races"
            ));
        }
        if let Some(bytes @ 1..) = unwatched {
            parts.push(format!("{bytes} bytes of memory were not watched"));
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// How reliable the results are, in a sentence.
    fn exactness(&self) -> String {
        let all = |of: fn(&Forms) -> &BTreeSet<String>| -> BTreeSet<&str> {
            self.forms
                .values()
                .flat_map(of)
                .map(String::as_str)
                .collect()
        };
        let (exact, near) = (all(|forms| &forms.exact), all(|forms| &forms.near));
        let documents = all(|forms| &forms.documents);
        let count = exact.len() + near.len() + documents.len();
        let mut text = format!(
            "{} of {count} forms of instructions are tested bit for bit against results of an H200",
            exact.len()
        );
        for (words, forms) in [
            ("within the error that PTX allows", near),
            ("follow the PTX documents alone", documents),
        ] {
            if !forms.is_empty() {
                text += &format!("; {} {words}: {}", forms.len(), some(&forms));
            }
        }
        text
    }

    fn table(&self) -> Table {
        let columns = ["launches", "CTAs", "warp instructions", "emulated in"];
        let mut columns: Vec<Column> = columns.into_iter().map(Column::right).collect();
        columns.push(Column::right("modelled"));
        columns.push(Column::left("bound by"));
        columns.push(Column::right("hazards"));
        let mut table = Table::keyed("kernel", columns.into_iter());
        for (name, kernel) in &self.kernels {
            let longest = kernel.longest.as_ref();
            let values = [
                kernel.launches.to_string(),
                kernel.ctas.to_string(),
                kernel.warp_instructions.to_string(),
                format!("{:.3} s", kernel.host_nanos as f64 / 1e9),
                match kernel.timed {
                    0 => "–".to_owned(),
                    _ => format!("{:.1} µs", micros(kernel)),
                },
                longest.map_or_else(|| "–".to_owned(), |(_, bound)| bound.clone()),
                self.hazards_of(name).to_string(),
            ];
            table.push_named(
                short(&source_name(name)),
                values.into_iter().map(Value::from),
            );
        }
        if self.hazards.is_empty() {
            table = table.without(&["hazards"]);
        }
        match self.kernels.values().any(|kernel| kernel.timed > 0) {
            true => table,
            false => table.without(&["modelled", "bound by"]),
        }
    }

    /// The same for programs.
    pub(super) fn json(&self, device: &str, seed: u64, exit: i32) -> String {
        let hazard = |(kernel, hazard, text): &(String, String, String)| json!({ "kernel": kernel, "hazard": hazard, "text": text });
        let fault = |(kernel, text): &(String, String)| json!({ "kernel": kernel, "text": text });
        let kernel = |(name, kernel): (&String, &Kernel)| {
            let forms = self.forms.get(name);
            json!({
                "kernel": name,
                "name": source_name(name),
                "launches": kernel.launches,
                "ended": kernel.ended,
                "ctas": kernel.ctas,
                "warp_instructions": kernel.warp_instructions,
                "host_nanos": kernel.host_nanos,
                "timed": kernel.timed,
                "modelled_micros": (kernel.timed > 0).then(|| micros(kernel)),
                "exact": forms.map(|forms| &forms.exact),
                "near": forms.map(|forms| &forms.near),
                "documents": forms.map(|forms| &forms.documents),
                "bound_by": kernel.longest.as_ref().map(|(_, bound)| bound),
                "clusters": kernel.clusters,
                "watched_clusters": kernel.remembered,
                "unwatched_bytes": kernel.unwatched,
            })
        };
        let document = json!({
            "device": device,
            "seed": seed,
            "exit": exit,
            "processes": self.processes.len(),
            "kernels": self.kernels.iter().map(kernel).collect::<Vec<_>>(),
            "hazards": self.hazards.iter().map(hazard).collect::<Vec<_>>(),
            "faults": self.faults.iter().map(fault).collect::<Vec<_>>(),
            "refused": self.refused,
            "untimed": self.untimed,
            "whole": !self.is_part,
        });
        format!("{document:#}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_sources_and_fit() {
        let name = |mangled: &str| short(&source_name(mangled));
        assert_eq!(name("_Z3addPKfS0_Pfi"), "add");
        assert_eq!(
            name("_Z9transposeIfLi32EEvPKT_PS0_i"),
            "transpose<float, 32>"
        );
        assert_eq!(name("plain"), "plain");
        let long = format!("outer::kernel<{}>", "int, ".repeat(20));
        assert_eq!(short(&long), "outer::kernel<…>");
        let deep = format!("{}kernel<int>", "namespace::".repeat(6));
        assert_eq!(short(&deep), "kernel<…>");
    }

    #[test]
    fn what_was_not_watched_is_one_sentence() {
        let mut launched = Launched::default();
        let mut add = |clusters, remembered, unwatched| {
            launched.add(Line::Kernel(Kernel {
                launches: 1,
                clusters,
                remembered,
                unwatched,
                ..Kernel::default()
            }));
            launched.unseen()
        };
        assert_eq!(add(2, 2, 0), None);
        let races = "every access of 66 of 102 clusters was watched for races";
        assert_eq!(add(100, 64, 0).as_deref(), Some(races));
        let both = format!("{races}; 8 bytes of memory were not watched");
        assert_eq!(add(0, 0, 8), Some(both));
    }

    #[test]
    fn how_sure_the_results_are_is_one_sentence() {
        let set = |forms: &[&str]| forms.iter().map(|&form| form.to_owned()).collect();
        let mut launched = Launched::default();
        launched.add(Line::Forms(Forms {
            kernel: "a".to_owned(),
            exact: set(&["add.f32", "ret"]),
            near: set(&["ex2.approx.f32"]),
            documents: set(&["a", "b", "c", "d", "e"]),
        }));
        assert_eq!(
            launched.exactness(),
            "2 of 8 forms of instructions are tested bit for bit against results of an H200; 1 \
             within the error that PTX allows: ex2.approx.f32; 5 follow the PTX documents alone: \
             a, b, c, d, …"
        );
    }
}
