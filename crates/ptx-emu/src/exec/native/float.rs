//! Floats.

use iced_x86::code_asm::*;

use super::Subnormals;
use super::constants::Constant;
use super::lanes::{Emitted, HALVES, QUARTERS, Writer, constant, half, quarter, wide};
use crate::op::{FBin, FMods, FUn, HFmt, Op, R32, Round};

/// `vcmpps` that finds NaNs.
pub(super) const UNORDERED: u32 = 3;

/// How subnormals count, for modifiers that there are templates for.
fn subnormals(m: FMods) -> Option<Subnormals> {
    let usual = m.round != Round::NearAway && !m.relu && !m.oob;
    usual.then_some(match m.ftz {
        true => Subnormals::Flushed,
        false => Subnormals::Kept,
    })
}

/// A vector as an operand of an instruction that rounds like this.
pub(super) fn rounded(v: AsmRegisterZmm, round: Round) -> AsmRegisterZmm {
    match round {
        Round::Zero => v.rz_sae(),
        Round::Down => v.rd_sae(),
        Round::Up => v.ru_sae(),
        Round::Near | Round::NearAway => v.rn_sae(),
    }
}

/// An operand that rounds like the processor does unless it is told otherwise.
fn arithmetic(v: AsmRegisterZmm, round: Round) -> AsmRegisterZmm {
    match round {
        Round::Near => v,
        round => rounded(v, round),
    }
}

