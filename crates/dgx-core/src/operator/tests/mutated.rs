//! Ten thousand damaged files: none makes the reader panic.

use std::time::{Duration, Instant};

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use super::*;
use crate::diagnostic::render;

const FILES: usize = 10_000;

/// Pieces for the damage.
const WORDS: [&str; 40] = [
    "@",
    ".T",
    "(",
    ")",
    "[",
    "]",
    "...",
    ":",
    ",",
    "i(-1)",
    "i(-2)",
    "i(-5)",
    "where(",
    "take(",
    "softmax(",
    "permute(",
    "argsort(",
    "-1",
    "0",
    "1e308",
    "9007199254740992",
    "nan",
    "inf",
    "//",
    "%",
    " and ",
    "\"",
    "\n",
    "=",
    "m",
    "n",
    "k",
    "let = { d = \"x\" }\n",
    "type = \"i32\"\n",
    "size = [\"m\"]\n",
    "[in.z]\n",
    "[out.z]\n",
    "range = [0, 1]\n",
    "\u{3bc}",
    "1073741824",
];

fn mutated(texts: &[String], rng: &mut ChaCha8Rng) -> String {
    let text = &texts[rng.random_range(0..texts.len())];
    let mut chars: Vec<char> = text.chars().collect();
    for _ in 0..rng.random_range(1..4) {
        let at = rng.random_range(0..chars.len().max(1)).min(chars.len());
        let end = (at + rng.random_range(0..12_usize)).min(chars.len());
        let word: Vec<char> = match rng.random_range(0..4) {
            0 => Vec::new(),
            1 => {
                let other: Vec<char> = texts[rng.random_range(0..texts.len())].chars().collect();
                let from = rng.random_range(0..other.len());
                other[from..(from + 20).min(other.len())].to_vec()
            }
            2 => chars[at..end].repeat(rng.random_range(0..30)),
            _ => WORDS[rng.random_range(0..WORDS.len())].chars().collect(),
        };
        let end = if rng.random_range(0..2) == 0 { at } else { end };
        chars.splice(at..end, word);
    }
    chars.into_iter().collect()
}

#[test]
fn ten_thousand_mutated_files_are_read_or_refused_in_time() {
    let built_in = names().map(|name| built_in(name).unwrap().file.text.to_string());
    let paper = paper::files().into_iter().map(|(_, text)| text);
    let texts: Vec<String> = built_in.chain(paper).collect();
    let mut rng = ChaCha8Rng::seed_from_u64(30);
    let (mut sound, mut slowest) = (0, (Duration::ZERO, String::new()));
    for _ in 0..FILES {
        let text = mutated(&texts, &mut rng);
        let begin = Instant::now();
        match operator(&text) {
            Ok(operator) => {
                check_extents(&operator);
                sound += 1;
            }
            Err(error) => {
                assert!(
                    !error.message().is_empty() && !error.remedy().is_empty(),
                    "{text}"
                );
                assert!(error.location().is_some(), "{text}");
                assert!(!render(&error, false).is_empty());
            }
        }
        if begin.elapsed() > slowest.0 {
            slowest = (begin.elapsed(), text);
        }
    }
    let (took, text) = slowest;
    assert!(took < Duration::from_secs(10), "{took:?}:\n{text}");
    assert!(sound > 100 && sound < FILES / 2, "{sound} are sound");
}
