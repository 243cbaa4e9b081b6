//! What a warp has to issue: a trace of PTX told in the instructions of the cubin.
//!
//! The compiler moves, merges, copies and drops instructions, but not across the points where
//! warps wait for one another. So a warp's trace is cut there, and for each stretch the way through
//! the code is found that fits it best. Stretches repeat; each kind is looked for once.

use std::hash::{DefaultHasher, Hash, Hasher};

use ptx_emu::mixed::MixedMap;
use ptx_emu::trace::{CtaTrace, Deed, Event, Trace};

use crate::cubin::Code;
use crate::flow::{Flow, Lines};
use crate::sass::Kind;

/// Finds the stretches of warps of one kernel.
#[derive(Debug)]
pub(crate) struct Scribe<'c> {
    code: &'c Code,
    flow: Flow,
    /// Instructions of the cubin by line of the PTX.
    by_line: MixedMap<u32, Vec<usize>>,
    /// Branches back: uniform ones, and those of some threads.
    uniform: Vec<usize>,
    guarded: Vec<usize>,
    stretches: Vec<Stretch>,
    known: MixedMap<(Option<usize>, u64), usize>,
    /// Deeds told, and those among them for which no instruction was found.
    pub(crate) deeds: u64,
    pub(crate) homeless: u64,
    /// Instructions of the PTX that were told, and of the cubin that stand for them.
    pub(crate) told: u64,
    pub(crate) found: u64,
}

/// A way through the code from one waiting point to the next.
#[derive(Debug)]
pub(crate) struct Stretch {
    pub(crate) steps: Vec<Step>,
    /// Where it ends in the code.
    end: Option<usize>,
    homeless: u64,
}

/// One instruction of a stretch, or a deed that has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    /// Index into the code.
    pub(crate) op: Option<u32>,
    /// What it does, as an event of the stretch's part of the trace.
    pub(crate) deed: Option<u32>,
}

/// A stretch at its place in a warp's trace.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    pub(crate) stretch: usize,
    /// The event its deeds are counted from.
    pub(crate) base: usize,
}

impl<'c> Scribe<'c> {
    pub(crate) fn new(code: &'c Code) -> Self {
        let mut by_line: MixedMap<u32, Vec<usize>> = MixedMap::default();
        for (at, &line) in code.lines.iter().enumerate() {
            by_line.entry(line).or_default().push(at);
        }
        let back = |at: &usize| {
            let sass = &code.instructions[*at];
            sass.kind == Kind::Branch && sass.offset < 0
        };
        let back = (0..code.instructions.len()).filter(back);
        let (uniform, guarded) = back.partition(|&at| code.instructions[at].uniform);
        Self {
            code,
            flow: Flow::new(code),
            uniform,
            guarded,
            by_line,
            stretches: Vec::new(),
            known: MixedMap::default(),
            deeds: 0,
            homeless: 0,
            told: 0,
            found: 0,
        }
    }

    pub(crate) fn stretch(&self, part: Part) -> &Stretch {
        &self.stretches[part.stretch]
    }

    /// The parts of every warp of a CTA.
    pub(crate) fn tell(&mut self, trace: &Trace, cta: &CtaTrace) -> Vec<Vec<Part>> {
        cta.warps
            .iter()
            .map(|events| self.tell_warp(trace, events))
            .collect()
    }

    fn tell_warp(&mut self, trace: &Trace, events: &[Event]) -> Vec<Part> {
        let mut parts = Vec::new();
        let mut at = None;
        let mut base = 0;
        while base < events.len() {
            let end = self.stretch_end(trace, events, base);
            let next = events.get(end).map(|event| match *event {
                Event::Did { at, .. } => at,
                Event::Run { first, .. } => first,
            });
            let stretch = self.find(trace, &events[base..end], at, next);
            at = self.stretches[stretch].end.or(at);
            parts.push(Part { stretch, base });
            base = end;
        }
        parts
    }

    /// One past the event at which a stretch from `base` ends: a wait, or a turn of a loop that has
    /// none.
    fn stretch_end(&self, trace: &Trace, events: &[Event], base: usize) -> usize {
        for (index, event) in events.iter().enumerate().skip(base) {
            let last = match *event {
                Event::Did { at, deed } if waits(&deed) && self.has_home(trace, at, &deed) => {
                    return index + 1;
                }
                Event::Did { at, .. } => at,
                Event::Run { end, .. } => end - 1,
            };
            let next = match events.get(index + 1) {
                Some(Event::Did { at, .. }) => *at,
                Some(Event::Run { first, .. }) => *first,
                None => return index + 1,
            };
            // A turn back to what this stretch has seen already, by a jump that is in the code.
            let seen = || {
                events[base..=index].iter().any(|event| match *event {
                    Event::Did { at, .. } => at == next,
                    Event::Run { first, end } => (first..end).contains(&next),
                })
            };
            if next <= last && seen() && !self.turns(trace, next, last).is_empty() {
                return index + 1;
            }
        }
        events.len()
    }

