//! What copies do when they complete.

use crate::exec::checked::Checked;
use crate::exec::cluster::Cluster;
use crate::exec::cluster::jobs::{ByteSource, Job};
use crate::exec::listen::agent::Agent;
use crate::exec::listen::visit::Act;
use crate::exec::memory::pieces::{act_of, merge};
use crate::exec::origin::{Origin, SharedAt};
use crate::op::{AtomOp, Num};

impl Cluster<'_> {
    /// What a copy does when it completes.
    pub(crate) fn finish(&mut self, from: Origin, job: Job) -> Checked<()> {
        match job {
            Job::Lanes { group, items } => self.finish_lanes(from, group, &items),
            Job::ToShared {
                from: mut source,
                bytes,
                targets,
                reduce,
            } => {
                if let ByteSource::Shared(source) = &mut source {
                    self.take_source(source, from);
                }
                for (to, barrier) in targets {
                    self.landed(to, bytes, from.pc);
                    let layouts = &mut self.ctas[to.cta as usize].tmem.layouts;
                    layouts.forget(to.offset..to.offset + bytes);
                    self.copy_in(from, &source, (to, bytes), reduce)?;
                    self.complete_tx(from, barrier, bytes)?;
                }
                Ok(())
            }
            Job::ToGlobal {
                from: mut source,
                to,
                group,
                reduce,
                mask,
            } => {
                let read_now = self.take_source(&mut source, from);
                self.copy_out(from, source.bytes(), to, reduce, mask)?;
                self.finish_bulk(from, group, read_now);
                Ok(())
            }
            Job::Remote {
                to,
                barrier,
                data,
                reduce,
            } => {
                let act = act_of(reduce);
                self.pass_shared_piece((Agent::LaneCopy, from), to, data.len() as u64, act);
                merge(self.shared_at(to, data.len()), &data, reduce);
                self.complete_tx(from, barrier, data.len() as u32)
            }
            Job::Tensor(job) => self.finish_tensor(from, *job),
            // Its faults are those of what it was given.
            Job::TensorCore { .. } => Ok(()),
        }
    }

    fn copy_in(
        &mut self,
        from: Origin,
        source: &ByteSource,
        (to, bytes): (SharedAt, u32),
        reduce: Option<(AtomOp, Num)>,
    ) -> Checked<()> {
        let who = (Agent::BulkCopy, from);
        self.pass_shared_piece(who, to, u64::from(bytes), act_of(reduce));
        match source {
            ByteSource::Global(address) => {
                let region = self.pass_global_piece(who, *address, bytes.into(), Act::Read)?;
                let offset = address - region.base;
                let target = &mut self.ctas[to.cta as usize].shared[to.offset as usize..];
                self.drafts
                    .pieces(&region, offset, bytes as usize, |piece, part| {
                        merge(&mut target[part], piece, reduce);
                    });
            }
            ByteSource::Shared(source) => {
                merge(self.shared_at(to, bytes as usize), source.bytes(), reduce);
            }
            ByteSource::Given(answer) => {
                merge(self.shared_at(to, bytes as usize), answer, reduce);
            }
        }
        Ok(())
    }

    fn copy_out(
        &mut self,
        from: Origin,
        data: &[u8],
        to: u64,
        reduce: Option<(AtomOp, Num)>,
        mask: u16,
    ) -> Checked<()> {
        let who = (Agent::BulkCopy, from);
        if mask == u16::MAX {
            return self.merge_global(who, to, data, reduce);
        }
        let region = self.pass_global_piece(who, to, data.len() as u64, act_of(reduce))?;
        let chosen = (0..data.len()).filter(|i| mask >> (i % 16) & 1 == 1);
        // Another CTA may write the bytes between.
        for i in chosen {
            let offset = to - region.base + i as u64;
            self.drafts
                .pieces_written(&region, offset, 1, |target, _| target[0] = data[i]);
        }
        Ok(())
    }
}
