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
        let (sites, params) = (self.sites.as_ptr(), self.env.params.as_ptr());
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
mod tests {
    use super::*;
    use crate::code::Entries;
    use crate::{Config, Launch, Memory, Module};

    const PTX: &str = ".version 8.0\n.target sm_90\n.address_size 64\n.entry k()\n{\n\
        .reg .b32 %r<3>;\n.reg .pred %p;\nmov.u32 %r1, 0;\nLOOP: add.u32 %r1, %r1, 1;\n\
        setp.lt.u32 %p, %r1, 10000;\n@%p bra LOOP;\nret;\n}\n";

    #[test]
    fn kernels_are_compiled_when_asked_and_when_it_pays() {
        if Level::best() < Level::Avx512 {
            return;
        }
        for (engine, runs, compiled) in [
            (Engine::Interpreted, 3, false),
            (Engine::Compiled, 1, true),
            (Engine::Mixed, 1, true),
        ] {
            let module = Module::load(PTX).expect("it compiles");
            let config = Config {
                engine,
                ..Config::default()
            };
            let launch = Launch::new("k").config(config);
            let mut counted = Vec::new();
            for _ in 0..runs {
                let report = launch.run(&module, &mut Memory::new()).expect("it ends");
                counted.push(report.counters.total_instructions());
            }
            assert!(counted.iter().all(|&n| n == 30_002), "{counted:?}");
            let code = module.kernels["k"].compiled.get(|| None);
            assert_eq!(code.is_some(), compiled, "{engine:?}");
        }
    }

    /// Four warps that compute, exchange, part, meet and read the clock.
    const MIXED: &str = ".version 8.0\n.target sm_90\n.address_size 64\n.entry k(.param .u64 out)\n{\n\
        .reg .b32 %r<9>;\n.reg .b64 %rd<4>;\n.reg .pred %p<2>;\n\
        ld.param.u64 %rd1, [out];\nmov.u32 %r1, %tid.x;\nmad.lo.u32 %r2, %r1, 3, 7;\n\
        xor.b32 %r3, %r2, %r1;\nadd.u32 %r3, %r3, %r2;\nmul.wide.u32 %rd2, %r1, 4;\n\
        add.u64 %rd1, %rd1, %rd2;\nshfl.sync.bfly.b32 %r4, %r3, 5, 31, -1;\n\
        add.u32 %r4, %r4, %r3;\nsetp.lt.u32 %p1, %r1, 50;\n@%p1 bra L;\n\
        add.u32 %r4, %r4, 9;\nxor.b32 %r4, %r4, 5;\nL: shl.b32 %r4, %r4, 1;\n\
        add.u32 %r4, %r4, %r2;\nbar.sync 0;\nadd.u32 %r4, %r4, 1;\nmov.u32 %r5, %clock;\n\
        add.u32 %r4, %r4, %r5;\nst.global.u32 [%rd1], %r4;\nret;\n}\n";

    #[test]
    fn turns_end_alike_in_both_engines_whatever_the_limit() {
        if Level::best() < Level::Avx512 {
            return;
        }
        let ran = |engine, seed, step_limit| {
            let module = Module::load(MIXED).expect("it compiles");
            let mut memory = Memory::new();
            let out = memory.alloc(512).expect("memory");
            let config = Config {
                engine,
                seed,
                step_limit,
                ..Config::default()
            };
            let params = crate::Params::new().pointer(out);
            let launch = Launch::new("k").block([128, 1, 1]).params(params);
            let ran = launch.config(config).run(&module, &mut memory);
            let counters = ran.map(|report| report.counters);
            format!("{counters:?} {:?}", memory.read_vec(out, 512))
        };
        for (seed, limit) in (0..4).flat_map(|seed| (1..100).map(move |limit| (seed, limit))) {
            let compiled = ran(Engine::Compiled, seed, limit);
            let interpreted = ran(Engine::Interpreted, seed, limit);
            assert_eq!(compiled, interpreted, "seed {seed}, limit {limit}");
        }
    }

