/*dgx
summary  = "Weights as the MMA's 128 rows, tokens as its columns: as many as there are, no padding of small M"
parent   = "interleaved"
round    = 6
claim    = { geomean = 1.15, over = "cublas", why = "no padding of small M; tiles as narrow as the groups" }
requires = ["k % BK == 0", "n % FEATURES == 0"]
tiles    = "cdiv(m, width) * (n / FEATURES)"
order    = "0 - width * k"

# Tokens of a tile: all of a group, or equal parts of at most CAP. A part must
# begin where a column of scales does, at a multiple of 32 rows.
[let]
width = "m <= CAP ? align(m, 8) : align(cdiv(m, cdiv(m, CAP)), 32)"

# Waves over the SMs times the cycles of the widest tile: MMAs of two weights,
# and the start and end of a tile.
[tune]
choose   = { CAP = [192, 160, 128, 96, 64, 32] }
minimise = "cdiv(sum(cdiv(m, width) * (n / FEATURES)), sms) * (most(k / 64 * 2 * max(width / 2, 32 + width / 4)) + 3000)"

[const]
FEATURES = 128
BK       = 256
TOKENS   = "most(width)"
# A part of 96 or 160 tokens may begin anywhere in an atom.
ATOMS    = "most(m > width && width % 64 > 0 ? 2 : cdiv(width, 128))"
STAGES   = "min(6, (232448 - 2048) / STAGE)"
STAGE    = "2 * FEATURES * (BK / 2 + BK / 16) + align(TOKENS * BK / 2, 1024) + 2048 * ATOMS"
SMEM     = "STAGES * STAGE + 1024"
GATERS   = 128
THREADS  = "GATERS + 64"

[[map]]
name    = "TOKENS"
tensor  = "a"
type    = "u4"
box     = ["BK", "width"]
swizzle = "128B"

[[map]]
name    = "B1"
tensor  = "b1"
type    = "u4"
box     = ["BK", "FEATURES"]
swizzle = "128B"

[[map]]
name    = "B2"
tensor  = "b2"
type    = "u4"
box     = ["BK", "FEATURES"]
swizzle = "128B"

[[launch]]
kernel = "dual_gemm"
grid   = "sum(tiles)"
block  = "THREADS"
smem   = "SMEM"
*/
#include <dgx/ptx/barrier.cuh>
#include <dgx/ptx/convert.cuh>
#include <dgx/sm100/operand.cuh>
#include <dgx/shared.cuh>
#include <dgx/silu.cuh>
#include <dgx/tile.cuh>
using namespace dgx;

struct Shared {
  struct Stage {
    PackedTile<FEATURES> weight[2];
    alignas(1024) u8 nibbles[TOKENS * BK / 2];
    u8 scales[ATOMS][STEP_SCALE_BYTES];
  };
  Stage stage[STAGES];
  u64 full[STAGES];
  u64 empty[STAGES];
  u64 done;
  u32 columns;
};
static_assert(BK == STEP && STAGES >= 2 && sizeof(Shared) <= SMEM);

// Tensor memory: both accumulators, then one step's scales of both weights and
// of the tokens.
struct Tensor {
  static constexpr u32 WEIGHT_SCALES = 2 * TOKENS;
  static constexpr u32 TOKEN_SCALES = WEIGHT_SCALES + 2 * K64S * ATOM_COLUMNS;
  static constexpr u32 USED = TOKEN_SCALES + K64S * ATOMS * ATOM_COLUMNS;
  static constexpr u32 ALLOCATED = USED <= 128 ? 128 : USED <= 256 ? 256 : 512;
  static_assert(USED <= 512, "tensor memory has 512 columns");

  u32 base;

  __device__ __forceinline__ u32 accumulator(u32 weight) const { return base + weight * TOKENS; }
  __device__ __forceinline__ u32 weight_scales(u32 weight, u32 k64) const {
    return base + WEIGHT_SCALES + (weight * K64S + k64) * ATOM_COLUMNS;
  }
  __device__ __forceinline__ u32 token_scales(u32 k64) const { return base + TOKEN_SCALES + k64 * ATOMS * ATOM_COLUMNS; }
};
enum Warp : u32 { LOADER = GATERS / 32, MULTIPLIER };

// A tile and how wide it is: the last of a group may lack some of its tokens.
struct Part {
  const Group* group;
  const TensorMap* maps;
  u32 token, feature;
  u32 width;
};

__device__ __forceinline__ u32 width_of(u32 m) {
  const u32 parts = (m + CAP - 1) / CAP;
  return parts == 1 ? (m + 7) / 8 * 8 : ((m + parts - 1) / parts + 31) / 32 * 32;
}

__device__ __forceinline__ Part find_part(const Args& args, u32 tile) {
  const u32 index = find_group(args, tile);
  const Group* group = args.groups + index;
  const u32 width = width_of(group->m), parts = (group->m + width - 1) / width;
  const u32 local = tile - group->tile_begin;
  return {group, args.maps + index * MAPS, local % parts * width, local / parts * FEATURES, width};
}

