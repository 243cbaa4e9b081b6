/*dgx
summary  = "Two teams of four warps, each its own tiles: one gates while the other has the tensor core"
extend   = "interleaved"
round    = 6
claim    = { geomean = 1.3, over = "interleaved", why = "the epilogue hides behind the other tile's MMAs" }

# 64 columns of each weight: both teams' accumulators leave room for the scales.
[const]
BN      = 64
STAGES  = 2
TEAMS   = 2
THREADS = "TEAMS * 128"
SMEM    = "TEAMS * (STAGES * ((BM + 2 * BN) * BK / 2 + 3 * 8 * BK) + 2048)"

[[launch]]
kernel = "dual_gemm"
grid   = "min(sms, cdiv(sum(tiles), TEAMS))"
block  = "THREADS"
smem   = "SMEM"
*/
#include <dgx/sm100/kernel.cuh>
using namespace dgx;

struct Team : Staging<BM, BN, 2, STAGES> {
  u64 turn;  // at the tensor core
};
struct Shared {
  Team team[TEAMS];
};
static_assert(BK == STEP && sizeof(Shared) <= SMEM);
constexpr u32 COLUMNS = Team::Tensor::ALLOCATED;  // of each team
static_assert(TEAMS * COLUMNS <= 512);

// One thread of the team. The first steps are loaded while the other team
// multiplies; then the tensor core is this team's until all is issued.
__device__ __forceinline__ void multiply(Shared& shared, u32 own, const Team::Tensor& tmem, const Operand& a,
                                         const Operand (&b)[2], u32 turn, u32 index) {
  Team& team = shared.team[own];
  const u32 steps = a.steps();
  for (u32 step = 0; step < STAGES && step < steps; ++step) load_step(team, turn + step, a, b, step);
  ptx::mbarrier_wait(team.turn, index % 2);
  for (u32 step = 0; step < steps; ++step) {
    multiply_step(team, turn + step, tmem, 0, b, step > 0);
    const u32 next = step - 1 + STAGES;
    if (step > 0 && next < steps) load_step(team, turn + next, a, b, next);
  }
  ptx::mma_commit(team.done);
  ptx::mbarrier_arrive(shared.team[own ^ 1].turn);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) dual_gemm(const __grid_constant__ Args args) {
  DGX_STAMP_KERNEL(args, dual_gemm);
  Shared& shared = shared_memory<Shared>();
  const u32 own = threadIdx.x / 128;
  Team& team = shared.team[own];
  if (threadIdx.x % 128 == 0) {
    ptx::mbarrier_init(team.turn, 1);
    init_barriers(team);
  }
  if (threadIdx.x < 32) ptx::tmem_allocate<TEAMS * COLUMNS>(shared.team[0].columns);
  sync_tensor();
  const u32 columns = shared.team[0].columns;
  const Team::Tensor tmem{columns + own * COLUMNS};
  // Team 0 begins.
  if (threadIdx.x == 0) ptx::mbarrier_arrive(shared.team[0].turn);

  // Tiles are dealt in turn, so whoever waits for its turn is given it: team 1
  // has a tile before each of team 0's but the first, and team 0 before each of
  // team 1's.
  u32 turn = 0, index = 0;
  for (u32 drawn = blockIdx.x * TEAMS + own; drawn < args.tile_count; drawn += gridDim.x * TEAMS, ++index) {
    const Tile tile = find_tile_by_walk<BM, BN>(args, drawn, MAPS);
    const Group& group = *tile.group;
    const Operand a(tile.maps + MAP_A, group.sfa_atoms, tile.row, group.k);
    const Operand b[2] = {{tile.maps + MAP_B1, group.sfb1_atoms, tile.column, group.k},
                          {tile.maps + MAP_B2, group.sfb2_atoms, tile.column, group.k}};

    if (threadIdx.x % 128 < 32 && ptx::elect_one()) multiply(shared, own, tmem, a, b, turn, index);
    __syncwarp();
    turn += a.steps();
    wait_for_products(team, index);

    store_gated<BN>(tile, tmem.accumulator(0), tmem.accumulator(1));
    ptx::tensor_fence_before();
    ptx::named_sync<128>(1 + own);
    ptx::tensor_fence_after();
  }
  sync_tensor();
  if (threadIdx.x < 32) ptx::tmem_free<TEAMS * COLUMNS>(columns);
}
