//! Checks that each module uses only modules listed above it in `lib.rs`, tests included. So there
//! are no cycles, and the drawing there is true.

mod rooms;

use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A path from one module to another.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Arrow {
    line: usize,
    /// From the root of the crate; `*` if it may lead to any module.
    path: Vec<String>,
}

impl Arrow {
    /// The top-level module that it leads to.
    fn to(&self) -> &str {
        self.path.first().map_or("*", |word| word)
    }
}

/// All paths in `source` that begin with `crate` or `super`. Comments and strings do not count.
fn arrows(source: &str, module: &[String]) -> Vec<Arrow> {
    let stream: TokenStream = source
        .parse()
        .expect("it compiles, so it is made of tokens");
    let mut found = Vec::new();
    walk(stream, module, &mut found);
    found
}

fn walk(stream: TokenStream, module: &[String], found: &mut Vec<Arrow>) {
    let tokens: Vec<TokenTree> = stream.into_iter().collect();
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at] {
            TokenTree::Ident(word) if word == "crate" && colons(&tokens[at + 1..]) => {
                lead(&tokens[at + 3..], &[], found);
            }
            TokenTree::Ident(word) if word == "crate" && is_word(tokens.get(at + 1), "as") => {
                found.push(arrow(&tokens[at], &[]));
            }
            // A visibility is not a use.
            TokenTree::Ident(word) if word == "pub" && is_plain(tokens.get(at + 1)) => at += 1,
            // A `super` after another is part of the same path.
            TokenTree::Ident(word) if word == "super" && !follows(&tokens[..at]) => {
                lead(&tokens[at..], module, found);
            }
            TokenTree::Ident(word) if word == "mod" => {
                if let (Some(TokenTree::Ident(name)), Some(TokenTree::Group(body))) =
                    (tokens.get(at + 1), tokens.get(at + 2))
                {
                    let inner = [module, &[name.to_string()]].concat();
                    walk(body.stream(), &inner, found);
                    at += 2;
                }
            }
            TokenTree::Group(group) => walk(group.stream(), module, found),
            _ => {}
        }
        at += 1;
    }
}

/// Follows a path on from the module `base`, or the paths of a group.
fn lead(path: &[TokenTree], base: &[String], found: &mut Vec<Arrow>) {
    match path.first() {
        Some(TokenTree::Ident(word)) if word == "super" => {
            let base = &base[..base.len().saturating_sub(1)];
            match colons(&path[1..]) {
                true => lead(&path[3..], base, found),
                false => found.push(arrow(&path[0], base)),
            }
        }
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
            let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
            for path in tokens.split(|t| matches!(t, TokenTree::Punct(p) if p.as_char() == ',')) {
                lead(path, base, found);
            }
        }
        Some(token @ TokenTree::Ident(word)) => {
            let mut base = base.to_vec();
            if word != "self" {
                base.push(word.to_string().trim_start_matches("r#").to_owned());
            }
            match colons(&path[1..]) {
                true => lead(&path[3..], &base, found),
                false => found.push(arrow(token, &base)),
            }
        }
        Some(token @ TokenTree::Punct(_)) => {
            found.push(arrow(token, &[base, &["*".to_owned()]].concat()));
        }
        _ => {}
    }
}

fn arrow(from: &TokenTree, path: &[String]) -> Arrow {
    Arrow {
        line: from.span().start().line,
        path: path.to_vec(),
    }
}

/// `(crate)` or `(super)`
fn is_plain(visibility: Option<&TokenTree>) -> bool {
    match visibility {
        Some(TokenTree::Group(group)) => group.stream().into_iter().count() == 1,
        _ => false,
    }
}

fn colons(tokens: &[TokenTree]) -> bool {
    let colon =
        |t: Option<&TokenTree>| matches!(t, Some(TokenTree::Punct(p)) if p.as_char() == ':');
    colon(tokens.first()) && colon(tokens.get(1))
}

fn follows(before: &[TokenTree]) -> bool {
    let path = before.len() >= 3 && colons(&before[before.len() - 2..]);
    path && is_word(before.get(before.len() - 3), "super")
}

fn is_word(token: Option<&TokenTree>, word: &str) -> bool {
    matches!(token, Some(TokenTree::Ident(found)) if found == word)
}

/// The top-level modules, in the order of `lib.rs`.
fn order(lib: &str) -> Vec<String> {
    let stream: TokenStream = lib.parse().expect("it compiles, so it is made of tokens");
    let tokens: Vec<TokenTree> = stream.into_iter().collect();
    let pairs = tokens
        .windows(2)
        .filter(|pair| is_word(pair.first(), "mod"));
    pairs.map(|pair| pair[1].to_string()).collect()
}

/// The arrows of a file that do not lead to a module above its own.
fn wrong(order: &[String], path: &Path, source: &str) -> Vec<String> {
    let module = module_of(path);
    let above = order.iter().take_while(|name| **name != module[0]);
    let above: Vec<&String> = above.collect();
    let is_above = |arrow: &Arrow| above.iter().any(|name| *name == arrow.to());
    let leads_back = |arrow: &Arrow| arrow.to() != module[0] && !is_above(arrow);
    let wrong = arrows(source, &module).into_iter().filter(leads_back);
    wrong
        .map(|arrow| {
            format!(
                "{}:{}: {} uses {}",
                path.display(),
                arrow.line,
                module[0],
                arrow.to()
            )
        })
        .collect()
}

/// `gate/judge.rs` and `gate/judge/mod.rs` are both `gate::judge`.
fn module_of(path: &Path) -> Vec<String> {
    let words = path.with_extension("");
    let words = words.iter().map(|word| word.to_string_lossy().into_owned());
    words.filter(|word| word != "mod").collect()
}

