//! Which registers an operand names, and what becomes of them.

use super::{
    Accumulate, Addr, Atom, BarKind, Base, BlockScales, BulkCopy, MatrixMove, Mbar, MbarOp, Mma, P,
    Phase, R32, R64, Slot, SlotList, Sparsity, SurfaceMove, TensorCopy, TextureRead, TmemA,
    TmemCopy, TmemMma, TmemMove, Video, Wgmma, WgmmaA, Wmma, WmmaMove,
};

/// A register of one of the three files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Register {
    W32(R32),
    W64(R64),
    Pred(P),
}

/// What an instruction does with a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Takes its value when it is issued.
    Read,
    /// Gives it a value.
    Write,
    /// Adds to it, some time until it is waited for.
    Accumulate,
}

impl Role {
    pub(crate) fn reads(self) -> bool {
        self != Role::Write
    }

    pub(crate) fn writes(self) -> bool {
        self != Role::Read
    }
}

/// Something that names registers. A plain operand plays the role its row gives it; a structure
/// knows the roles of its parts itself.
pub(crate) trait Operand {
    fn visit(&self, role: Role, pool: &[Slot], see: &mut dyn FnMut(Role, Register));
}

macro_rules! registers {
    ($($ty:ty => $file:ident),*) => {
        $(impl Operand for $ty {
            fn visit(&self, role: Role, _: &[Slot], see: &mut dyn FnMut(Role, Register)) {
                see(role, Register::$file(*self));
            }
        })*
    };
}

registers!(R32 => W32, R64 => W64, P => Pred);

impl Operand for Slot {
    fn visit(&self, role: Role, pool: &[Slot], see: &mut dyn FnMut(Role, Register)) {
        match self {
            Slot::W32(r) => r.visit(role, pool, see),
            Slot::W64(r) => r.visit(role, pool, see),
            Slot::Sink => {}
        }
    }
}

impl Operand for SlotList {
    fn visit(&self, role: Role, pool: &[Slot], see: &mut dyn FnMut(Role, Register)) {
        let slots = &pool[self.start as usize..][..usize::from(self.len)];
        slots.iter().for_each(|slot| slot.visit(role, pool, see));
    }
}

impl<T: Operand> Operand for Option<T> {
    fn visit(&self, role: Role, pool: &[Slot], see: &mut dyn FnMut(Role, Register)) {
        if let Some(operand) = self {
            operand.visit(role, pool, see);
        }
    }
}

impl<T: Operand, const N: usize> Operand for [T; N] {
    fn visit(&self, role: Role, pool: &[Slot], see: &mut dyn FnMut(Role, Register)) {
        self.iter()
            .for_each(|operand| operand.visit(role, pool, see));
    }
}

impl Operand for Addr {
    /// An address is read, whatever happens to the bytes there.
    fn visit(&self, _: Role, pool: &[Slot], see: &mut dyn FnMut(Role, Register)) {
        match &self.base {
            Base::R32(r) => r.visit(Role::Read, pool, see),
            Base::R64(r) => r.visit(Role::Read, pool, see),
            Base::Abs | Base::Global(_) => {}
        }
    }
}

/// Roles of a structure's fields, or of each variant's: `Struct { written } = { read };`.
macro_rules! operands {
    ($($ty:ty { $($w:ident),* } = { $($r:ident),* } $(accumulates $acc:ident)?;)*) => {
        $(impl Operand for $ty {
            fn visit(&self, _: Role, pool: &[Slot], see: &mut dyn FnMut(Role, Register)) {
                $(self.$w.visit(Role::Write, pool, see);)*
                $(self.$r.visit(Role::Read, pool, see);)*
                $(self.$acc.visit(Role::Accumulate, pool, see);)?
            }
        })*
    };
}

operands! {
    Atom { d } = { addr, b, c };
    Mbar {} = { op, addr };
    BulkCopy {} = { dst, src, bytes, mbar, multicast, byte_mask };
    TensorCopy {} = { shared, map, coords, extra, mbar, multicast };
    TextureRead { d } = { handle, coordinates };
    Sparsity {} = { metadata };
    Wgmma {} = { a, b_desc, scale_d, sparse } accumulates d;
    TmemCopy {} = { to, from };
    BlockScales {} = { data, byte, thread };
    Mma { d } = { a, b, c, metadata, scales };
    Wmma { d } = { a, b, c };
    Video { d } = { a, b, c };
}

