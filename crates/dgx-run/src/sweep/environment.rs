use std::process::Command;

use jiff::Zoned;

use super::runner::Runner;
use crate::catalog::Contender;
use crate::compile::Compiler;
use crate::plan::Plan;
use dgx_core::config::Yardstick;
use dgx_core::domain::content_hash;
use dgx_core::operator::OperatorRecord;
use dgx_core::record::schema::{
    ConfigText, ContenderRecord, DeviceRecord, GitState, Header, Host, SCHEMA, Settings,
};
use dgx_core::record::{argv, portable};

/// The header that the rest of the run file depends on.
pub(super) fn header(
    plan: &Plan,
    settings: &Settings,
    runners: &[Runner],
    compiler: &Compiler,
) -> Header {
    let (round, runner) = (&plan.round, &runners[0]);
    let mut device = DeviceRecord::new(runner.kind(), runner.device());
    if runners.len() > 1 {
        // Each block names its card.
        device.uuid = None;
    }
    let project = std::env::current_dir().unwrap_or_default();
    let timed = |y: &Yardstick| runner.measures() && runner.has_yardstick(*y).is_ok();
    let yardstick = round.yardstick.filter(timed);
    Header {
        schema: SCHEMA,
        name: round.name.clone(),
        question: round.question.clone(),
        started: started(),
        argv: argv(),
        dgx: env!("CARGO_PKG_VERSION").to_owned(),
        git: git_state(),
        host: host(),
        device,
        compiler: Some(compiler.version()),
        config: ConfigText {
            path: portable(&round.file.path, &project),
            text: round.file.text.to_string(),
        },
        baseline: plan.baseline.clone(),
        yardstick: yardstick.map(Yardstick::id),
        contenders: plan.contenders.iter().map(contender_record).collect(),
        shapes: plan.shapes.clone(),
        settings: settings.clone(),
        operator: OperatorRecord::unless_default(&round.operator),
        departures: Vec::new(),
        shard: None,
        parts: Vec::new(),
    }
}

/// The current time, in the format of run files.
pub fn started() -> String {
    Zoned::now().strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
}

/// A contender's record in run files.
pub fn contender_record(contender: &Contender) -> ContenderRecord {
    let variant = &contender.variant;
    let picks = variant.picks.iter().map(|pick| &pick.contender.variant);
    let sources = std::iter::once(variant).chain(picks);
    let parts = sources.flat_map(|v| {
        let extended = v.extended.iter().map(String::as_str);
        let own = std::iter::once(&v.file)
            .chain(&v.beside)
            .map(|file| &*file.text);
        own.chain(extended).chain(v.headers.parts())
    });
    // A broken variant may be fixed in another file than its own.
    let broken = variant.broken.as_ref().map(ToString::to_string);
    let parts = parts.chain(broken.as_deref());
    ContenderRecord {
        id: contender.id.clone(),
        variant: variant.name.clone(),
        params: contender.params.clone(),
        summary: variant.summary.clone(),
        parent: variant.parent.clone(),
        round: variant.round,
        claim: variant.claim.clone(),
        expect: variant.expect,
        arch: variant.arch.clone(),
        hash: content_hash(parts),
    }
}

/// The commit of the checkout this runs in.
pub fn git_state() -> Option<GitState> {
    let ask = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        output.status.success().then_some(text)
    };
    Some(GitState {
        commit: ask(&["rev-parse", "HEAD"])?,
        dirty: !ask(&["status", "--porcelain"])?.is_empty(),
    })
}

/// The machine dgx itself runs on.
pub fn host() -> Host {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = cpuinfo
        .lines()
        .find(|line| line.starts_with("model name"))
        .and_then(|line| line.split_once(':'))
        .map_or_else(|| "unknown".to_owned(), |(_, name)| name.trim().to_owned());
    Host {
        os: std::env::consts::OS.to_owned(),
        arch: std::env::consts::ARCH.to_owned(),
        cpu,
        cores: std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
    }
}
