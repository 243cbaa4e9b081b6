//! What an instruction of a cubin asks of an SM: the fields of its 128 bits that time depends on.
//!
//! The layout is that of compute capability 7.0 and later. Nine bits name the operation; the
//! compiler's own schedule stands at the top: cycles to the next instruction, the scoreboards it
//! waits for, and those it releases when its result is there or its operands have been read.

/// One instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sass {
    pub(crate) kind: Kind,
    /// Cycles until the warp may issue its next one.
    pub(crate) stall: u8,
    /// Scoreboards that must be clear first, by bit.
    pub(crate) waits: u8,
    /// Scoreboard that is busy until the result is there.
    pub(crate) result: Option<u8>,
    /// Scoreboard that is busy until the operands have been read.
    pub(crate) operands: Option<u8>,
    /// Whether a predicate guards it.
    pub(crate) guarded: bool,
    /// For branches: where to, in instructions relative to the next.
    pub(crate) offset: i32,
    /// Whether all lanes branch together, by a uniform predicate.
    pub(crate) uniform: bool,
    /// Registers of the even and of the odd bank that it reads.
    pub(crate) reads: [u8; 2],
    /// The line of constants it reads, kernel parameters among them.
    pub(crate) constants: Option<u32>,
    /// For loads from global memory: whether the SM's own cache may answer, and keeps the answer.
    pub(crate) cached: bool,
    /// For the same: whether L2 is told to get whole blocks of 256 bytes.
    pub(crate) by_blocks: bool,
    /// For atomics.
    pub(crate) update: Update,
}

/// How the lanes of an atomic that have the same word take turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Update {
    /// In memory.
    InMemory,
    /// Not at all: one acts for all of them, elected by the assembler's own code before it.
    Together,
    /// In a loop that the assembler has made, until each has had its turn.
    InLoop,
}

/// What executes an instruction, or what it stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Integer logic, adds, shifts, permutes, selections, comparisons.
    Alu,
    /// Integer multiply-add and what the compiler makes of it: moves, shifts.
    Imad,
    /// The upper half of an integer product.
    ImadHigh,
    /// Single precision.
    Fma,
    /// The same in pairs.
    FmaPair,
    /// Half precision, in pairs.
    Half,
    /// The same on the other half of the multipliers: the assembler writes the two by turns.
    HalfLite,
    /// Double precision.
    Double,
    /// Transcendental functions.
    Mufu,
    /// Conversions between packed formats.
    Pack,
    /// Other conversions, and bit counting.
    Convert,
    /// Exchange between lanes.
    Shuffle,
    /// The uniform data path.
    Uniform,
    /// From vector to uniform registers.
    ToUniform,
    /// Constants by load.
    Constant,
    /// Special registers.
    Special,
    /// A clock.
    Clock,
    Branch,
    Call,
    Return,
    Exit,
    /// Takes an issue slot and nothing else.
    Slot,
    /// Threads at shared memory.
    Shared,
    /// Threads at global memory, or at any by generic addresses.
    Global,
    /// Threads at their own stack.
    Local,
    /// `cp.async`
    LaneCopy,
    /// A wait for groups of copies.
    GroupWait,
    /// The end of a group of copies.
    GroupMark,
    /// Bulk copies.
    Bulk,
    /// Tensor copies, which read a map first.
    Tensor,
    /// `prefetch.tensormap`
    MapFetch,
    /// Barriers of a CTA.
    Barrier,
    /// Mbarriers: init, arrive.
    Arrive,
    /// Mbarriers: the test of a phase.
    Phase,
    ClusterArrive,
    ClusterWait,
    Wgmma,
    WgmmaFence,
    WgmmaWait,
    /// `mma.sync`
    Mma,
    Fence,
    AwaitLaunch,
    AllowLaunch,
    /// `setmaxnreg`
    Registers,
    /// What takes and frees columns of tensor memory.
    TmemColumns,
    /// `tcgen05.mma`
    TmemMma,
    /// `tcgen05.cp` and `shift`
    TmemCopy,
    /// `tcgen05.commit`
    TmemCommit,
    /// `tcgen05.ld` and `st`
    TmemMove,
}

impl Sass {
    pub(crate) const BYTES: usize = 16;