    /// The branches by which a warp may have turned back from the last instruction of a loop to its
    /// first. The assembler leaves uniform ones the line of what stands before them: of those the
    /// last of the loop. Where it has neither, as where the PTX closes a loop by a branch forward,
    /// the assembler turned another branch of the loop round.
    fn turns(&self, trace: &Trace, first: u32, last: u32) -> Vec<usize> {
        let [from, to] = [first, last].map(|at| trace.lines[at as usize]);
        let own: Vec<usize> = self.homes(to, |kind| kind == Kind::Branch).collect();
        if !own.is_empty() {
            return own;
        }
        let line = |at: usize| self.code.lines[at];
        let within = |at: &usize| (from..=to).contains(&line(*at));
        let uniform = self.uniform.iter().copied().filter(within);
        match uniform.max_by_key(|&at| line(at)) {
            Some(last) => vec![last],
            None => self.guarded.iter().copied().filter(within).collect(),
        }
    }

    fn has_home(&self, trace: &Trace, at: u32, deed: &Deed) -> bool {
        let line = trace.lines[at as usize];
        self.homes(line, |kind| fits(kind, deed)).next().is_some()
    }

    fn homes(&self, line: u32, fits: impl Fn(Kind) -> bool) -> impl Iterator<Item = usize> {
        let all = self.by_line.get(&line).map_or(&[][..], |list| list);
        let code = self.code;
        all.iter()
            .copied()
            .filter(move |&at| fits(code.instructions[at].kind))
    }

    /// The stretch for these events from here.
    fn find(
        &mut self,
        trace: &Trace,
        events: &[Event],
        from: Option<usize>,
        next: Option<u32>,
    ) -> usize {
        let mut hasher = DefaultHasher::new();
        next.is_none().hash(&mut hasher);
        for event in events {
            match *event {
                Event::Run { first, end } => (first, end).hash(&mut hasher),
                Event::Did { at, deed } => {
                    (at, std::mem::discriminant(&deed)).hash(&mut hasher);
                }
            }
        }
        let key = (from, hasher.finish());
        let found = self.known.get(&key).copied();
        let index = found.unwrap_or_else(|| {
            let stretch = self.make(trace, events, from, next);
            self.stretches.push(stretch);
            self.known.insert(key, self.stretches.len() - 1);
            self.stretches.len() - 1
        });
        let deeds = events.iter().filter(|e| matches!(e, Event::Did { .. }));
        self.deeds += deeds.count() as u64;
        self.homeless += self.stretches[index].homeless;
        let instructions = events.iter().map(|event| match *event {
            Event::Run { first, end } => u64::from(end - first),
            Event::Did { .. } => 1,
        });
        self.told += instructions.sum::<u64>();
        self.found += self.stretches[index].steps.len() as u64;
        index
    }

    /// `next` is what the warp does behind them, if anything.
    fn make(
        &self,
        trace: &Trace,
        events: &[Event],
        from: Option<usize>,
        next: Option<u32>,
    ) -> Stretch {
        let mut executed = Lines::default();
        for event in events {
            let range = match *event {
                Event::Run { first, end } => first..end,
                Event::Did { at, .. } => at..at + 1,
            };
            for at in range {
                *executed.entry(trace.lines[at as usize]).or_default() += 1;
            }
        }
        let goals: Vec<usize> = match (next, events.last()) {
            (None, _) => (0..self.code.instructions.len())
                .filter(|&at| self.code.instructions[at].kind == Kind::Exit)
                .collect(),
            (_, Some(&Event::Did { at, deed })) => {
                let line = trace.lines[at as usize];
                self.homes(line, |kind| fits(kind, &deed)).collect()
            }
            (Some(next), Some(&Event::Run { end, .. })) => self.turns(trace, next, end - 1),
            (_, None) => Vec::new(),
        };
        let way = self.flow.way(self.code, from, &goals, &executed);
        let end = way.as_ref().and_then(|way| way.last().copied());
        let mut told = vec![false; events.len()];
        let mut steps: Vec<Step> = Vec::new();
        for at in way.unwrap_or_default() {
            let (kind, line) = (self.code.instructions[at].kind, self.code.lines[at]);
            let deed = events
                .iter()
                .enumerate()
                .find(|(index, event)| match event {
                    Event::Did { at, deed } => {
                        // The assembler gives wgmmas no line of their own.
                        let here = kind == Kind::Wgmma || trace.lines[*at as usize] == line;
                        !told[*index] && here && fits(kind, deed)
                    }
                    Event::Run { .. } => false,
                });
            let deed = deed.map(|(index, _)| {
                told[index] = true;
                index as u32
            });
            let op = Some(at as u32);
            steps.push(Step { op, deed });
        }
        // What has no instruction of its own happens where its neighbours do.
        let mut homeless = 0;
        for (index, event) in events.iter().enumerate() {
            let Event::Did { deed, .. } = event else {
                continue;
            };
            if told[index] {
                continue;
            }
            homeless += u64::from(!silent(deed));
            let before = |step: &Step| step.deed.is_some_and(|other| (other as usize) > index);
            let place = steps.iter().position(before).unwrap_or(steps.len());
            let deed = Some(index as u32);
            steps.insert(place, Step { op: None, deed });
        }
        Stretch {
            steps,
            end,
            homeless,
        }
    }
}

