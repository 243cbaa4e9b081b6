use std::cell::OnceCell;
use std::rc::Rc;

use super::driver::{CudaError, DeviceMemory, Function, LaunchConfig, Result};
use super::tools::{Tools, launch};
use crate::backend::RunFailure;
use crate::backend::call_seed::CallSeed;
use dgx_core::domain::Device;

/// Threads of a block of `dgx_scrub` and of those for local memory.
const THREADS: u32 = 512;
/// Bytes of local memory per thread that each kernel overwrites, smallest first. Keep in step with
/// scrub.cu.
const LOCAL: [(u32, &str); 3] = [
    (2 << 10, "dgx_scrub_local_2k"),
    (8 << 10, "dgx_scrub_local_8k"),
    (32 << 10, "dgx_scrub_local_32k"),
];
/// Stack for functions that a kernel calls, besides its own local memory: the driver's default.
const STACK: u32 = 1 << 10;

/// `Meeting` of scrub.cu: three counters, and a word for each SM.
pub(super) const MEETING_BYTES: u64 = 4 * (3 + 1024);

/// Overwrites the memory that a launch leaves behind and the next could read without writing it:
/// shared memory, registers and tensor memory of every SM, and local memory. The new contents
/// differ from call to call.
#[derive(Debug)]
pub(super) struct Scrub {
    pub tools: Rc<Tools>,
    sms: u32,
    threads_per_sm: u32,
    /// The maximum shared memory of a block: with the driver's share, all of it.
    shared: u32,
    /// The driver's share of it, which a kernel can still write.
    reserved: u32,
    /// One for the SMs, one for local memory.
    meetings: DeviceMemory,
    /// Loaded when first needed: the driver sets memory aside for them.
    local: [OnceCell<Function>; LOCAL.len()],
}

impl Scrub {
    pub(super) fn new(device: &Device, tools: &Rc<Tools>) -> Result<Self> {
        let limits = &device.limits;
        let shared = u32::try_from(limits.shared_per_block.0).unwrap_or(u32::MAX);
        tools.scrub.allow_smem(shared)?;
        Ok(Self {
            tools: Rc::clone(tools),
            sms: limits.sms,
            threads_per_sm: limits.threads_per_sm,
            shared,
            reserved: u32::try_from(limits.shared_reserved.0).unwrap_or(0),
            meetings: DeviceMemory::new(2 * MEETING_BYTES)?,
            local: Default::default(),
        })
    }

    /// Overwrites everything now, for a call whose threads have this much local memory: before the
    /// contender's kernels run, which are then not to blame for a failure here.
    pub(super) fn make(
        &self,
        call_seed: CallSeed,
        local: u32,
    ) -> std::result::Result<(), RunFailure> {
        let made = self.queue(call_seed, local);
        made.and_then(|()| self.tools.stream.synchronize())
            .map_err(|error| {
                RunFailure::harness(format!(
                    "what earlier launches left cannot be overwritten: {error}"
                ))
            })?;
        self.verify(local)
    }

    /// Queues it, for a call whose threads have this much local memory.
    pub(super) fn queue(&self, call_seed: CallSeed, local: u32) -> Result<()> {
        let (meetings, stream) = (&self.meetings, &self.tools.stream);
        stream.fill(meetings.address, 0, meetings.bytes)?;
        let launch = LaunchConfig {
            smem: self.shared,
            ..LaunchConfig::flat(self.sms, THREADS)
        };
        let meeting = meetings.address;
        launch!(
            self.tools.scrub,
            stream,
            &launch,
            [call_seed.0, self.shared, self.reserved, meeting]
        )?;
        let Some(class) = class(local) else {
            return Ok(());
        };
        let blocks_per_sm = (self.threads_per_sm / THREADS).max(1);
        let launch = LaunchConfig::flat(self.sms * blocks_per_sm, THREADS);
        let kernel = self.local(class)?;
        launch!(
            kernel,
            stream,
            &launch,
            [call_seed.0, meeting + MEETING_BYTES]
        )
    }

    fn local(&self, class: usize) -> Result<&Function> {
        if let Some(function) = self.local[class].get() {
            return Ok(function);
        }
        let function = self.tools.function(LOCAL[class].1)?;
        Ok(self.local[class].get_or_init(|| function))
    }

    /// Whether the last one, which has ended, held every SM at once; if not, the call after it
    /// proves nothing, and that is no contender's fault.
    pub(super) fn verify(&self, local: u32) -> std::result::Result<(), RunFailure> {
        let mut bytes = vec![0; self.meetings.bytes as usize];
        self.tools
            .stream
            .download(&mut bytes, self.meetings.address)
            .map_err(CudaError::crashed)?;
        let words: Vec<u32> = bytes
            .chunks_exact(4)
            .map(|w| u32::from_le_bytes(w.try_into().unwrap_or_default()))
            .collect();
        let (shared, local_memory) = words.split_at(MEETING_BYTES as usize / 4);
        met(shared, self.sms)?;
        match class(local) {
            Some(_) => met(local_memory, self.sms),
            None => Ok(()),
        }
    }
}

/// Whether the CTAs of a meeting were on all SMs, and there together: those that gave up waiting
/// may have left their place to others.
fn met(meeting: &[u32], sms: u32) -> std::result::Result<(), RunFailure> {
    let [arrived, covered, gave_up, ..] = *meeting else {
        return Err(RunFailure::harness("a meeting has no words"));
    };
    if (covered, gave_up) == (sms, 0) {
        return Ok(());
    }
    Err(RunFailure::harness(format!(
        "what earlier launches left was not overwritten everywhere: {covered} of {sms} SMs were \
         met, and {gave_up} of {arrived} CTAs did not meet the others: another process may be \
         using this GPU"
    )))
}

/// The kernel that overwrites this much local memory; `None` for 0.
fn class(local: u32) -> Option<usize> {
    let needed = local.checked_add(STACK).filter(|_| local > 0)?;
    LOCAL.iter().position(|(bytes, _)| *bytes >= needed)
}

/// Why a contender with this much local memory is not timed, if so.
pub(super) fn untimed_reason(local: u32) -> Option<RunFailure> {
    let most = LOCAL[LOCAL.len() - 1].0 - STACK;
    (local > most).then(|| {
        RunFailure::unsupported(format!(
            "its threads have {local} bytes of local memory each, and no more than {most} can be \
             overwritten between calls: keep them in shared memory or scratch"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_did_not_meet_all_others_has_overwritten_nothing() {
        assert!(met(&[12, 3, 0, 1], 3).is_ok());
        for meeting in [[12, 2, 0, 1], [12, 3, 1, 1]] {
            let failure = met(&meeting, 3).unwrap_err();
            assert!(failure.harness && failure.fatal, "{failure:?}");
        }
    }

    #[test]
    fn local_memory_is_overwritten_by_a_kernel_with_more_of_it() {
        assert_eq!(class(0), None);
        for local in [1, 1000, 1025, 7000, 31 << 10] {
            let bytes = LOCAL[class(local).unwrap()].0;
            assert!(bytes >= local + STACK, "{local} in {bytes}");
            assert!(untimed_reason(local).is_none());
        }
        let refusal = untimed_reason((31 << 10) + 1).unwrap();
        assert_eq!(refusal.status, dgx_core::domain::Status::Unsupported);
    }
}
