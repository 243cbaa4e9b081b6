//! Text from variants, kernels, compilers, configs and run files reaches terminals and pages.
//! Characters that could move a cursor, recolour a screen, reorder a line or hide in it are made
//! visible here, once.

/// Control characters other than newline and tab, and characters that reorder a line or have no
/// width.
pub fn harmful(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(
            c,
            '\u{61c}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{2069}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// `text` with harmful characters written out, ESC as `\u{1b}`.
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match harmful(c) {
            true => out.extend(c.escape_unicode()),
            false => out.push(c),
        }
    }
    out
}

/// `text` as part of one line: with its line ends escaped too.
pub fn printable_line(text: &str) -> String {
    printable(text).replace('\n', "\\n").replace('\t', " ")
}

/// A line for the screen: keeps dgx's own colours, if there are any, and escapes everything else
/// that would control a terminal.
pub(crate) fn on_screen(line: &str, coloured: bool) -> String {
    let mut parts = line.split('\u{1b}');
    let mut out = printable(parts.next().unwrap_or_default());
    for part in parts {
        let colour = part.strip_prefix('[').and_then(|rest| rest.split_once('m'));
        let is_code = |code: &str| code.bytes().all(|b| b.is_ascii_digit() || b == b';');
        match colour.filter(|(code, _)| coloured && is_code(code)) {
            Some((code, rest)) => out.push_str(&format!("\u{1b}[{code}m{}", printable(rest))),
            None => out.push_str(&printable(&format!("\u{1b}{part}"))),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_act_on_a_terminal_is_written_out() {
        assert_eq!(
            printable("a\u{1b}[31m\u{9b}2J\r\u{7}\u{202e}b"),
            "a\\u{1b}[31m\\u{9b}2J\\u{d}\\u{7}\\u{202e}b"
        );
        assert_eq!(printable("µs, 2×\n\tdone"), "µs, 2×\n\tdone");
        assert_eq!(printable_line("two\nlines"), "two\\nlines");
    }

    #[test]
    fn colours_are_the_only_escapes_that_reach_a_screen() {
        let line = "\u{1b}[1;32mok\u{1b}[0m \u{1b}[2J\u{1b}]0;title\u{7}\r";
        let plain = "\\u{1b}[1;32mok\\u{1b}[0m \\u{1b}[2J\\u{1b}]0;title\\u{7}\\u{d}";
        assert_eq!(on_screen(line, false), plain);
        let coloured = "\u{1b}[1;32mok\u{1b}[0m \\u{1b}[2J\\u{1b}]0;title\\u{7}\\u{d}";
        assert_eq!(on_screen(line, true), coloured);
    }
}
