//! What the processes of a run report, together.

use std::collections::BTreeMap;
use std::path::Path;

use ptx_cuda::report::{Kernel, Line};
use serde_json::json;

use crate::table::{Align, Column, Style, Table, Value};

/// All that was launched, found and refused.
#[derive(Default)]
pub(super) struct Launched {
    processes: usize,
    kernels: BTreeMap<String, Kernel>,
    /// Kernel, kind and text.
    hazards: Vec<(String, String, String)>,
    /// Kernel and text.
    faults: Vec<(String, String)>,
    refused: Vec<String>,
}

impl Launched {
    /// Reads the files of a folder, one for each process.
    pub(super) fn read(folder: &Path) -> Self {
        let mut all = Self::default();
        let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
        for file in files {
            let text = std::fs::read_to_string(file.path()).unwrap_or_default();
            // A process that is killed may leave half a line.
            let lines = text
                .lines()
                .filter_map(|line| serde_json::from_str(line).ok());
            all.processes += 1;
            lines.for_each(|line| all.add(line));
        }
        all
    }

    fn add(&mut self, line: Line) {
        match line {
            Line::Kernel(kernel) => {
                let sum = self.kernels.entry(kernel.kernel.clone()).or_default();
                sum.launches += kernel.launches;
                sum.ended += kernel.ended;
                sum.ctas += kernel.ctas;
                sum.warp_instructions += kernel.warp_instructions;
                sum.host_nanos += kernel.host_nanos;
            }
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

    /// The table, and what was found and refused.
    pub(super) fn text(&self, style: &Style) -> String {
        if self.kernels.is_empty() && self.faults.is_empty() && self.refused.is_empty() {
            return "no kernel was launched".to_owned();
        }
        let mut parts = Vec::new();
        if !self.kernels.is_empty() {
            parts.push(self.table().render(style));
        }
        for (_, _, text) in &self.hazards {
            parts.push(text.clone());
        }
        for (_, text) in &self.faults {
            parts.push(format!("fault: {text}"));
        }
        if !self.refused.is_empty() {
            parts.push(format!("not supported: {}", self.refused.join(", ")));
        }
        parts.join("\n\n")
    }

    fn table(&self) -> Table {
        let columns = ["launches", "CTAs", "warp instructions", "emulated in"];
        let mut columns: Vec<Column> = columns.into_iter().map(Column::right).collect();
        columns.push(Column::new("hazards", Align::Right, 9));
        let mut table = Table::keyed("kernel", columns.into_iter());
        for (name, kernel) in &self.kernels {
            let found = self.hazards_of(name);
            let values = [
                kernel.launches.to_string(),
                kernel.ctas.to_string(),
                kernel.warp_instructions.to_string(),
                format!("{:.3} s", kernel.host_nanos as f64 / 1e9),
                found.to_string(),
            ];
            table.push_named(
                ptx_emu::source_name(name),
                values.into_iter().map(Value::from),
            );
        }
        match self.hazards.is_empty() {
            true => table.without(&["hazards"]),
            false => table,
        }
    }

    /// The same for programs.
    pub(super) fn json(&self, device: &str, seed: u64, exit: i32) -> String {
        let hazard = |(kernel, hazard, text): &(String, String, String)| json!({ "kernel": kernel, "hazard": hazard, "text": text });
        let fault = |(kernel, text): &(String, String)| json!({ "kernel": kernel, "text": text });
        let kernel = |(name, kernel): (&String, &Kernel)| {
            json!({
                "kernel": name,
                "launches": kernel.launches,
                "ended": kernel.ended,
                "ctas": kernel.ctas,
                "warp_instructions": kernel.warp_instructions,
                "host_nanos": kernel.host_nanos,
            })
        };
        let document = json!({
            "device": device,
            "seed": seed,
            "exit": exit,
            "processes": self.processes,
            "kernels": self.kernels.iter().map(kernel).collect::<Vec<_>>(),
            "hazards": self.hazards.iter().map(hazard).collect::<Vec<_>>(),
            "faults": self.faults.iter().map(fault).collect::<Vec<_>>(),
            "refused": self.refused,
        });
        format!("{document:#}\n")
    }
}
