/*dgx
summary  = "A pair of CTAs, one MMA of 256 rows over both: each loads its rows of A and half of B1 and B2"
extend   = "interleaved"
round    = 8
claim    = { geomean = 1.3, over = "interleaved", why = "each weight read once for 256 rows, half of it by each SM; the published winners' shape" }
tiles    = "cdiv(m, 2 * BM) * (n / BN)"

# Pairs over the SMs times the cycles of one K64: two MMAs of 256 rows.
[tune]
choose   = { BN = [128, 64] }
minimise = "cdiv(2 * sum(tiles), sms) * (2 * max(BN / 2, 35 + BN / 8) * 112 + (BN == 128 ? 10000 : 9000))"

# Gaters are two warps for each quarter of tensor memory's lanes. Where products
# bind, the last TAIL steps finish the gate's first, and steps are prefetched;
# narrow tiles wait for memory all the time.
[const]
STAGES    = "min(8, (232448 - 1024) / STAGE)"
STAGE     = "(BM + BN) * BK / 2 + 3 * 8 * BK"
SMEM      = "STAGES * STAGE + 1024"
GATERS    = 256
THREADS   = "GATERS + 64"
TAIL      = "BN == 128 ? 3 : 0"
PREFETCH  = "BN == 128"
ONE_GROUP = "groups == 1"

[[map]]
name    = "B1"
tensor  = "b1"
type    = "u4"
box     = ["BK", "BN / 2"]
swizzle = "128B"

[[map]]
name    = "B2"
tensor  = "b2"
type    = "u4"
box     = ["BK", "BN / 2"]
swizzle = "128B"

# Only tensor copies can tell the other CTA's barrier, so atoms come by map too.
[[map]]
name    = "SFA"
tensor  = "sfa_atoms"
box     = ["256", "BK / 64", "1"]
swizzle = "none"

[[map]]
name    = "SFB1"
tensor  = "sfb1_atoms"
box     = ["256", "BK / 64", "1"]
swizzle = "none"

[[map]]
name    = "SFB2"
tensor  = "sfb2_atoms"
box     = ["256", "BK / 64", "1"]
swizzle = "none"

[[launch]]
kernel  = "dual_gemm"
grid    = "2 * sum(tiles)"
block   = "THREADS"
smem    = "SMEM"
cluster = 2
*/
#include <dgx/ptx/barrier.cuh>
#include <dgx/ptx/cluster.cuh>
#include <dgx/sm100/epilogue.cuh>
#include <dgx/sm100/operand.cuh>
#include <dgx/shared.cuh>
using namespace dgx;

constexpr auto PAIR = ptx::CtaGroup::PAIR;

// The same in both CTAs, place by place: one descriptor serves both.
struct Shared {
  struct Stage {
    alignas(1024) u8 a[BM * BK / 2];
    alignas(1024) u8 b[2][BN / 2 * BK / 2];
    u8 a_scales[1][STEP_SCALE_BYTES];
    u8 b_scales[2][1][STEP_SCALE_BYTES];
  };
  Stage stage[STAGES];
  u64 full[STAGES];   // of the even CTA: the bytes of both
  u64 empty[STAGES];  // of each
  u64 done[2];        // the gate's MMAs, and all
  u32 columns;
};
static_assert(BK == STEP && TAIL <= STAGES && sizeof(Shared::Stage) == STAGE && sizeof(Shared) <= SMEM);
using Tensor = TensorColumns<BN, 2, 2>;
enum Warp : u32 { LOADER = GATERS / 32, MULTIPLIER };

