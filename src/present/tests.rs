//! Run files that no sweep writes: no table panics on them or prints something that is not a
//! number.

use rand::rngs::ChaCha8Rng;
use rand::{Rng, SeedableRng};

use super::{Commands, Folders, Style, SummaryOptions, sweep_summary};
use dgx_core::record::read_text;
use dgx_core::record::synthetic::{Synthetic, dense};

fn small() -> Synthetic {
    Synthetic {
        shapes: vec![dense(256, 3072, 4096), dense(512, 4096, 7168)],
        processes: 2,
        blocks: 3,
        ..Synthetic::round4()
    }
}

/// Values that replace others.
const ODD: [&str; 14] = [
    "0",
    "-1",
    "1e308",
    "5e-324",
    "1e999",
    "4294967295",
    "18446744073709551616",
    "null",
    "\"\"",
    "\"\\u001b[2J\"",
    "[]",
    "{}",
    "true",
    "0.001",
];

/// One change to a file's text, of the kinds that disks, editors and people cause.
fn mutated(text: &str, rng: &mut ChaCha8Rng) -> String {
    let mut below = |n: usize| (rng.next_u64() % n.max(1) as u64) as usize;
    let mut lines: Vec<&str> = text.lines().collect();
    let (a, b) = (below(lines.len()), below(lines.len()));
    match below(7) {
        0 => lines.swap(a, b),
        1 => lines.insert(b, lines[a]),
        2 => {
            lines.remove(a);
        }
        3 => {
            // In the midst of a character, perhaps.
            let cut = &text.as_bytes()[..below(text.len())];
            return String::from_utf8_lossy(cut).into_owned();
        }
        4 => {
            let mut bytes = text.as_bytes().to_vec();
            let at = below(bytes.len());
            bytes[at] = below(256) as u8;
            return String::from_utf8_lossy(&bytes).into_owned();
        }
        // Replaces a value: the text between a colon and its end.
        _ => {
            let colons: Vec<usize> = lines[a].match_indices("\":").map(|(i, _)| i + 2).collect();
            let Some(&at) = colons.get(below(colons.len())) else {
                return text.to_owned();
            };
            let rest = &lines[a][at..];
            let end = at + rest.find([',', '}', ']']).unwrap_or(rest.len());
            let line = format!(
                "{}{}{}",
                &lines[a][..at],
                ODD[below(ODD.len())],
                &lines[a][end..]
            );
            lines[a] = &line;
            return lines.join("\n") + "\n";
        }
    }
    lines.join("\n") + "\n"
}

#[test]
fn no_mutation_makes_a_reader_fall_or_print_nonsense() {
    let mut rng = ChaCha8Rng::seed_from_u64(2026);
    let (mut read_well, mut told_off) = (0, 0);
    for text in [small().text(), small().modelled().text()] {
        for _ in 0..200 {
            let odd = mutated(&text, &mut rng);
            let Ok(run) = read_text("x.jsonl".as_ref(), odd.as_bytes()) else {
                told_off += 1;
                continue;
            };
            read_well += 1;
            let folders = Folders::default();
            let options = SummaryOptions {
                counters: true,
                new: true,
                usual: true,
                commands: &Commands::for_run(&run, &folders),
                is_here: &|_| true,
            };
            let shown = sweep_summary(&run, &options, &Style::PLAIN);
            for word in ["NaN", "inf", "\u{1b}"] {
                assert!(!shown.contains(word), "{word}\n{odd}\n{shown}");
            }
        }
    }
    assert!(read_well > 50 && told_off > 50, "{read_well} {told_off}");
}
