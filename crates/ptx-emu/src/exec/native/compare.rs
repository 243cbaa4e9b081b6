//! Comparisons, predicates, and choices by them.

use iced_x86::code_asm::*;

use super::Subnormals;
use super::lanes::{Emitted, HALVES, Lanes, QUARTERS, Writer, active, half, predicate, wide};
use crate::op::{BoolOp, Cmp, Inst, Op, P, R32, R64, W};

/// The comparison of `vpcmp`; none where no vector instruction is needed.
fn of_integers(cmp: Cmp) -> Option<u32> {
    Some(match cmp {
        Cmp::Eq | Cmp::Equ => 0,
        Cmp::Lt | Cmp::Ltu => 1,
        Cmp::Le | Cmp::Leu => 2,
        Cmp::Ne | Cmp::Neu => 4,
        Cmp::Ge | Cmp::Geu => 5,
        Cmp::Gt | Cmp::Gtu => 6,
        Cmp::Num | Cmp::Nan => return None,
    })
}

/// The comparison of `vcmpps`, which is never signalling.
fn of_floats(cmp: Cmp) -> u32 {
    match cmp {
        Cmp::Eq => 0x00,
        Cmp::Ne => 0x0c,
        Cmp::Lt => 0x11,
        Cmp::Le => 0x12,
        Cmp::Gt => 0x1e,
        Cmp::Ge => 0x1d,
        Cmp::Equ => 0x08,
        Cmp::Neu => 0x04,
        Cmp::Ltu => 0x19,
        Cmp::Leu => 0x1a,
        Cmp::Gtu => 0x16,
        Cmp::Geu => 0x15,
        Cmp::Num => 0x07,
        Cmp::Nan => 0x03,
    }
}