/// A crate whose modules have an order.
struct Crate {
    /// Its folder of sources, below the workspace.
    folder: &'static str,
    lib: &'static str,
}

const CRATES: [Crate; 3] = [
    Crate {
        folder: "crates/dgx-core/src",
        lib: include_str!("../crates/dgx-core/src/lib.rs"),
    },
    Crate {
        folder: "crates/dgx-run/src",
        lib: include_str!("../crates/dgx-run/src/lib.rs"),
    },
    Crate {
        folder: "src",
        lib: include_str!("lib.rs"),
    },
];

/// Every source of a crate, by its path there.
fn sources(folder: &str) -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let (mut found, mut folders) = (Vec::new(), vec![root.clone()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let source = fs::read_to_string(&path).unwrap();
                found.push((path.strip_prefix(&root).unwrap().to_owned(), source));
            }
        }
    }
    found
}

/// The roots of a crate, which may use every module.
const TOPS: [&str; 2] = ["lib.rs", "main.rs"];

#[test]
fn modules_use_only_those_above_them() {
    let (mut seen, mut all) = (0, Vec::new());
    for of in &CRATES {
        let order = order(of.lib);
        let sources = sources(of.folder);
        let below = sources
            .iter()
            .filter(|(path, _)| !TOPS.iter().any(|top| path == Path::new(top)));
        for (path, source) in below {
            assert!(
                order.contains(&module_of(path)[0]),
                "{}/{} is in no module of lib.rs",
                of.folder,
                path.display()
            );
            seen += arrows(source, &module_of(path)).len();
            let wrong = wrong(&order, path, source);
            all.extend(wrong.iter().map(|w| format!("{}/{w}", of.folder)));
        }
    }
    assert!(seen > 400, "only {seen} arrows were seen");
    assert!(
        all.is_empty(),
        "a module may use only those above it in its lib.rs:\n{}",
        all.join("\n")
    );
}

/// The emulator is a separate crate, used through its root, and its `trace` module.
#[test]
fn the_emulator_is_used_through_its_front_door_by_one_room() {
    let run = &CRATES[1];
    let mut seen = 0;
    for (path, source) in sources(run.folder) {
        for (number, line) in source.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            let Some((_, rest)) = code.split_once("ptx_emu::") else {
                continue;
            };
            // A type or a list of them, but nothing inside one of its modules.
            let types = rest.strip_prefix("trace::").unwrap_or(rest);
            let inside = types.starts_with(|c: char| c.is_lowercase());
            let place = format!("{}/{}:{}: {line}", run.folder, path.display(), number + 1);
            assert!(!inside, "{place}");
            assert!(path.starts_with("backend"), "{place}");
            seen += 1;
        }
    }
    assert!(seen > 3, "only {seen} uses were seen");
}

#[test]
fn a_wrong_arrow_is_found_wherever_it_hides() {
    let order = order("//! Of mods.\npub mod low;\n\n/// The mod.\npub mod mid;\nmod high;\n");
    assert_eq!(order, ["low", "mid", "high"]);
    for (line, source) in [
        (1, "use crate::high::Thing;"),
        (2, "\nuse crate::{low, high::Thing as Other};"),
        (3, "use crate::{\n    low::{self, X},\n    high,\n};"),
        (1, "use super::super::high;"),
        (1, "use super::{super::high, x};"),
        (1, "use super::{y, super::{low, high}};"),
        (1, "use self::super::super::high::*;"),
        (2, "fn f() {\n    crate::high::f();\n}"),
        (1, "fn f(x: &crate :: high :: Thing) {}"),
        (2, "mod tests {\n    use super::super::super::high;\n}"),
        (
            3,
            "macro_rules! m {\n    () => {\n        $crate::high::f()\n    };\n}",
        ),
        (1, "fn f() { say!(\"{}\", crate::high::f()) }"),
        (1, "pub(in crate::high) fn f() {}"),
        (1, "use crate::*;"),
        (1, "use crate as all;"),
        (1, "use crate::{self as all};"),
        (1, "use super::super as all;"),
        (1, "use super::super::*;"),
        (1, "use crate::nowhere::X;"),
        (1, "use crate::r#high::X;"),
    ] {
        let found = wrong(&order, Path::new("mid/file.rs"), source);
        assert_eq!(found.len(), 1, "{source}\n{found:?}");
        assert!(
            found[0].starts_with(&format!("mid/file.rs:{line}: mid uses ")),
            "{found:?}"
        );
    }
    for source in [
        "use crate::low::Thing;\nuse crate::mid::Other;",
        "use super::high;\nuse super::super::low;",
        "// crate::high\n/* crate::high /* crate::high */ */\n/// [`crate::high`]\nfn f() {}",
        "const A: &str = \"crate::high\";\nconst B: &str = r#\"\"crate::high\"#;",
        "const C: char = '\"';\nconst D: &[u8] = b\"crate::high\";",
        "mod tests {\n    use super::super::high;\n    use super::*;\n}",
        "fn f<'a>(x: &'a str) -> &'a str { high::f(x) }",
    ] {
        let found = wrong(&order, Path::new("mid/file.rs"), source);
        assert!(found.is_empty(), "{source}: {found:?}");
    }
    assert_eq!(
        wrong(&order, Path::new("low.rs"), "use super::mid;").len(),
        1
    );
    assert_eq!(
        wrong(&order, Path::new("low/mod.rs"), "use super::mid;").len(),
        1
    );
    assert_eq!(
        wrong(&order, Path::new("low/a.rs"), "use super::mid;").len(),
        0
    );
}