    fn decode(bytes: &[u8; Self::BYTES]) -> Self {
        let word = u128::from_le_bytes(*bytes);
        let field = |first: u32, bits: u32| (word >> first) as u64 & ((1 << bits) - 1);
        let scoreboard = |first| Some(field(first, 3) as u8).filter(|&board| board < 6);
        let operation = field(0, 12) as u16;
        let uniform = operation == UNIFORM_BRANCH;
        let kind = match Kind::of(operation, field(72, 16) as u16) {
            // BRA.DIV: only for warps whose lanes have parted.
            Kind::Branch if field(91, 1) == 1 && field(32, 2) == 2 => Kind::Slot,
            kind => kind,
        };
        // A quarter of an instruction is the unit: 8 bits here, the rest there.
        let far = (word >> 34) as u64 as i64;
        let quarters = (far << 16 >> 16) * 256 + field(16, 8) as i64;
        Self {
            kind,
            stall: field(105, 4) as u8,
            waits: field(116, 6) as u8,
            result: scoreboard(110),
            operands: scoreboard(113),
            // A uniform branch has its condition among its operands.
            guarded: field(12, 4) != 7 || (uniform && field(24, 3) != 7),
            uniform,
            // Weak, constant or for its own CTA, and without `.NA`.
            cached: matches!(field(77, 4), 0 | 4 | 5) && field(86, 1) == 0,
            by_blocks: field(68, 2) == 3,
            update: match operation {
                COUNTED => Update::Together,
                _ => Update::InMemory,
            },
            offset: match kind {
                Kind::Branch => (quarters / 4) as i32,
                _ => 0,
            },
            constants: match kind {
                // LDC, ULDC; an index is not known here.
                Kind::Constant => true,
                // An operand that is a constant.
                Kind::Alu
                | Kind::Imad
                | Kind::ImadHigh
                | Kind::Fma
                | Kind::Half
                | Kind::HalfLite => {
                    matches!(operation >> 9, 3 | 5)
                }
                _ => false,
            }
            .then(|| ((field(54, 5) << 16) | (field(40, 14) * 4)) as u32 / CONSTANT_LINE),
            reads: [0; 2],
        }
    }

    /// Instructions that stand one behind another.
    pub(crate) fn decode_all(words: &[[u8; Self::BYTES]]) -> Vec<Self> {
        let mut before = None;
        let decode = |bytes| {
            let registers = Registers::decode(bytes);
            let reads = registers.read_behind(before.as_ref());
            before = Some(registers);
            Self {
                reads,
                ..Self::decode(bytes)
            }
        };
        words.iter().map(decode).collect()
    }

    /// One that asks for nothing but its turn.
    #[cfg(test)]
    pub(crate) fn plain(kind: Kind) -> Self {
        Self {
            kind,
            stall: 1,
            waits: 0,
            result: None,
            operands: None,
            guarded: false,
            offset: 0,
            uniform: false,
            reads: [0; 2],
            constants: None,
            cached: true,
            by_blocks: false,
            update: Update::InMemory,
        }
    }
}

/// The registers that an arithmetic instruction names.
#[derive(Debug)]
struct Registers {
    /// By place.
    sources: [Option<u8>; 3],
    /// Which of them it keeps for the next instruction, by bit.
    kept: u8,
}

impl Registers {
    /// The form says which of the second and the third may be one; some operations have no first, or
    /// no third. The last of all reads as zero, from nowhere.
    fn decode(bytes: &[u8; Sass::BYTES]) -> Self {
        let word = u128::from_le_bytes(*bytes);
        let field = |first: u32, bits: u32| (word >> first) as u64 & ((1 << bits) - 1);
        let operation = field(0, 12);
        let [a, b, c] = [24, 32, 64].map(|at| Some(field(at, 8) as u8).filter(|&r| r != 255));
        let [a, b, c] = match operation >> 9 {
            1 => [a, b, c],
            // What stands in the second's place is the third, and a number or a constant the other.
            2 | 3 | 7 => [a, c, None],
            4..=6 => [a, None, c],
            _ => [None; 3],
        };
        let sources = match operation & 0x1ff {
            // MOV, IABS, I2FP
            0x002 | 0x013 | 0x045 => [None, b, None],
            // SEL, FSEL, FMNMX, FSET, FSETP, ISETP, IMNMX, FMUL, FADD, HADD2, HMUL2, VIADD, F2FP
            0x007..=0x00c | 0x017 | 0x020 | 0x021 | 0x030 | 0x032 | 0x036 | 0x03e => [a, b, None],
            _ => [a, b, c],
        };
        Self {
            sources,
            kept: field(122, 3) as u8,
        }
    }

