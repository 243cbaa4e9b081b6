// Weights as wgmma's A operand, dequantised in registers.
//
// A warpgroup's 64 rows are 32 features: row r of a warp's 16 is a row of B1,
// row r + 8 the same row of B2. A thread then owns gate and up of the same
// elements of C, and the gate needs no exchange.
#pragma once
#include <dgx/dequant.cuh>
#include <dgx/korder.cuh>
#include <dgx/ptx/mbarrier.cuh>
#include <dgx/ptx/tma.cuh>

namespace dgx {

// K256 of the weights of one tile, as TMA brings them: packed rows of 128
// bytes under the 128B swizzle, and their scales.
template <int Features, int ScaleBytes>
struct alignas(1024) WeightStage {
  u8 gate[Features * BAND / 2];
  u8 up[Features * BAND / 2];
  u8 scales[ScaleBytes];
};

// Scales come as rows of 16 bytes, or as the atoms of blocks of 128 rows. A block's
// are one piece of memory; rows are as many requests as the weights themselves, which
// few tokens wait for.
constexpr u32 BLOCK_ROWS = 128;
constexpr u32 ATOM_BYTES = 512;  // of a block's K64
constexpr u32 BLOCK_BYTES = BAND / 64 * ATOM_BYTES;

// Blocks that `rows` rows from `first` on lie in.
__device__ constexpr u32 blocks_of(u32 first, u32 rows) { return (first % BLOCK_ROWS + rows + BLOCK_ROWS - 1) / BLOCK_ROWS; }

// Asks for a band of them: `atoms` are those of the first block.
__device__ __forceinline__ void load_blocks(u32 to, const u8* atoms, u32 blocks, u32 band, u32 k, u64& full) {
#pragma unroll 1
  for (u32 block = 0; block < blocks; ++block)
    ptx::bulk_load(to + block * BLOCK_BYTES, atoms + (block * (k / BAND) + band) * BLOCK_BYTES, BLOCK_BYTES, full);
}

// Where the scales of a row are for lane `lane` of a quad.
__device__ __forceinline__ u32 scales_in_rows(u32 row, u32 lane) { return row * (BAND / 16) + lane * 4; }

__device__ __forceinline__ u32 scales_in_blocks(u32 row, u32 lane) {
  return row / BLOCK_ROWS * BLOCK_BYTES + lane * ATOM_BYTES + row % 32 * 16 + row % BLOCK_ROWS / 32 * 4;
}

// Fragments of one K64 step, not yet scaled, with their two scales.
struct RawFragments {
  u32 bits[16];
  u32 gate_scale, up_scale;
};

// One thread's way through the ring of weight stages.
template <int Features, int Stages, int ScaleBytes>
struct WeightReader {
  using Stage = WeightStage<Features, ScaleBytes>;
  u32 ring;             // shared address of stage 0
  u32 slot, parity;     // of the next stage
  u32 row, lane;        // of the tile's features; within the quad
  u32 gate_scales_at, up_scales_at;  // in a stage's scales
  uint4 gate, up;       // the words of one chunk: two steps
  u32 gate_scales, up_scales;  // one e4m3 for each of the four steps

  __device__ __forceinline__ WeightReader(const Stage (&stages)[Stages], u32 row, u32 lane)
      : ring(ptx::shared_address(stages)), slot(0), parity(0), row(row), lane(lane) {}

  __device__ __forceinline__ void load_chunk(u32 i) {
    const u32 at = ring + slot * u32(sizeof(Stage)) + row * (BAND / 2) + ((2 * lane + i) ^ (row % 8)) * 16;
    gate = ptx::load_shared_v4(at);
    up = ptx::load_shared_v4(at + Features * BAND / 2);
  }

  __device__ __forceinline__ void load_scales() {
    const u32 at = ring + slot * u32(sizeof(Stage)) + Features * BAND;
    gate_scales = ptx::load_shared_u32(at + gate_scales_at);
    up_scales = ptx::load_shared_u32(at + up_scales_at);
  }

  // Step 0..3 of a stage. Step 0 waits for it, step 2 hands it back.
  template <int Step>
  __device__ __forceinline__ RawFragments read(u64 (&full)[Stages], u64 (&empty)[Stages]) {
    if constexpr (Step == 0) {
      ptx::mbarrier_wait(full[slot], parity);
      load_scales();
      load_chunk(0);
    }
    if constexpr (Step == 2) {
      load_chunk(1);
      __syncwarp();
      if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(empty[slot]);
      if (++slot == Stages) slot = 0, parity ^= 1;
    }
    return unpack<Step>();
  }

  // The same for a step that the compiler knows once a loop is unrolled.
  __device__ __forceinline__ RawFragments read(u32 step, u64 (&full)[Stages], u64 (&empty)[Stages]) {
    if (step % 4 == 0) return read<0>(full, empty);
    if (step % 4 == 1) return read<1>(full, empty);
    if (step % 4 == 2) return read<2>(full, empty);
    return read<3>(full, empty);
  }

  template <int Step>
  __device__ __forceinline__ RawFragments unpack() const {
    RawFragments raw;
    const Pairs g[2] = {spread(Step % 2 ? gate.z : gate.x), spread(Step % 2 ? gate.w : gate.y)};
    const Pairs u[2] = {spread(Step % 2 ? up.z : up.x), spread(Step % 2 ? up.w : up.y)};
#pragma unroll
    for (int k16 = 0; k16 < 4; ++k16) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        raw.bits[4 * k16 + 2 * h] = g[k16 / 2].pair[k16 % 2 * 2 + h];
        raw.bits[4 * k16 + 2 * h + 1] = u[k16 / 2].pair[k16 % 2 * 2 + h];
      }
    }
    const u32 gate_pair = scales_to_f16x2(gate_scales >> (Step / 2 * 16));
    const u32 up_pair = scales_to_f16x2(up_scales >> (Step / 2 * 16));
    raw.gate_scale = Step % 2 ? ptx::high_half_twice(gate_pair) : ptx::low_half_twice(gate_pair);
    raw.up_scale = Step % 2 ? ptx::high_half_twice(up_pair) : ptx::low_half_twice(up_pair);
    return raw;
  }
};

// The last multiplication of a step: the only one that must wait until the
// wgmmas that read these registers have retired.
__device__ __forceinline__ void scale_fragments(u32 (&fragments)[4][4], const RawFragments& raw) {
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    fragments[i / 4][i % 4] = ptx::multiply_f16x2(raw.bits[i], i % 2 ? raw.up_scale : raw.gate_scale);
  }
}

}  // namespace dgx
