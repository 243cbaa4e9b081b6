use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ContenderId;
use crate::domain::Joined;

/// How closely a call of the emulator is watched for hazards.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    clap::ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub enum HazardWatch {
    /// Not at all
    #[default]
    Off,
    /// A sample of the CTAs
    Some,
    /// All CTAs; several times slower
    All,
    /// Also for what hardware tolerates
    #[value(skip)]
    Strict,
}

words!(HazardWatch {
    Off = "off",
    Some = "some",
    All = "all",
    Strict = "strict",
});

/// An error that a run with a correct result does not show: two accesses that nothing orders, a
/// value used before it was written, ….
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hazard {
    /// Its kind, by a short name: `race`, `proxy-fence`, ….
    pub kind: String,
    /// The location of the accesses: a tensor and the place in it, a shared variable, a barrier, a
    /// register.
    pub at: String,
    /// The access at which it was detected.
    pub here: Access,
    /// The other access, if there are two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub there: Option<Access>,
    /// What is missing between them.
    pub missing: String,
    /// The usual remedy.
    pub remedy: String,
    /// How often these two lines conflicted.
    pub times: u64,
}

/// One side of a [`Hazard`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Access {
    /// The access in words: `a thread writes`, `a bulk copy reads`, ….
    pub deed: String,
    /// Source lines: `file:line`, then the lines it was inlined into, outwards.
    pub lines: Vec<String>,
    pub ptx_line: u32,
    pub kernel: String,
    /// None if the code alone shows the hazard, in any CTA.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cta: Option<[u32; 3]>,
    pub warp: u32,
    /// Lanes of the warp, a bit each.
    pub lanes: u32,
}

impl Hazard {
    /// Identifies the hazard, wherever and however often it occurs, and whichever of the two
    /// accesses came first.
    pub fn key(&self) -> (&str, String, Option<String>) {
        let (here, there) = (self.here.chain(), self.there.as_ref().map(Access::chain));
        match there {
            Some(there) if there < here => (&self.kind, there, Some(here)),
            there => (&self.kind, here, there),
        }
    }

    /// The two lines it is about: the common part of both inlining chains, and one line more.
    /// Differences further inside helpers belong to the same mistake.
    pub fn pair(&self) -> (String, String) {
        let way = |access: &'_ Access| access.lines.iter().rev().cloned().collect();
        let here: Vec<String> = way(&self.here);
        let Some(there) = &self.there else {
            return (here.join(" > "), String::new());
        };
        let there: Vec<String> = way(there);
        let common = here.iter().zip(&there).take_while(|(a, b)| a == b).count();
        let part = |way: &[String]| way[..way.len().min(common + 1)].join(" > ");
        let (here, there) = (part(&here), part(&there));
        match there < here {
            true => (there, here),
            false => (here, there),
        }
    }
}

/// Adds a hazard, or counts it if it is already there.
pub fn add_hazard(all: &mut Vec<Hazard>, met: Hazard) {
    match all.iter_mut().find(|known| known.key() == met.key()) {
        Some(known) => known.times += met.times,
        None => all.push(met),
    }
}

/// A hazard of a contender, with all shapes on which it occurred.
#[derive(Debug)]
pub struct ContenderHazard<'h> {
    pub contender: &'h ContenderId,
    pub hazard: &'h Hazard,
    pub shapes: Vec<&'h str>,
}

/// Each hazard of a contender once, with its shapes, in the order in which they came.
pub fn each_once<'h>(
    met: impl Iterator<Item = (&'h ContenderId, &'h str, &'h Hazard)>,
) -> Vec<ContenderHazard<'h>> {
    let mut all: Vec<ContenderHazard<'h>> = Vec::new();
    for (contender, shape, hazard) in met {
        let same = |f: &&mut ContenderHazard<'_>| {
            *f.contender == *contender && f.hazard.key() == hazard.key()
        };
        match all.iter_mut().find(same) {
            Some(known) => known.shapes.push(shape),
            None => all.push(ContenderHazard {
                contender,
                hazard,
                shapes: vec![shape],
            }),
        }
    }
    all
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.deed, self.chain())
    }
}

