//! The 259 forms found in public Hopper kernels (CUTLASS, Triton, hand-written ladders), one
//! instruction each.

use std::collections::BTreeSet;

use crate::{kernel, refusal};

/// A form and an instruction that has it, separated by a tab.
const FORMS: &str = include_str!("hopper.txt");

#[test]
fn every_form_of_public_hopper_kernels_lowers() {
    let mut forms = BTreeSet::new();
    let mut refused = Vec::new();
    for line in FORMS.lines() {
        let (form, instruction) = line.split_once('\t').expect("a tab");
        assert!(instruction.contains(form), "{line}");
        forms.insert(form);
        if let Some(error) = refusal(&kernel(instruction)) {
            refused.push(format!("{instruction}\n  {error}"));
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    assert_eq!(forms.len(), 259);
}
