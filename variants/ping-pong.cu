/*dgx
summary  = "Two warpgroups, each its own 64-row tile: one dequantises while the other multiplies"
extend   = "interleaved"
round    = 6
claim    = { geomean = 1.3, over = "interleaved", why = "dequantising and epilogue hide behind the other tile's MMAs" }

[const]
BM      = 64
TEAMS   = 2
THREADS = "TEAMS * 128"
SMEM    = "TEAMS * ((BM + 2 * BN) * BK * 2 + STAGES * ((BM + 2 * BN) * BK / 2 + 3 * 1024) + 1024)"

[[launch]]
kernel = "dual_gemm"
grid   = "cdiv(sum(tiles), TEAMS)"
block  = "THREADS"
smem   = "SMEM"
*/
#include <dgx/epilogue.cuh>
#include <dgx/mainloop.cuh>
#include <dgx/shared.cuh>
using namespace dgx;

using Shared = Staging<BM, BN, 2, STAGES>;
static_assert(BK == STEP && TEAMS * sizeof(Shared) <= SMEM);

// A warpgroup with its own tile. The two take turns at the tensor cores: each
// waits on its own barrier, which the other arrives at when its MMAs are done.
struct Warpgroup {
  static constexpr u32 OWN = 1, TURN = 3;  // named barriers of team 0
  u32 team;
  u32& turns;  // that this team still has to give the other

  __device__ __forceinline__ u32 thread() const { return threadIdx.x % 128; }
  __device__ __forceinline__ void sync() const { ptx::named_sync<128>(OWN + team); }
  __device__ __forceinline__ void begin_mma() const { ptx::named_sync<THREADS>(TURN + team); }
  __device__ __forceinline__ void end_mma() const {
    if (turns > 0) --turns, ptx::named_arrive<THREADS>(TURN + (team ^ 1));
  }
};

__device__ __forceinline__ u32 steps_of(const Args& args, u32 tile) {
  return tile < args.tile_count ? find_tile_by_walk<BM, BN>(args, tile, MAPS).group->k / BK : 0;
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) dual_gemm(const __grid_constant__ Args args) {
  DGX_STAMP_KERNEL(args, dual_gemm);
  const u32 team = threadIdx.x / 128;
  const u32 mine = blockIdx.x * TEAMS + team;
  Shared& shared = (&shared_memory<Shared>())[team];
  if (threadIdx.x % 128 == 0) init_barriers(shared);
  __syncthreads();

  // Team 0 begins, so team 1 opens its barrier. Both go through the turns of
  // the longer K: one that is done early keeps the other going.
  const u32 own = steps_of(args, mine), other = steps_of(args, blockIdx.x * TEAMS + (team ^ 1));
  const u32 rounds = own > other ? own : other;
  u32 turns = rounds;
  if (team == 1) --turns, ptx::named_arrive<THREADS>(Warpgroup::TURN);
  const Warpgroup warpgroup{team, turns};

  if (own > 0) {
    const Tile tile = find_tile_by_walk<BM, BN>(args, mine, MAPS);
    const Group& group = *tile.group;
    const Operand a(tile.maps + MAP_A, group.sfa_atoms, tile.row, group.k);
    const Operand b[2] = {{tile.maps + MAP_B1, group.sfb1_atoms, tile.column, group.k},
                          {tile.maps + MAP_B2, group.sfb2_atoms, tile.column, group.k}};

    u32 turn = 0;
    float product[2][BN / 2];
    accumulate(product, shared, a, b, turn, warpgroup);

    store_gated<BN>(tile, product[0], product[1], warpgroup.thread());
  }
  for (u32 step = own; step < rounds; ++step) warpgroup.begin_mma(), warpgroup.end_mma();
}
