//! Special registers.

use super::emit::Emitter;
use super::error::{Lowered, Problem};
use super::lookup::{describe, wrong};
use crate::front::ast::Operand;
use crate::op::*;

impl<'a> Emitter<'_, 'a> {
    /// The operand is a special register of 32 bits.
    pub(super) fn is_special32(&mut self, operand: &Operand<'a>) -> Lowered<bool> {
        if self.register(operand)?.is_some() {
            return Ok(false);
        }
        Ok(match operand {
            Operand::Name(name) => special(name, None).is_some() || fixed(name, None).is_some(),
            Operand::Member(name, member) => {
                special(name, Some(member)).is_some() || fixed(name, Some(member)).is_some()
            }
            _ => false,
        })
    }

    pub(super) fn special_value32(
        &mut self,
        name: &str,
        member: Option<&str>,
        operand: &Operand<'a>,
    ) -> Lowered<R32> {
        if let Some(special) = special(name, member) {
            return Ok(self.special32(special));
        }
        if let Some(value) = fixed(name, member) {
            self.reserved_shared |= name.starts_with("%reserved_smem");
            return Ok(self.const32(value));
        }
        let clock = match (name, member) {
            ("%clock" | "%clock_lo", None) => Clock::Cycles,
            ("%clock_hi", None) => Clock::CyclesHi,
            // The low half, which was once the whole register.
            ("%gridid", None) => {
                let a = self.special64(Special::Gridid);
                let d = self.temp32();
                self.emit(Op::Unpack64 {
                    lo: Slot::W32(d),
                    hi: Slot::Sink,
                    a,
                });
                return Ok(d);
            }
            ("%globaltimer_lo", None) => Clock::NanosLo,
            ("%globaltimer_hi", None) => Clock::NanosHi,
            _ if self.unknown(name) => {
                return Err(Problem::UnknownName(describe(operand).replace('`', "")));
            }
            _ => return wrong("a 32-bit value", operand),
        };
        let d = self.temp32();
        self.emit(Op::ReadClock32 { clock, d });
        Ok(d)
    }

    /// Special registers may be read as narrower values.
    pub(super) fn low_bits(&mut self, full: R32, bits: u32) -> R32 {
        if bits >= 32 {
            return full;
        }
        let mask = self.const32((1 << bits) - 1);
        let d = self.temp32();
        self.emit(Op::Bin32 {
            w: W::B32,
            op: IBin::And,
            d,
            a: full,
            b: mask,
        });
        d
    }

    pub(super) fn special_value64(&mut self, name: &str, operand: &Operand<'a>) -> Lowered<R64> {
        let clock = match name {
            "%clock64" => Clock::Cycles,
            "%globaltimer" => Clock::Nanos,
            "%gridid" => return Ok(self.special64(Special::Gridid)),
            // No graph runs, and no performance monitor counts.
            "%current_graph_exec" => return Ok(self.const64(Const64::Bits(0))),
            _ if numbered(name, "%pm", "_64", 8) => return Ok(self.const64(Const64::Bits(0))),
            _ if self.unknown(name) => return Err(Problem::UnknownName(name.to_owned())),
            _ => return wrong("a 64-bit value", operand),
        };
        let d = self.temp64();
        self.emit(Op::ReadClock64 { clock, d });
        Ok(d)
    }
}

/// Special registers that never change for a thread.
fn special(name: &str, member: Option<&str>) -> Option<Special> {
    use Special::*;
    let axis = |[x, y, z]: [Special; 3]| match member {
        Some("x") => Some(x),
        Some("y") => Some(y),
        Some("z") => Some(z),
        _ => None,
    };
    match name {
        "%tid" => return axis([TidX, TidY, TidZ]),
        "%ntid" => return axis([NtidX, NtidY, NtidZ]),
        "%ctaid" => return axis([CtaidX, CtaidY, CtaidZ]),
        "%nctaid" => return axis([NctaidX, NctaidY, NctaidZ]),
        "%clusterid" => return axis([ClusteridX, ClusteridY, ClusteridZ]),
        "%nclusterid" => return axis([NclusteridX, NclusteridY, NclusteridZ]),
        "%cluster_ctaid" => return axis([ClusterCtaidX, ClusterCtaidY, ClusterCtaidZ]),
        "%cluster_nctaid" => return axis([ClusterNctaidX, ClusterNctaidY, ClusterNctaidZ]),
        _ if member.is_some() => return None,
        _ => {}
    }
    Some(match name {
        "%laneid" => Laneid,
        "%warpid" => Warpid,
        "%nwarpid" => Nwarpid,
        "%smid" => Smid,
        "%nsmid" => Nsmid,
        "%cluster_ctarank" => ClusterCtarank,
        "%cluster_nctarank" => ClusterNctarank,
        "%lanemask_eq" => LanemaskEq,
        "%lanemask_le" => LanemaskLe,
        "%lanemask_lt" => LanemaskLt,
        "%lanemask_ge" => LanemaskGe,
        "%lanemask_gt" => LanemaskGt,
        "%dynamic_smem_size" => DynamicSmemSize,
        "%total_smem_size" => TotalSmemSize,
        "%aggr_smem_size" => AggrSmemSize,
        "%envreg1" => WorkspaceHigh,
        "%envreg2" => WorkspaceLow,
        _ => return None,
    })
}

/// Special registers with one value everywhere.
fn fixed(name: &str, member: Option<&str>) -> Option<u32> {
    const VECTORS: [&str; 8] = [
        "%tid",
        "%ntid",
        "%ctaid",
        "%nctaid",
        "%clusterid",
        "%nclusterid",
        "%cluster_ctaid",
        "%cluster_nctaid",
    ];
    match (name, member) {
        // The fourth element of a vector is unused.
        (name, Some("w")) if VECTORS.contains(&name) => Some(0),
        ("%reserved_smem_offset_begin" | "%reserved_smem_offset_0", None) => Some(0),
        ("%reserved_smem_offset_1", None) => Some(SHARED_SCRATCH),
        ("%reserved_smem_offset_end" | "%reserved_smem_offset_cap", None) => Some(SHARED_BASE),
        // Values that a driver or a profiler would set.
        (name, None) if numbered(name, "%envreg", "", 32) || numbered(name, "%pm", "", 8) => {
            Some(0)
        }
        _ => None,
    }
}

/// `name` is `prefix`, a number below `count` and `suffix`.
fn numbered(name: &str, prefix: &str, suffix: &str, count: u32) -> bool {
    let inner = name.strip_prefix(prefix);
    let digits = inner.and_then(|rest| rest.strip_suffix(suffix));
    digits.is_some_and(|digits| (0..count).any(|number| number.to_string() == digits))
}
