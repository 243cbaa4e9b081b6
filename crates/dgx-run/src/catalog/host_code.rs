//! Prepares files that nvcc compiles for host and GPU for NVRTC: host code is blanked, and every
//! line keeps its number.
//!
//! This reads tokens and brackets, not C++. A macro that opens a brace, or branches of an `#if`
//! that each open one, mislead it; then the compiler reports an error.

use std::collections::BTreeSet;

/// Words by which a declaration is kept.
const DEVICE: [&str; 11] = [
    "__device__",
    "__global__",
    "__constant__",
    "__shared__",
    "__managed__",
    "constexpr",
    "consteval",
    "using",
    "typedef",
    "static_assert",
    "concept",
];

/// Words whose brackets are not a parameter list.
const ATTRIBUTES: [&str; 5] = [
    "alignas",
    "__align__",
    "__attribute__",
    "__launch_bounds__",
    "decltype",
];

/// The words by which a declaration is kept, including macros that stand for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DeviceWords(BTreeSet<String>);

impl DeviceWords {
    /// With the macros of `texts`.
    pub(super) fn of<'a>(texts: impl Iterator<Item = &'a str>) -> Self {
        let mut words: BTreeSet<String> = DEVICE.map(str::to_owned).into();
        let macros: Vec<(&str, &str)> = texts.flat_map(definitions).collect();
        loop {
            let count = words.len();
            for (name, body) in &macros {
                if tokens(body).any(|token| words.contains(token.text)) {
                    words.insert((*name).to_owned());
                }
            }
            if words.len() == count {
                return Self(words);
            }
        }
    }

    /// `text` with functions and variables of the host blanked.
    pub(super) fn without_host_code(&self, text: &str) -> String {
        let text = text.trim_start_matches('\u{feff}');
        let mut filter = Filter {
            words: self,
            tokens: tokens(text).collect(),
            out: String::with_capacity(text.len()),
        };
        filter.scope(0..filter.tokens.len(), false);
        filter.out
    }

    fn keep(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.0.contains(*word))
    }
}

