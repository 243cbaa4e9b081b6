//! Integers.

use iced_x86::code_asm::*;

use super::lanes::{Emitted, HALVES, QUARTERS, Writer, half, quarter, wide};
use crate::op::{IBin, IUn, Op, R32, R64, W};

impl Writer<'_> {
    pub(super) fn integer(&mut self, op: &Op) -> Emitted {
        match *op {
            Op::Bin32 {
                w: W::B32,
                op,
                d,
                a,
                b,
            } => match op {
                IBin::DivS | IBin::DivU | IBin::RemS | IBin::RemU => self.divide32(op, d, a, b),
                _ => self.bin32(op, d, a, b),
            },
            Op::Bin64 { op, d, a, b } => self.bin64(op, d, a, b),
            Op::Shift64 { op, d, a, b } => self.shift64(op, d, a, b),
            Op::MadLo32 {
                w: W::B32,
                d,
                a,
                b,
                c,
            } => self.mad_low(d, [a, b, c]),
            Op::MulWide32 { signed, d, a, b } => self.mad_wide(signed, d, a, b, None),
            Op::MadWide32 { signed, d, a, b, c } => self.mad_wide(signed, d, a, b, Some(c)),
            Op::Lop3 { lut, d, a, b, c } => {
                for h in HALVES {
                    self.load(zmm16, a, h)?;
                    let b = self.read(b, h, zmm17)?;
                    let c = self.read(c, h, zmm18)?;
                    self.asm.vpternlogd(zmm16, b, c, u32::from(lut))?;
                    self.put_half(d, h, zmm16)?;
                }
                Ok(true)
            }
            Op::Un32 {
                w: W::B32,
                op: op @ (IUn::Not | IUn::Neg | IUn::Abs),
                d,
                a,
            } => self.un32(op, d, a),
            _ => Ok(false),
        }
    }

    fn mad_low(&mut self, d: R32, [a, b, c]: [R32; 3]) -> Emitted {
        for h in HALVES {
            let a = self.read(a, h, zmm16)?;
            let b = self.read(b, h, zmm17)?;
            self.asm.vpmulld(zmm16, a, b)?;
            let c = self.read(c, h, zmm17)?;
            let result = self.result(d, h);
            self.asm.vpaddd(result, zmm16, c)?;
            self.put_half(d, h, result)?;
        }
        Ok(true)
    }

    fn un32(&mut self, op: IUn, d: R32, a: R32) -> Emitted {
        for h in HALVES {
            let asm = &mut self.asm;
            asm.vmovdqa32(zmm16, half(a, h))?;
            match op {
                IUn::Not => asm.vpternlogd(zmm16, zmm16, zmm16, 0x55)?,
                IUn::Neg => {
                    asm.vpxord(zmm17, zmm17, zmm17)?;
                    asm.vpsubd(zmm16, zmm17, zmm16)?;
                }
                _ => asm.vpabsd(zmm16, zmm16)?,
            }
            self.put_half(d, h, zmm16)?;
        }
        Ok(true)
    }

    fn bin32(&mut self, op: IBin, d: R32, a: R32, b: R32) -> Emitted {
        for h in HALVES {
            let a = self.read(a, h, zmm16)?;
            let b = self.read(b, h, zmm17)?;
            let result = self.result(d, h);
            let asm = &mut self.asm;
            match op {
                IBin::Add => asm.vpaddd(result, a, b)?,
                IBin::Sub => asm.vpsubd(result, a, b)?,
                IBin::MulLo => asm.vpmulld(result, a, b)?,
                IBin::And => asm.vpandd(result, a, b)?,
                IBin::Or => asm.vpord(result, a, b)?,
                IBin::Xor => asm.vpxord(result, a, b)?,
                IBin::MinS => asm.vpminsd(result, a, b)?,
                IBin::MinU => asm.vpminud(result, a, b)?,
                IBin::MaxS => asm.vpmaxsd(result, a, b)?,
                IBin::MaxU => asm.vpmaxud(result, a, b)?,
                // Amounts from the width on shift everything out, as in PTX.
                IBin::Shl => asm.vpsllvd(result, a, b)?,
                IBin::ShrU => asm.vpsrlvd(result, a, b)?,
                IBin::ShrS => asm.vpsravd(result, a, b)?,
                IBin::MulHiS | IBin::MulHiU => {
                    // Products of the even lanes, and of the odd ones.
                    asm.vpsrlq(zmm18, a, 32)?;
                    asm.vpsrlq(zmm19, b, 32)?;
                    if op == IBin::MulHiS {
                        asm.vpmuldq(result, a, b)?;
                        asm.vpmuldq(zmm18, zmm18, zmm19)?;
                    } else {
                        asm.vpmuludq(result, a, b)?;
                        asm.vpmuludq(zmm18, zmm18, zmm19)?;
                    }
                    asm.vpsrlq(result, result, 32)?;
                    asm.mov(ecx, 0xaaaa)?;
                    asm.kmovd(k3, ecx)?;
                    asm.vmovdqa32(result.k3(), zmm18)?;
                }
                _ => {
                    debug_assert_eq!(h, 0);
                    return Ok(false);
                }
            }
            self.put_half(d, h, result)?;
        }
        Ok(true)
    }

    /// Quotients of 32-bit integers are exact when doubles are cut. A quotient by zero is all ones,
    /// and a remainder the dividend.
    fn divide32(&mut self, op: IBin, d: R32, a: R32, b: R32) -> Emitted {
        let signed = matches!(op, IBin::DivS | IBin::RemS);
        for q in QUARTERS {
            let asm = &mut self.asm;
            if signed {
                asm.vcvtdq2pd(zmm16, quarter(a, q))?;
                asm.vcvtdq2pd(zmm17, quarter(b, q))?;
                asm.vdivpd(zmm16, zmm16, zmm17)?;
                asm.vcvttpd2dq(ymm16, zmm16)?;
                asm.vmovdqa32(ymm17, quarter(b, q))?;
                asm.vptestnmd(k3, ymm17, ymm17)?;
                asm.vpternlogd(ymm16.k3(), ymm16, ymm16, 0xff)?;
            } else {
                asm.vcvtudq2pd(zmm16, quarter(a, q))?;
                asm.vcvtudq2pd(zmm17, quarter(b, q))?;
                asm.vdivpd(zmm16, zmm16, zmm17)?;
                asm.vcvttpd2udq(ymm16, zmm16)?;
            }
            if matches!(op, IBin::RemS | IBin::RemU) {
                asm.vpmulld(ymm17, ymm16, quarter(b, q))?;
                asm.vmovdqa32(ymm16, quarter(a, q))?;
                asm.vpsubd(ymm16, ymm16, ymm17)?;
            }
            self.put_quarter(d, q, ymm16)?;
        }
        Ok(true)
    }

    fn bin64(&mut self, op: IBin, d: R64, a: R64, b: R64) -> Emitted {
        for q in QUARTERS {
            let (asm, b) = (&mut self.asm, wide(b, q));
            asm.vmovdqa64(zmm16, wide(a, q))?;
            match op {
                IBin::Add => asm.vpaddq(zmm16, zmm16, b)?,
                IBin::Sub => asm.vpsubq(zmm16, zmm16, b)?,
                IBin::MulLo => asm.vpmullq(zmm16, zmm16, b)?,
                IBin::And => asm.vpandq(zmm16, zmm16, b)?,
                IBin::Or => asm.vporq(zmm16, zmm16, b)?,
                IBin::Xor => asm.vpxorq(zmm16, zmm16, b)?,
                IBin::MinS => asm.vpminsq(zmm16, zmm16, b)?,
                IBin::MinU => asm.vpminuq(zmm16, zmm16, b)?,
                IBin::MaxS => asm.vpmaxsq(zmm16, zmm16, b)?,
                IBin::MaxU => asm.vpmaxuq(zmm16, zmm16, b)?,
                _ => return Ok(false),
            }
            self.put_wide(d, q, zmm16)?;
        }
        Ok(true)
    }

    fn shift64(&mut self, op: IBin, d: R64, a: R64, b: R32) -> Emitted {
        for q in QUARTERS {
            let asm = &mut self.asm;
            asm.vmovdqa64(zmm16, wide(a, q))?;
            asm.vpmovzxdq(zmm17, quarter(b, q))?;
            match op {
                IBin::Shl => asm.vpsllvq(zmm16, zmm16, zmm17)?,
                IBin::ShrS => asm.vpsravq(zmm16, zmm16, zmm17)?,
                _ => asm.vpsrlvq(zmm16, zmm16, zmm17)?,
            }
            self.put_wide(d, q, zmm16)?;
        }
        Ok(true)
    }

    fn mad_wide(&mut self, signed: bool, d: R64, a: R32, b: R32, c: Option<R64>) -> Emitted {
        for q in QUARTERS {
            let asm = &mut self.asm;
            asm.vpmovzxdq(zmm16, quarter(a, q))?;
            asm.vpmovzxdq(zmm17, quarter(b, q))?;
            match signed {
                true => asm.vpmuldq(zmm16, zmm16, zmm17)?,
                false => asm.vpmuludq(zmm16, zmm16, zmm17)?,
            }
            if let Some(c) = c {
                asm.vpaddq(zmm16, zmm16, wide(c, q))?;
            }
            self.put_wide(d, q, zmm16)?;
        }
        Ok(true)
    }
}
