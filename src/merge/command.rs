/// The command that sweeps another shard as this one was swept: a part that was
/// swept with other flags would not be merged. `None` where the command line of
/// the one does not tell.
pub(super) fn like(argv: &[String], shard: &str) -> Option<String> {
    let (mut words, mut named) = (Vec::new(), false);
    let mut rest = argv.iter();
    while let Some(word) = rest.next() {
        let (flag, value) = match word.split_once('=') {
            Some((flag, _)) => (flag, true),
            None => (word.as_str(), false),
        };
        match flag {
            "--shard" => {
                words.extend(["--shard".to_owned(), shard.to_owned()]);
                named = true;
            }
            // Its own file.
            "--into" => {}
            "--resume" => return None,
            _ => {
                words.push(as_typed(word));
                continue;
            }
        }
        if !value {
            rest.next();
        }
    }
    named.then(|| words.join(" "))
}

fn as_typed(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=:,%+…".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_shard_is_swept_as_the_one() {
        let like = |line: &[&str]| {
            let argv: Vec<String> = line.iter().map(|w| (*w).to_owned()).collect();
            like(&argv, "2/2")
        };
        let said = like(&[
            "dgx", "sweep", "a.toml", "--quick", "--shard", "1/2", "--into", "1.jsonl", "--only",
            "x[A=1]",
        ]);
        let due = "dgx sweep a.toml --quick --shard 2/2 --only 'x[A=1]'";
        assert_eq!(said.as_deref(), Some(due));
        let said = like(&["dgx", "sweep", "--shard=1/2", "--into=1.jsonl", "a.toml"]);
        assert_eq!(said.as_deref(), Some("dgx sweep --shard 2/2 a.toml"));
        assert_eq!(like(&["dgx", "sweep", "--resume", "1.jsonl"]), None);
        assert_eq!(like(&["dgx", "sweep", "a.toml"]), None);
    }
}
