//! Each kind of hazard, planted in a kernel that may well give the right answer: it is found, with
//! the lines of both sides; and of the correct twin nothing is said.

mod barriers;
mod columns;
mod everywhere;
mod lifetime;
mod maps;
mod memory;
mod products;
mod threads;
mod warps;

use ptx_emu::{
    Config, DevicePtr, Finding, Findings, Hazard, Launch, Memory, Module, Params, Region, Sanitize,
};

/// A kernel and its broken twin. What stands between `<<` and `>>` is in the correct one; behind a
/// `||` there is what the broken one has instead. The broken one's two sides stand on the lines
/// that end in `//here` and `//there`; or the other one is where the CTA begins.
struct Planted {
    hazard: Hazard,
    target: &'static str,
    /// What comes before the body: variables of the module.
    module: &'static str,
    body: String,
    launch: Launch,
    sanitize: Sanitize,
    /// As [`Config::scoreboard`].
    scoreboard: bool,
}

/// Two CTAs of a warp each.
fn two_ctas() -> Launch {
    Launch::new("k").grid([2, 1, 1]).block([32, 1, 1])
}

/// … that share their memories.
fn pair() -> Launch {
    two_ctas().cluster([2, 1, 1])
}

impl Planted {
    fn new(hazard: Hazard, body: impl Into<String>) -> Self {
        Self {
            hazard,
            target: "sm_90a",
            module: "",
            body: body.into(),
            launch: Launch::new("k").block([128, 1, 1]),
            sanitize: Sanitize::default(),
            scoreboard: false,
        }
    }

    /// The text of one of the twins.
    fn text(&self, correct: bool) -> String {
        let mut body = String::new();
        let mut rest = self.body.as_str();
        while let Some((before, after)) = rest.split_once("<<") {
            let (choice, after) = after.split_once(">>").expect("`>>` follows `<<`");
            let (good, bad) = choice.split_once("||").unwrap_or((choice, ""));
            body.push_str(before);
            body.push_str(if correct { good } else { bad });
            rest = after;
        }
        body.push_str(rest);
        format!(
            ".version 8.8\n.target {}\n.address_size 64\n{}
.visible .entry k(.param .u64 out, .param .u64 in) {{
.reg .pred %p<9>; .reg .b16 %rs<4>; .reg .b32 %r<40>; .reg .b64 %rd<12>; .reg .f32 %f<80>;
.shared .align 8 .b64 full[8]; .shared .align 8 .b64 empty[8];
.shared .align 1024 .b8 tile[16384];
ld.param.u64 %rd1, [out]; ld.param.u64 %rd8, [in]; mov.u32 %r1, %tid.x; //begin
mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2;
shr.u32 %r18, %r1, 5; and.b32 %r19, %r1, 31; mov.u32 %r4, tile; mov.u32 %r5, full;
shl.b32 %r2, %r1, 2; add.u32 %r2, %r2, %r4;
{body}
ret; }}",
            self.target, self.module
        )
    }

    fn run(&self, correct: bool, seed: u64) -> (Findings, bool) {
        let text = self.text(correct);
        let module = Module::load(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let mut memory = Memory::new();
        let out = memory.alloc_named("out", 1 << 16).expect("room");
        let input = memory.alloc_named("in", 1 << 16).expect("room");
        let map = maps::row(input).encode();
        memory.write(input.offset(maps::AT), &map).expect("room");
        let config = Config {
            seed,
            step_limit: 5_000_000,
            scoreboard: self.scoreboard,
            limits: match self.target {
                "sm_90a" => ptx_emu::DeviceLimits::H200,
                _ => ptx_emu::DeviceLimits::B200,
            },
            ..Config::default()
        };
        let params = Params::new().pointer(out).pointer(input);
        let launch = self.launch.clone().config(config).params(params);
        let (report, found) = launch.run_sanitized(&module, &mut memory, &self.sanitize);
        assert!(
            report.is_ok() || !correct,
            "the correct twin faults: {report:?}"
        );
        (found, report.is_err())
    }

    fn strict(mut self) -> Self {
        self.sanitize.strict = true;
        self
    }

    fn on(mut self, launch: Launch) -> Self {
        self.launch = launch;
        self
    }

    /// Of the correct twin nothing is said, and of the broken one this, whatever the schedule:
    /// unless it faults by itself.
    #[track_caller]
    fn check(&self) -> Finding {
        let broken = self.text(false);
        let line = |mark: &str| {
            let at = broken
                .lines()
                .position(|line| line.trim_end().ends_with(mark));
            at.map(|line| line as u32 + 1)
        };
        let mut first = None;
        for seed in 0..4 {
            let (found, _) = self.run(true, seed);
            assert!(found.all.is_empty(), "correct, {seed}: {:#?}", found.all);
            let (found, faulted) = self.run(false, seed);
            let mut kinds = found.all.iter().filter(|f| f.hazard == self.hazard);
            // Which of two comes first is the schedule's.
            let begins = || line("//begin").filter(|_| self.hazard == Hazard::Lifetime);
            let mut marked = [line("//here"), line("//there").or_else(begins)];
            marked.sort();
            let lines = |f: &&Finding| {
                let there = f.there.as_ref().map(|site| site.place.ptx_line);
                let mut lines = [Some(f.here.place.ptx_line), there];
                lines.sort();
                lines == marked
            };
            match kinds.find(lines) {
                Some(finding) => {
                    first.get_or_insert(finding.clone());
                }
                // Nobody was lucky.
                None if faulted => {}
                None => panic!("seed {seed}: {:#?}\n{broken}", found.all),
            }
        }
        first.expect("some seed is lucky")
    }
}