__device__ __forceinline__ void load(Shared& shared, const Part& part, const Operand& tokens,
                                     const Operand (&weight)[2]) {
  const u32 bytes = 2 * sizeof(PackedTile<FEATURES>) + part.width * (BK / 2) + sizeof(Shared::Stage::scales);
  const u32 blocks = (part.group->m + ATOM_ROWS - 1) / ATOM_ROWS - part.token / ATOM_ROWS;
  for (u32 step = 0; step < tokens.steps(); ++step) {
    const u32 slot = step % STAGES;
    auto& stage = shared.stage[slot];
    u64& full = shared.full[slot];
    ptx::mbarrier_wait(shared.empty[slot], step / STAGES % 2 ^ 1);
    ptx::mbarrier_arrive_expect_tx(full, bytes);
    ptx::tma_load_2d(ptx::shared_address(stage.nibbles), tokens.map, step * STEP, tokens.row, full);
    for (u32 block = 0; block < ATOMS; ++block) {
      // Past the last token there are no atoms, and nobody needs their scales.
      const u32 there = block < blocks ? block : 0;
      ptx::bulk_load(ptx::shared_address(stage.scales[block]),
                     tokens.atoms + (u64(there) * (tokens.k / 64) + step * K64S) * ATOM_BYTES, STEP_SCALE_BYTES, full);
    }
    for (u32 w = 0; w < 2; ++w) load_packed(stage.weight[w], weight[w], step, full);
  }
}

__device__ __forceinline__ void multiply(Shared& shared, const Tensor& tmem, const Part& part, const Operand& tokens) {
  const u32 instruction = ptx::nvfp4_instruction(FEATURES, part.width);
  for (u32 step = 0; step < tokens.steps(); ++step) {
    const u32 slot = step % STAGES;
    const auto& stage = shared.stage[slot];
    ptx::mbarrier_wait(shared.full[slot], step / STAGES % 2);
    ptx::tensor_fence_after();
    DGX_STAMP(multiply);
    const u64 b = ptx::operand_descriptor(ptx::shared_address(stage.nibbles));
#pragma unroll
    for (int k64 = 0; k64 < K64S; ++k64) {
      copy_scales(tmem.token_scales(k64), stage.scales, k64);
#pragma unroll
      for (int w = 0; w < 2; ++w) copy_scales(tmem.weight_scales(w, k64), stage.weight[w].scales, k64);
#pragma unroll
      for (int w = 0; w < 2; ++w) {
        const u64 a = ptx::operand_descriptor(ptx::shared_address(stage.weight[w].nibbles));
        ptx::mma_nvfp4(tmem.accumulator(w), a + k64 * ptx::OPERAND_K64, b + k64 * ptx::OPERAND_K64, instruction,
                       tmem.weight_scales(w, k64), tmem.token_scales(k64) + tokens.atom_column(), step > 0 || k64 > 0);
      }
    }
    ptx::mma_commit(shared.empty[slot]);
  }
  ptx::mma_commit(shared.done);
}

// A thread has a feature, and of each token its element of C. Neighbours swap:
// the even one takes both features of the even token, the odd one of the odd,
// so that all store whole words.
__device__ __forceinline__ void gate(const Part& part, const Tensor& tmem) {
  const Group& group = *part.group;
  const u32 odd = threadIdx.x % 2;
  u16* c = group.c + u64(part.token + odd) * group.n + part.feature + threadIdx.x / 2 * 2;
  DGX_STAMP(epilogue);
#pragma unroll 1
  for (u32 token = 0; token < part.width; token += 8) {
    float gate[8], up[8];
    ptx::tmem_load(gate, ptx::tmem_quarter(tmem.accumulator(0)) + token);
    ptx::tmem_load(up, ptx::tmem_quarter(tmem.accumulator(1)) + token);
    ptx::tmem_wait(gate, up);
#pragma unroll
    for (u32 i = 0; i < 8; i += 2) {
      const float even_token = silu(gate[i]) * up[i], odd_token = silu(gate[i + 1]) * up[i + 1];
      const float theirs = __shfl_xor_sync(0xFFFFFFFF, odd ? even_token : odd_token, 1);
      const u32 pair = odd ? ptx::f32x2_to_f16x2(theirs, odd_token) : ptx::f32x2_to_f16x2(even_token, theirs);
      if (part.token + token + i + odd < group.m) ptx::store_global_u32(c + u64(token + i) * group.n, pair);
    }
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) dual_gemm(const __grid_constant__ Args args) {
  DGX_STAMP_KERNEL(args, dual_gemm);
  Shared& shared = shared_memory<Shared>();
  const Part part = find_part(args, blockIdx.x);
  const Group& group = *part.group;
  const Operand tokens(part.maps + MAP_TOKENS, group.sfa_atoms, part.token, group.k);
  const Operand weight[2] = {{part.maps + MAP_B1, group.sfb1_atoms, part.feature, group.k},
                             {part.maps + MAP_B2, group.sfb2_atoms, part.feature, group.k}};
  if (threadIdx.x == 0) {
    for (u32 i = 0; i < STAGES; ++i) ptx::mbarrier_init(shared.full[i], 1), ptx::mbarrier_init(shared.empty[i], 1);
    ptx::mbarrier_init(shared.done, 1);
    ptx::mbarrier_init_fence();
  }
  const u32 warp = threadIdx.x / 32;
  if (warp == MULTIPLIER) ptx::tmem_allocate<Tensor::ALLOCATED>(shared.columns);
  ptx::tensor_fence_before();
  __syncthreads();
  ptx::tensor_fence_after();
  const Tensor tmem{shared.columns};

  if (warp < LOADER) {
    ptx::mma_wait(shared.done, 0);
    gate(part, tmem);
  } else if (ptx::elect_one()) {
    if (warp == LOADER) {
      load(shared, part, tokens, weight);
    } else {
      multiply(shared, tmem, part, tokens);
    }
  }
  __syncwarp();
  ptx::tensor_fence_before();
  __syncthreads();
  ptx::tensor_fence_after();
  if (warp == MULTIPLIER) ptx::tmem_free<Tensor::ALLOCATED>(tmem.base);
}
