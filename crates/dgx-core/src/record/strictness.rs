//! How strictly a run was validated, compared with another run and with the defaults of rounds.

use super::schema::Settings;
use crate::config::Validation;
use crate::domain::Distribution;

impl Settings {
    /// The settings in which this was validated less strictly than `other`, or timed differently.
    pub fn looser_than(&self, other: &Self) -> Vec<String> {
        let mut found = self.more_tolerant(other.rtol, other.atol, &other.distributions);
        if self.hazards < other.hazards {
            let (one, two) = (self.hazards, other.hazards);
            found.push(format!("--hazards {one} instead of {two}"));
        }
        if self.secret_given && !other.secret_given {
            found.push("its data could be known beforehand (--data-seed)".to_owned());
        }
        if self.cold_l2 != other.cold_l2 {
            let (one, two) = (self.cold_l2, other.cold_l2);
            found.push(format!("cold_l2 = {one} instead of {two}"));
        }
        found
    }

    /// The settings in which this was validated less strictly than by default, given the operator's
    /// relative and absolute tolerance.
    pub fn looser_than_default(&self, (rtol, atol): (f64, f64)) -> Vec<String> {
        self.more_tolerant(rtol, atol, &Validation::default().distributions)
    }

    fn more_tolerant(&self, rtol: f64, atol: f64, data: &[Distribution]) -> Vec<String> {
        let tolerances = [("rtol", self.rtol, rtol), ("atol", self.atol, atol)];
        let larger = tolerances.into_iter().filter(|(_, own, than)| own > than);
        let mut found: Vec<String> = larger
            .map(|(key, own, than)| format!("{key} = {own} instead of {than}"))
            .collect();
        // Chips differ in whether scales have a sign.
        let seen = |data: &[Distribution]| -> Vec<Distribution> {
            data.iter().map(|d| d.with_scales(true)).collect()
        };
        let own = seen(&self.distributions);
        let missing = data.iter().filter(|d| !own.contains(&d.with_scales(true)));
        let missing: Vec<&str> = missing.map(|d| d.as_str()).collect();
        if !missing.is_empty() {
            found.push(format!("no {} data", missing.join(" or ")));
        }
        found
    }
}
