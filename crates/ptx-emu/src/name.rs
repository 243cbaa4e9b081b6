//! Names of variables as the source has them.

/// `nibbles` of `_ZZ4gemmE7nibbles`: the last name, which its length precedes. Any other name is
/// returned as it is.
pub fn source_name(mangled: &str) -> &str {
    last_name(mangled).unwrap_or(mangled)
}

fn last_name(mangled: &str) -> Option<&str> {
    let names = mangled.strip_prefix("_Z")?;
    let names = names.strip_suffix('E').unwrap_or(names);
    let mut digits = names.match_indices(|c: char| c.is_ascii_digit());
    digits.find_map(|(at, _)| {
        let end = names[at..].find(|c: char| !c.is_ascii_digit())? + at;
        let length: usize = names[at..end].parse().ok()?;
        let name = &names[end..];
        (name.len() == length).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_source_calls_a_variable_by_its_last_name() {
        assert_eq!(source_name("_ZZ4gemmE7nibbles"), "nibbles");
        assert_eq!(source_name("_ZN3dgx14dynamic_sharedE"), "dynamic_shared");
        assert_eq!(source_name("_ZZN1a4gemmEvE3t12"), "t12");
        for plain in ["tiles", "_Z", "_Zt12", "_ZZ9dual_gemmE70nibbles", ""] {
            assert_eq!(source_name(plain), plain);
        }
    }
}