impl Writer<'_> {
    pub(super) fn float(&mut self, op: &Op) -> Emitted {
        match *op {
            Op::F32Bin {
                op: op @ (FBin::Add | FBin::Sub | FBin::Mul | FBin::Div),
                m,
                d,
                a,
                b,
            } => match subnormals(m) {
                Some(subnormals) => {
                    self.with_subnormals(subnormals, |writer| writer.f32_bin(op, m, d, a, b))
                }
                None => Ok(false),
            },
            Op::F32Bin {
                op: op @ (FBin::Min | FBin::Max),
                m,
                d,
                a,
                b,
            } => self.f32_nearer(op == FBin::Max, m.ftz, d, a, b),
            Op::F32Fma { m, d, a, b, c } => match subnormals(m) {
                Some(subnormals) => {
                    self.with_subnormals(subnormals, |writer| writer.f32_fma(m, d, [a, b, c]))
                }
                None => Ok(false),
            },
            Op::F32Un { op, m, d, a } => self.f32_un(op, m, d, a),
            Op::HBin {
                fmt: HFmt::F16 | HFmt::F16x2,
                op: op @ (FBin::Add | FBin::Sub | FBin::Mul),
                m,
                d,
                a,
                b,
            } if m == FMods::default() => self.halves(op, d, a, b),
            _ => Ok(false),
        }
    }

    fn f32_un(&mut self, op: FUn, m: FMods, d: R32, a: R32) -> Emitted {
        let exact = matches!(op, FUn::Sqrt | FUn::Rcp);
        let approximate = matches!(op, FUn::SqrtApprox | FUn::RcpApprox);
        if exact {
            let near = m.round == Round::Near && !m.sat;
            return match subnormals(m).filter(|_| near) {
                Some(subnormals) => self.with_subnormals(subnormals, |writer| {
                    for h in HALVES {
                        writer.root_or_reciprocal(op, a, h, false)?;
                        writer.put_canonical(d, h)?;
                    }
                    Ok(true)
                }),
                None => Ok(false),
            };
        }
        if approximate {
            // Rounded first, and flushed then.
            return self.with_subnormals(Subnormals::Kept, |writer| {
                for h in HALVES {
                    writer.root_or_reciprocal(op, a, h, m.ftz)?;
                    if m.ftz {
                        writer.flush(zmm16)?;
                    }
                    writer.put_canonical(d, h)?;
                }
                Ok(true)
            });
        }
        if !matches!(op, FUn::Neg | FUn::Abs) {
            return Ok(false);
        }
        for h in HALVES {
            self.load(zmm16, a, h)?;
            if m.ftz {
                self.flush(zmm16)?;
            }
            let (sign, magnitude) = (constant(Constant::Sign), constant(Constant::Magnitude));
            match op {
                FUn::Neg => self.asm.vpxord(zmm16, zmm16, sign)?,
                _ => self.asm.vpandd(zmm16, zmm16, magnitude)?,
            }
            self.put_canonical(d, h)?;
        }
        Ok(true)
    }

    /// The square root or the reciprocal of half a register, in zmm16.
    fn root_or_reciprocal(
        &mut self,
        op: FUn,
        a: R32,
        h: i32,
        flush: bool,
    ) -> Result<(), IcedError> {
        self.load(zmm16, a, h)?;
        if flush {
            self.flush(zmm16)?;
        }
        let asm = &mut self.asm;
        match op {
            FUn::Sqrt | FUn::SqrtApprox => asm.vsqrtps(zmm16, zmm16),
            _ => {
                asm.vmovaps(zmm17, constant(Constant::One))?;
                asm.vdivps(zmm16, zmm17, zmm16)
            }
        }
    }

    /// f64 arithmetic that ends without a NaN; jumps to `nan` before anything is written if it
    /// does not.
    pub(super) fn double(&mut self, op: &Op, nan: CodeLabel) -> Emitted {
        const RESULTS: [AsmRegisterZmm; 4] = [zmm16, zmm17, zmm18, zmm19];
        let (d, m) = match *op {
            Op::F64Bin { d, m, .. } | Op::F64Fma { d, m, .. } | Op::F64Un { d, m, .. } => (d, m),
            _ => return Ok(false),
        };
        if m.round == Round::NearAway {
            return Ok(false);
        }
        let mut known = true;
        self.with_subnormals(Subnormals::Kept, |writer| {
            for q in QUARTERS {
                known &= writer.double_quarter(RESULTS[q as usize], op, q)?;
            }
            Ok(known)
        })?;
        if !known {
            return Ok(false);
        }
        self.leave_nan(nan)?;
        for q in QUARTERS {
            self.put_wide(d, q, RESULTS[q as usize])?;
        }
        Ok(true)
    }

    fn double_quarter(&mut self, v: AsmRegisterZmm, op: &Op, q: i32) -> Emitted {
        let asm = &mut self.asm;
        match *op {
            Op::F64Bin { op, m, a, b, .. } => {
                asm.vmovdqa64(v, wide(a, q))?;
                asm.vmovdqa64(zmm20, wide(b, q))?;
                let b = rounded(zmm20, m.round);
                match op {
                    FBin::Add => asm.vaddpd(v, v, b)?,
                    FBin::Sub => asm.vsubpd(v, v, b)?,
                    FBin::Mul => asm.vmulpd(v, v, b)?,
                    FBin::Div => asm.vdivpd(v, v, b)?,
                    _ => return Ok(false),
                }
            }
            Op::F64Fma { m, a, b, c, .. } => {
                asm.vmovdqa64(v, wide(a, q))?;
                asm.vmovdqa64(zmm20, wide(b, q))?;
                asm.vmovdqa64(zmm21, wide(c, q))?;
                asm.vfmadd213pd(v, zmm20, rounded(zmm21, m.round))?;
            }
            Op::F64Un { op, m, a, .. } => {
                asm.vmovdqa64(v, wide(a, q))?;
                match op {
                    FUn::Neg => asm.vpxorq(v, v, constant(Constant::WideSign))?,
                    FUn::Abs => asm.vpandq(v, v, constant(Constant::WideMagnitude))?,
                    FUn::Sqrt => asm.vsqrtpd(v, rounded(v, m.round))?,
                    FUn::Rcp => {
                        asm.vmovdqa64(zmm20, constant(Constant::WideOne))?;
                        asm.vdivpd(v, zmm20, rounded(v, m.round))?;
                    }
                    _ => return Ok(false),
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn f32_bin(&mut self, op: FBin, m: FMods, d: R32, a: R32, b: R32) -> Emitted {
        for h in HALVES {
            let a = self.read(a, h, zmm16)?;
            let b = arithmetic(self.read(b, h, zmm17)?, m.round);
            let asm = &mut self.asm;
            match op {
                FBin::Add => asm.vaddps(zmm16, a, b)?,
                FBin::Sub => asm.vsubps(zmm16, a, b)?,
                FBin::Mul => asm.vmulps(zmm16, a, b)?,
                _ => asm.vdivps(zmm16, a, b)?,
            }
            self.put_result(m.sat, d, h)?;
        }
        Ok(true)
    }

    fn f32_fma(&mut self, m: FMods, d: R32, [a, b, c]: [R32; 3]) -> Emitted {
        for h in HALVES {
            let a = self.read(a, h, zmm17)?;
            let b = arithmetic(self.read(b, h, zmm18)?, m.round);
            self.load(zmm16, c, h)?;
            self.asm.vfmadd231ps(zmm16, a, b)?;
            self.put_result(m.sat, d, h)?;
        }
        Ok(true)
    }

    /// Pairs of f16, each computed as f32: no half is a subnormal f32, and a sum or product of two
    /// is rounded as if once. Above a single half there are zeros, which stay.
    fn halves(&mut self, op: FBin, d: R32, a: R32, b: R32) -> Emitted {
        for h in HALVES {
            let asm = &mut self.asm;
            for (q, result) in [(2 * h, ymm16), (2 * h + 1, ymm18)] {
                asm.vcvtph2ps(zmm17, quarter(a, q))?;
                asm.vcvtph2ps(zmm19, quarter(b, q))?;
                match op {
                    FBin::Add => asm.vaddps(zmm17, zmm17, zmm19)?,
                    FBin::Sub => asm.vsubps(zmm17, zmm17, zmm19)?,
                    _ => asm.vmulps(zmm17, zmm17, zmm19)?,
                }
                asm.vcmpps(k3, zmm17, zmm17, UNORDERED)?;
                asm.vcvtps2ph(result, zmm17, 0)?;
                let nan = ymmword_ptr(rbp + Constant::NanHalves.offset() as i32);
                asm.vmovdqu16(result.k3(), nan)?;
            }
            asm.vinserti64x4(zmm16, zmm16, ymm18, 1)?;
            self.put_half(d, h, zmm16)?;
        }
        Ok(true)
    }

    /// Writes zmm16 as arithmetic does, between 0 and 1 if it saturates.
    fn put_result(&mut self, saturates: bool, d: R32, h: i32) -> Result<(), IcedError> {
        if !saturates {
            // What flushes subnormals here has done so in zmm16.
            let result = self.result(d, h);
            self.asm.vmovaps(result, zmm0)?;
            self.asm.vfixupimmps(result, zmm16, zmm1, 0)?;
            return self.put_half(d, h, result);
        }
        self.saturate()?;
        self.put_half(d, h, zmm16)
    }

    /// Brings zmm16 between 0 and 1; NaN and −0 become 0.
    pub(super) fn saturate(&mut self) -> Result<(), IcedError> {
        let asm = &mut self.asm;
        // Of two that cannot be ordered, or are both zero, the second is taken.
        asm.vpxord(zmm17, zmm17, zmm17)?;
        asm.vmaxps(zmm16, zmm16, zmm17)?;
        asm.vminps(zmm16, zmm16, constant(Constant::One))
    }

    /// `min` and `max`: a number wins over a NaN, and −0 is below +0.
    fn f32_nearer(&mut self, max: bool, ftz: bool, d: R32, a: R32, b: R32) -> Emitted {
        // The sign as compared, and the larger or the smaller.
        let choice = if max { 0b0101 } else { 0b0100 };
        for h in HALVES {
            self.asm.vmovaps(zmm16, half(a, h))?;
            self.asm.vmovaps(zmm17, half(b, h))?;
            if ftz {
                self.flush(zmm16)?;
                self.flush(zmm17)?;
            }
            let subnormals = if ftz {
                self.subnormals
            } else {
                Subnormals::Kept
            };
            self.with_subnormals(subnormals, |writer| {
                writer.asm.vrangeps(zmm18, zmm16, zmm17, choice)?;
                Ok(true)
            })?;
            let asm = &mut self.asm;
            asm.vcmpps(k3, zmm16, zmm16, UNORDERED)?;
            asm.vcmpps(k4, zmm17, zmm17, UNORDERED)?;
            asm.vmovaps(zmm18.k3(), zmm17)?;
            asm.vmovaps(zmm18.k4(), zmm16)?;
            asm.vmovaps(zmm16, zmm18)?;
            self.put_canonical(d, h)?;
        }
        Ok(true)
    }

    /// Zeros for subnormals.
    pub(super) fn flush(&mut self, v: AsmRegisterZmm) -> Result<(), IcedError> {
        self.asm.vptestnmd(k3, v, constant(Constant::Exponent))?;
        self.asm.vpandd(v.k3(), v, constant(Constant::Sign))
    }

    /// Writes zmm16 with every NaN made the one that the hardware gives.
    pub(super) fn put_canonical(&mut self, d: R32, h: i32) -> Result<(), IcedError> {
        self.asm.vcmpps(k3, zmm16, zmm16, UNORDERED)?;
        self.asm.vmovaps(zmm16.k3(), constant(Constant::Nan))?;
        self.put_half(d, h, zmm16)
    }
}
