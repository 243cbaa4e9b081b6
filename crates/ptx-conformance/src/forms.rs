//! The forms of instructions that goldens speak for, as `ptx-emu` lists them.

use std::collections::{BTreeMap, HashMap};

use ptx_emu::{Evidence, Module};

use crate::case::{Case, Compare, ENTRY};
use crate::golden::{Answer, Golden};

/// The contents of `recorded.txt` of `ptx-emu`: each form in a kernel that a card has run, and
/// whether its results are compared bit for bit (`=`) or within a tolerance (`~`).
pub fn recorded(cases: &[Case], goldens: &HashMap<String, Golden>) -> String {
    let mut forms: BTreeMap<String, Evidence> = BTreeMap::new();
    let ran = cases.iter().filter(|case| {
        let golden = goldens.get(&case.name);
        golden.is_some_and(|golden| matches!(golden.answer, Answer::Outputs(_)))
    });
    for case in ran {
        let evidence = match case.compare {
            Compare::Exact => Evidence::Exact,
            Compare::Near { .. } => Evidence::Near,
        };
        let module = Module::load(&case.ptx).unwrap_or_default();
        for form in module.kernel(ENTRY).iter().flat_map(|kernel| kernel.forms) {
            let known = forms.entry(form.clone()).or_insert(evidence);
            *known = evidence.min(*known);
        }
    }
    let line = |(form, evidence): (&String, &Evidence)| match evidence {
        Evidence::Exact => format!("= {form}\n"),
        _ => format!("~ {form}\n"),
    };
    forms.iter().map(line).collect()
}
