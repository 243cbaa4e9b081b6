//! Moves and conversions.

use std::mem::offset_of;

use iced_x86::code_asm::*;

use super::constants::Constant;
use super::float::rounded;
use super::lanes::{Emitted, HALVES, QUARTERS, Writer, constant, half, quarter, wide};
use super::{Arguments, Subnormals};
use crate::op::{Addr, Base, CvtMods, Num, Op, Order, Program, R32, R64, Round, Slot, Space, pool};

/// A load of parameters, which are the same for all warps of a launch.
pub(super) struct Parameters<'p> {
    first: i32,
    slots: &'p [Slot],
}

impl<'p> Parameters<'p> {
    /// Those of an instruction, if it is a usual load of some that there are.
    pub(super) fn of(program: &'p Program, op: &Op) -> Option<Self> {
        let Op::Ld {
            space: Space::Param,
            order: Order::Weak,
            width,
            d,
            addr: Addr {
                base: Base::Abs,
                offset,
            },
            ..
        } = *op
        else {
            return None;
        };
        let slots = pool(program, d);
        let fits = |slot: &Slot| matches!((slot, width), (Slot::W32(_), 4) | (Slot::W64(_), 8));
        let bytes = i64::from(width) * slots.len() as i64;
        let usual = matches!(bytes, 4 | 8 | 16) && offset % bytes == 0;
        let inside = offset >= 0 && offset + bytes <= program.param_bytes.into();
        let first = i32::try_from(offset).ok()?;
        (usual && inside && slots.iter().all(fits)).then_some(Self { first, slots })
    }
}

