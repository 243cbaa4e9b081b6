//! No text makes the front end panic: random bytes, random tokens, and real PTX cut off or with
//! one token changed. A longer hunt is `scripts/fuzz`.

use proptest::prelude::*;
use ptx_emu::Module;

const SEEDS: [&str; 2] = [
    include_str!("ptx/control.ptx"),
    include_str!("ptx/written.ptx"),
];

/// Words that make up PTX, so that random texts get past the first token.
const WORDS: &[&str] = &[
    ".version",
    "9.0",
    ".target",
    "sm_90a",
    ".entry",
    ".func",
    ".visible",
    ".extern",
    ".shared",
    ".global",
    ".param",
    ".reg",
    ".local",
    ".align",
    ".b8",
    ".b32",
    ".b64",
    ".f32",
    ".pred",
    "k",
    "%r1",
    "%r<4>",
    "%rd1",
    "%p1",
    "@%p1",
    "@!%p1",
    "add",
    "ld",
    "st",
    "mov",
    "call",
    "bra",
    "setp",
    "cvt",
    ".s32",
    ".u64",
    ".rn",
    ".v4",
    ".uni",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    ",",
    ";",
    ":",
    "<",
    ">",
    "|",
    "!",
    "_",
    "+",
    "-",
    "=",
    "4",
    "0",
    "1024",
    "0f3F800000",
    "0x7fffffff",
    "18446744073709551615",
    "-1",
    "\"x\"",
    ".loc",
    ".file",
    ".section",
    ".debug_str",
    ".pragma",
    ".branchtargets",
    "?",
    "||",
    "<=",
    "-",
    "0xff",
    "mma",
    ".sp",
    "vadd4",
    ".texref",
    ".attribute",
    "a[",
    ".callprototype",
    "ret",
    "wgmma",
    ".mma_async",
    ".m64n8k16",
    "mbarrier",
    "cp",
    ".async",
    ".bulk",
    ".tensor",
    ".2d",
    "fence",
    ".alias",
    ".const",
    "generic",
    "L",
];

/// Byte ranges of a text's words, as white space and punctuation divide it.
fn tokens(text: &str) -> Vec<std::ops::Range<usize>> {
    let mut ranges = Vec::new();
    let mut start = None;
    for (at, byte) in text.bytes().enumerate() {
        let word = byte.is_ascii_alphanumeric() || b"_$%.".contains(&byte);
        match (word, start) {
            (true, None) => start = Some(at),
            (false, Some(from)) => {
                ranges.push(from..at);
                start = None;
            }
            _ => {}
        }
        if !word && !byte.is_ascii_whitespace() && byte.is_ascii() {
            ranges.push(at..at + 1);
        }
    }
    ranges
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = Module::load(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn random_tokens(picks in proptest::collection::vec(0..WORDS.len(), 0..200)) {
        let words: Vec<&str> = picks.into_iter().map(|pick| WORDS[pick]).collect();
        let text = words.join(" ");
        let _ = Module::load(&text);
        let _ = Module::load(&format!(".version 9.0 .entry k() {{ .reg .b32 %r<4>; {text}"));
        let _ = Module::load(&format!(".version 9.0 {text}"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn truncations(seed in 0..SEEDS.len(), part in 0.0..1.0f64) {
        let text = SEEDS[seed];
        let cut = (text.len() as f64 * part) as usize;
        let cut = (0..=cut).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        let _ = Module::load(&text[..cut]);
    }

    #[test]
    fn one_token_changed(seed in 0..SEEDS.len(), place in any::<prop::sample::Index>(), word in 0..WORDS.len()) {
        let text = SEEDS[seed];
        let ranges = tokens(text);
        let range = ranges[place.index(ranges.len())].clone();
        let changed = format!("{}{}{}", &text[..range.start], WORDS[word], &text[range.end..]);
        let _ = Module::load(&changed);
        let removed = format!("{}{}", &text[..range.start], &text[range.end..]);
        let _ = Module::load(&removed);
        let doubled = format!("{} {}", &text[..range.end], &text[range.start..]);
        let _ = Module::load(&doubled);
    }
}
