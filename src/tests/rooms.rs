//! Checks the same for the emulator's `exec` and `lower`, by the order in their `mod.rs`. Most of
//! their functions are methods of one type, so a method call counts as a use of the file that
//! defines the method.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use super::{arrows, is_word, module_of, order, sources, walk};

/// A folder of modules around one type.
struct Rooms {
    name: &'static str,
    list: &'static str,
    /// The type, and the name of its variables.
    state: &'static str,
    variable: &'static str,
}

const EMULATOR: &str = "crates/ptx-emu/src";

const ROOMS: [Rooms; 2] = [
    Rooms {
        name: "exec",
        list: include_str!("../../crates/ptx-emu/src/exec/mod.rs"),
        state: "Cluster",
        variable: "cluster",
    },
    Rooms {
        name: "lower",
        list: include_str!("../../crates/ptx-emu/src/lower/mod.rs"),
        state: "Emitter",
        variable: "emitter",
    },
];

/// The definitions and uses in a file.
struct File {
    /// `exec::memory::access`
    module: Vec<String>,
    /// Paths into the folder.
    paths: Vec<Vec<String>>,
    /// Methods of the type that it defines, and those that it calls.
    methods: Vec<String>,
    calls: BTreeSet<String>,
}

impl File {
    fn read(rooms: &Rooms, path: &Path, source: &str) -> Self {
        let module = module_of(&Path::new(rooms.name).join(path));
        let tokens: TokenStream = source
            .parse()
            .expect("it compiles, so it is made of tokens");
        let mut arrows = Vec::new();
        walk(tokens.clone(), &module, &mut arrows);
        arrows.retain(|arrow| arrow.to() == rooms.name);
        let (own, rest) = split(tokens, rooms.state);
        let mut calls = BTreeSet::new();
        called(&rest, &[rooms.variable], &mut calls);
        let methods = own.iter().flat_map(functions).collect();
        let own: Vec<TokenTree> = own.into_iter().map(TokenTree::Group).collect();
        called(&own, &["self", rooms.variable], &mut calls);
        Self {
            module,
            paths: arrows.into_iter().map(|arrow| arrow.path).collect(),
            methods,
            calls,
        }
    }

    fn room(&self) -> &str {
        &self.module[1]
    }

    fn name(&self) -> String {
        self.module.join("::")
    }
}

/// The bodies of `impl State` at the top of a file, and everything else.
fn split(tokens: TokenStream, state: &str) -> (Vec<Group>, Vec<TokenTree>) {
    let (mut own, mut rest) = (Vec::new(), Vec::new());
    let mut tokens = tokens.into_iter();
    while let Some(token) = tokens.next() {
        if !is_word(Some(&token), "impl") {
            rest.push(token);
            continue;
        }
        let mut of_state = false;
        for token in tokens.by_ref() {
            of_state |= is_word(Some(&token), state);
            if let TokenTree::Group(body) = &token
                && body.delimiter() == Delimiter::Brace
            {
                match of_state {
                    true => own.push(body.clone()),
                    false => rest.push(token),
                }
                break;
            }
        }
    }
    (own, rest)
}

/// The functions of a body, without nested ones.
fn functions(body: &Group) -> Vec<String> {
    let tokens: Vec<TokenTree> = body.stream().into_iter().collect();
    let named = tokens.windows(2).filter(|two| is_word(two.first(), "fn"));
    named.map(|two| two[1].to_string()).collect()
}

/// The methods that are called on a variable, anywhere.
fn called(tokens: &[TokenTree], variables: &[&str], found: &mut BTreeSet<String>) {
    for (at, token) in tokens.iter().enumerate() {
        if let TokenTree::Group(group) = token {
            let inner: Vec<TokenTree> = group.stream().into_iter().collect();
            called(&inner, variables, found);
        }
        let on_variable = variables.iter().any(|word| is_word(Some(token), word));
        if let [TokenTree::Punct(dot), TokenTree::Ident(method), then, ..] = &tokens[at + 1..]
            && on_variable
            && dot.as_char() == '.'
            && is_call(then)
        {
            found.insert(method.to_string());
        }
    }
}

/// `(…)` or `::<…>`
fn is_call(then: &TokenTree) -> bool {
    match then {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Parenthesis,
        TokenTree::Punct(punct) => punct.as_char() == ':',
        _ => false,
    }
}

/// The files that each file uses, by number.
fn uses(files: &[File]) -> Vec<BTreeSet<usize>> {
    let mut methods = BTreeMap::new();
    for (number, file) in files.iter().enumerate() {
        methods.extend(file.methods.iter().map(|name| (name, number)));
    }
    let module = |path: &Vec<String>| {
        let longest = (2..=path.len()).rev().map(|length| &path[..length]);
        let mut known = longest.map(|path| files.iter().position(|file| file.module == path));
        known.find_map(|number| number)
    };
    let used = |file: &File| {
        let paths = file.paths.iter().filter_map(module);
        let calls = file.calls.iter().filter_map(|name| methods.get(name));
        paths.chain(calls.copied()).collect()
    };
    files.iter().map(used).collect()
}

