use std::fmt;

use wildmatch::WildMatch;

use super::ContenderId;

/// A name, or a pattern with `*` and `?`.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    text: String,
    wild: Option<WildMatch>,
}

impl Pattern {
    pub fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        let wild = text.contains(['*', '?']).then(|| WildMatch::new(&text));
        Self { text, wild }
    }

    pub fn is_wild(&self) -> bool {
        self.wild.is_some()
    }

    pub fn matches(&self, name: &str) -> bool {
        match &self.wild {
            Some(wild) => wild.matches(name),
            None => self.text == name,
        }
    }

    /// Whether it matches a contender: by its name, in either spelling, or by its variant's.
    pub fn picks(&self, id: &ContenderId) -> bool {
        let exact = !self.is_wild() && ContenderId::written(&self.text) == *id;
        let spellings = [id.as_str(), &id.typed(), id.variant()];
        exact || spellings.iter().any(|name| self.matches(name))
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contenders_are_picked_in_either_spelling_or_by_their_variant() {
        let picked = |pattern: &str| -> Vec<&str> {
            let all = [
                "pipelined[BN=64,STAGES=2]",
                "pipelined[BN=64,STAGES=3]",
                "plain",
            ];
            let pattern = Pattern::new(pattern);
            let of = |name: &&str| pattern.picks(&ContenderId::from_text(*name));
            all.into_iter().filter(of).collect()
        };
        assert_eq!(picked("p*").len(), 3);
        assert_eq!(picked("pipelined").len(), 2);
        assert_eq!(picked("pipelined:STAGES=2:BN=64").len(), 1);
        assert_eq!(picked("*:STAGES=3").len(), 1);
        assert_eq!(picked("pipelined[*STAGES=?]").len(), 2);
        assert_eq!(picked("pla?n"), ["plain"]);
        assert_eq!(picked("pipe").len() + picked("").len(), 0);
    }
}
