//! `.approx` functions, with the bits that [`approx`](crate::numeric::approx) gives.

use iced_x86::code_asm::*;

use super::Subnormals;
use super::constants::Constant;
use super::float::UNORDERED;
use super::lanes::{Emitted, HALVES, Lanes, QUARTERS, Writer, constant, half, quarter};
use crate::op::{FUn, Op, R32};

/// `vfpclasspd` of whatever is not a positive normal number.
const UNUSUAL: u32 = 0xff;

/// Results of quarters.
const RESULTS: [AsmRegisterYmm; 4] = [ymm16, ymm17, ymm18, ymm19];

/// A constant for every lane of an operand.
fn for_all(constant: Constant) -> AsmMemoryOperand {
    qword_bcst(rbp + constant.offset() as i32)
}

impl Writer<'_> {
    /// `ex2.approx.f32`, by the steps of the function.
    pub(super) fn power(&mut self, op: &Op) -> Emitted {
        let Op::F32Un {
            op: FUn::Ex2Approx,
            m,
            d,
            a,
        } = *op
        else {
            return Ok(false);
        };
        // Rounded first, and flushed then.
        self.with_subnormals(Subnormals::Kept, |writer| {
            let asm = &mut writer.asm;
            let shifter = rbp + Constant::Shifter.offset() as i32;
            asm.vbroadcastsd(zmm30, qword_ptr(shifter))?;
            for q in QUARTERS {
                writer.power_of_quarter(a, q)?;
            }
            let asm = &mut writer.asm;
            asm.vinserti64x4(zmm16, zmm16, ymm17, 1)?;
            asm.vinserti64x4(zmm18, zmm18, ymm19, 1)?;
            for (h, v) in HALVES.into_iter().zip([zmm16, zmm18]) {
                let asm = &mut writer.asm;
                asm.vmovaps(zmm20, half(a, h))?;
                asm.vcmpps(k3, zmm20, zmm20, UNORDERED)?;
                asm.vmovaps(v.k3(), constant(Constant::Nan))?;
                if m.ftz {
                    writer.flush(v)?;
                }
                writer.put_half(d, h, v)?;
            }
            Ok(true)
        })
    }

    fn power_of_quarter(&mut self, a: R32, q: i32) -> Result<(), IcedError> {
        let asm = &mut self.asm;
        let reach = |end| dword_bcst(rbp + Constant::Exp2Reach(end).offset() as i32);
        let (f, power, f2, f4) = (zmm20, zmm21, zmm22, zmm23);
        asm.vmovaps(ymm20, quarter(a, q))?;
        asm.vmaxps(ymm20, ymm20, reach(0))?;
        asm.vminps(ymm20, ymm20, reach(1))?;
        asm.vcvtps2pd(f, ymm20)?;
        asm.vaddpd(power, f, zmm30)?;
        asm.vsubpd(f2, power, zmm30)?;
        asm.vsubpd(f, f, f2)?;
        asm.vpsllq(power, power, 52)?;
        asm.vmulpd(f2, f, f)?;
        asm.vmulpd(f4, f2, f2)?;
        let pairs = [zmm24, zmm25, zmm26, zmm27, zmm28];
        for (i, pair) in pairs.into_iter().enumerate() {
            asm.vmulpd(pair, f, for_all(Constant::Exp2(2 * i + 1)))?;
            asm.vaddpd(pair, pair, for_all(Constant::Exp2(2 * i)))?;
        }
        let [low, second, mid, fourth, high] = pairs;
        asm.vmulpd(second, second, f2)?;
        asm.vaddpd(low, low, second)?;
        asm.vmulpd(fourth, fourth, f2)?;
        asm.vaddpd(mid, mid, fourth)?;
        asm.vmulpd(high, high, f4)?;
        asm.vaddpd(mid, mid, high)?;
        asm.vmulpd(mid, mid, f4)?;
        asm.vaddpd(low, low, mid)?;
        asm.vpaddq(low, low, power)?;
        asm.vcvtpd2ps(RESULTS[q as usize], low)
    }

    /// `rsqrt.approx.f32` of positive normal numbers; jumps to `doubtful` before anything is
    /// written if there are others, or if a result lies so near the middle between two floats that
    /// the function's quotient of doubles might be on the other side.
    pub(super) fn reciprocal_root(&mut self, op: &Op, doubtful: CodeLabel) -> Emitted {
        let Op::F32Un {
            op: FUn::RsqrtApprox,
            m,
            d,
            a,
        } = *op
        else {
            return Ok(false);
        };
        let subnormals = match m.ftz {
            true => Subnormals::Flushed,
            false => Subnormals::Kept,
        };
        self.with_subnormals(subnormals, |writer| {
            writer.asm.kxorw(k4, k4, k4)?;
            for q in QUARTERS {
                writer.root_of_quarter(a, q)?;
            }
            Ok(true)
        })?;
        let asm = &mut self.asm;
        asm.kortestb(k4, k4)?;
        asm.jnz(doubtful)?;
        asm.vinserti64x4(zmm16, zmm16, ymm17, 1)?;
        asm.vinserti64x4(zmm18, zmm18, ymm19, 1)?;
        self.put_half(d, 0, zmm16)?;
        self.put_half(d, 1, zmm18)?;
        Ok(true)
    }

    /// An estimate of fourteen bits, and five terms of the series of 1/√(1 − e), whose error is
    /// below 2^-51; k4 gets the lanes that are doubtful.
    fn root_of_quarter(&mut self, a: R32, q: i32) -> Result<(), IcedError> {
        let (unusual, near) = match self.lanes {
            Lanes::All => (k3, k7),
            Lanes::Some => (
                [k3.k1(), k3.k5(), k3.k2(), k3.k6()][q as usize],
                [k7.k1(), k7.k5(), k7.k2(), k7.k6()][q as usize],
            ),
        };
        let asm = &mut self.asm;
        let (x, y, e, p) = (zmm20, zmm21, zmm23, zmm24);
        asm.vcvtps2pd(x, quarter(a, q))?;
        asm.vfpclasspd(unusual, x, UNUSUAL)?;
        asm.vrsqrt14pd(y, x)?;
        asm.vmulpd(zmm22, x, y)?;
        asm.vmovapd(e, constant(Constant::WideOne))?;
        asm.vfnmadd231pd(e, zmm22, y)?;
        let highest = rbp + Constant::Root(2).offset() as i32;
        asm.vbroadcastsd(p, qword_ptr(highest))?;
        asm.vfmadd213pd(p, e, for_all(Constant::Root(1)))?;
        asm.vfmadd213pd(p, e, for_all(Constant::Root(0)))?;
        asm.vmulpd(e, e, y)?;
        asm.vfmadd231pd(y, e, p)?;
        asm.vpaddq(zmm22, y, for_all(Constant::Doubtful(0)))?;
        asm.vptestnmq(near, zmm22, for_all(Constant::Doubtful(1)))?;
        asm.korw(k3, k3, k7)?;
        asm.korw(k4, k4, k3)?;
        asm.vcvtpd2ps(RESULTS[q as usize], y)
    }
}