    /// How many are read of the even and of the odd bank: each once, and none that the instruction
    /// before has kept.
    fn read_behind(&self, before: Option<&Self>) -> [u8; 2] {
        let mut banks = [0; 2];
        for (place, register) in self.sources.iter().enumerate() {
            let Some(register) = *register else { continue };
            let twice = self.sources[..place].contains(&Some(register));
            if !twice && !self.is_kept(place, before) {
                banks[usize::from(register % 2)] += 1;
            }
        }
        banks
    }

    /// Whether the instruction before has kept what stands in a place here.
    fn is_kept(&self, place: usize, before: Option<&Self>) -> bool {
        before.is_some_and(|before| {
            before.kept >> place & 1 == 1 && before.sources[place] == self.sources[place]
        })
    }
}

/// Bytes of a line of constants.
const CONSTANT_LINE: u32 = 64;

/// ATOMS.POPC.INC: shared memory counts the lanes of a word.
const COUNTED: u16 = 0xf8c;

/// BRA.U
const UNIFORM_BRANCH: u16 = 0x547;

/// Whether an instruction asks which lanes are here, or which of them is the first: VOTE or VOTEU,
/// FLO or UFLO. An assembler that elects a lane does both.
pub(crate) fn elects(bytes: &[u8; Sass::BYTES]) -> (bool, bool) {
    let operation = u16::from_le_bytes([bytes[0], bytes[1]]) & 0x1ff;
    (
        matches!(operation, 0x006 | 0x086),
        matches!(operation, 0x100 | 0x0bd),
    )
}

impl Kind {
    /// Whether it does what no compiler does twice or leaves out.
    pub(crate) fn has_effect(self) -> bool {
        matches!(
            self,
            Kind::Shared
                | Kind::Global
                | Kind::LaneCopy
                | Kind::GroupWait
                | Kind::GroupMark
                | Kind::Bulk
                | Kind::Tensor
                | Kind::Barrier
                | Kind::Arrive
                | Kind::Phase
                | Kind::ClusterArrive
                | Kind::ClusterWait
                | Kind::WgmmaFence
                | Kind::WgmmaWait
                | Kind::Mma
                | Kind::TmemColumns
                | Kind::TmemMma
                | Kind::TmemCopy
                | Kind::TmemCommit
                | Kind::TmemMove
        )
    }