/// Names and texts of macros.
pub(super) fn definitions(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.match_indices("define").filter_map(|(at, word)| {
        let before = text[..at].trim_end_matches([' ', '\t']);
        let rest = text[at + word.len()..].trim_start_matches([' ', '\t']);
        let rest = &rest[..line(rest)];
        let name = rest.find(|c: char| !is_word(c)).filter(|len| *len > 0)?;
        before.ends_with('#').then(|| rest.split_at(name))
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TokenKind {
    /// Space or a comment.
    Blank,
    Directive,
    Code,
}

#[derive(Clone, Copy, Debug)]
struct Token<'a> {
    kind: TokenKind,
    text: &'a str,
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn tokens(text: &str) -> impl Iterator<Item = Token<'_>> {
    let mut rest = text;
    let mut line_start = true;
    std::iter::from_fn(move || {
        let (kind, len) = first_token(rest, line_start)?;
        let (text, after) = rest.split_at(len);
        line_start = match kind {
            TokenKind::Blank => text.contains('\n') || line_start,
            _ => false,
        };
        rest = after;
        Some(Token { kind, text })
    })
}

/// Kind and length of the first token of `text`.
fn first_token(text: &str, line_start: bool) -> Option<(TokenKind, usize)> {
    let first = text.chars().next()?;
    let length_of = |more: fn(char) -> bool| text.find(|c| !more(c)).unwrap_or(text.len());
    if first.is_whitespace() {
        return Some((TokenKind::Blank, length_of(char::is_whitespace)));
    }
    if text.starts_with("//") {
        return Some((TokenKind::Blank, line(text)));
    }
    if let Some(comment) = text.strip_prefix("/*") {
        return Some((
            TokenKind::Blank,
            comment.find("*/").map_or(text.len(), |at| at + 4),
        ));
    }
    let len = match first {
        '#' if line_start => return Some((TokenKind::Directive, line(text))),
        '0'..='9' => length_of(|c| is_word(c) || c == '.' || c == '\''),
        '"' | '\'' => literal(text, first).unwrap_or(1),
        c if is_word(c) => {
            let len = length_of(is_word);
            let (word, after) = text.split_at(len);
            match word.ends_with('R') {
                true => len + raw_string(after).unwrap_or(0),
                false => len,
            }
        }
        c => c.len_utf8(),
    };
    Some((TokenKind::Code, len))
}

/// The length of a line, including those it continues on.
fn line(text: &str) -> usize {
    let ends = text.match_indices('\n').map(|(at, _)| at);
    let mut last = ends.filter(|at| !text[..*at].trim_end_matches('\r').ends_with('\\'));
    last.next().unwrap_or(text.len())
}

/// The length of a string or a character, if it ends on its line.
fn literal(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '\n' => return None,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// `"tag(…)tag"` after an R.
fn raw_string(text: &str) -> Option<usize> {
    let (tag, _) = text.strip_prefix('"')?.split_once('(')?;
    let end = format!("){tag}\"");
    Some(text.find(&end)? + end.len())
}

struct Filter<'a> {
    words: &'a DeviceWords,
    tokens: Vec<Token<'a>>,
    out: String,
}

/// What happens to a declaration.
enum DeclarationUse {
    Keep,
    Blank,
    /// Its body has its own declarations: members, or those of a namespace.
    Enter {
        members: bool,
    },
}

impl<'a> Filter<'a> {
    /// Processes the declarations of a namespace or of a class.
    fn scope(&mut self, range: std::ops::Range<usize>, members: bool) {
        let mut at = range.start;
        while at < range.end {
            let token = self.tokens[at];
            let is_access = members && ["public", "private", "protected"].contains(&token.text);
            if token.kind != TokenKind::Code || token.text == ":" || is_access {
                self.out.push_str(token.text);
                at += 1;
                continue;
            }
            at = self.declaration(at, range.end, members);
        }
    }

    /// Processes one declaration; returns where the next one begins.
    fn declaration(&mut self, start: usize, end: usize, members: bool) -> usize {
        let (words, stop) = self.head(start, end);
        let words = without_template(&words);
        let has_body = self.tokens.get(stop).is_some_and(|t| t.text == "{") && stop < end;
        if !has_body {
            let stop = (stop + 1).min(end);
            let keep = self.keeps_statement(words, members);
            self.emit(start..stop, keep);
            return stop;
        }
        let close = self.closing(stop, end);
        let (fate, ends_with_semicolon) = self.fate(words, members);
        let after = match ends_with_semicolon {
            true => (self.find(close, end, &[";"]) + 1).min(end),
            false => self.end_of_function(close, end),
        };
        match fate {
            DeclarationUse::Keep => self.emit(start..after, true),
            DeclarationUse::Blank => self.emit(start..after, false),
            DeclarationUse::Enter { members } => {
                self.emit(start..stop + 1, true);
                self.scope(stop + 1..close, members);
                self.emit(close..after, true);
            }
        }
        after
    }

    /// The words of a declaration up to its `;` or `{`, and the position of that. Parameters become
    /// `()`; the contents of other brackets are left out.
    fn head(&self, start: usize, end: usize) -> (Vec<&'a str>, usize) {
        let mut words = Vec::new();
        let mut at = start;
        while at < end {
            let token = self.tokens[at];
            match (token.kind, token.text) {
                (TokenKind::Code, ";" | "{") => break,
                (TokenKind::Code, "(") => {
                    let attribute = words.last().is_some_and(|word| ATTRIBUTES.contains(word));
                    words.extend((!attribute).then_some("()"));
                    at = self.closing(at, end);
                }
                (TokenKind::Code, "[") => at = self.closing(at, end),
                (TokenKind::Code, text) => words.push(text),
                _ => {}
            }
            at += 1;
        }
        (words, at)
    }

    /// For a declaration without a body.
    fn keeps_statement(&self, words: &[&str], members: bool) -> bool {
        let has = |word| words.contains(&word);
        let is_function = has("()") && !has("=");
        match words.first() {
            None => true,
            // An instance that host code needs.
            Some(&"template") => false,
            Some(&("namespace" | "friend")) => true,
            _ if self.words.keep(words) => true,
            _ if members => !is_function || has("operator"),
            Some(&("struct" | "class" | "union" | "enum")) => !is_function && !has("="),
            _ => has("const") && !is_function && !has("*"),
        }
    }

    /// For a declaration with a body, and whether a `;` ends it.
    fn fate(&self, words: &[&str], members: bool) -> (DeclarationUse, bool) {
        let has = |word| words.contains(&word);
        let keep_if = |keep| match keep {
            true => DeclarationUse::Keep,
            false => DeclarationUse::Blank,
        };
        let is_linkage = words.len() == 2 && words[0] == "extern" && words[1].starts_with('"');
        if words.iter().take(2).any(|word| *word == "namespace") || is_linkage {
            return (DeclarationUse::Enter { members: false }, false);
        }
        let is_function = has("()") && (!has("=") || has("operator"));
        if !is_function && has("enum") {
            return (DeclarationUse::Keep, true);
        }
        if !is_function && ["struct", "class", "union"].into_iter().any(has) {
            return (DeclarationUse::Enter { members: true }, true);
        }
        let is_device = self.words.keep(words);
        match is_function {
            true => {
                let host_only = has("__host__") && !has("__device__");
                (keep_if(is_device && !host_only), false)
            }
            false => (keep_if(members || is_device || has("const")), true),
        }
    }

    /// The end of a function's body, which may follow members that a constructor sets in braces.
    fn end_of_function(&self, close: usize, end: usize) -> usize {
        let mut close = close;
        loop {
            let next = (close + 1..end).find(|at| self.tokens[*at].kind == TokenKind::Code);
            let open = match next.map(|at| (at, self.tokens[at].text)) {
                Some((at, "{")) => at,
                Some((at, ",")) => self.find(at, end, &["{", ";"]),
                _ => return (close + 1).min(end),
            };
            close = self.closing(open, end);
        }
    }

    fn find(&self, from: usize, end: usize, texts: &[&str]) -> usize {
        let is_it = |at: &usize| {
            let Token { kind, text } = self.tokens[*at];
            kind == TokenKind::Code && texts.contains(&text)
        };
        (from..end).find(is_it).unwrap_or(end)
    }

    /// The position of the bracket that closes the one at `open`.
    fn closing(&self, open: usize, end: usize) -> usize {
        let pair = match self.tokens.get(open).map(|token| token.text) {
            Some("(") => ("(", ")"),
            Some("[") => ("[", "]"),
            _ => ("{", "}"),
        };
        let mut depth = 0;
        for at in open..end {
            match self.tokens[at].text {
                text if text == pair.0 => depth += 1,
                text if text == pair.1 => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return at;
            }
        }
        end.saturating_sub(1).max(open)
    }

    fn emit(&mut self, range: std::ops::Range<usize>, keep: bool) {
        let range = range.start..range.end.min(self.tokens.len());
        for token in &self.tokens[range] {
            let directive = token.text.trim_start_matches(['#', ' ', '\t']);
            let stays = token.kind == TokenKind::Directive && !directive.starts_with("pragma");
            match keep || stays {
                true => self.out.push_str(token.text),
                false => self.out.extend(token.text.chars().map(blank)),
            }
        }
    }
}

fn blank(c: char) -> char {
    match c {
        '\n' => '\n',
        _ => ' ',
    }
}

/// The words after `template <…>`.
fn without_template<'w, 'a>(words: &'w [&'a str]) -> &'w [&'a str] {
    if !matches!(words, ["template", "<", ..]) {
        return words;
    }
    let mut depth = 0;
    for (at, word) in words.iter().enumerate().skip(1) {
        match *word {
            "<" => depth += 1,
            ">" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return without_template(&words[at + 1..]);
        }
    }
    &[]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rest of a text, without blanks.
    fn left(text: &str) -> String {
        let whole = DeviceWords::of([text].into_iter()).without_host_code(text);
        assert_eq!(whole.matches('\n').count(), text.matches('\n').count());
        whole.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_is_for_the_gpu_stays() {
        for text in [
            "__global__ void k(int* x) { if (x) { *x = 1; } }",
            "template <int N, typename T = int> __device__ T f(T x);",
            "extern \"C\" __global__ void __launch_bounds__(256) k();",
            "extern \"C\" { __device__ int f() { return '{'; } }",
            "__host__ __device__ inline int f() { return 1; }",
            "__constant__ float table[2] = {1, 2};",
            "constexpr int n = 4; const int m{3}; static const float e[] = {1};",
            "enum Kind { A, B }; using T = float; typedef int U;",
            "namespace a::b { inline namespace c { __device__ int x; } }",
            "struct alignas(16) V { float x[4]; V() = default; __device__ int f() { return 0; } };",
            "struct W { int a, b; __device__ W(int x) : a{x}, b{x} { b = R\"(})\"[0]; } int c = 1'000; };",
            "#define DEVICE static __device__\n#define KERNEL(t) DEVICE void k##t() {}\nDEVICE int f() { return 0; } KERNEL(float);",
            "class X; union Y { int a; float b; };",
        ] {
            let expected = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(left(text), expected);
        }
    }

    #[test]
    fn what_is_for_the_host_goes() {
        for text in [
            "int main(int argc, char** argv) { k<<<1, 2>>>(0); std::vector<int> v{1}; }",
            "static std::string name = \"}\"; extern cudaDeviceProp prop; cublasHandle_t handle; const char* text = \"a\";",
            "__host__ constexpr int f() { return 0; }",
            "template <typename T> void launch(T* x);",
            "template void launch<float>(float*);",
            "PYBIND11_MODULE(a, m) { m.def(\"f\", f); }",
            "void f(int n = 3) { /* } */ // }\n }",
        ] {
            assert_eq!(left(&format!("\u{feff}{text}")), "", "{text}");
        }
        let mixed = "struct S { int n; int size() const { return n; } void print(); };\nvoid f()\n{\n#pragma unroll\n#ifdef A\n}\n#endif\n__device__ int x;\n";
        assert_eq!(
            left(mixed),
            "struct S { int n; }; #ifdef A #endif __device__ int x;"
        );
    }

    #[test]
    fn text_that_is_no_code_is_passed_through_or_blanked() {
        for text in [
            "",
            "}",
            "{",
            "template <",
            "#",
            "'",
            "\"",
            "f(",
            "R\"x(",
            "struct X {",
            ":",
            "/*",
        ] {
            left(text);
        }
    }
}