    /// Two warps that load words of shared memory by a few registers with constants added, by turns:
    /// words of lanes that lie `step` bytes apart in each half of a warp, and the halves `far`
    /// apart; then what is `beyond` that.
    const GROUPS: &str = ".version 8.0\n.target sm_90\n.address_size 64\n\
        .entry k(.param .u64 out, .param .u32 step, .param .u32 far, .param .u32 beyond)\n{\n\
        .reg .b32 %r<40>;\n.reg .b64 %rd<9>;\n.reg .pred %p;\n\
        .shared .align 16 .b8 tile[8192];\n\
        ld.param.u64 %rd1, [out];\nld.param.u32 %r20, [step];\nld.param.u32 %r21, [far];\n\
        ld.param.u32 %r22, [beyond];\nmov.u32 %r1, %tid.x;\nmov.u32 %r30, tile;\n\
        shl.b32 %r2, %r1, 2;\nFILL: add.u32 %r3, %r30, %r2;\nmul.lo.u32 %r4, %r2, 2654435761;\n\
        st.shared.u32 [%r3], %r4;\nadd.u32 %r2, %r2, 256;\nsetp.lt.u32 %p, %r2, 8192;\n\
        @%p bra FILL;\nbar.sync 0;\n\
        and.b32 %r5, %r1, 15;\nshr.u32 %r6, %r1, 4;\nmul.lo.u32 %r5, %r5, %r20;\n\
        mad.lo.u32 %r5, %r6, %r21, %r5;\nadd.u32 %r5, %r5, %r30;\n\
        cvt.u64.u32 %rd2, %r5;\nmov.u32 %r19, 0;\nmov.u32 %r18, 3;\n\
        LOOP: ld.shared.u32 %r7, [%r5];\nld.shared.v4.u32 {%r8, %r9, %r10, %r11}, [%rd2+32];\n\
        mad.lo.u32 %r19, %r19, 31, %r7;\nmad.lo.u32 %r19, %r19, 31, %r8;\n\
        ld.shared.u32 %r7, [%r5+20];\nmad.lo.u32 %r19, %r19, 31, %r9;\n\
        ld.shared.v4.u32 {%r12, %r13, %r14, %r15}, [%rd2+16];\nmad.lo.u32 %r19, %r19, 31, %r7;\n\
        mad.lo.u32 %r19, %r19, 31, %r10;\nmad.lo.u32 %r19, %r19, 31, %r11;\n\
        mad.lo.u32 %r19, %r19, 31, %r12;\nmad.lo.u32 %r19, %r19, 31, %r13;\n\
        ld.shared.u64 %rd3, [%r5+8];\nld.shared.u64 %rd4, [%r5+16];\nadd.u64 %rd3, %rd3, %rd4;\n\
        cvt.u32.u64 %r16, %rd3;\nmad.lo.u32 %r19, %r19, 31, %r16;\n\
        mad.lo.u32 %r19, %r19, 31, %r14;\nmad.lo.u32 %r19, %r19, 31, %r15;\n\
        add.u32 %r5, %r5, %r22;\nld.shared.u32 %r7, [%r5+4];\nadd.u32 %r19, %r19, %r7;\n\
        ld.shared.u32 %r7, [%r5+24];\nmad.lo.u32 %r19, %r19, 31, %r7;\n\
        sub.u32 %r5, %r5, %r22;\nsub.u32 %r18, %r18, 1;\nsetp.ne.u32 %p, %r18, 0;\n\
        @%p bra LOOP;\nmul.wide.u32 %rd5, %r1, 4;\nadd.u64 %rd1, %rd1, %rd5;\n\
        st.global.u32 [%rd1], %r19;\nret;\n}\n";

