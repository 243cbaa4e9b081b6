// One operand of the shared-memory path: packed as it comes from global
// memory, then as fp16 in the layout wgmma reads.
#pragma once
#include <dgx/dequant.cuh>
#include <dgx/ptx/barrier.cuh>
#include <dgx/ptx/mbarrier.cuh>
#include <dgx/ptx/tma.cuh>
#include <dgx/ptx/wgmma.cuh>

namespace dgx {

constexpr int STEP = 128;      // K of one step: 64 packed bytes a row, the span of a 64B swizzle
constexpr int PANEL = 64;      // K of a 128-byte swizzled fp16 row
constexpr int PANELS = STEP / PANEL;
constexpr int ATOM_ROWS = 128;  // rows of a 512-byte scale atom, which covers K = 64
constexpr int ATOM_BYTES = 512;
constexpr int STEP_SCALE_BYTES = STEP / 64 * ATOM_BYTES;

template <int Rows>
struct alignas(1024) PackedTile {
  u8 nibbles[Rows * STEP / 2];
  u8 scales[(Rows + ATOM_ROWS - 1) / ATOM_ROWS][STEP_SCALE_BYTES];
};

template <int Rows>
struct alignas(1024) HalfTile {
  u8 panel[PANELS][Rows * PANEL * 2];
};

// Where the rows of a tile come from.
struct Operand {
  const TensorMap* map;
  const u8* atoms;  // of the row block that holds the first row
  u32 row;
  u32 k;

  __device__ __forceinline__ Operand(const TensorMap* map, const u8* all_atoms, u32 row, u32 k)
      : map(map), atoms(all_atoms + row / ATOM_ROWS * (k / 64) * ATOM_BYTES), row(row), k(k) {}
};

// One thread asks TMA for one step; sizeof(PackedTile) bytes reach the barrier
// (less the padding of tiles under 128 rows, which packed_bytes leaves out).
template <int Rows>
__device__ __forceinline__ void load_packed(PackedTile<Rows>& to, const Operand& from, u32 step, u64& full) {
  ptx::tma_load_2d(ptx::shared_address(to.nibbles), from.map, step * (STEP / 2), from.row, full);
#pragma unroll
  for (int block = 0; block < (Rows + ATOM_ROWS - 1) / ATOM_ROWS; ++block) {
    const u8* atoms = from.atoms + (block * (from.k / 64) + step * (STEP / 64)) * ATOM_BYTES;
    ptx::bulk_load(ptx::shared_address(to.scales[block]), atoms, STEP_SCALE_BYTES, full);
  }
}

template <int Rows>
__device__ constexpr u32 packed_bytes() {
  return sizeof(PackedTile<Rows>::nibbles) + sizeof(PackedTile<Rows>::scales);
}

// A thread's share of a packed step on its way through registers. A unit is one row of one panel;
// lanes take consecutive rows, which makes every access free of bank conflicts under the two
// swizzles (64B in, 128B out). Reading and writing are apart because no load passes a store to
// shared memory: who reads everything first waits once.
template <int Rows, int Threads>
struct PackedUnits {
  static constexpr u32 COUNT = (Rows * PANELS + Threads - 1) / Threads;
  uint4 words[COUNT][2];
  u32 scales[COUNT];

  static __device__ __forceinline__ bool exists(u32 unit) {
    return Rows * PANELS % Threads == 0 || unit < Rows * PANELS;
  }

  __device__ __forceinline__ void read(u32 i, const PackedTile<Rows>& from, u32 first_row, u32 thread) {
    const u32 unit = i * Threads + thread, row = unit % Rows, panel = unit / Rows;
    if (!exists(unit)) return;
    const u32 in_atom = (first_row + row) % ATOM_ROWS;
    scales[i] = ptx::load_shared_u32(ptx::shared_address(from.scales) + row / ATOM_ROWS * STEP_SCALE_BYTES +
                                     panel * ATOM_BYTES + in_atom % 32 * 16 + in_atom / 32 * 4);
#pragma unroll
    for (u32 part = 0; part < 2; ++part) {
      const u32 chunk = (panel * 2 + part) ^ (row / 2 % 4);
      words[i][part] = ptx::load_shared_v4(ptx::shared_address(from.nibbles) + row * (STEP / 2) + chunk * 16);
    }
  }

  __device__ __forceinline__ void write(u32 i, HalfTile<Rows>& to, u32 thread) const {
    const u32 unit = i * Threads + thread, row = unit % Rows, panel = unit / Rows;
    if (!exists(unit)) return;
    const u32 row_out = ptx::shared_address(to.panel) + panel * (Rows * PANEL * 2) + row * (PANEL * 2);
#pragma unroll
    for (u32 part = 0; part < 2; ++part) {
      const u32 pair = scales_to_f16x2(scales[i] >> (16 * part));
      const u32 low = ptx::low_half_twice(pair), high = ptx::high_half_twice(pair);
      const uint4 packed = words[i][part];
      const u32 line = part * 4;
      ptx::store_shared_v4(row_out + ((line + 0) ^ row % 8) * 16, dequantise8(packed.x, low));
      ptx::store_shared_v4(row_out + ((line + 1) ^ row % 8) * 16, dequantise8(packed.y, low));
      ptx::store_shared_v4(row_out + ((line + 2) ^ row % 8) * 16, dequantise8(packed.z, high));
      ptx::store_shared_v4(row_out + ((line + 3) ^ row % 8) * 16, dequantise8(packed.w, high));
    }
  }

  __device__ __forceinline__ void read_all(const PackedTile<Rows>& from, u32 first_row, u32 thread) {
#pragma unroll
    for (u32 i = 0; i < COUNT; ++i) read(i, from, first_row, thread);
  }

  __device__ __forceinline__ void write_all(HalfTile<Rows>& to, u32 thread) const {
#pragma unroll
    for (u32 i = 0; i < COUNT; ++i) write(i, to, thread);
  }
};

// One operand by itself, unit by unit: for kernels that have no registers for more.
template <int Rows, int Threads>
__device__ __forceinline__ void dequantise(HalfTile<Rows>& to, const PackedTile<Rows>& from, u32 first_row,
                                           u32 thread) {
  PackedUnits<Rows, Threads> units;
#pragma unroll
  for (u32 i = 0; i < units.COUNT; ++i) {
    units.read(i, from, first_row, thread);
    units.write(i, to, thread);
  }
}

// d (+)= rows a_row..a_row+63 of a times all rows of b, over one step.
template <int Rows, int Columns>
__device__ __forceinline__ void multiply(float (&d)[Columns / 2], const HalfTile<Rows>& a, u32 a_row,
                                         const HalfTile<Columns>& b, bool accumulate) {
#pragma unroll
  for (int panel = 0; panel < PANELS; ++panel) {
    const u64 a_panel = ptx::swizzled_descriptor(ptx::shared_address(a.panel[panel]) + a_row * (PANEL * 2));
    const u64 b_panel = ptx::swizzled_descriptor(ptx::shared_address(b.panel[panel]));
#pragma unroll
    for (int k16 = 0; k16 < PANEL / 16; ++k16) {
      const u64 advance = k16 * 32 >> 4;
      ptx::Wgmma<Columns>::ss(d, a_panel + advance, b_panel + advance, accumulate || panel + k16 > 0);
    }
  }
}

}  // namespace dgx