// Each CTA's own rows, its half of the weights, and one weight's scales for
// both: an MMA reads the scales of all of B in each of them.
__device__ __forceinline__ void load(Shared& shared, const Tile& tile, u32 rank) {
  const u32 row = tile.row + rank * BM, half = tile.column + rank * (BN / 2);
  const u32 row_block = row / ATOM_ROWS, column_block = tile.column / ATOM_ROWS;
  const TensorMap* scales = tile.maps + (rank == 0 ? MAP_SFB1 : MAP_SFB2);
  const u32 steps = tile.group->k / STEP;
  for (u32 step = 0; step < steps; ++step) {
    const u32 slot = step % STAGES;
    auto& stage = shared.stage[slot];
    u64& full = shared.full[slot];
    ptx::mbarrier_wait(shared.empty[slot], step / STAGES % 2 ^ 1);
    if (rank == 0) ptx::mbarrier_arrive_expect_tx(full, 2 * sizeof(stage));
    ptx::tma_load_2d_pair(ptx::shared_address(stage.b[0]), tile.maps + MAP_B1, step * STEP, half, full);
    ptx::tma_load_2d_pair(ptx::shared_address(stage.b[1]), tile.maps + MAP_B2, step * STEP, half, full);
    ptx::tma_load_2d_pair(ptx::shared_address(stage.a), tile.maps + MAP_A, step * STEP, row, full);
    ptx::tma_load_3d_pair(ptx::shared_address(stage.a_scales), tile.maps + MAP_SFA, 0, step * K64S, row_block, full);
    ptx::tma_load_3d_to_pair(ptx::shared_address(stage.b_scales[rank]), scales, 0, step * K64S, column_block, full);

    // What this slot takes next, into L2. A map promotes rows to 256 bytes: two steps.
    const u32 next = step + STAGES;
    if (!PREFETCH || next >= steps) continue;
    ptx::tma_prefetch_3d(scales, 0, next * K64S, column_block);
    ptx::tma_prefetch_3d(tile.maps + MAP_SFA, 0, next * K64S, row_block);
    if (next % 2 != 0) continue;
    ptx::tma_prefetch_2d(tile.maps + MAP_B1, next * STEP, half);
    ptx::tma_prefetch_2d(tile.maps + MAP_B2, next * STEP, half);
    ptx::tma_prefetch_2d(tile.maps + MAP_A, next * STEP, row);
  }
}

// One step of K into one accumulator or both, once it is there.
template <bool Gate, bool Up>
__device__ __forceinline__ void multiply_step(Shared& shared, const Tensor& tmem, u32 step, u32 atom_column) {
  constexpr u32 INSTRUCTION = ptx::nvfp4_instruction(2 * BM, BN);
  const u32 slot = step % STAGES;
  const auto& stage = shared.stage[slot];
  ptx::mbarrier_wait(shared.full[slot], step / STAGES % 2);
  ptx::tensor_fence_after();
  DGX_STAMP(multiply);
  const u64 a = ptx::operand_descriptor(ptx::shared_address(stage.a));
  const u64 b1 = ptx::operand_descriptor(ptx::shared_address(stage.b[0]));
  const u64 b2 = ptx::operand_descriptor(ptx::shared_address(stage.b[1]));
#pragma unroll
  for (int k64 = 0; k64 < K64S; ++k64) {
    const u32 at = k64 * ptx::OPERAND_K64;
    const bool add = step > 0 || k64 > 0;
    copy_scales<1, PAIR>(tmem.a_scales(k64), stage.a_scales, k64);
    if (Gate) copy_scales<1, PAIR>(tmem.b_scales(0, k64), stage.b_scales[0], k64);
    if (Up) copy_scales<1, PAIR>(tmem.b_scales(1, k64), stage.b_scales[1], k64);
    if (Gate)
      ptx::mma_nvfp4<PAIR, Up ? ptx::ReuseA::KEEP : ptx::ReuseA::NONE>(tmem.accumulator(0), a + at, b1 + at,
                                                                       INSTRUCTION, tmem.a_scales(k64),
                                                                       tmem.b_scales(0, k64) + atom_column, add);
    if (Up)
      ptx::mma_nvfp4<PAIR, Gate ? ptx::ReuseA::LAST : ptx::ReuseA::NONE>(tmem.accumulator(1), a + at, b2 + at,
                                                                         INSTRUCTION, tmem.a_scales(k64),
                                                                         tmem.b_scales(1, k64) + atom_column, add);
  }
}

// The even CTA, for both.
__device__ __forceinline__ void multiply(Shared& shared, const Tensor& tmem, const Tile& tile) {
  const u32 atom_column = tile.column % ATOM_ROWS / 32, steps = tile.group->k / STEP;
  const u32 both = steps > TAIL ? steps - TAIL : 0;
  for (u32 step = 0; step < both; ++step) {
    multiply_step<true, true>(shared, tmem, step, atom_column);
    ptx::mma_commit_pair(shared.empty[step % STAGES]);
  }
  for (u32 step = both; step < steps; ++step) multiply_step<true, false>(shared, tmem, step, atom_column);
  ptx::mma_commit_pair(shared.done[0]);
  for (u32 step = both; step < steps; ++step) multiply_step<false, true>(shared, tmem, step, atom_column);
  ptx::mma_commit_pair(shared.done[1]);
}