macro_rules! moves {
    ($($ty:ty { $($r:ident),* };)*) => {
        $(impl Operand for $ty {
            fn visit(&self, _: Role, pool: &[Slot], see: &mut dyn FnMut(Role, Register)) {
                let role = if self.store { Role::Read } else { Role::Write };
                self.regs.visit(role, pool, see);
                $(self.$r.visit(Role::Read, pool, see);)*
            }
        })*
    };
}

moves! {
    MatrixMove { addr };
    WmmaMove { addr, stride };
    SurfaceMove { handle, coordinates };
}

impl Operand for WgmmaA {
    fn visit(&self, role: Role, pool: &[Slot], see: &mut dyn FnMut(Role, Register)) {
        match self {
            WgmmaA::Desc(r) => r.visit(role, pool, see),
            WgmmaA::Regs(list) => list.visit(role, pool, see),
        }
    }
}

impl Operand for TmemMma {
    fn visit(&self, _: Role, pool: &[Slot], see: &mut dyn FnMut(Role, Register)) {
        for at in [
            Some(self.d),
            self.scales.map(|s| s.0),
            self.scales.map(|s| s.1),
            self.metadata,
        ] {
            at.visit(Role::Read, pool, see);
        }
        match &self.a {
            TmemA::Desc(r) => r.visit(Role::Read, pool, see),
            TmemA::Tmem(at) => at.visit(Role::Read, pool, see),
        }
        self.b.visit(Role::Read, pool, see);
        self.shape.visit(Role::Read, pool, see);
        self.disabled.visit(Role::Read, pool, see);
        if let Accumulate::If { p, .. } = &self.accumulate {
            p.visit(Role::Read, pool, see);
        }
    }
}

impl Operand for TmemMove {
    fn visit(&self, _: Role, pool: &[Slot], see: &mut dyn FnMut(Role, Register)) {
        // What is loaded arrives some time until it is waited for.
        let role = if self.store {
            Role::Read
        } else {
            Role::Accumulate
        };
        self.regs.visit(role, pool, see);
        self.at.visit(Role::Read, pool, see);
    }
}

impl Operand for BarKind {
    fn visit(&self, _: Role, pool: &[Slot], see: &mut dyn FnMut(Role, Register)) {
        match self {
            BarKind::Sync | BarKind::Arrive => {}
            BarKind::RedPopc { d, p, .. } => {
                d.visit(Role::Write, pool, see);
                p.visit(Role::Read, pool, see);
            }
            BarKind::RedPred { d, p, .. } => {
                d.visit(Role::Write, pool, see);
                p.visit(Role::Read, pool, see);
            }
        }
    }
}

impl Operand for Phase {
    fn visit(&self, role: Role, pool: &[Slot], see: &mut dyn FnMut(Role, Register)) {
        match self {
            Phase::State(r) => r.visit(role, pool, see),
            Phase::Parity(r) => r.visit(role, pool, see),
        }
    }
}

impl Operand for MbarOp {
    fn visit(&self, _: Role, pool: &[Slot], see: &mut dyn FnMut(Role, Register)) {
        match self {
            MbarOp::Init { count } => count.visit(Role::Read, pool, see),
            MbarOp::Inval => {}
            MbarOp::ExpectTx { bytes } | MbarOp::CompleteTx { bytes } => {
                bytes.visit(Role::Read, pool, see);
            }
            MbarOp::Arrive {
                state,
                expect_tx,
                count,
                ..
            } => {
                state.visit(Role::Write, pool, see);
                expect_tx.visit(Role::Read, pool, see);
                count.visit(Role::Read, pool, see);
            }
            MbarOp::TestWait { d, phase } | MbarOp::TryWait { d, phase } => {
                d.visit(Role::Write, pool, see);
                phase.visit(Role::Read, pool, see);
            }
            MbarOp::PendingCount { d, state } => {
                d.visit(Role::Write, pool, see);
                state.visit(Role::Read, pool, see);
            }
        }
    }
}