    /// By the operation's twelve bits, of which the upper three are mostly its form, and the
    /// modifiers that tell a few apart. What is not known takes an issue slot.
    fn of(operation: u16, modifiers: u16) -> Self {
        match operation {
            0x5a7 => return Kind::Phase,
            0x9c7 => return Kind::ClusterArrive,
            0xdc7 => return Kind::ClusterWait,
            _ => {}
        }
        match operation & 0x1ff {
            // MOV, P2R, R2P, VOTE, SEL, FSEL, FMNMX, FSET, FSETP, ISETP, IADD3, LEA, LOP3, IABS, PRMT,
            // IMNMX, SHF, PLOP3, VIADD, I2FP, VIMNMX, FMNMX3.
            0x002..=0x004
            | 0x006..=0x00c
            | 0x010..=0x013
            | 0x016
            | 0x017
            | 0x019
            | 0x01c
            | 0x036
            | 0x045
            | 0x048
            | 0x076 => Kind::Alu,
            0x005 if modifiers & 0xff == 0xff => Kind::Alu, // CS2R of zero
            0x005 => Kind::Clock,
            0x020 | 0x021 | 0x023 => Kind::Fma,
            0x049 => Kind::FmaPair, // FFMA2
            0x024..=0x026 => Kind::Imad,
            0x027 => Kind::ImadHigh,
            0x028..=0x02b => Kind::Double,
            0x02d => Kind::AllowLaunch,
            0x02e => Kind::AwaitLaunch,
            0x030..=0x034 | 0x040 => Kind::Half,
            0x035 => Kind::HalfLite, // HFMA2.MMA
            0x037..=0x039 | 0x03c | 0x03d | 0x03f => Kind::Mma,
            0x03e => Kind::Pack,
            0x0ca => Kind::ToUniform,
            0x0b9 | 0x0bb | 0x182 | 0x1ac => Kind::Constant,
            0x080..=0x0ff => Kind::Uniform,
            0x104..=0x107 | 0x109 | 0x110..=0x113 => Kind::Convert,
            0x108 => Kind::Mufu,
            0x119 | 0x1c3 => Kind::Special,
            0x11a => Kind::GroupWait,
            0x11d => Kind::Barrier,
            0x143 | 0x144 => Kind::Call,
            0x141 | 0x145 | 0x148 => Kind::Slot, // BSYNC, BSSY, WARPSYNC
            0x147 => Kind::Branch,
            0x14d => Kind::Exit,
            0x150 => Kind::Return,
            0x17e | 0x17f | 0x180 | 0x181 | 0x185 | 0x186 | 0x18a | 0x18b | 0x18e | 0x1a3
            | 0x1a6 | 0x1a8 | 0x1a9 => Kind::Global,
            0x183 | 0x187 => Kind::Local,
            0x03b | 0x044 | 0x184 | 0x188 | 0x18c | 0x18d | 0x1bd => Kind::Shared,
            0x189 | 0x1a2 | 0x1c4 => Kind::Shuffle,
            0x192 | 0x1ab | 0x1c6 => Kind::Fence,
            0x1a7 | 0x1b2 | 0x1ca => Kind::Arrive, // SYNCS, UGETNEXTWORKID
            0x1ae => Kind::LaneCopy,
            0x1af | 0x1b7 => Kind::GroupMark,
            0x1b4..=0x1b6 | 0x1b8 => Kind::Tensor, // UTMALDG, UTMASTG, UTMAREDG, UTMAPF
            0x1b9 => Kind::MapFetch,               // UTMACCTL
            0x1ba..=0x1bc => Kind::Bulk,
            0x1c5 if modifiers & 0x100 != 0 => Kind::WgmmaWait,
            0x1c5 => Kind::WgmmaFence,
            0x1c8 => Kind::Registers,
            0x1e3 => Kind::TmemColumns,      // UTCATOMSWS
            0x1e6 | 0x1e7 => Kind::TmemCopy, // UTCSHIFT, UTCCP
            0x1e9 => Kind::TmemCommit,       // UTCBAR
            0x1ea => Kind::TmemMma,          // UTCHMMA, UTCQMMA, UTCIMMA, UTCOMMA
            0x1ed | 0x1ee => Kind::TmemMove, // STTM, LDTM
            0x1f0..=0x1f7 => Kind::Wgmma,
            _ => Kind::Slot,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sass(low: u64, high: u64) -> Sass {
        let word = u128::from(high) << 64 | u128::from(low);
        Sass::decode(&word.to_le_bytes())
    }

    #[test]
    fn branches_know_where_to() {
        // @!P0 BRA, 64 bytes back from the next; @P0 BRA, 14,240 bytes on.
        let back = sass(0xffff_fffc_00f0_8947, 0x000f_ea00_0383_ffff);
        let on = sass(0x0000_0034_00e8_0947, 0x000f_ea00_0380_0000);
        assert_eq!(
            (back.kind, back.offset, back.guarded),
            (Kind::Branch, -4, true)
        );
        assert_eq!((on.kind, on.offset, on.guarded), (Kind::Branch, 890, true));
    }

    #[test]
    fn a_warp_that_is_together_takes_no_way_round() {
        // BRA.DIV and BRA.CONV.
        let apart = sass(0x0000_0032_06f8_7947, 0x026f_ec00_0b80_0000);
        let together = sass(0x0000_0003_061c_7947, 0x000f_ea00_0b80_0000);
        assert_eq!(apart.kind, Kind::Slot);
        assert_eq!((together.kind, together.guarded), (Kind::Branch, false));
    }

    #[test]
    fn the_schedule_is_read_from_the_top_bits() {
        // LDS.128 with a result on scoreboard 1, no wait; HMUL2 that waits for it.
        let load = sass(0x0000_0000_1204_7984, 0x000e_6800_0000_0c00);
        assert_eq!(load.kind, Kind::Shared);
        assert_eq!((load.stall, load.waits), (4, 0));
        assert_eq!((load.result, load.operands), (Some(1), None));
        let wait = sass(0x2000_005b_0d78_7232, 0x002f_e400_0000_0800);
        assert_eq!((wait.kind, wait.waits, wait.stall), (Kind::Half, 0b10, 2));
        assert_eq!((wait.result, wait.operands), (None, None));
    }

    #[test]
    fn registers_are_read_from_two_banks_unless_they_are_kept() {
        // HMUL2 R120, R13, R91.H1_H1; LOP3 R4, R4, 0x8e008e00, RZ; HMUL2 R5, R12, R21.reuse.H0_H0, and
        // the same again.
        let words = [
            (0x2000_005b_0d78_7232, 0x002f_e400_0000_0800),
            (0x8e00_8e00_0404_7812, 0x000f_c800_078e_c0ff),
            (0x2000_0015_0c05_7232, 0x080f_e200_0000_0800),
            (0x2000_0015_0c05_7232, 0x080f_e200_0000_0800),
        ];
        let words = words.map(|(low, high): (u64, u64)| {
            (u128::from(high) << 64 | u128::from(low)).to_le_bytes()
        });
        let reads: Vec<[u8; 2]> = Sass::decode_all(&words).iter().map(|s| s.reads).collect();
        assert_eq!(reads, [[0, 2], [1, 0], [1, 1], [1, 0]]);
    }

    #[test]
    fn the_line_of_a_parameter_is_known() {
        // LDC R1, c[0x0][0x28]; ULDC UR22, c[0x0][0x30c]; LDC R5, c[0x0][0x26c].
        let line = |low: u64| sass(low, 0x000f_e200_0000_0800).constants;
        assert_eq!(line(0x0000_0a00_ff01_7b82), Some(0));
        assert_eq!(line(0x0000_c300_0016_7ab9), Some(12));
        assert_eq!(line(0x0000_9b00_ff05_7b82), Some(9));
        // LDS.128 has none.
        assert_eq!(
            sass(0x0000_0000_1204_7984, 0x000e_6800_0000_0c00).constants,
            None
        );
    }

    #[test]
    fn loads_that_pass_the_cache_by_are_known() {
        // LDG.E.128, then .CONSTANT, .STRONG.SM (ca), .STRONG.GPU (cg), .STRONG.SYS,
        // .NA.LTC256B.128.CONSTANT.
        let cached = |high: u64| sass(0x0000_0006_0808_7981, high).cached;
        for kept in [0x0000_0c1e_1d00, 0x0000_0c1e_9d00, 0x0000_0c1e_bd00] {
            assert!(cached(kept), "{kept:x}");
        }
        for passed in [0x0000_0c1e_fd00, 0x0000_0c1f_5900, 0x0000_0c5e_9d30] {
            assert!(!cached(passed), "{passed:x}");
        }
        let by_blocks = |high: u64| sass(0x0000_0006_0808_7981, high).by_blocks;
        assert_eq!(
            [0x0000_0c5e_9d30, 0x0000_0c1e_9d20].map(by_blocks),
            [true, false]
        );
    }

    #[test]
    fn tensor_memory_and_uniform_branches_are_known() {
        // As the assembler makes them for sm_100a.
        let kind = |low: u64| sass(low, 0).kind;
        assert_eq!(kind(0x0000_0004_0004_75e3), Kind::TmemColumns);
        assert_eq!(kind(0x0001_0028_0d00_79e7), Kind::TmemCopy);
        assert_eq!(kind(0x8020_080e_1600_75ea), Kind::TmemMma);
        assert_eq!(kind(0x0000_00ff_0400_73e9), Kind::TmemCommit);
        assert_eq!(kind(0x0000_0004_0014_79ee), Kind::TmemMove);
        assert_eq!(kind(0x0000_0000_0000_797f), Kind::Global, "STG of 256 bits");
        assert_eq!(kind(0x0000_0000_0000_77ac), Kind::Constant, "LDCU");
        // BRA.U UP0, 96 bytes on; BRA.U !UP0, back.
        let on = sass(0x0000_0001_0018_7547, 0);
        let back = sass(0xffff_fffd_08e8_7547, 0x000f_ea00_0383_ffff);
        assert_eq!((on.kind, on.offset, on.guarded), (Kind::Branch, 6, true));
        assert_eq!((back.offset, back.guarded), (-6, true));
    }

    #[test]
    fn operations_are_known_in_all_their_forms() {
        let kind = |operation: u64, high: u64| sass(0x7000 | operation, high).kind;
        for form in [0x212, 0x412, 0x812, 0xc12] {
            assert_eq!(kind(form, 0), Kind::Alu, "LOP3 {form:x}");
        }
        assert_eq!(kind(0xdf0, 0), Kind::Wgmma);
        assert_eq!(kind(0x5a7, 0x100), Kind::Phase);
        assert_eq!(kind(0x9a7, 0), Kind::Arrive);
        assert_eq!(kind(0x9c5, 0), Kind::WgmmaFence);
        assert_eq!(kind(0x9c5, 0x1_0000), Kind::WgmmaWait);
        assert_eq!(kind(0x5b4, 0x8000), Kind::Tensor);
        assert_eq!(kind(0x3ba, 0x200), Kind::Bulk);
        assert_eq!(kind(0x805, 0xff00), Kind::Alu, "CS2R of zero");
        assert_eq!(kind(0x805, 0x5000), Kind::Clock);
        assert_eq!(kind(0x844, 0x4200), Kind::Shared, "STSM");
    }
}