impl Writer<'_> {
    pub(super) fn comparison(&mut self, inst: &Inst) -> Emitted {
        match inst.op {
            Op::SetpI32 {
                w: W::B32,
                cmp,
                signed,
                d,
                a,
                b,
            } => self.setp_i32(inst, cmp, signed, d, [a, b]),
            Op::SetpF32 { cmp, ftz, d, a, b } => self.setp_f32(inst, cmp, ftz, d, [a, b]),
            Op::SetpI64 {
                cmp,
                signed,
                d,
                a,
                b,
            } => self.setp_i64(inst, cmp, signed, d, [a, b]),
            Op::SetpF64 { cmp, d, a, b } => {
                self.with_subnormals(Subnormals::Kept, |writer| {
                    writer.quarters([a, b], |asm, k, x, y| asm.vcmppd(k, x, y, of_floats(cmp)))?;
                    Ok(true)
                })?;
                self.put_predicate(d, inst.guard)?;
                Ok(true)
            }
            Op::PLogic { .. } | Op::PMov { .. } | Op::PConst { .. } => self.predicates(inst),
            Op::Selp32 { .. } | Op::Selp64 { .. } => self.choice(&inst.op),
            Op::Activemask { d } => {
                match self.lanes {
                    Lanes::All => self.asm.vpbroadcastd(zmm16, active())?,
                    Lanes::Some => self.asm.vpbroadcastd(zmm16, eax)?,
                }
                for h in HALVES {
                    self.put_half(d, h, zmm16)?;
                }
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn setp_i32(&mut self, inst: &Inst, cmp: Cmp, signed: bool, d: P, [a, b]: [R32; 2]) -> Emitted {
        let Some(cmp) = of_integers(cmp) else {
            return Ok(false);
        };
        for (h, k) in HALVES.into_iter().zip([k3, k4]) {
            let a = self.read(a, h, zmm16)?;
            let b = self.read(b, h, zmm17)?;
            match signed {
                true => self.asm.vpcmpd(k, a, b, cmp)?,
                false => self.asm.vpcmpud(k, a, b, cmp)?,
            }
        }
        self.put_halves(d, inst)
    }

    fn setp_f32(&mut self, inst: &Inst, cmp: Cmp, ftz: bool, d: P, [a, b]: [R32; 2]) -> Emitted {
        let subnormals = match ftz {
            true => Subnormals::Flushed,
            false => Subnormals::Kept,
        };
        self.with_subnormals(subnormals, |writer| {
            for (h, k) in HALVES.into_iter().zip([k3, k4]) {
                let a = writer.read(a, h, zmm16)?;
                let b = writer.read(b, h, zmm17)?;
                writer.asm.vcmpps(k, a, b, of_floats(cmp))?;
            }
            Ok(true)
        })?;
        self.put_halves(d, inst)
    }

    /// A predicate from others.
    fn predicates(&mut self, inst: &Inst) -> Emitted {
        let asm = &mut self.asm;
        let d = match inst.op {
            Op::PLogic {
                op,
                d,
                a,
                na,
                b,
                nb,
            } => {
                asm.mov(edx, predicate(a))?;
                if na {
                    asm.not(edx)?;
                }
                asm.mov(ecx, predicate(b))?;
                if nb {
                    asm.not(ecx)?;
                }
                match op {
                    BoolOp::And => asm.and(edx, ecx)?,
                    BoolOp::Or => asm.or(edx, ecx)?,
                    BoolOp::Xor => asm.xor(edx, ecx)?,
                }
                d
            }
            Op::PMov { d, a, negate } => {
                asm.mov(edx, predicate(a))?;
                if negate {
                    asm.not(edx)?;
                }
                d
            }
            Op::PConst { d, value } => {
                asm.mov(edx, if value { -1 } else { 0 })?;
                d
            }
            _ => return Ok(false),
        };
        self.put_predicate(d, inst.guard)?;
        Ok(true)
    }

    /// One of two registers, by a predicate.
    fn choice(&mut self, op: &Op) -> Emitted {
        match *op {
            Op::Selp32 { d, a, b, p } => {
                self.asm.kmovd(k3, predicate(p))?;
                for h in HALVES {
                    self.asm.vmovdqa32(zmm16, half(b, h))?;
                    self.asm.vmovdqa32(zmm16.k3(), half(a, h))?;
                    self.put_half(d, h, zmm16)?;
                    self.asm.kshiftrd(k3, k3, 16)?;
                }
                Ok(true)
            }
            Op::Selp64 { d, a, b, p } => {
                self.asm.kmovd(k3, predicate(p))?;
                for q in QUARTERS {
                    self.asm.vmovdqa64(zmm16, wide(b, q))?;
                    self.asm.vmovdqa64(zmm16.k3(), wide(a, q))?;
                    self.put_wide(d, q, zmm16)?;
                    self.asm.kshiftrd(k3, k3, 8)?;
                }
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn setp_i64(&mut self, inst: &Inst, cmp: Cmp, signed: bool, d: P, ab: [R64; 2]) -> Emitted {
        let Some(cmp) = of_integers(cmp) else {
            return Ok(false);
        };
        self.quarters(ab, |asm, k, x, y| match signed {
            true => asm.vpcmpq(k, x, y, cmp),
            false => asm.vpcmpuq(k, x, y, cmp),
        })?;
        self.put_predicate(d, inst.guard)?;
        Ok(true)
    }

    /// Writes a predicate from k3 and k4, the halves of a warp.
    fn put_halves(&mut self, d: P, inst: &Inst) -> Emitted {
        self.asm.kunpckwd(k3, k4, k3)?;
        self.asm.kmovd(edx, k3)?;
        self.put_predicate(d, inst.guard)?;
        Ok(true)
    }

    /// Compares 64-bit registers, eight lanes at a time; the result is in edx.
    fn quarters(
        &mut self,
        [a, b]: [R64; 2],
        compare: impl Fn(
            &mut CodeAssembler,
            AsmRegisterK,
            AsmRegisterZmm,
            AsmMemoryOperand,
        ) -> Result<(), IcedError>,
    ) -> Result<(), IcedError> {
        let asm = &mut self.asm;
        for (first, k) in [(0, k3), (2, k4)] {
            for (q, k) in [(first, k), (first + 1, k7)] {
                asm.vmovdqa64(zmm16, wide(a, q))?;
                compare(asm, k, zmm16, wide(b, q))?;
            }
            asm.kunpckbw(k, k7, k)?;
        }
        asm.kunpckwd(k3, k4, k3)?;
        asm.kmovd(edx, k3)
    }
}
