use crate::domain::Timing;
use crate::record::schema::{ContenderRecord, Header, Settings};

/// Why two run files are not parts of one round with the same settings; `None` if they are.
pub(super) fn unlike(one: &Header, other: &Header) -> Option<String> {
    round(one, other)
        .or_else(|| contenders(one, other))
        .or_else(|| settings(one, other))
        .or_else(|| machine(one, other))
}

fn differ<T: PartialEq + std::fmt::Display>(what: &str, one: T, other: T) -> Option<String> {
    (one != other).then(|| format!("{what} differ: {one} and {other}"))
}

fn round(one: &Header, other: &Header) -> Option<String> {
    if one.name != other.name {
        let (one, other) = (&one.name, &other.name);
        return Some(format!("they are of different rounds: {one} and {other}"));
    }
    if one.config.text != other.config.text {
        return Some(format!(
            "they are of different rounds: {} was changed between them",
            one.config.path
        ));
    }
    if one.operator != other.operator {
        return Some("they are of different operators, or of two texts of one".to_owned());
    }
    if one.round_shapes() != other.round_shapes() {
        return Some("their rounds have different shapes".to_owned());
    }
    let departed = |header: &Header| match header.departures.as_slice() {
        [] => "as the round says".to_owned(),
        flags => format!("with {}", flags.join(" ")),
    };
    let (one, other) = (departed(one), departed(other));
    (one != other).then(|| format!("they were swept differently: {one}, and {other}"))
}

fn contenders(one: &Header, other: &Header) -> Option<String> {
    let ids = |header: &Header| -> Vec<String> {
        let contenders = header.contenders.iter();
        contenders.map(|c| c.id.to_string()).collect()
    };
    if ids(one) != ids(other) {
        return Some("their contenders differ".to_owned());
    }
    let pairs = || one.contenders.iter().zip(&other.contenders);
    let changed = |(a, b): &(&ContenderRecord, &ContenderRecord)| a.hash != b.hash;
    if let Some((contender, _)) = pairs().find(changed) {
        let id = &contender.id;
        return Some(format!("`{id}` has different sources (variant hashes)"));
    }
    let redeclared = |(a, b): &(&ContenderRecord, &ContenderRecord)| a != b;
    if let Some((contender, _)) = pairs().find(redeclared) {
        return Some(format!("`{}` is declared differently", contender.id));
    }
    let yardstick = |header: &Header| match &header.yardstick {
        Some(id) => id.to_string(),
        None => "none".to_owned(),
    };
    differ("baselines", &one.baseline, &other.baseline)
        .or_else(|| differ("yardsticks", yardstick(one), yardstick(other)))
}

fn settings(one: &Header, other: &Header) -> Option<String> {
    let (a, b) = (&one.settings, &other.settings);
    // Every part draws its own.
    let secret = a.secret;
    if *a
        == (Settings {
            secret,
            ..b.clone()
        })
    {
        return None;
    }
    differ("seeds", a.seed, b.seed)
        .or_else(|| differ("blocks", a.min_blocks, b.min_blocks))
        .or_else(|| differ("processes", a.processes, b.processes))
        .or_else(|| differ("time limits", a.max_seconds, b.max_seconds))
        .or_else(|| {
            let how = [a.looser_than(b), b.looser_than(a)].concat();
            Some(match how.is_empty() {
                true => "their settings differ".to_owned(),
                false => format!("their settings differ: {}", how.join(", ")),
            })
        })
}

fn machine(one: &Header, other: &Header) -> Option<String> {
    let (a, b) = (&one.device, &other.device);
    if a.timing == Timing::Recorded {
        return Some("recorded numbers are not swept in parts".to_owned());
    }
    let none = "none".to_owned();
    let compiler = |header: &Header| header.compiler.clone().unwrap_or(none.clone());
    differ("backends", a.backend, b.backend)
        .or_else(|| differ("GPU models", &a.name, &b.name))
        .or_else(|| differ("multiprocessors", a.sms, b.sms))
        .or_else(|| differ("compilers", compiler(one), compiler(other)))
        .or_else(|| differ("versions of dgx", &one.dgx, &other.dgx))
}
