//! Warps by role, and how each role spends its time.

use ptx_time::{Activity, LaunchTimes};
use serde::{Serialize, Serializer};

use crate::backend::emu::{LaunchLayout, WarpRole};

/// The warps of a launch with the same role.
#[derive(Clone, Debug, Serialize)]
pub struct RoleShare {
    pub role: WarpRole,
    /// Of one CTA.
    pub warps: usize,
    /// Shares of their CTAs' time, by cause.
    #[serde(serialize_with = "named")]
    pub spent: [f64; Activity::ALL.len()],
    /// They had ended, but their CTA had not.
    pub ended: f64,
}

fn named<S: Serializer>(
    spent: &[f64; Activity::ALL.len()],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(Activity::ALL.map(activity_word).into_iter().zip(spent))
}

/// What a warp waits for, or does, in one word.
pub fn activity_word(activity: Activity) -> &'static str {
    match activity {
        Activity::Issuing => "issuing",
        Activity::Contending => "contending",
        Activity::Result => "results",
        Activity::Memory => "memory",
        Activity::Phase => "mbarriers",
        Activity::Barrier => "barriers",
        Activity::Wgmma => "products",
        Activity::Copies => "copies",
        Activity::Launch => "launch",
    }
}

pub(super) fn shares(times: &LaunchTimes, laid: &LaunchLayout) -> Vec<RoleShare> {
    let role_of = |cta: usize, warp: usize| {
        let number = times.ctas.get(cta)?.cta;
        laid.roles.get(&number)?.get(warp).copied()
    };
    let mut found: Vec<(WarpRole, [f64; Activity::ALL.len()])> = Vec::new();
    for warp in &times.warps {
        let role = role_of(warp.cta, warp.warp).unwrap_or(WarpRole::Other);
        match found.iter_mut().find(|(known, _)| *known == role) {
            Some((_, spent)) => {
                let pairs = spent.iter_mut().zip(warp.spent);
                pairs.for_each(|(sum, cycles)| *sum += cycles);
            }
            None => found.push((role, warp.spent)),
        }
    }
    found.sort_by_key(|(role, _)| *role);
    let lives = |role: WarpRole| {
        let ctas = times.ctas.iter();
        let lives = ctas.map(|cta| {
            let warps = laid.roles.get(&cta.cta).into_iter().flatten();
            (cta.end - cta.start) * warps.filter(|r| **r == role).count() as f64
        });
        lives.sum::<f64>()
    };
    found
        .into_iter()
        .map(|(role, spent)| {
            let busy: f64 = spent.iter().sum();
            let life = lives(role).max(busy).max(f64::MIN_POSITIVE);
            let count = |warps: &Vec<WarpRole>| warps.iter().filter(|r| **r == role).count();
            RoleShare {
                role,
                warps: laid.roles.values().map(count).max().unwrap_or(0),
                spent: spent.map(|cycles| cycles / life),
                ended: (life - busy) / life,
            }
        })
        .collect()
}

/// `warp 0, producer`, for each warp of a CTA.
pub(super) fn names(roles: Option<&Vec<WarpRole>>) -> Vec<String> {
    let roles = roles.into_iter().flatten().enumerate();
    let name = |(warp, role): (usize, &WarpRole)| format!("warp {warp}, {}", role.word());
    roles.map(name).collect()
}