// This thread's lane of an accumulator, once its products are done.
template <int Chunks>
__device__ __forceinline__ void read_columns(float (&d)[Chunks][CHUNK], u32 columns, u64& done) {
  ptx::mma_wait(done, 0);
#pragma unroll
  for (int i = 0; i < Chunks; ++i) ptx::tmem_load(d[i], ptx::tmem_quarter(columns) + i * CHUNK);
#pragma unroll
  for (int i = 0; i < Chunks; ++i) ptx::tmem_wait(d[i]);
}

// Half a row of C. A warp arrives where the pair meets as soon as it has read
// tensor memory: the other CTA is waited for under the gate and the stores.
__device__ __forceinline__ void gate_and_store(Shared& shared, const Tensor& tmem, const Group& group, u32 row,
                                               u32 column) {
  constexpr int OWN = BN * 128 / GATERS, CHUNKS = OWN / CHUNK;
  const u32 first = threadIdx.x / 128 * OWN;
  float gate[CHUNKS][CHUNK], up[CHUNKS][CHUNK];
  const auto activate = [&] {
#pragma unroll
    for (int i = 0; i < CHUNKS; ++i)
#pragma unroll
      for (float& x : gate[i]) x = silu(x);
  };
  read_columns(gate, tmem.accumulator(0) + first, shared.done[0]);
  if (TAIL > 0) activate();
  read_columns(up, tmem.accumulator(1) + first, shared.done[1]);
  DGX_STAMP(epilogue);
  ptx::tensor_fence_before();
  ptx::cluster_arrive();
  if (TAIL == 0) activate();
  u16* c = group.c + u64(row) * group.n + column + first;
#pragma unroll
  for (int i = 0; i < CHUNKS; ++i) {
    u32 out[CHUNK / 2];
#pragma unroll
    for (int j = 0; j < CHUNK / 2; ++j)
      out[j] = ptx::f32x2_to_f16x2(gate[i][2 * j] * up[i][2 * j], gate[i][2 * j + 1] * up[i][2 * j + 1]);
    if (row < group.m) ptx::store_global_v8(c + i * CHUNK, out);
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) dual_gemm(const __grid_constant__ Args args) {
  DGX_STAMP_KERNEL(args, dual_gemm);
  Shared& shared = shared_memory<Shared>();
  const u32 rank = ptx::cluster_rank(), warp = threadIdx.x / 32;
  const u32 index = ONE_GROUP ? 0 : find_group(args, blockIdx.x / 2);
  const TensorMap* maps = args.maps + index * MAPS;
  // Cold maps take longer than all else before the first copy: the pair meets meanwhile.
  if (warp == LOADER && ptx::elect_one()) {
    for (u32 map = 0; map < MAPS; ++map) ptx::tma_prefetch_map(maps + map);
  } else if (warp == MULTIPLIER && ptx::elect_one()) {
    for (u32 i = 0; i < STAGES; ++i) ptx::mbarrier_init(shared.full[i], 1), ptx::mbarrier_init(shared.empty[i], 1);
    ptx::mbarrier_init(shared.done[0], 1), ptx::mbarrier_init(shared.done[1], 1);
    ptx::mbarrier_init_fence();
  } else if (warp == 0) {
    ptx::tmem_allocate<Tensor::ALLOCATED, PAIR>(shared.columns);
  }
  __syncwarp();
  ptx::tensor_fence_before();
  ptx::cluster_arrive();
  const Group& group = ONE_GROUP ? args.near[0] : args.groups[index];
  const u32 local = blockIdx.x / 2 - group.tile_begin, row_tiles = (group.m + 2 * BM - 1) / (2 * BM);
  const Tile tile{&group, maps, local % row_tiles * 2 * BM, local / row_tiles * BN};
  ptx::cluster_wait();
  ptx::tensor_fence_after();
  const Tensor tmem{shared.columns};

  if (warp < LOADER) {
    gate_and_store(shared, tmem, group, tile.row + rank * BM + row_in_tile(), tile.column);
  } else if (ptx::elect_one()) {
    if (warp == LOADER) {
      load(shared, tile, rank);
    } else if (rank == 0) {
      multiply(shared, tmem, tile);
    }
  }
  __syncwarp();
  // Nobody leaves while the other's MMAs, copies or barriers need it.
  if (warp >= LOADER) ptx::tensor_fence_before(), ptx::cluster_arrive();
  ptx::cluster_wait();
  ptx::tensor_fence_after();
  if (warp == MULTIPLIER) ptx::tmem_free<Tensor::ALLOCATED, PAIR>(tmem.base);
}