/// Whether a deed is a point nothing is moved across.
fn waits(deed: &Deed) -> bool {
    matches!(
        deed,
        Deed::Await { .. }
            | Deed::Barrier { .. }
            | Deed::ClusterArrive
            | Deed::ClusterWait
            | Deed::WgmmaWait(_)
            | Deed::WgmmaFence
            | Deed::BulkWait { .. }
            | Deed::LaneWait(_)
            | Deed::AwaitLaunch
            | Deed::Stamp
    )
}

/// Whether the machine has no instruction for it: the one before carries it.
fn silent(deed: &Deed) -> bool {
    matches!(
        deed,
        Deed::Update { .. } | Deed::WgmmaCommit | Deed::Fence { .. } | Deed::TmemWait { .. }
    )
}

/// Whether an instruction can be the one that did it.
fn fits(kind: Kind, deed: &Deed) -> bool {
    match deed {
        Deed::Shared { .. } | Deed::Remote { .. } | Deed::Global { .. } => {
            matches!(kind, Kind::Shared | Kind::Global | Kind::Arrive)
        }
        Deed::LaneCopy { .. } => kind == Kind::LaneCopy,
        Deed::LaneCommit | Deed::BulkCommit => kind == Kind::GroupMark,
        Deed::LaneWait(_) | Deed::BulkWait { .. } => kind == Kind::GroupWait,
        Deed::LaneArrive { .. } => kind == Kind::Arrive,
        Deed::Bulk { .. } => matches!(kind, Kind::Bulk | Kind::Tensor),
        Deed::MapFetch { .. } => kind == Kind::MapFetch,
        Deed::Barrier { .. } => kind == Kind::Barrier,
        Deed::Init { .. } | Deed::Arrive { .. } => kind == Kind::Arrive,
        Deed::Await { .. } => kind == Kind::Phase,
        Deed::ClusterArrive => kind == Kind::ClusterArrive,
        Deed::ClusterWait => kind == Kind::ClusterWait,
        Deed::Wgmma { .. } => kind == Kind::Wgmma,
        Deed::WgmmaFence => kind == Kind::WgmmaFence,
        Deed::Update { .. } | Deed::WgmmaCommit => false,
        Deed::WgmmaWait(_) => kind == Kind::WgmmaWait,
        Deed::Mma { .. } => kind == Kind::Mma,
        Deed::TmemMma { .. } => kind == Kind::TmemMma,
        Deed::TmemCopy { .. } | Deed::TmemShift { .. } => kind == Kind::TmemCopy,
        Deed::TmemCommit { .. } => kind == Kind::TmemCommit,
        Deed::TmemMove { .. } => kind == Kind::TmemMove,
        // Loads have scoreboards; stores are waited for by a fence.
        Deed::TmemWait { stores } => *stores && kind == Kind::Fence,
        Deed::TmemAlloc { .. } | Deed::TmemFree { .. } => kind == Kind::TmemColumns,
        Deed::AwaitLaunch => kind == Kind::AwaitLaunch,
        Deed::AllowLaunch => kind == Kind::AllowLaunch,
        Deed::Fence { .. } => kind == Kind::Fence,
        Deed::Registers(_) => kind == Kind::Registers,
        Deed::Sleep(_) => kind == Kind::Slot,
        Deed::Stamp => matches!(kind, Kind::Clock | Kind::Special),
    }
}
