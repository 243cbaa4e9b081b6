// One operand as the tensor core reads it: nibbles and scales as they lie in
// global memory. Nothing is dequantised.
#pragma once
#include <dgx/ptx/mbarrier.cuh>
#include <dgx/ptx/tcgen05.cuh>
#include <dgx/ptx/tma.cuh>

namespace dgx {

constexpr int STEP = 256;             // K of one step: 128 packed bytes a row, the span of a 128B swizzle
constexpr int K64S = STEP / 64;       // MMAs of a step
constexpr int ATOM_ROWS = 128;        // rows of a 512-byte scale atom, which covers K = 64
constexpr int ATOM_BYTES = 512;
constexpr int ATOM_COLUMNS = 4;       // of tensor memory, 32 rows each
constexpr int STEP_SCALE_BYTES = K64S * ATOM_BYTES;

// Atoms that Rows rows, beginning at half an atom at most, lie in.
__device__ constexpr int atoms_of(int rows) { return (rows + ATOM_ROWS - 1) / ATOM_ROWS; }

template <int Rows>
struct alignas(1024) PackedTile {
  u8 nibbles[Rows * STEP / 2];
  u8 scales[atoms_of(Rows)][STEP_SCALE_BYTES];
};

// Where the rows of a tile come from.
struct Operand {
  const TensorMap* map;
  const u8* atoms;  // of the row block that holds the first row
  u32 row;
  u32 k;

  __device__ __forceinline__ Operand(const TensorMap* map, const u8* all_atoms, u32 row, u32 k)
      : map(map), atoms(all_atoms + u64(row / ATOM_ROWS) * (k / 64) * ATOM_BYTES), row(row), k(k) {}

  __device__ __forceinline__ u32 steps() const { return k / STEP; }

  // Columns between the first row of its atom and the tile's: tiles of 64 rows
  // begin in the middle of one every other time.
  __device__ __forceinline__ u32 atom_column() const { return row % ATOM_ROWS / 32; }
};

// One thread asks TMA for one step; sizeof(PackedTile) bytes reach the barrier.
template <int Rows>
__device__ __forceinline__ void load_packed(PackedTile<Rows>& to, const Operand& from, u32 step, u64& full) {
  static_assert(sizeof(to) == sizeof(to.nibbles) + sizeof(to.scales));
  ptx::tma_load_2d(ptx::shared_address(to.nibbles), from.map, step * STEP, from.row, full);
#pragma unroll
  for (int block = 0; block < atoms_of(Rows); ++block) {
    const u8* atoms = from.atoms + (u64(block) * (from.k / 64) + step * K64S) * ATOM_BYTES;
    ptx::bulk_load(ptx::shared_address(to.scales[block]), atoms, STEP_SCALE_BYTES, full);
  }
}

// The scales of one K64 of a tile into tensor memory.
template <int Rows, ptx::CtaGroup Group = ptx::CtaGroup::ONE>
__device__ __forceinline__ void copy_scales(u32 to, const u8 (&scales)[Rows][STEP_SCALE_BYTES], int k64) {
#pragma unroll
  for (int block = 0; block < Rows; ++block)
    ptx::copy_atom<Group>(to + block * ATOM_COLUMNS,
                          ptx::atom_descriptor(ptx::shared_address(scales[block]) + k64 * ATOM_BYTES));
}

// Tensor memory of a CTA: Accumulators tiles of Columns columns, and the
// scales of one step of A and of Weights tiles of B.
template <int Columns, int Accumulators, int Weights>
struct TensorColumns {
  static constexpr u32 B_ATOMS = atoms_of(Columns) * ATOM_COLUMNS;
  static constexpr u32 A_SCALES = Accumulators * Columns;
  static constexpr u32 B_SCALES = A_SCALES + K64S * ATOM_COLUMNS;
  static constexpr u32 USED = B_SCALES + Weights * K64S * B_ATOMS;
  static constexpr u32 ALLOCATED = USED <= 64 ? 64 : USED <= 128 ? 128 : USED <= 256 ? 256 : 512;
  static_assert(USED <= 512, "tensor memory has 512 columns");

  u32 base;

  __device__ __forceinline__ u32 accumulator(u32 i) const { return base + i * Columns; }
  __device__ __forceinline__ u32 a_scales(int k64) const { return base + A_SCALES + k64 * ATOM_COLUMNS; }
  __device__ __forceinline__ u32 b_scales(int weight, int k64) const {
    return base + B_SCALES + (weight * K64S + k64) * B_ATOMS;
  }
};

}  // namespace dgx
