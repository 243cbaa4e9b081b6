//! The files that a source includes, as far as its text shows.

/// A file to include.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Include {
    pub name: String,
    /// `"name"`, which is first looked for beside the including file.
    pub quoted: bool,
}

/// The includes of one text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Includes {
    pub includes: Vec<Include>,
    /// Names composed by macros, as written: only the preprocessor knows them.
    pub computed: Vec<String>,
}

/// Every `include` and `__has_include` of a text, in any form: splices, comments, `%:` and spaces
/// are handled, conditions are not.
pub(super) fn includes(text: &str) -> Includes {
    let mut found = Includes::default();
    for line in without_comments(&join_continued_lines(text)).lines() {
        let directive = line.find('#').into_iter().chain(line.find("%:")).min();
        let from = match directive {
            Some(at) => at,
            None if line.contains("has_include") => 0,
            None => continue,
        };
        for (at, word) in line[from..].match_indices("include") {
            let rest = line[from + at + word.len()..].trim_start_matches("_next");
            match parse_include(rest.trim_start_matches([' ', '\t', '('])) {
                Some(include) => found.includes.push(include),
                None => found.computed.push(rest.trim().to_owned()),
            }
        }
    }
    found
}

fn parse_include(rest: &str) -> Option<Include> {
    let quoted = rest.starts_with('"');
    let close = match quoted {
        true => '"',
        false => '>',
    };
    let inner = rest.strip_prefix(['"', '<'])?;
    let (name, _) = inner.split_once(close)?;
    Some(Include {
        name: name.to_owned(),
        quoted,
    })
}

/// Lines that end in a backslash joined with the next.
fn join_continued_lines(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        match line.trim_end().strip_suffix('\\') {
            Some(kept) => out.push_str(kept),
            None => out.push_str(line),
        }
    }
    out
}

/// Replaces comments by a space. Strings are skipped, to the end of their line at most.
pub(super) fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut quote = None;
    loop {
        // Before one of these nothing begins or ends.
        let special = |byte| matches!(byte, b'<' | b'/' | b'"' | b'\\' | b'\n');
        let plain = rest.bytes().position(special).unwrap_or(rest.len());
        out.push_str(&rest[..plain]);
        rest = &rest[plain..];
        let Some(c) = rest.chars().next() else {
            return out;
        };
        if quote.is_none() && rest.starts_with('<') && asks(&out) {
            // A name in angle brackets is not code: `//` in it is not a comment.
            let line = rest.lines().next().unwrap_or_default();
            let name = line.find('>').map_or(1, |end| end + 1);
            out.push_str(&rest[..name]);
            rest = &rest[name..];
            continue;
        }
        if quote.is_none() && rest.starts_with("//") {
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
            continue;
        }
        if quote.is_none() && rest.starts_with("/*") {
            out.push(' ');
            rest = rest[2..].find("*/").map_or("", |end| &rest[end + 4..]);
            continue;
        }
        quote = match (quote, c) {
            (_, '\n') => None,
            (None, '"') => Some('"'),
            (Some(open), c) if open == c => None,
            (quote, _) => quote,
        };
        // An escaped quote does not end its string.
        let len = match (quote, rest.as_bytes()) {
            (Some(_), [b'\\', b'"' | b'\\', ..]) => 2,
            _ => c.len_utf8(),
        };
        out.push_str(&rest[..len]);
        rest = &rest[len..];
    }
}

/// Whether the preceding text is an `include` or `__has_include` that expects a name.
fn asks(before: &str) -> bool {
    let before = before.trim_end_matches([' ', '\t', '(']);
    before.trim_end_matches("_next").ends_with("include")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        let found = includes(text);
        assert!(found.computed.is_empty(), "{text}");
        found.includes.into_iter().map(|w| w.name).collect()
    }

    #[test]
    fn every_form_of_asking_is_seen() {
        for text in [
            "#include \"x.cuh\"",
            "  #  include<x.cuh>",
            "%:include \"x.cuh\"",
            "%: /* c */ include <x.cuh>",
            "#/*\n*/include/* a */\"x.cuh\"",
            "# incl\\\nude \"x.\\\ncuh\"",
            "/* c */ #include \"x.cuh\" // why",
            "#if __has_include(\"x.cuh\")",
            "#if 0 || \\\n __has_include ( <x.cuh> )",
            "#include_next <x.cuh>",
            "// \"open\n#include \"x.cuh\"",
        ] {
            assert_eq!(names(text), ["x.cuh"], "{text}");
        }
        assert_eq!(names("#include <a//b.cuh> // c"), ["a//b.cuh"]);
        assert_eq!(
            names("#include <a/*b.cuh>\n#include <c>"),
            ["a/*b.cuh", "c"]
        );
        assert!(names("// #include \"x.cuh\"\n/* #include <x> */ int include;").is_empty());
    }

    #[test]
    fn made_up_names_are_left_to_the_preprocessor() {
        for text in [
            "#define N \"x.cuh\"\n#include N",
            "#define HAS __has_include",
            "#include STR(x.cuh)",
            "%:include NAME",
        ] {
            assert!(!includes(text).computed.is_empty(), "{text}");
        }
    }
}
