//! Small shapes that reach every path of a contender: one tile; ragged groups; a K that goes round
//! the ring more than once and ends in a tail; few tokens, whose K a cluster may share; and many
//! tiles per CTA, which a device with few multiprocessors gives at once.

use crate::catalog::{Catalog, Contender};
use crate::plan::{OperatorCall, Plan, PlanOutcome, PlanTarget};
use dgx_core::config::{Baseline, Round, Selection};
use dgx_core::diagnostic::InputError;
use dgx_core::domain::{Device, Group, Shape, counted};
use dgx_core::operator::{Extent, Operator};
use dgx_core::sanitize::SanitizeCase;

/// Multiprocessors of a small device: so few that every CTA has several tiles, or enough for a
/// cluster of the largest usual size.
const FEW_SMS: [u32; 2] = [2, 8];
/// Tiles for each CTA that exceed whatever it keeps for later ones: accumulators of two tiles,
/// three teams.
const LAPS: u64 = 6;

/// Sizes for a purpose, the cheapest first: a contender that the first does not suit gets one of
/// the others.
struct ShapePurpose {
    reaches: &'static str,
    /// Many tiles for each CTA of a device with few multiprocessors.
    laps: bool,
    sizes: &'static [&'static [[u32; 3]]],
}

const PURPOSES: [ShapePurpose; 6] = [
    ShapePurpose {
        reaches: "a single tile",
        laps: false,
        sizes: &[
            &[[5, 128, 256]],
            &[[133, 128, 256]],
            &[[5, 256, 1024]],
            &[[261, 256, 1024]],
        ],
    },
    ShapePurpose {
        reaches: "ragged groups",
        laps: false,
        sizes: &[
            &[[40, 128, 512], [1, 256, 256], [129, 128, 768]],
            &[[40, 128, 512], [1, 256, 256], [13, 128, 768]],
            &[[133, 128, 512], [257, 256, 256], [130, 128, 768]],
        ],
    },
    ShapePurpose {
        reaches: "a long K with a tail",
        laps: false,
        sizes: &[&[[37, 128, 2816]], &[[5, 128, 2816]], &[[133, 128, 2816]]],
    },
    ShapePurpose {
        reaches: "a token and a long K",
        laps: false,
        sizes: &[&[[1, 128, 4096]]],
    },
    ShapePurpose {
        reaches: "many tiles for each CTA",
        laps: true,
        sizes: &[
            &[[37, 768, 512]],
            &[[300, 768, 512]],
            &[[300, 128, 512], [65, 512, 256], [290, 256, 512]],
            &[[5, 768, 512]],
            &[[5, 4096, 512]],
            &[[9, 768, 512], [1, 768, 512], [8, 768, 512]],
            &[[1300, 256, 512]],
        ],
    },
    ShapePurpose {
        reaches: "many tiles of a long K",
        laps: true,
        sizes: &[
            &[[8, 512, 4096]],
            &[[9, 768, 2048], [1, 768, 2048]],
            &[[133, 512, 2048]],
            &[[390, 256, 2048]],
        ],
    },
];

/// The plan of a round with one contender and one shape.
pub(super) fn plan(
    round: &Round,
    contender: &Contender,
    case: &SanitizeCase,
    catalog: &Catalog,
    device: &Device,
) -> Result<Plan, InputError> {
    let mut round = round.clone();
    let selection = Selection {
        variant: contender.variant.name.clone(),
        params: contender.params.clone(),
        span: 0..0,
    };
    round.contenders = vec![selection.clone()];
    // The command line's selection has been applied already.
    round.only.clear();
    round.baseline = Baseline::Contender(selection);
    round.shapes = vec![case.shape.clone()];
    round.shape_spans = std::iter::once(0..0).collect();
    let mut device = device.clone();
    device.limits.sms = case.sms;
    Plan::new(round, catalog, &PlanTarget::of(&device))
}

