//! Warps that run as machine code, and the functions that it calls.

use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::code::Code;
use crate::config::Engine;
use crate::exec::alu::exchange;
use crate::exec::checked::Checked;
use crate::exec::cluster::{Cluster, Flow};
use crate::exec::native::{Arguments, CONSTANTS, FOUND, Helpers, ROWS, WordAccess, compile};
use crate::exec::units::compute_rare;
use crate::exec::units::plain::plain;
use crate::exec::warp::{State, Warp};
use crate::numeric::simd::Level;
use crate::op::{Inst, Op, Program};

/// Interpreted instructions for each one of a program after which compiling it pays: that takes
/// as long as interpreting some hundred.
const PAYS: u64 = 256;

/// Instructions that are interpreted at once while a `wgmma` is under way.
const PENDING_STEPS: u32 = 16;

impl Cluster<'_> {
    /// Looks whether there is code for the kernel, or whether it pays to make some.
    pub(crate) fn look_for_code(&mut self, interpreted: u32) {
        let (env, program) = (self.env, self.env.program);
        if self.code.is_some() || env.level != Level::Avx512 {
            return;
        }
        let wanted = match env.engine {
            Engine::Interpreted => false,
            Engine::Compiled => true,
            Engine::Mixed => {
                let enough = PAYS * program.insts.len() as u64;
                program.compiled.count(interpreted.into()) > enough
            }
        };
        if wanted {
            self.code = program.compiled.get(|| compile(program, &helpers()));
        }
    }

    /// As [`Cluster::interpret`], as code wherever there is some.
    pub(crate) fn run_compiled(&mut self, code: &Code, w: &mut Warp, quantum: u32) -> Checked<u32> {
        let mut left = quantum;
        while left > 0 && w.events > 0 && matches!(w.state, State::Ready) {
            // Code does not look out for accumulators that are still being computed.
            let pending = !w.wgmma.is_idle();
            if let Some(entry) = code.entry(w.pc, w.active == w.live).filter(|_| !pending) {
                let before = left;
                left = self.run_code(code, entry, w, left);
                if std::mem::take(&mut self.stopped) {
                    if let Some(panic) = self.panicked.take() {
                        resume_unwind(panic);
                    }
                    match self.failed.take() {
                        Some(kind) => return Err(kind),
                        None => continue,
                    }
                }
                if left != before {
                    continue;
                }
            }
            let steps = if pending { PENDING_STEPS } else { 1 };
            left -= self.interpret(w, steps.min(left))?;
        }
        Ok(quantum - left)
    }

    /// Runs a warp from where it stands as far as code goes, for at most `left` instructions;
    /// how many are left.
    fn run_code(&mut self, code: &Code, entry: *const u8, w: &mut Warp, left: u32) -> u32 {
        let cta = &mut self.ctas[w.cta as usize];
        let length = match self.ear {
            None => cta.shared.len() as u64,
            // Somebody wants to hear of every access.
            Some(_) => 0,
        };
        let [touched_read, touched_written] = match self.env.detailed_counters {
            true => cta.touched.sets(),
            false => [std::ptr::null_mut(); 2],
        };
        // A load may come too early for a copy under way.
        let read_end = if cta.in_flight.is_empty() { length } else { 0 };
        let shared = cta.shared.as_mut_ptr();
        let (sites, params) = (self.sites.as_mut_ptr(), self.env.params.as_ptr());
        let cluster = std::ptr::from_mut(self);
        // SAFETY: of a cluster there is. Functions that code calls get all of it by `cluster`, of
        // which these are made, so that they are good again when such a function returns.
        let (counters, progress, generation) = unsafe {
            let (counters, progress) = (&raw mut (*cluster).counters, &raw mut (*cluster).progress);
            (counters, progress, &raw const (*cluster).drafts.generation)
        };
        let mut call = Arguments {
            warp: w,
            r32: w.r32.as_mut_ptr(),
            r64: w.r64.as_mut_ptr(),
            predicates: w.p.as_mut_ptr(),
            constants: &CONSTANTS,
            left: left.into(),
            counters,
            progress,
            shared,
            read_end,
            written_end: length,
            touched_read,
            touched_written,
            sites,
            generation,
            params,
            found: [0; FOUND + ROWS],
            firsts: [[0; 2]; FOUND],
            rows: MaybeUninit::uninit(),
            cluster: cluster.cast(),
            places: MaybeUninit::uninit(),
        };
        type Start = unsafe extern "sysv64" fn(*mut Arguments, *const u8) -> u64;
        // SAFETY: code begins with a function of this type.
        let start = unsafe { std::mem::transmute::<*const u8, Start>(code.start()) };
        // SAFETY: the code was made for this program, whose instructions it refers to and which
        // outlives it; the program's warps have all the registers that it names, aligned as
        // vectors are, its parameters are all there, and the machine has this level. While code
        // runs, the warp and the cluster are used by it and by the functions it calls, by turns.
        let ended = unsafe { start(&mut call, entry) };
        if !self.stopped {
            w.pc = ended as u32;
            w.join_if_there();
        }
        (ended >> 32) as u32
    }

    /// 1 if a warp just goes on, with the lanes it had; otherwise moves it on.
    #[inline(always)]
    fn goes_on(
        &mut self,
        w: &mut Warp,
        active: u32,
        (inst, lanes): (&Inst, u32),
        came: Checked<Flow>,
    ) -> u32 {
        match came {
            Ok(Flow::Next) if w.active == active => return 1,
            Ok(flow) => _ = self.go_on(w, lanes, flow, inst.op.is_observable()),
            Err(kind) => self.failed = Some(kind),
        }
        self.stopped = true;
        0
    }
}

