use std::io::IsTerminal;

/// What to do with the jobs after Ctrl-C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UserAnswer {
    Leave,
    Cancel,
    Follow,
}

/// Asks if there is a terminal to answer on; otherwise the jobs are left alone.
pub(super) fn ask(about: &str) -> UserAnswer {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return UserAnswer::Leave;
    }
    remark!(
        "{about}\n[l] let them continue (the default), [c] cancel them, [f] follow them again?"
    );
    let mut answer = String::new();
    // The end of the input is not an answer.
    let _ = std::io::stdin().read_line(&mut answer);
    understood(&answer)
}

fn understood(answer: &str) -> UserAnswer {
    match answer.trim().to_lowercase().as_str() {
        "c" | "cancel" => UserAnswer::Cancel,
        "f" | "follow" => UserAnswer::Follow,
        _ => UserAnswer::Leave,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_word_ends_jobs() {
        assert_eq!(understood("c\n"), UserAnswer::Cancel);
        assert_eq!(understood("Follow\n"), UserAnswer::Follow);
        for unclear in ["", "\n", "y\n", "cc\n", "l\n"] {
            assert_eq!(understood(unclear), UserAnswer::Leave);
        }
    }
}
