//! What the emulator's detector found, in the words of the operator.

use ptx_emu::{DevicePtr, Finding, Region, Sanitize, Site, Spot, source_name};

use crate::backend::zones::Zones;
use dgx_core::domain::{Access, Group, Hazard, Watch};

/// Clusters listened to where a sample is enough.
const SAMPLE: u64 = 2;
/// What may be spent on remembering who used global memory, bytes.
const MEMORY: u64 = 256 << 20;

/// What to look for in a call, perhaps without the CTAs that are not looked at;
/// nothing where nobody asks.
pub(super) fn wanted(watch: Watch, alone: bool) -> Option<Sanitize> {
    let sanitize = Sanitize {
        memory: MEMORY,
        alone,
        ..Sanitize::default()
    };
    match watch {
        Watch::Off => None,
        Watch::Some => Some(Sanitize {
            clusters: Some(SAMPLE),
            ..sanitize
        }),
        Watch::All => Some(sanitize),
        Watch::Strict => Some(Sanitize {
            strict: true,
            ..sanitize
        }),
    }
}

/// What lies where in an allocation that begins at `base`.
pub(super) fn regions(zones: &Zones, base: u64) -> impl Iterator<Item = Region> + '_ {
    let zones = zones.all().iter().filter(|zone| zone.bytes > 0);
    zones.map(move |zone| Region {
        name: zone.name.clone(),
        start: DevicePtr(base + zone.offset),
        len: zone.bytes,
    })
}

/// What was found in one launch.
pub(super) fn told(findings: &[Finding], groups: &[Group]) -> Vec<Hazard> {
    findings.iter().map(|found| hazard(found, groups)).collect()
}

fn hazard(finding: &Finding, groups: &[Group]) -> Hazard {
    Hazard {
        kind: finding.hazard.name().to_owned(),
        at: element(&finding.at, groups).unwrap_or_else(|| named(&finding.at).to_string()),
        here: access(&finding.here),
        there: finding.there.as_ref().map(access),
        missing: finding.missing.clone(),
        remedy: finding.remedy.clone(),
        times: finding.times,
    }
}

/// The spot with its variable as the source has it, and not as C++ mangles it.
fn named(spot: &Spot) -> Spot {
    Spot {
        name: source_name(&spot.name).to_owned(),
        ..spot.clone()
    }
}

/// The element of an operand or of C that a spot in global memory is, or that
/// it would be if rows went on.
fn element(spot: &Spot, groups: &[Group]) -> Option<String> {
    let (tensor, group) = spot.name.split_once(" of group ")?;
    let Group { m, n, k } = *groups.get(group.parse::<usize>().ok()?)?;
    let rows = if tensor.contains('a') || tensor == "c" {
        m
    } else {
        n
    };
    // Bytes of a row, what it runs over, and elements of that in a byte, or bytes in one.
    let (row_bytes, dimension, extent, of_byte, bytes) = match tensor {
        "a" | "b1" | "b2" => (k / 2, 'K', k, 2, 1),
        "sfa" | "sfb1" | "sfb2" => (k / 16, 'K', k, 16, 1),
        "c" => (2 * n, 'N', n, 1, 2),
        _ => return None,
    };
    let (row_bytes, rows) = (u64::from(row_bytes), u64::from(rows));
    let row = (spot.offset / row_bytes).min(rows - 1);
    let at = (spot.offset - row * row_bytes) * of_byte / bytes;
    let name = &spot.name;
    Some(match at < u64::from(extent) {
        true => format!("{name}, row {row}, {dimension} {at}"),
        false => format!("{name}, {dimension} {at} of its last row, which ends at {extent}"),
    })
}

fn access(site: &Site) -> Access {
    let place = &site.place;
    let frames = place.source.iter();
    let mut lines: Vec<String> = frames
        .map(|frame| format!("{}:{}", frame.file, frame.line))
        .collect();
    if lines.is_empty() {
        lines.push(place.line());
    }
    Access {
        deed: site.deed.clone(),
        lines,
        ptx_line: place.ptx_line,
        kernel: place.kernel.clone(),
        cta: site.executed.then_some(place.cta),
        warp: place.warp,
        lanes: place.lanes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_in_a_tensor_is_an_element() {
        let groups = [
            Group { m: 1, n: 8, k: 16 },
            Group {
                m: 40,
                n: 128,
                k: 256,
            },
        ];
        let told = |name: &str, offset: u64| {
            let spot = Spot {
                space: "global",
                name: name.to_owned(),
                offset,
                address: Some(0x1000),
                ..Spot::default()
            };
            element(&spot, &groups).unwrap_or_else(|| spot.to_string())
        };
        let row = 256 / 2;
        assert_eq!(
            told("b2 of group 1", 3 * row + 7),
            "b2 of group 1, row 3, K 14"
        );
        assert_eq!(
            told("b2 of group 1", 128 * row + 32),
            "b2 of group 1, K 320 of its last row, which ends at 256"
        );
        assert_eq!(told("sfa of group 1", 17), "sfa of group 1, row 1, K 16");
        assert_eq!(
            told("c of group 1", 2 * (40 * 128 + 5)),
            "c of group 1, N 133 of its last row, which ends at 128"
        );
        for other in ["scratch parts", "a of group 7", "sfa_atoms of group 1"] {
            assert!(told(other, 16).ends_with("+0x10"), "{other}");
        }
    }
}