impl Writer<'_> {
    pub(super) fn parameters(&mut self, op: &Op) -> Emitted {
        let Some(Parameters { mut first, slots }) = Parameters::of(self.program, op) else {
            return Ok(false);
        };
        self.asm.mov(rcx, qword_ptr(rsp))?;
        let params = offset_of!(Arguments, params) as i32;
        self.asm.mov(rcx, qword_ptr(rcx + params))?;
        for slot in slots {
            match *slot {
                Slot::W32(d) => {
                    self.asm.vpbroadcastd(zmm16, dword_ptr(rcx + first))?;
                    for h in HALVES {
                        self.put_half(d, h, zmm16)?;
                    }
                    first += 4;
                }
                Slot::W64(d) => {
                    self.asm.vpbroadcastq(zmm16, qword_ptr(rcx + first))?;
                    for q in QUARTERS {
                        self.put_wide(d, q, zmm16)?;
                    }
                    first += 8;
                }
                Slot::Sink => {}
            }
        }
        Ok(true)
    }

    pub(super) fn moved(&mut self, op: &Op) -> Emitted {
        match *op {
            Op::Mov32 { d, a } => self.each_half(d, a, |_| Ok(())),
            Op::Mov64 { d, a }
            | Op::Cvta {
                space: Space::Global | Space::Const,
                d,
                a,
                ..
            } => {
                for q in QUARTERS {
                    self.asm.vmovdqa64(zmm16, wide(a, q))?;
                    self.put_wide(d, q, zmm16)?;
                }
                Ok(true)
            }
            Op::Pack64 { .. } | Op::Unpack64 { .. } => self.doubles_packed(op),
            Op::Pack32 { .. } | Op::Unpack32 { .. } => self.halves_packed(op),
            Op::Cvt { from, to, m, d, a } => self.conversion(from, to, m, d, a),
            _ => Ok(false),
        }
    }

    /// A 64-bit register from two, or two from one.
    fn doubles_packed(&mut self, op: &Op) -> Emitted {
        match *op {
            Op::Pack64 { d, lo, hi } => {
                for q in QUARTERS {
                    let asm = &mut self.asm;
                    asm.vpmovzxdq(zmm16, quarter(lo, q))?;
                    asm.vpmovzxdq(zmm17, quarter(hi, q))?;
                    asm.vpsllq(zmm17, zmm17, 32)?;
                    asm.vporq(zmm16, zmm16, zmm17)?;
                    self.put_wide(d, q, zmm16)?;
                }
                Ok(true)
            }
            Op::Unpack64 { lo, hi, a } => {
                for q in QUARTERS {
                    self.asm.vmovdqa64(zmm16, wide(a, q))?;
                    self.asm.vpmovqd(ymm17, zmm16)?;
                    self.asm.vpsrlq(zmm16, zmm16, 32)?;
                    self.asm.vpmovqd(ymm16, zmm16)?;
                    for (slot, v) in [(lo, ymm17), (hi, ymm16)] {
                        if let Slot::W32(d) = slot {
                            self.put_quarter(d, q, v)?;
                        }
                    }
                }
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// A register from two 16-bit ones, or two from one.
    fn halves_packed(&mut self, op: &Op) -> Emitted {
        match *op {
            Op::Pack32 { d, lo, hi } => {
                for h in HALVES {
                    let asm = &mut self.asm;
                    asm.vmovdqa32(zmm16, half(lo, h))?;
                    asm.vpandd(zmm16, zmm16, constant(Constant::LowHalf))?;
                    asm.vpslld(zmm17, half(hi, h), 16)?;
                    asm.vpord(zmm16, zmm16, zmm17)?;
                    self.put_half(d, h, zmm16)?;
                }
                Ok(true)
            }
            Op::Unpack32 { lo, hi, a } => {
                for h in HALVES {
                    self.asm.vmovdqa32(zmm17, half(a, h))?;
                    let low_half = constant(Constant::LowHalf);
                    self.asm.vpandd(zmm16, zmm17, low_half)?;
                    self.asm.vpsrld(zmm17, zmm17, 16)?;
                    for (slot, v) in [(lo, zmm16), (hi, zmm17)] {
                        if let Slot::W32(d) = slot {
                            self.put_half(d, h, v)?;
                        }
                    }
                }
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// A register from another, changed in zmm16 on the way.
    fn each_half(
        &mut self,
        d: R32,
        a: R32,
        change: impl Fn(&mut CodeAssembler) -> Result<(), IcedError>,
    ) -> Emitted {
        for h in HALVES {
            self.load(zmm16, a, h)?;
            change(&mut self.asm)?;
            self.put_half(d, h, zmm16)?;
        }
        Ok(true)
    }

    fn conversion(&mut self, from: Num, to: Num, m: CvtMods, d: Slot, a: Slot) -> Emitted {
        let plain = !(m.sat || m.ftz || m.relu || m.satfinite);
        match (d, a) {
            (Slot::W64(d), Slot::W32(a)) if plain => self.widened(from, to, d, a),
            (Slot::W32(d), Slot::W64(a)) if plain => self.narrowed(from, to, m, d, a),
            (Slot::W32(d), Slot::W32(a)) if plain && from != Num::F32 => {
                self.converted(from, to, m, d, a)
            }
            (Slot::W32(d), Slot::W32(a)) if from == Num::F32 => self.f32_to(to, m, d, a),
            _ => Ok(false),
        }
    }

    /// f32 to integers of 32 bits, whole numbers, numbers between 0 and 1, and halves.
    fn f32_to(&mut self, to: Num, m: CvtMods, d: R32, a: R32) -> Emitted {
        if m.relu || m.satfinite || m.round == Round::NearAway {
            return Ok(false);
        }
        let subnormals = match m.ftz {
            true => Subnormals::Flushed,
            false => Subnormals::Kept,
        };
        let half_result = to == Num::F16 && m == CvtMods::default();
        let known = match to {
            Num::S32 | Num::U32 => m.integer,
            Num::F32 => m.integer != m.sat,
            _ => half_result,
        };
        if !known {
            return Ok(false);
        }
        self.with_subnormals(subnormals, |writer| {
            for h in HALVES {
                writer.asm.vmovaps(zmm16, half(a, h))?;
                match to {
                    Num::S32 => writer.cut_to_s32(m.round)?,
                    Num::U32 => {
                        // Negative numbers and NaN are 0, and large ones all ones.
                        let asm = &mut writer.asm;
                        asm.vpxord(zmm17, zmm17, zmm17)?;
                        asm.vmaxps(zmm16, zmm16, zmm17)?;
                        asm.vcvtps2udq(zmm16, rounded(zmm16, m.round))?;
                    }
                    Num::F32 if m.sat => {
                        if m.ftz {
                            writer.flush(zmm16)?;
                        }
                        writer.saturate()?;
                    }
                    Num::F32 => {
                        let whole = whole(m.round);
                        writer.asm.vrndscaleps(zmm16, zmm16, whole)?;
                        writer.put_canonical(d, h)?;
                        continue;
                    }
                    _ => {
                        let asm = &mut writer.asm;
                        asm.vcmpps(k3, zmm16, zmm16, 3)?;
                        asm.vcvtps2ph(ymm17, zmm16, 0)?;
                        asm.vpmovzxwd(zmm16, ymm17)?;
                        asm.vmovdqa32(zmm16.k3(), constant(Constant::NanHalf))?;
                    }
                }
                writer.put_half(d, h, zmm16)?;
            }
            Ok(true)
        })
    }

    /// zmm16 as signed integers: NaN is 0, and what is too large the largest.
    fn cut_to_s32(&mut self, round: Round) -> Result<(), IcedError> {
        const AT_LEAST: u32 = 0x1d;
        let asm = &mut self.asm;
        asm.vcmpps(k3, zmm16, constant(Constant::TwoTo31), AT_LEAST)?;
        asm.vcmpps(k4, zmm16, zmm16, 3)?;
        asm.vcvtps2dq(zmm16, rounded(zmm16, round))?;
        asm.vmovdqa32(zmm16.k3(), constant(Constant::MostSigned))?;
        asm.vpxord(zmm16.k4(), zmm16, zmm16)
    }

    /// f32 to f64 and back, if there is no NaN; jumps to `nan` before anything is written if
    /// there is.
    pub(super) fn between_floats(&mut self, op: &Op, nan: CodeLabel) -> Emitted {
        match *op {
            Op::Cvt {
                from: Num::F32,
                to: Num::F64,
                m,
                d: Slot::W64(d),
                a: Slot::W32(a),
            } if m == CvtMods::default() => {
                let results = [zmm16, zmm17, zmm18, zmm19];
                self.with_subnormals(Subnormals::Kept, |writer| {
                    for q in QUARTERS {
                        writer.asm.vcvtps2pd(results[q as usize], quarter(a, q))?;
                    }
                    Ok(true)
                })?;
                self.leave_nan(nan)?;
                for q in QUARTERS {
                    self.put_wide(d, q, results[q as usize])?;
                }
                Ok(true)
            }
            Op::Cvt {
                from: Num::F64,
                to: Num::F32,
                m,
                d: Slot::W32(d),
                a: Slot::W64(a),
            } if !(m.integer || m.ftz || m.sat || m.relu || m.satfinite)
                && m.round != Round::NearAway =>
            {
                let sources = [zmm16, zmm17, zmm18, zmm19];
                for q in QUARTERS {
                    self.asm.vmovdqa64(sources[q as usize], wide(a, q))?;
                }
                self.leave_nan(nan)?;
                self.with_subnormals(Subnormals::Kept, |writer| {
                    for q in QUARTERS {
                        let source = rounded(sources[q as usize], m.round);
                        writer.asm.vcvtpd2ps(ymm20, source)?;
                        writer.put_quarter(d, q, ymm20)?;
                    }
                    Ok(true)
                })
            }
            _ => Ok(false),
        }
    }

    /// Jumps if there is a NaN in zmm16 to zmm19.
    pub(super) fn leave_nan(&mut self, nan: CodeLabel) -> Result<(), IcedError> {
        let asm = &mut self.asm;
        asm.vcmppd(k3, zmm16, zmm17, 3)?;
        asm.vcmppd(k4, zmm18, zmm19, 3)?;
        asm.kortestb(k3, k4)?;
        asm.jnz(nan)
    }

    fn widened(&mut self, from: Num, to: Num, d: R64, a: R32) -> Emitted {
        for q in QUARTERS {
            let asm = &mut self.asm;
            match (from, to) {
                (Num::U32 | Num::B32, Num::U64 | Num::S64 | Num::B64) => {
                    asm.vpmovzxdq(zmm16, quarter(a, q))?;
                }
                (Num::S32, Num::U64 | Num::S64 | Num::B64) => {
                    asm.vpmovsxdq(zmm16, quarter(a, q))?;
                }
                (Num::S32, Num::F64) => asm.vcvtdq2pd(zmm16, quarter(a, q))?,
                (Num::U32, Num::F64) => asm.vcvtudq2pd(zmm16, quarter(a, q))?,
                _ => return Ok(false),
            }
            self.put_wide(d, q, zmm16)?;
        }
        Ok(true)
    }

    fn narrowed(&mut self, from: Num, to: Num, m: CvtMods, d: R32, a: R64) -> Emitted {
        let double = from == Num::F64 && to == Num::S32 && m.integer;
        let wide_integer = matches!(from, Num::U64 | Num::S64 | Num::B64);
        let narrow_integer = matches!(to, Num::U32 | Num::S32 | Num::B32);
        let known = double || wide_integer && narrow_integer;
        if !known || m.round == Round::NearAway {
            return Ok(false);
        }
        for q in QUARTERS {
            let asm = &mut self.asm;
            asm.vmovdqa64(zmm16, wide(a, q))?;
            if double {
                // Rounded first, since that may make it too large; NaN is the least integer.
                const AT_LEAST: u32 = 0x1d;
                asm.vrndscalepd(zmm16, zmm16, whole(m.round))?;
                asm.vcmppd(k3, zmm16, constant(Constant::WideTwoTo31), AT_LEAST)?;
                asm.vcvttpd2dq(ymm16, zmm16)?;
                let most = ymmword_ptr(rbp + Constant::MostSigned.offset() as i32);
                asm.vmovdqa32(ymm16.k3(), most)?;
            } else {
                asm.vpmovqd(ymm16, zmm16)?;
            }
            self.put_quarter(d, q, ymm16)?;
        }
        Ok(true)
    }

    fn converted(&mut self, from: Num, to: Num, m: CvtMods, d: R32, a: R32) -> Emitted {
        use Num::{Bf16, F32, S16, S32, U8, U16, U32};
        let near = m.round == Round::Near && !m.integer;
        match (from, to) {
            (U32 | S32, U16 | S16) | (U16, U32 | S32 | U16) => self.each_half(d, a, |asm| {
                asm.vpandd(zmm16, zmm16, constant(Constant::LowHalf))
            }),
            (U32 | S32 | U16 | S16, U8) | (U8, U32 | S32 | U16 | S16) => {
                self.each_half(d, a, |asm| {
                    asm.vpandd(zmm16, zmm16, constant(Constant::LowByte))
                })
            }
            (S16, S32 | U32) => self.each_half(d, a, |asm| {
                asm.vpslld(zmm16, zmm16, 16)?;
                asm.vpsrad(zmm16, zmm16, 16)
            }),
            (U32 | S32, U32 | S32) => self.each_half(d, a, |_| Ok(())),
            (Bf16, F32) => self.each_half(d, a, |asm| asm.vpslld(zmm16, zmm16, 16)),
            (S32, F32) if near => self.each_half(d, a, |asm| asm.vcvtdq2ps(zmm16, zmm16)),
            (U32, F32) if near => self.each_half(d, a, |asm| asm.vcvtudq2ps(zmm16, zmm16)),
            (Num::F16, F32) => self.with_subnormals(Subnormals::Kept, |writer| {
                for h in HALVES {
                    writer.asm.vmovdqa32(zmm16, half(a, h))?;
                    writer.asm.vpmovdw(ymm17, zmm16)?;
                    writer.asm.vcvtph2ps(zmm16, ymm17)?;
                    writer.put_canonical(d, h)?;
                }
                Ok(true)
            }),
            _ => Ok(false),
        }
    }
}

/// How `vrndscale` rounds to whole numbers.
fn whole(round: Round) -> u32 {
    match round {
        Round::Near | Round::NearAway => 0,
        Round::Down => 1,
        Round::Up => 2,
        Round::Zero => 3,
    }
}