    #[test]
    fn loads_by_one_register_are_alike_in_both_engines_however_lanes_lie() {
        if Level::best() < Level::Avx512 {
            return;
        }
        let ran = |engine, seed, [step, far, beyond]: [u32; 3]| {
            let module = Module::load(GROUPS).expect("it compiles");
            let mut memory = Memory::new();
            let out = memory.alloc(256).expect("memory");
            let config = Config {
                engine,
                seed,
                ..Config::default()
            };
            let params = crate::Params::new().pointer(out);
            let params = params.u32(step).u32(far).u32(beyond);
            let launch = Launch::new("k").block([64, 1, 1]).params(params);
            let ran = launch.config(config).run(&module, &mut memory);
            let counters = ran.map(|report| report.counters);
            (
                counters.is_ok(),
                format!("{counters:?} {:?}", memory.read_vec(out, 256)),
            )
        };
        let lies = [
            [0, 0],
            [0, 64],
            [16, 0],
            [16, 256],
            [8, 128],
            [4, 64],
            [48, 16],
            [32, 1008],
        ];
        for ([step, far], seed) in lies
            .into_iter()
            .flat_map(|lie| (0..8).map(move |s| (lie, s)))
        {
            for (beyond, is_good) in [(0, true), (64, true), (8192, false), (2, false)] {
                let words = [step, far, beyond];
                let compiled = ran(Engine::Compiled, seed, words);
                assert_eq!(
                    compiled,
                    ran(Engine::Interpreted, seed, words),
                    "{words:?}, {seed}"
                );
                let aligned = step % 16 == 0 && far % 16 == 0;
                assert_eq!(
                    compiled.0,
                    is_good && aligned,
                    "{words:?}, {seed}: {}",
                    compiled.1
                );
            }
        }
    }

    /// Runs a kernel that reads a buffer of so many bytes and writes another of 64 words, and gets
    /// `also` behind them: whether it ended well, and all that can be seen of it.
    fn ran(
        ptx: &str,
        (engine, seed): (Engine, u64),
        launch: Launch,
        bytes: u64,
        also: impl Fn(crate::Params) -> crate::Params,
    ) -> (bool, String) {
        let module = Module::load(ptx).expect("it compiles");
        let mut memory = Memory::new();
        let input = memory.alloc(bytes).expect("memory");
        let out = memory.alloc(256).expect("memory");
        let words: Vec<u8> = (0..bytes).map(|at| ((at * 37) >> 2) as u8).collect();
        memory.write(input, &words).expect("it fits");
        let config = Config {
            engine,
            seed,
            // Rows are for who does not ask for sectors.
            detailed_counters: false,
            ..Config::default()
        };
        let params = also(crate::Params::new().pointer(input).pointer(out));
        let ran = launch
            .params(params)
            .config(config)
            .run(&module, &mut memory);
        let counters = ran.map(|report| report.counters);
        let left = [memory.read_vec(input, bytes), memory.read_vec(out, 256)];
        (counters.is_ok(), format!("{counters:?} {left:?}"))
    }

    /// Threads that sum words of rows of their own, fewer the more lanes have ended, and write one
    /// of them in between; the first row of each begins `first` bytes behind the buffer.
    const ROWS_OF_THREADS: &str = ".version 8.0\n.target sm_90\n.address_size 64\n\
        .entry k(.param .u64 in, .param .u64 out, .param .u64 first, .param .u32 step)\n{\n\
        .reg .b32 %r<20>;\n.reg .b64 %rd<9>;\n.reg .pred %p<3>;\n\
        ld.param.u64 %rd1, [in];\nld.param.u64 %rd2, [out];\nld.param.u64 %rd3, [first];\n\
        ld.param.u32 %r1, [step];\nmov.u32 %r2, %tid.x;\nmul.wide.u32 %rd4, %r2, %r1;\n\
        add.u64 %rd5, %rd1, %rd3;\nadd.u64 %rd5, %rd5, %rd4;\nmul.wide.u32 %rd6, %r2, 4;\n\
        add.u64 %rd2, %rd2, %rd6;\nand.b32 %r3, %r2, 7;\nmov.u32 %r4, 0;\n\
        LOOP: ld.global.u32 %r5, [%rd5+-8];\nmad.lo.u32 %r4, %r4, 31, %r5;\n\
        ld.global.u32 %r6, [%rd5+-4];\nmad.lo.u32 %r4, %r4, 31, %r6;\n\
        ld.global.u32 %r7, [%rd5];\nld.global.u32 %r8, [%rd5+4];\n\
        mad.lo.u32 %r4, %r4, 31, %r7;\nmad.lo.u32 %r4, %r4, 31, %r8;\n\
        ld.global.u32 %r9, [%rd5+8];\nmad.lo.u32 %r4, %r4, 31, %r9;\n\
        st.global.u32 [%rd2], %r4;\nst.global.u32 [%rd5+-4], %r4;\n\
        ld.global.u32 %r6, [%rd5+-4];\nmad.lo.u32 %r4, %r4, 31, %r6;\n\
        add.u64 %rd5, %rd5, 16;\nsub.u32 %r3, %r3, 1;\nsetp.ge.s32 %p1, %r3, 0;\n\
        @%p1 bra LOOP;\nst.global.u32 [%rd2], %r4;\nret;\n}\n";

