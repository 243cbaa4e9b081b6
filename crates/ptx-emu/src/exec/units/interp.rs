//! The interpreter: one instruction after another for one warp.
//!
//! The loop is compiled for the plain machine and for AVX2, with everything marked
//! `inline(always)` inside it. AVX-512 takes the loop for AVX2: over the ten kernels of
//! `benches/mix.rs` a copy of its own was no faster (median 18.2 against 19.1 million warp
//! instructions a second). All levels compute the same.

use crate::exec::checked::{Checked, illegal};
use crate::exec::cluster::{Cluster, Flow};
use crate::exec::units::plain::plain;
use crate::exec::warp::{State, Warp};
#[cfg(target_arch = "x86_64")]
use crate::numeric::simd::Level;
use crate::op::Op;

impl Cluster<'_> {
    /// Runs a warp for at most `quantum` instructions, and until it has no events left; how many
    /// instructions it was.
    pub(crate) fn interpret(&mut self, w: &mut Warp, quantum: u32) -> Checked<u32> {
        match self.env.level {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a level is only chosen when the machine has its features, and those of the
            // weaker ones.
            Level::Avx2 | Level::Avx512 => unsafe { self.interpret_avx2(w, quantum) },
            _ => self.interpret_loop::<false>(w, quantum),
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
    fn interpret_avx2(&mut self, w: &mut Warp, quantum: u32) -> Checked<u32> {
        self.interpret_loop::<true>(w, quantum)
    }

    #[inline(always)]
    fn interpret_loop<const QUICK: bool>(&mut self, w: &mut Warp, quantum: u32) -> Checked<u32> {
        let env = self.env;
        // One number, not two: registers are scarce here.
        let mut left = quantum;
        while left > 0 {
            left -= 1;
            let pc = w.pc as usize;
            // Looked up anew each time: kept, it would take the register of `w`, which every
            // instruction uses.
            let Some(inst) = env.program.insts.get(pc) else {
                return Err(illegal("control ran past the end of the program"));
            };
            w.counts[env.classes[pc] as usize] += 1;
            let mask = match inst.guard.pred {
                None => w.active,
                Some(p) if inst.guard.negate => w.active & !w.pred(p),
                Some(p) => w.active & w.pred(p),
            };
            if let Op::Bra {
                target, reconverge, ..
            } = inst.op
            {
                w.branch(mask, target, reconverge);
                continue;
            }
            if mask == 0 {
                w.advance();
                continue;
            }
            if !w.wgmma.is_idle() && env.readers[pc] {
                self.guard_accumulators(w, mask, inst);
            }
            if plain(w, mask, inst) {
                w.advance();
                continue;
            }
            let came = self.execute::<QUICK>(w, mask, inst)?;
            if !self.go_on(w, mask, came, env.observable[pc]) {
                break;
            }
        }
        Ok(quantum - left)
    }

    /// Moves a warp on by what its instruction came to; whether it can run on in this turn.
    #[inline(always)]
    pub(super) fn go_on(&mut self, w: &mut Warp, mask: u32, came: Flow, observable: bool) -> bool {
        w.events -= u32::from(observable);
        match came {
            Flow::Next => {
                w.advance();
                w.events > 0
            }
            Flow::Jumped => !matches!(w.state, State::Done) && w.events > 0,
            Flow::Again(wait) => {
                w.stopped = w.origin(mask);
                w.state = State::Waiting(wait);
                w.counts[self.env.classes[w.pc as usize] as usize] -= 1;
                false
            }
            Flow::After(wait) => {
                w.stopped = w.origin(mask);
                w.advance();
                w.state = State::Waiting(wait);
                false
            }
        }
    }
}
