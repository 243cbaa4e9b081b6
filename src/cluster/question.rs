use std::io::IsTerminal;

/// What is to become of the jobs of somebody who pressed Ctrl-C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    Leave,
    Cancel,
    Follow,
}

/// Asks, where somebody is there to answer; else the jobs are left alone.
pub(super) fn ask(about: &str) -> Wish {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Wish::Leave;
    }
    remark!(
        "{about}\n[l] leave them to go on (the default), [c] cancel them, [f] follow them again?"
    );
    let mut answer = String::new();
    // An end of input is no wish.
    let _ = std::io::stdin().read_line(&mut answer);
    understood(&answer)
}

fn understood(answer: &str) -> Wish {
    match answer.trim().to_lowercase().as_str() {
        "c" | "cancel" => Wish::Cancel,
        "f" | "follow" => Wish::Follow,
        _ => Wish::Leave,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_word_ends_jobs() {
        assert_eq!(understood("c\n"), Wish::Cancel);
        assert_eq!(understood("Follow\n"), Wish::Follow);
        for unclear in ["", "\n", "y\n", "cc\n", "l\n"] {
            assert_eq!(understood(unclear), Wish::Leave);
        }
    }
}