fn helpers() -> Helpers {
    Helpers {
        compute: compute as *const () as usize,
        called,
        part: part as *const () as usize,
        join: join as *const () as usize,
    }
}

/// The address of the function for an access or an exchange.
fn called(program: &Program, op: &Op) -> usize {
    type Called = unsafe extern "sysv64" fn(*mut Cluster<'_>, *mut Warp, &Inst, u32) -> u32;
    let words = WordAccess::of(program, op).map(|words| (words.shared, words.each));
    let function: Called = match (words, op) {
        (Some((true, 1)), Op::Ld { .. }) => move_words::<true, false, 1>,
        (Some((true, 2)), Op::Ld { .. }) => move_words::<true, false, 2>,
        (Some((true, _)), Op::Ld { .. }) => move_words::<true, false, 4>,
        (Some((false, 1)), Op::Ld { .. }) => move_words::<false, false, 1>,
        (Some((false, 2)), Op::Ld { .. }) => move_words::<false, false, 2>,
        (Some((false, _)), Op::Ld { .. }) => move_words::<false, false, 4>,
        (Some((true, 1)), _) => move_words::<true, true, 1>,
        (Some((true, 2)), _) => move_words::<true, true, 2>,
        (Some((true, _)), _) => move_words::<true, true, 4>,
        (Some((false, 1)), _) => move_words::<false, true, 1>,
        (Some((false, 2)), _) => move_words::<false, true, 2>,
        (Some((false, _)), _) => move_words::<false, true, 4>,
        (None, Op::Shfl { .. }) => shuffle,
        (None, Op::Atom(_)) => update_words,
        (None, Op::Bar { .. }) => barrier,
        (None, Op::Exit | Op::Ret) => leave,
        (None, _) => execute,
    };
    function as *const () as usize
}

/// A load or store of words.
///
/// # Safety
/// As for [`execute`], on a machine with AVX-512.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,popcnt,avx2,fma,f16c,bmi1,bmi2,lzcnt")]
unsafe extern "sysv64" fn move_words<const SHARED: bool, const WRITE: bool, const N: usize>(
    cluster: *mut Cluster<'_>,
    w: *mut Warp,
    inst: &Inst,
    lanes: u32,
) -> u32 {
    // SAFETY: by this function's contract.
    unsafe {
        or_execute(cluster, w, inst, lanes, |cluster, w| {
            cluster.move_words::<SHARED, WRITE, N>(w, lanes, &inst.op)
        })
    }
}

/// An atomic operation on words.
///
/// # Safety
/// As for [`execute`], on a machine with AVX-512.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,popcnt,avx2,fma,f16c,bmi1,bmi2,lzcnt")]
unsafe extern "sysv64" fn update_words(
    cluster: *mut Cluster<'_>,
    w: *mut Warp,
    inst: &Inst,
    lanes: u32,
) -> u32 {
    // SAFETY: by this function's contract.
    unsafe {
        or_execute(cluster, w, inst, lanes, |cluster, w| {
            cluster.update_words(w, lanes, &inst.op)
        })
    }
}

/// An instruction that only computes.
///
/// # Safety
/// The machine has AVX2, and nobody else uses the warp.
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
unsafe extern "sysv64" fn compute(w: *mut Warp, inst: &Inst, lanes: u32, program: &Program) {
    // SAFETY: by this function's contract.
    let w = unsafe { &mut *w };
    if !plain(w, lanes, inst) {
        compute_rare(w, lanes, &inst.op, program);
    }
}

/// An access or an exchange: 1 if the warp just goes on. Code does so only for the lanes it was
/// entered with.
///
/// # Safety
/// The machine has AVX2, and nobody else uses the warp and the cluster, of whose program the
/// instruction is.
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
unsafe extern "sysv64" fn execute(
    cluster: *mut Cluster<'_>,
    w: *mut Warp,
    inst: &Inst,
    lanes: u32,
) -> u32 {
    // SAFETY: by this function's contract.
    let (cluster, w) = unsafe { (&mut *cluster, &mut *w) };
    let active = w.active;
    // A panic must not leave this function: there is no way through machine code.
    let came = catch_unwind(AssertUnwindSafe(|| cluster.execute::<true>(w, lanes, inst)));
    match came {
        Ok(came) => cluster.goes_on(w, active, (inst, lanes), came),
        Err(panic) => {
            cluster.panicked = Some(panic);
            cluster.stopped = true;
            0
        }
    }
}

/// 1 if `quick` has done an instruction, or what [`execute`] says of it.
///
/// # Safety
/// As for [`execute`].
#[inline(always)]
unsafe fn or_execute<'a>(
    cluster: *mut Cluster<'a>,
    w: *mut Warp,
    inst: &Inst,
    lanes: u32,
    quick: impl FnOnce(&mut Cluster<'a>, &mut Warp) -> bool,
) -> u32 {
    // SAFETY: by this function's contract.
    if quick(unsafe { &mut *cluster }, unsafe { &mut *w }) {
        return 1;
    }
    // SAFETY: by this function's contract.
    unsafe { execute(cluster, w, inst, lanes) }
}

/// A barrier.
///
/// # Safety
/// Nobody else uses the warp and the cluster.
unsafe extern "sysv64" fn barrier(
    cluster: *mut Cluster<'_>,
    w: *mut Warp,
    inst: &Inst,
    lanes: u32,
) -> u32 {
    // SAFETY: by this function's contract.
    let (cluster, w) = unsafe { (&mut *cluster, &mut *w) };
    let active = w.active;
    let came = cluster.barrier(w, lanes, &inst.op);
    cluster.goes_on(w, active, (inst, lanes), came)
}

/// The end of some lanes, or of a function.
///
/// # Safety
/// As for [`barrier`].
unsafe extern "sysv64" fn leave(
    cluster: *mut Cluster<'_>,
    w: *mut Warp,
    inst: &Inst,
    lanes: u32,
) -> u32 {
    // SAFETY: by this function's contract.
    let (cluster, w) = unsafe { (&mut *cluster, &mut *w) };
    let active = w.active;
    let came = cluster.control(w, lanes, &inst.op);
    cluster.goes_on(w, active, (inst, lanes), came)
}

/// A branch that some lanes take: where code goes on with those that are first, if it does.
///
/// # Safety
/// Nobody else uses the warp and the cluster.
unsafe extern "sysv64" fn part(
    cluster: *mut Cluster<'_>,
    w: *mut Warp,
    inst: &Inst,
    lanes: u32,
) -> *const u8 {
    // SAFETY: by this function's contract.
    let (cluster, w) = unsafe { (&*cluster, &mut *w) };
    if let Op::Bra {
        target, reconverge, ..
    } = inst.op
    {
        w.branch(lanes, target, reconverge);
    }
    entry(cluster, w)
}

/// A path that may have come to its join: as [`part`].
///
/// # Safety
/// As for [`part`].
unsafe extern "sysv64" fn join(cluster: *mut Cluster<'_>, w: *mut Warp) -> *const u8 {
    // SAFETY: by this function's contract.
    let (cluster, w) = unsafe { (&*cluster, &mut *w) };
    w.join_if_there();
    entry(cluster, w)
}

/// The code for where a warp stands; null if there is none.
fn entry(cluster: &Cluster<'_>, w: &Warp) -> *const u8 {
    let ready = matches!(w.state, State::Ready);
    let code = cluster.code.filter(|_| ready);
    let entry = code.and_then(|code| code.entry(w.pc, w.active == w.live));
    entry.unwrap_or(std::ptr::null())
}

/// A shuffle.
///
/// # Safety
/// As for [`execute`], on a machine with AVX-512.
#[target_feature(enable = "avx512f,avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
unsafe extern "sysv64" fn shuffle(
    cluster: *mut Cluster<'_>,
    w: *mut Warp,
    inst: &Inst,
    lanes: u32,
) -> u32 {
    // SAFETY: by this function's contract.
    unsafe {
        or_execute(cluster, w, inst, lanes, |_, w| {
            exchange::quickest_shuffle(w, lanes, &inst.op)
        })
    }
}

#[cfg(test)]
mod tests;