impl fmt::Display for Hazard {
    /// On one line, without the remedy.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            at,
            here,
            missing,
            ..
        } = self;
        write!(f, "{kind} at {at}: {here}")?;
        if let Some(there) = &self.there {
            write!(f, ", {there}")?;
        }
        write!(f, ": {missing}")
    }
}

impl Hazard {
    /// The whole text, in several lines.
    pub fn explanation(&self) -> String {
        let Self {
            kind,
            at,
            here,
            missing,
            remedy,
            times,
            ..
        } = self;
        let mut explanation = format!(
            "{kind} at {at}, met {times} times\n  {}",
            here.explanation()
        );
        if let Some(there) = &self.there {
            explanation.push_str(&format!("\n  {}", there.explanation()));
        }
        explanation + &format!("\n  {missing}\n  usual remedy: {remedy}")
    }
}

impl Access {
    /// Its line in the variant first, then the inlined ones.
    pub fn chain(&self) -> String {
        self.lines.iter().rev().map(String::as_str).joined(" > ")
    }

    /// Whether its own line, or one it was inlined into, is in a variant and not in a header.
    pub fn is_in_variant(&self) -> bool {
        self.lines.iter().any(|line| line.contains(".cu:"))
    }

    fn explanation(&self) -> String {
        format!("{self} ({})", self.threads())
    }

    /// Kernel, and CTA, warp and lanes if known.
    pub fn threads(&self) -> String {
        let Self {
            kernel, warp, cta, ..
        } = self;
        let Some([x, y, z]) = cta else {
            return format!("kernel {kernel}");
        };
        let lanes = match self.lanes {
            0 | u32::MAX => String::new(),
            lanes => format!(", {}", listed(lanes)),
        };
        format!("kernel {kernel}, CTA ({x},{y},{z}), warp {warp}{lanes}")
    }
}

/// Lanes for reading: `lane 3`, `lanes 0-7,16`.
fn listed(lanes: u32) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for lane in (0..32).filter(|lane| lanes >> lane & 1 == 1) {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == lane => *last = lane,
            _ => runs.push((lane, lane)),
        }
    }
    let runs = runs
        .iter()
        .map(|(first, last)| match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        })
        .joined(",");
    let word = match lanes.count_ones() {
        1 => "lane",
        _ => "lanes",
    };
    format!("{word} {runs}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hazard_is_told_in_a_line_and_whole() {
        let access = |deed: &str, line: u32, lanes: u32| Access {
            deed: deed.to_owned(),
            lines: vec![format!("x.cuh:{line}"), "mine.cu:40".to_owned()],
            ptx_line: 7,
            kernel: "k".to_owned(),
            cta: Some([1, 0, 0]),
            warp: 2,
            lanes,
        };
        let hazard = Hazard {
            kind: "race".to_owned(),
            at: "shared tile+0x40".to_owned(),
            here: access("a thread reads", 9, 0x0001_00ff),
            there: Some(access("a thread writes", 3, 8)),
            missing: "no barrier".to_owned(),
            remedy: "__syncthreads()".to_owned(),
            times: 4,
        };
        assert_eq!(
            hazard.to_string(),
            "race at shared tile+0x40: a thread reads at mine.cu:40 > x.cuh:9, \
             a thread writes at mine.cu:40 > x.cuh:3: no barrier"
        );
        let explanation = hazard.explanation();
        assert!(explanation.contains("met 4 times"), "{explanation}");
        assert!(
            explanation.contains("CTA (1,0,0), warp 2, lanes 0-7,16)"),
            "{explanation}"
        );
        assert!(explanation.contains("warp 2, lane 3)"), "{explanation}");
        assert!(
            explanation.ends_with("usual remedy: __syncthreads()"),
            "{explanation}"
        );
    }
}
