//! Special registers.

use super::emit::Emitter;
use super::error::{Lowered, Problem};
use super::operands::{describe, wrong};
use crate::front::ast::Operand;
use crate::op::*;

impl<'a> Emitter<'_, 'a> {
    pub(super) fn special_value32(
        &mut self,
        name: &str,
        member: Option<&str>,
        operand: &Operand<'a>,
    ) -> Lowered<R32> {
        if let Some(special) = special(name, member) {
            return Ok(self.special32(special));
        }
        let clock = match (name, member) {
            ("%clock" | "%clock_lo", None) => Clock::Cycles,
            ("%clock_hi", None) => Clock::CyclesHi,
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

    pub(super) fn special_value64(&mut self, name: &str, operand: &Operand<'a>) -> Lowered<R64> {
        let clock = match name {
            "%clock64" => Clock::Cycles,
            "%globaltimer" => Clock::Nanos,
            "%gridid" => return Ok(self.special64(Special::Gridid)),
            "%current_graph_exec" => return Ok(self.const64(Const64::Bits(0))),
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
        "%reserved_smem_offset_begin" | "%reserved_smem_offset_end" => ReservedSmemOffset,
        _ => {
            let number: u32 = name.strip_prefix("%envreg")?.parse().ok()?;
            (number < 32).then_some(Envreg)?
        }
    })
}
