//! A destination may be the register of any source: an instruction reads all it reads before it
//! writes. Every instruction of the suite is run once more for each of its destinations and each
//! source of the same width, with one register in both places.

use std::collections::{BTreeSet, HashMap};

use ptx_conformance::{Case, families, replay};
use ptx_emu::MmaMode;

/// What has no destination in front, or writes it later.
const OTHERS: [&str; 27] = [
    "st",
    "red",
    "bra",
    "brx",
    "call",
    "ret",
    "exit",
    "trap",
    "bar",
    "barrier",
    "membar",
    "fence",
    "cp",
    "prefetch",
    "prefetchu",
    "discard",
    "applypriority",
    "createpolicy",
    "griddepcontrol",
    "stmatrix",
    "tensormap",
    "nanosleep",
    "setmaxnreg",
    "multimem",
    "wgmma",
    "tcgen05",
    "clusterlaunchcontrol",
];

/// The register that is in both places.
const SHARED: &str = "%both";

/// Splits text into registers (`%r1`) and what is between them.
fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let end = rest[at + 1..].find(|c| !word(c));
        let end = end.map_or(rest.len(), |end| at + 1 + end);
        pieces.extend([&rest[..at], &rest[at..end]]);
        rest = &rest[end..];
    }
    pieces.push(rest);
    pieces
}

fn registers(text: &str) -> BTreeSet<&str> {
    let pieces = pieces(text);
    pieces.into_iter().filter(|p| p.starts_with('%')).collect()
}

fn renamed(text: &str, from: &str) -> String {
    let new = |piece| if piece == from { SHARED } else { piece };
    pieces(text).into_iter().map(new).collect()
}

/// The first operand of a list, and the others.
fn first_operand(operands: &str) -> Option<(&str, &str)> {
    let mut depth = 0;
    for (at, c) in operands.char_indices() {
        match c {
            '{' | '[' | '(' => depth += 1,
            '}' | ']' | ')' => depth -= 1,
            ',' if depth == 0 => return Some((&operands[..at], &operands[at + 1..])),
            _ => {}
        }
    }
    None
}

/// The registers that a kernel declares: their names, or the stems of ranges, and their types.
fn declared(statements: &[&str]) -> HashMap<String, &'static str> {
    let mut types = HashMap::new();
    for statement in statements {
        let Some(at) = statement.find(".reg .") else {
            continue;
        };
        let (ty, names) = statement[at + 6..]
            .split_once(' ')
            .expect("a type and a name");
        let ty = match ty {
            "pred" => "pred",
            "b128" => "b128",
            ty if ty.ends_with("x2") || ty.ends_with("32") => "b32",
            ty if ty.ends_with("16") => "b16",
            ty if ty.ends_with("64") => "b64",
            _ => continue,
        };
        for name in names.split(',') {
            let name = name.trim();
            types.insert(name.find('<').map_or(name, |at| &name[..at]).to_owned(), ty);
        }
    }
    types
}

fn type_of(types: &HashMap<String, &'static str>, register: &str) -> Option<&'static str> {
    let stem = register.trim_end_matches(|c: char| c.is_ascii_digit());
    types.get(register).or_else(|| types.get(stem)).copied()
}

/// Where the instruction of a statement begins, behind braces and labels.
fn instruction(statement: &str) -> usize {
    let blank = |c: char| c.is_whitespace() || c == '{' || c == '}';
    let text = statement.trim_start_matches(blank);
    let word = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let at = statement.len() - text.len();
    match word {
        Some(end) if end > 0 && text[end..].starts_with(':') => {
            at + end + 1 + instruction(&text[end + 1..])
        }
        _ => at,
    }
}

/// A kernel with one register in both places, and what tells it from others: only the first of
/// each kind is run.
fn overlaps(case: &Case) -> Vec<(String, String)> {
    let entry = case.ptx.rfind(".entry").expect("a kernel");
    let open = entry + case.ptx[entry..].find('{').expect("its body") + 1;
    let (head, body) = case.ptx.split_at(open);
    let statements: Vec<&str> = body.split(';').collect();
    let types = declared(&statements);
    let mut overlaps = Vec::new();
    for (at, statement) in statements.iter().enumerate() {
        let (before, text) = statement.split_at(instruction(statement));
        let (guard, text) = match text.strip_prefix('@') {
            Some(guarded) => guarded.split_once(' ').expect("an instruction"),
            None => ("", text),
        };
        let Some((form, operands)) = text.split_once(' ') else {
            continue;
        };
        let opcode = form.split('.').next().unwrap_or_default();
        if form.is_empty() || form.starts_with('.') || OTHERS.contains(&opcode) {
            continue;
        }
        let Some((results, sources)) = first_operand(operands) else {
            continue;
        };
        if results.contains('[') {
            continue;
        }
        let read = [guard, sources].join(" ");
        for (i, d) in registers(results).into_iter().enumerate() {
            for (j, s) in registers(&read).into_iter().enumerate() {
                let (Some(ty), Some(other)) = (type_of(&types, d), type_of(&types, s)) else {
                    continue;
                };
                if d == s || ty != other {
                    continue;
                }
                let guarded = |guard: &str| match guard {
                    "" => String::new(),
                    guard => format!("@{guard} "),
                };
                let new = format!(
                    "{before}mov.{ty} {SHARED}, {s};\n{}{form} {},{};\n{}mov.{ty} {d}, {SHARED}",
                    guarded(&renamed(guard, s)),
                    renamed(results, d),
                    renamed(sources, s),
                    guarded(guard)
                );
                let mut all = statements.clone();
                all[at] = &new;
                let text = format!("{head}\n.reg .{ty} {SHARED};\n{}", all.join(";"));
                overlaps.push((format!("{form} {i} {j} {}", !guard.is_empty()), text));
            }
        }
    }
    overlaps
}

#[test]
fn a_destination_may_be_any_source() {
    let mut seen = BTreeSet::new();
    let mut forms = BTreeSet::new();
    let mut wrong = Vec::new();
    for case in families::all() {
        let mut expected = None;
        for (kind, ptx) in overlaps(&case) {
            if !seen.insert(kind.clone()) {
                continue;
            }
            let run = |case: &Case| replay::emulate(case, MmaMode::Fast).map_err(|e| e.to_string());
            let expected = expected.get_or_insert_with(|| run(&case));
            // A kernel that is meant to fault has nothing to compare.
            if expected.is_err() {
                continue;
            }
            forms.extend(kind.split(' ').next().map(str::to_owned));
            let changed = Case {
                ptx,
                ..case.clone()
            };
            if run(&changed) != *expected {
                wrong.push(format!("{}: {kind}\n{}", case.name, changed.ptx));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(
        forms.len() > 1300,
        "only {} forms have sources to share",
        forms.len()
    );
}