/// The cases that a contender can run, each the cheapest of its purpose; or why it can run none.
pub(super) fn chosen(
    round: &Round,
    contender: &Contender,
    catalog: &Catalog,
    device: &Device,
) -> Result<Vec<SanitizeCase>, InputError> {
    let mut cases = Vec::new();
    for purpose in tried(&round.operator) {
        let sms = match purpose.laps {
            true => FEW_SMS.map(|few| few.min(device.limits.sms)).to_vec(),
            false => vec![device.limits.sms],
        };
        let shapes = purpose.shapes.iter();
        let tries = shapes.flat_map(|shape| sms.iter().map(move |&sms| (shape, sms)));
        // The first that does, or comes closest.
        let mut best: Option<(u64, SanitizeCase)> = None;
        for (shape, sms) in tries {
            let case = SanitizeCase {
                shape: shape.clone(),
                sms,
                reaches: purpose.reaches,
            };
            let planned = plan(round, contender, &case, catalog, device)?;
            let PlanOutcome::Run { call, .. } = &planned.cells[0].outcome else {
                continue;
            };
            let reached = match purpose.laps {
                true => tiles_each(call).min(LAPS),
                false => LAPS,
            };
            if best.as_ref().is_none_or(|(before, _)| *before < reached) {
                best = Some((reached, case));
            }
            if reached == LAPS {
                break;
            }
        }
        cases.extend(best.map(|(_, case)| case));
    }
    Ok(cases)
}

/// Tiles of a CTA in the last launch.
fn tiles_each(call: &OperatorCall) -> u64 {
    let last = call.launches.last();
    let ctas: u64 = last.map_or(1, |l| l.grid.iter().map(|&side| u64::from(side)).product());
    u64::from(call.tile_count) / ctas.max(1)
}

/// A purpose with its shapes, the cheapest first.
struct PurposeShapes {
    reaches: &'static str,
    laps: bool,
    shapes: Vec<Shape>,
}

/// The purposes of an operator's shapes. If nothing is known about the tiles of its designs, the
/// shapes are those that its file calls small.
fn tried(operator: &Operator) -> Vec<PurposeShapes> {
    if !is_gemm(operator) {
        let small = operator.small.iter().map(|sizes| {
            let sizes: Vec<u32> = sizes.iter().map(|size| *size as u32).collect();
            PurposeShapes {
                reaches: "a small shape",
                laps: false,
                shapes: vec![shape(operator, &[&sizes])],
            }
        });
        return small.collect();
    }
    let purposes = PURPOSES.iter().map(|purpose| {
        let sizes = purpose.sizes.iter();
        let sizes = sizes.filter(|groups| operator.groups || groups.len() == 1);
        let groups = sizes.map(|groups| groups.iter().map(|g| &g[..]).collect::<Vec<_>>());
        PurposeShapes {
            reaches: purpose.reaches,
            laps: purpose.laps,
            shapes: groups.map(|groups| shape(operator, &groups)).collect(),
        }
    });
    purposes.collect()
}

/// Whether its sizes are rows, columns and depth of products, like those of [`PURPOSES`].
fn is_gemm(operator: &Operator) -> bool {
    let Some(product) = operator.product() else {
        return false;
    };
    let is_of =
        |input: usize, axes: [usize; 2]| operator.inputs[input].extents == axes.map(Extent::Size);
    let mut rights = product.rights.iter();
    is_of(product.left, [0, 2]) && rights.all(|right| is_of(*right, [1, 2]))
}

fn shape(operator: &Operator, sizes: &[&[u32]]) -> Shape {
    let group = |sizes: &&[u32]| {
        let names = operator.sizes.iter().cloned();
        Group::new(names.zip(sizes.iter().copied()))
    };
    let groups: Vec<Group> = sizes.iter().map(group).collect();
    Shape {
        name: size_text(&groups),
        groups,
    }
}

/// A shape by its sizes, in the form of `--shape`.
pub fn size_text(groups: &[Group]) -> String {
    groups
        .iter()
        .map(Group::to_string)
        .collect::<Vec<_>>()
        .join("+")
}

/// A shape as it is written on a command line: sizes joined by `x`, groups by `+`.
pub fn parse(operator: &Operator, text: &str) -> Result<Shape, InputError> {
    let sizes = &operator.sizes;
    let wrong = |why: String| {
        let form = sizes.iter().map(|size| size.to_uppercase());
        let form = form.collect::<Vec<_>>().join("x");
        let example = operator.small[0].iter().map(u64::to_string);
        let example = example.collect::<Vec<_>>().join("x");
        let remedy = format!("write {form}, e.g. {example}; several groups with +");
        InputError::new(format!("`{text}` is no shape: {why}"), remedy)
    };
    let mut groups = Vec::new();
    for group in text.split('+') {
        let given: Result<Vec<u32>, _> = group.split('x').map(|n| n.trim().parse()).collect();
        match given {
            Ok(given) if given.len() == sizes.len() => {
                groups.push(Group::new(sizes.iter().cloned().zip(given)).to_toml());
            }
            Ok(given) => {
                let (given, all) = (counted(given.len(), "size"), sizes.len());
                let why = format!("`{group}` has {given}, {} has {all} sizes", operator.name);
                return Err(wrong(why));
            }
            Err(_) => return Err(wrong("a size is no number".to_owned())),
        }
    }
    // The reader of rounds checks the operator's requirements.
    let toml = format!("{{ name = \"s\", groups = [{}] }}", groups.join(", "));
    let round = round(operator, &toml).map_err(|e| {
        let message = format!("`{text}`: {}", e.message());
        InputError::new(message, e.remedy())
    })?;
    let groups = round.shapes[0].groups.clone();
    Ok(Shape {
        name: size_text(&groups),
        groups,
    })
}

