use std::fmt;

use super::ContenderId;

/// A name, or a pattern with `*` and `?`.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    text: String,
}

impl Pattern {
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into() }
    }

    pub fn is_wild(&self) -> bool {
        self.text.contains(['*', '?'])
    }

    /// `*` stands for any text, `?` for one character.
    pub fn matches(&self, name: &str) -> bool {
        let pattern: Vec<char> = self.text.chars().collect();
        let name: Vec<char> = name.chars().collect();
        let (mut at, mut place) = (0, 0);
        // The last star, and the end of the text that it stands for.
        let mut star = None;
        while place < name.len() {
            match (pattern.get(at), star) {
                (Some('*'), _) => {
                    star = Some((at, place));
                    at += 1;
                }
                (Some(wanted), _) if *wanted == '?' || *wanted == name[place] => {
                    at += 1;
                    place += 1;
                }
                (_, Some((before, end))) => {
                    star = Some((before, end + 1));
                    (at, place) = (before + 1, end + 1);
                }
                (_, None) => return false,
            }
        }
        pattern[at..].iter().all(|wanted| *wanted == '*')
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
    fn stars_stand_for_any_text_and_question_marks_for_a_character() {
        let fits = |pattern: &str, name: &str| Pattern::new(pattern).matches(name);
        for (pattern, name) in [
            ("", ""),
            ("*", ""),
            ("**", "ab"),
            ("a*", "a"),
            ("*a", "aaa"),
            ("a*b*c", "abbc"),
            ("*ab*ab", "abaab ab"),
            ("a?c", "aµc"),
            ("?*", "a"),
        ] {
            assert!(fits(pattern, name), "{pattern:?} {name:?}");
        }
        for (pattern, name) in [
            ("", "a"),
            ("a", ""),
            ("?", ""),
            ("a*", "ba"),
            ("*a", "ab"),
            ("a*b*c", "acb"),
            ("a?c", "ac"),
            ("*??", "a"),
        ] {
            assert!(!fits(pattern, name), "{pattern:?} {name:?}");
        }
        let long = "a".repeat(2000);
        assert!(!fits(&format!("{}b", "a*".repeat(200)), &long));
    }

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