fn files(rooms: &Rooms) -> Vec<File> {
    let sources = sources(&format!("{EMULATOR}/{}", rooms.name));
    let below = sources
        .iter()
        .filter(|(path, _)| path != Path::new("mod.rs"));
    below
        .map(|(path, source)| File::read(rooms, path, source))
        .collect()
}

/// Violations of the order between some files.
fn wrong(order: &[String], files: &[File], uses: &[BTreeSet<usize>]) -> Vec<String> {
    let height = |file: &File| order.iter().position(|name| name == file.room());
    let mut wrong = Vec::new();
    for (file, used) in files.iter().zip(uses) {
        for used in used.iter().map(|&number| &files[number]) {
            if height(file) < height(used) {
                wrong.push(format!("{} uses {}", file.name(), used.name()));
            }
        }
    }
    wrong
}

/// Files that use each other in a cycle, and those that lead into one.
fn circle(uses: &[BTreeSet<usize>]) -> BTreeSet<usize> {
    let mut left: BTreeSet<usize> = (0..uses.len()).collect();
    loop {
        let leads_on = |number: &usize| {
            uses[*number]
                .iter()
                .any(|used| used != number && left.contains(used))
        };
        let next: BTreeSet<usize> = left.iter().copied().filter(leads_on).collect();
        if next.len() == left.len() {
            return left;
        }
        left = next;
    }
}

#[test]
fn rooms_of_the_emulator_use_only_those_above_them() {
    for rooms in &ROOMS {
        let files = files(rooms);
        let order = order(rooms.list);
        for file in &files {
            assert!(
                order.iter().any(|name| name == file.room()),
                "{:?}",
                file.module
            );
        }
        let uses = uses(&files);
        let seen: usize = uses.iter().map(BTreeSet::len).sum();
        assert!(seen > 100, "only {seen} arrows were seen in {}", rooms.name);
        let wrong = wrong(&order, &files, &uses);
        assert!(
            wrong.is_empty(),
            "a module may use only those above it in {}/mod.rs:\n{}",
            rooms.name,
            wrong.join("\n")
        );
        let circle = circle(&uses);
        let names: Vec<String> = circle.iter().map(|&n| files[n].name()).collect();
        assert!(names.is_empty(), "a circle of files:\n{}", names.join("\n"));
    }
}

/// The two APIs of `ptx-cuda`, both on one core.
const FACES: [&str; 2] = ["driver", "runtime"];

#[test]
fn the_apis_of_cuda_use_their_core_and_nothing_uses_them() {
    let (mut seen, mut wrong) = (0, Vec::new());
    for (path, source) in sources("crates/ptx-cuda/src") {
        let module = module_of(&path);
        for arrow in arrows(&source, &module) {
            seen += 1;
            if FACES.contains(&arrow.to()) && arrow.to() != module[0] {
                wrong.push(format!("{} uses {}", path.display(), arrow.to()));
            }
        }
    }
    assert!(seen > 200, "only {seen} arrows were seen");
    assert!(
        wrong.is_empty(),
        "move what both need out of driver and runtime:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn a_method_is_an_arrow_to_the_file_that_defines_it() {
    let rooms = Rooms {
        name: "exec",
        list: "mod low;\nmod high;",
        state: "Cluster",
        variable: "cluster",
    };
    let file = |path: &str, source: &str| File::read(&rooms, Path::new(path), source);
    let high = "impl<'a> Cluster<'a> { fn run(&mut self) {} }\nimpl Other { fn stop(&self) {} }";
    for (low, is_wrong) in [
        (
            "impl Cluster<'_> { fn f(&self) { let x = [self.run()]; } }",
            true,
        ),
        (
            "fn f(cluster: &mut Cluster<'_>) { (|| cluster.run::<1>())() }",
            true,
        ),
        ("use crate::exec::high::X;", true),
        ("use super::super::high;", true),
        ("impl Other { fn f(&self) { self.run() } }", false),
        (
            "impl Cluster<'_> { fn f(&self) { self.run; self.stop(); self.x.run(); } }",
            false,
        ),
        ("pub(super) fn run() { run() }\n// cluster.run()", false),
    ] {
        let files = [file("low/a.rs", low), file("high.rs", high)];
        let uses = uses(&files);
        let found = wrong(&order(rooms.list), &files, &uses);
        assert_eq!(!found.is_empty(), is_wrong, "{low}\n{found:?}");
    }
    let around = [[1].into(), [2].into(), [1].into(), BTreeSet::new()];
    assert_eq!(circle(&around), [0, 1, 2].into());
}