/// A default round, with everything except contenders and shapes.
pub fn any_round(operator: &Operator) -> Result<Round, InputError> {
    let small = operator.small[0].iter().map(|size| *size as u32);
    let group = Group::new(operator.sizes.iter().cloned().zip(small));
    round(operator, &group.to_toml())
}

fn round(operator: &Operator, shape: &str) -> Result<Round, InputError> {
    let name = &operator.name;
    let text = format!(
        "question = \"Is it right by luck?\"\noperator = \"{name}\"\ncontenders = [\"x\"]\n\
         baseline = \"x\"\nyardstick = false\nshapes = [{shape}]\n"
    );
    Round::from_source(dgx_core::diagnostic::SourceFile {
        path: "sanitize.toml".into(),
        text: text.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use dgx_core::config::target::default_device;
    use dgx_core::operator;

    #[test]
    fn a_shape_is_written_as_it_is_named() {
        let shape = parse(operator::default_operator(), "40x128x512+5x256x256").unwrap();
        assert_eq!(shape.name, "40x128x512+5x256x256");
        assert_eq!(shape.groups.len(), 2);
        for (text, why) in [
            ("40x128", "`40x128` has 2 sizes, nvfp4-dual-gemm has 3"),
            ("40x128xk", "no number"),
            ("", "no number"),
            ("40x100x512", "not a multiple of 128"),
            ("0x128x512", "sizes start at 1"),
        ] {
            let error = parse(operator::default_operator(), text)
                .unwrap_err()
                .to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn products_share_the_shapes_of_the_dual_gemm() {
        let shapes = |name: &str| {
            let tried = tried(&operator::named(Some(name)).unwrap());
            let groups = tried.iter().flat_map(|t| &t.shapes).map(|s| s.groups.len());
            (tried.len(), groups.max())
        };
        assert_eq!(shapes("nvfp4-gemm"), shapes("nvfp4-dual-gemm"));
        assert_eq!(shapes("f16-gemm"), (PURPOSES.len(), Some(1)));
        assert_eq!(shapes("softmax").1, Some(1));
    }

    #[test]
    fn every_variant_finds_shapes_for_what_it_can_do() {
        let here = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let catalog = Catalog::open(&[here.join("variants")]).unwrap();
        let device = default_device();
        let round = any_round(operator::default_operator()).unwrap();
        let reached = |name: &str| -> Vec<&'static str> {
            let variant = catalog.variant_on(name, device.chip).unwrap();
            let contender = &variant.contenders(&Default::default())[0];
            let cases = chosen(&round, contender, &catalog, device).unwrap();
            cases.iter().map(|case| case.reaches).collect()
        };
        let all: Vec<&str> = PURPOSES.iter().map(|p| p.reaches).collect();
        for name in ["sequential", "swap-ab", "decode", "grouped-scheduler"] {
            assert_eq!(reached(name), all, "{name}");
        }
        // It supports no single token.
        let several = [all[0], all[1], all[2], all[4], all[5]];
        assert_eq!(reached("token-major"), several);
        // It supports no groups.
        assert_eq!(reached("stream"), [all[0], all[2], all[3], all[4], all[5]]);
        // It supports nothing else.
        assert_eq!(reached("experts"), [all[1], all[4], all[5]]);
        for name in ["grouped-scheduler", "swap-ab", "decode", "experts"] {
            let variant = catalog.variant_on(name, device.chip).unwrap();
            let contender = &variant.contenders(&Default::default())[0];
            let cases = chosen(&round, contender, &catalog, device).unwrap();
            let many = cases.iter().find(|case| case.reaches == all[4]);
            let many = plan(&round, contender, many.unwrap(), &catalog, device).unwrap();
            let PlanOutcome::Run { call, .. } = &many.cells[0].outcome else {
                panic!("{:?}", many.cells[0].outcome);
            };
            assert!(tiles_each(call) >= LAPS, "{name}: {}", tiles_each(call));
        }
    }
}
