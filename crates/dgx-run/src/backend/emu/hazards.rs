//! The findings of the emulator's hazard detector, in terms of the operator.

use ptx_emu::{DevicePtr, Finding, Region, Sanitize, Site, Spot, source_name};

use crate::backend::zones::Zones;
use dgx_core::domain::{Access, Group, Hazard, HazardWatch};
use dgx_core::fields::PointedPart;
use dgx_core::operator::Operator;

/// Clusters that are watched if a sample is enough.
const SAMPLE: u64 = 2;
/// Limit of the memory that records accesses to global memory, bytes.
const MEMORY: u64 = 256 << 20;

/// The settings of the detector for a call, with or without the CTAs that are not watched; `None`
/// if hazards are not wanted.
pub(super) fn wanted(watch: HazardWatch, alone: bool) -> Option<Sanitize> {
    let sanitize = Sanitize {
        memory: MEMORY,
        alone,
        ..Sanitize::default()
    };
    match watch {
        HazardWatch::Off => None,
        HazardWatch::Some => Some(Sanitize {
            clusters: Some(SAMPLE),
            ..sanitize
        }),
        HazardWatch::All => Some(sanitize),
        HazardWatch::Strict => Some(Sanitize {
            strict: true,
            ..sanitize
        }),
    }
}

/// The contents of an allocation that begins at `base`.
pub(super) fn regions(zones: &Zones, base: u64) -> impl Iterator<Item = Region> + '_ {
    let zones = zones.all().iter().filter(|zone| zone.bytes > 0);
    zones.map(move |zone| Region {
        name: zone.name.clone(),
        start: DevicePtr(base + zone.offset),
        len: zone.bytes,
    })
}

/// The findings of one launch.
pub(super) fn describe(findings: &[Finding], operator: &Operator, groups: &[Group]) -> Vec<Hazard> {
    let hazard = |found| hazard(found, operator, groups);
    findings.iter().map(hazard).collect()
}

fn hazard(finding: &Finding, operator: &Operator, groups: &[Group]) -> Hazard {
    Hazard {
        kind: finding.hazard.name().to_owned(),
        at: element(&finding.at, operator, groups)
            .unwrap_or_else(|| named(&finding.at).to_string()),
        here: access(&finding.here),
        there: finding.there.as_ref().map(access),
        missing: finding.missing.clone(),
        remedy: finding.remedy.clone(),
        times: finding.times,
    }
}

/// The spot with its variable's name in the source, not mangled.
fn named(spot: &Spot) -> Spot {
    Spot {
        name: source_name(&spot.name).to_owned(),
        ..spot.clone()
    }
}

/// The element of a tensor at a spot in global memory, or that it would be if rows went on.
fn element(spot: &Spot, operator: &Operator, groups: &[Group]) -> Option<String> {
    let (tensor, group) = spot.name.split_once(" of group ")?;
    let group = groups.get(group.parse::<usize>().ok()?)?;
    let fields = operator.fields();
    let field = fields.iter().find(|field| field.name == tensor)?;
    let lies = operator.rows(field, group)?;
    let element = operator.tensor(field).element;
    let row = (spot.offset / lies.row_bytes).min(lies.rows - 1);
    let within = spot.offset - row * lies.row_bytes;
    let at = match field.form {
        // A scale means its block.
        PointedPart::Scales => within * element.scale()?.block,
        _ => within * 8 / element.bits(),
    };
    let axis = operator.last_axis(field);
    let (name, extent) = (&spot.name, lies.columns);
    Some(match at < extent {
        true => format!("{name}, row {row}, {axis} {at}"),
        false => format!("{name}, {axis} {at} of its last row, which ends at {extent}"),
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
    use dgx_core::operator::default_operator;
    use dgx_core::record::synthetic::group;

    #[test]
    fn a_place_in_a_tensor_is_an_element() {
        let groups = [group(1, 8, 16), group(40, 128, 256)];
        let located = |name: &str, offset: u64| {
            let spot = Spot {
                space: "global",
                name: name.to_owned(),
                offset,
                address: Some(0x1000),
                ..Spot::default()
            };
            element(&spot, default_operator(), &groups).unwrap_or_else(|| spot.to_string())
        };
        let row = 256 / 2;
        assert_eq!(
            located("b2 of group 1", 3 * row + 7),
            "b2 of group 1, row 3, K 14"
        );
        assert_eq!(
            located("b2 of group 1", 128 * row + 32),
            "b2 of group 1, K 320 of its last row, which ends at 256"
        );
        assert_eq!(located("sfa of group 1", 17), "sfa of group 1, row 1, K 16");
        assert_eq!(
            located("c of group 1", 2 * (40 * 128 + 5)),
            "c of group 1, N 133 of its last row, which ends at 128"
        );
        for other in ["scratch parts", "a of group 7", "sfa_atoms of group 1"] {
            assert!(located(other, 16).ends_with("+0x10"), "{other}");
        }
    }
}
