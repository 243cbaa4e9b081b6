//! The output of `printf` in kernels, each line with its CTA and thread.

use std::fmt::Write;

use ptx_emu::Print;

/// One line for each printed line, headed by CTA and thread; also by the kernel if a call has
/// several. Unfinished lines of different threads are not joined.
pub(super) fn lines(kernel: Option<&str>, prints: &[Print]) -> String {
    let mut text = String::new();
    let mut speaking: Option<&Print> = None;
    for print in prints {
        let goes_on = speaking.is_some_and(|s| (s.cta, s.thread) == (print.cta, print.thread));
        if speaking.is_some() && !goes_on {
            text.push('\n');
        }
        let mut goes_on = speaking.is_some() && goes_on;
        for part in print.text.split_inclusive('\n') {
            if !goes_on {
                // Writing to a String cannot fail.
                let _ = write!(text, "{}: ", line_prefix(kernel, print));
            }
            text.push_str(part);
            goes_on = !part.ends_with('\n');
        }
        if !print.text.is_empty() {
            speaking = goes_on.then_some(print);
        }
    }
    if speaking.is_some() {
        text.push('\n');
    }
    text
}

fn line_prefix(kernel: Option<&str>, print: &Print) -> String {
    let kernel = kernel.map_or(String::new(), |name| format!("{name}, "));
    let (cta, thread) = (short(print.cta), short(print.thread));
    format!("{kernel}CTA {cta} thread {thread}")
}

/// `3`, `3,1` or `3,1,2`: unused dimensions are left out.
fn short([x, y, z]: [u32; 3]) -> String {
    match (y, z) {
        (0, 0) => x.to_string(),
        (_, 0) => format!("{x},{y}"),
        _ => format!("{x},{y},{z}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(cta: u32, thread: u32, text: &str) -> Print {
        Print {
            cta: [cta, 0, 0],
            thread: [thread, 0, 0],
            text: text.to_owned(),
        }
    }

    #[test]
    fn every_line_says_whose_it_is() {
        let prints = [
            print(0, 1, "k = 3\n"),
            print(0, 1, "a "),
            print(0, 1, "b"),
            print(0, 2, "one\ntwo\n"),
            print(4, 0, "end"),
        ];
        let expected = "CTA 0 thread 1: k = 3\nCTA 0 thread 1: a b\nCTA 0 thread 2: one\n\
                    CTA 0 thread 2: two\nCTA 4 thread 0: end\n";
        assert_eq!(lines(None, &prints), expected);
        assert_eq!(
            lines(Some("go"), &prints[..1]),
            "go, CTA 0 thread 1: k = 3\n"
        );
        assert_eq!(short([1, 0, 2]), "1,0,2");
        assert_eq!(lines(None, &[]), "");
    }
}