    #[test]
    fn rows_of_words_are_alike_in_both_engines_wherever_they_end() {
        if Level::best() < Level::Avx512 {
            return;
        }
        let ran = |engine, seed, first: u64, step: u32, bytes: u64| {
            let also = |params: crate::Params| params.u64(first).u32(step);
            let launch = Launch::new("k").block([64, 1, 1]);
            ran(ROWS_OF_THREADS, (engine, seed), launch, bytes, also)
        };
        // Rows of a thread apart, in part of the same bytes, those of all in one place, unaligned.
        for (step, last) in [(144, 63 * 144), (20, 63 * 20), (0, 0), (6, 63 * 6)] {
            let needed = 8 + last + 7 * 16 + 12;
            let ends = [(8, needed), (8, needed - 4), (8, needed - 8), (4, needed)];
            for ((first, bytes), seed) in ends.into_iter().flat_map(|e| (0..4).map(move |s| (e, s)))
            {
                let compiled = ran(Engine::Compiled, seed, first, step, bytes);
                let interpreted = ran(Engine::Interpreted, seed, first, step, bytes);
                assert_eq!(compiled, interpreted, "{step}, {first}, {bytes}, {seed}");
                let is_good = (first, bytes) == (8, needed) && step % 4 == 0;
                assert_eq!(
                    compiled.0, is_good,
                    "{step}, {first}, {bytes}: {}",
                    compiled.1
                );
            }
        }
    }

    /// Odd lanes stop between two loads of a row until the even ones come to a barrier of their own,
    /// which have loaded the same row by then.
    const STOPPED_IN_A_ROW: &str = ".version 8.0\n.target sm_90\n.address_size 64\n\
        .entry k(.param .u64 in, .param .u64 out)\n{\n\
        .reg .b32 %r<30>;\n.reg .b64 %rd<9>;\n.reg .pred %p<9>;\n\
        ld.param.u64 %rd1, [in];\nld.param.u64 %rd2, [out];\nmov.u32 %r1, %tid.x;\n\
        mul.wide.u32 %rd3, %r1, 64;\nadd.u64 %rd3, %rd1, %rd3;\nmul.wide.u32 %rd4, %r1, 4;\n\
        add.u64 %rd4, %rd2, %rd4;\nmov.u32 %r10, 0;\nmov.u32 %r20, 0;\nand.b32 %r21, %r1, 1;\n\
        setp.eq.u32 %p1, %r21, 1;\nsetp.gt.u32 %p3, %r1, 5000;\n\
        LOOP: @%p1 bra ARM;\nbar.warp.sync -1;\nadd.u32 %r10, %r10, 7;\nbra R;\n\
        ARM: @%p3 bra J;\n\
        R: ld.global.u32 %r11, [%rd3];\n@%p1 bar.warp.sync -1;\n\
        ld.global.u32 %r12, [%rd3+4];\nmad.lo.u32 %r10, %r10, 31, %r11;\n\
        mad.lo.u32 %r10, %r10, 31, %r12;\n\
        J: add.u32 %r20, %r20, 1;\nsetp.lt.u32 %p4, %r20, 4;\n@%p4 bra LOOP;\n\
        st.global.u32 [%rd4], %r10;\nret;\n}\n";

    #[test]
    fn a_path_that_goes_on_within_a_row_loads_its_own_words() {
        if Level::best() < Level::Avx512 {
            return;
        }
        let ran = |engine, seed| {
            let launch = Launch::new("k").grid([2, 1, 1]).block([64, 1, 1]);
            ran(STOPPED_IN_A_ROW, (engine, seed), launch, 4096, |params| {
                params
            })
        };
        for seed in 0..16 {
            assert_eq!(
                ran(Engine::Compiled, seed),
                ran(Engine::Interpreted, seed),
                "{seed}"
            );
        }
    }

    #[test]
    fn code_is_bounded() {
        assert!(Code::new(&vec![0xc3; 300 << 20], Entries::default()).is_none());
        assert!(Code::new(&[0xc3], Entries::default()).is_some());
    }
}
