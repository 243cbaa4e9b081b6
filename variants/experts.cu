/*dgx
extend   = "decode"
summary  = "Few tokens for each of many experts: tiles follow one another without a pause"
parent   = "decode"
round    = 7
claim    = { geomean = 1.1, over = "decode", why = "sums of a tile meet behind the next one's products, and each team has a thread that asks for its stages" }
requires = ["groups > 1", "m <= 64", "k % 256 == 0", "n % 8 == 0"]

# Cycles as decode reckons them, with the octets of tokens that a tile really has; a
# team needs two slots.
[tune]
choose   = { OCTETS = [4, 3, 5, 6], NT = [1, 2, 3] }
minimise = """
  OCTETS * NT > 12 || ROUNDS < 2 ? 1000000000000 :
  cdiv(ALL_TILES, sms * TEAM_TILES) * TEAM_TILES
    * (1500 + most(cdiv(k, 512)) * 3 / 2 * (30 + OCTETS * 135 + (70 + 8 * OCTETS) * MEAN_NT / 100))
"""

[const]
SPLIT      = 1
TEAMS      = 3
TEAM_TILES = "most(k) <= 2048 && ALL_TILES > sms ? TEAMS : 1"  # tiles at a time: a short K is one team's
MEAN_NT    = "sum(cdiv(n, FEATURES) * cdiv(m, 8)) * 100 / ALL_TILES"
THREADS    = "128 * TEAMS + 128"
GRID       = "min(cdiv(ALL_TILES, TEAM_TILES), sms)"
SUM_OCTETS = "OCTETS"
FIXED      = "2048 * TEAMS * OCTETS * NT + 2048"
ROUNDS     = "(232448 - FIXED) / (TEAMS * SLOT_BYTES)"
SLOTS      = "TEAMS * min(ROUNDS, cdiv(cdiv(ALL_TILES, GRID * TEAM_TILES) * most(cdiv(k, 512)), TEAMS / TEAM_TILES))"
*/
#include <dgx/ptx/barrier.cuh>
#include <dgx/shared.cuh>
#include <dgx/stage.cuh>
#include <dgx/tile.cuh>
using namespace dgx;

constexpr u32 CONSUMER_WARPS = TEAMS * TEAM_WARPS;
constexpr u32 CONSUMERS = 32 * CONSUMER_WARPS;
constexpr u32 TURNS = TEAMS / TEAM_TILES;  // teams that take a tile's stages by turns
constexpr u32 TILE_WARPS = TURNS * TEAM_WARPS;
constexpr u32 TILES_APART = GRID * TEAM_TILES;
constexpr u32 SUMS = OCTETS * NT * 32;  // float4s: gate and up of one feature, two tokens
constexpr u32 CONSUMER_REGISTERS = 160;
constexpr u32 PRODUCER_REGISTERS = 32;
static_assert(SLOTS % TEAMS == 0);
static_assert(128 * (TEAMS * CONSUMER_REGISTERS + PRODUCER_REGISTERS) <= 65536 / THREADS / 8 * 8 * THREADS);

struct Shared {
  Stage ring[SLOTS];
  StageScales scales[SLOTS];
  float4 sums[TEAM_TILES][TILE_WARPS][SUMS];
  u64 full[SLOTS], empty[SLOTS];
  u64 written[TEAM_TILES], read[TEAM_TILES];  // the sums of a tile, by every thread: racecheck follows no other
};
static_assert(sizeof(Shared) <= SLOTS * SLOT_BYTES + FIXED);

__device__ __forceinline__ Work work_of(const Args& args, u32 tile) {
  if constexpr (GROUP_TILES > 0)
    return {tile / TILES_EACH, 0, first_feature(tile % TILES_EACH), 0, (ONE_K + STAGE_K - 1) / STAGE_K};
  const u32 index = find_group(args, tile);
  const Group group = group_at(args, index);
  const u32 token_tiles = (group.m + TOKENS - 1) / TOKENS, local = tile - group.tile_begin;
  return {index, local % token_tiles * TOKENS, first_feature(local / token_tiles), 0, (group.k + STAGE_K - 1) / STAGE_K};
}

__device__ __forceinline__ u32 first_tile(u32 team) { return blockIdx.x * TEAM_TILES + team % TEAM_TILES; }

// Asks for the stages of one team, in the order they are consumed. One thread for
// all teams, beside a dozen busy warps, would fall behind.
struct Producer {
  const Args& args;
  Shared& shared;
  const u32 team;
  u32 tile, stage, slot;
  Work work;

  __device__ __forceinline__ Producer(const Args& args, Shared& shared, u32 team)
      : args(args), shared(shared), team(team), tile(first_tile(team)), stage(team / TEAM_TILES), slot(team), work{} {
    seek();
  }

  __device__ __forceinline__ bool done() const { return tile >= args.tile_count; }

  // The tile that `stage` is of: those past a tile's end are the next one's.
  __device__ __forceinline__ void seek() {
    for (; !done(); tile += TILES_APART) {
      work = work_of(args, tile);
      if (stage < work.end) return;
      stage -= work.end;
    }
  }

  __device__ __forceinline__ void load() {
    const TensorMap* maps = args.maps + work.group * MAPS;
    ptx::mbarrier_arrive_expect_tx(shared.full[slot], SLOT_BYTES);
    load_gate(shared.ring[slot], shared.scales[slot], shared.full[slot], maps, work, stage);
    load_up(shared.ring[slot], shared.scales[slot], shared.full[slot], maps, work, stage);
    slot = slot + TEAMS >= SLOTS ? team : slot + TEAMS;
    stage += TURNS;
    if (stage < work.end) return;
    stage -= work.end;
    tile += TILES_APART;
    seek();
  }
};

// The warps' sums of a tile meet in shared memory. A team adds them up when it has
// begun on the next tile; where all share a tile, another one each time.
struct Sums {
  Shared& shared;
  const u32 team, at;
  u32 tiles = 0;  // written
  bool wait = false;
  Work work;

  __device__ __forceinline__ Sums(Shared& shared, u32 team) : shared(shared), team(team), at(team % TEAM_TILES) {}

  __device__ __forceinline__ void write(const float4 (&d)[OCTETS][NT], const Work& of) {
    ptx::mbarrier_wait(shared.read[at], tiles % 2 ^ 1);
    const u32 warp = threadIdx.x / 32 % TILE_WARPS, lane = threadIdx.x % 32;
#pragma unroll
    for (u32 octet = 0; octet < OCTETS; ++octet)
#pragma unroll
      for (u32 t = 0; t < NT; ++t) shared.sums[at][warp][(octet * NT + t) * 32 + lane] = d[octet][t];
    ptx::mbarrier_arrive(shared.written[at]);
    ++tiles, wait = true, work = of;
  }

  __device__ __forceinline__ void settle(const Args& args) {
    if (!wait) return;
    wait = false;
    if (TURNS > 1 && team != tiles % TURNS) return;
    ptx::mbarrier_wait(shared.written[at], (tiles - 1) % 2);
    const Group group = group_at(args, work.group);
    for (u32 i = threadIdx.x % (32 * TEAM_WARPS); i < SUMS; i += 32 * TEAM_WARPS) {
      float4 sum = shared.sums[at][0][i];
#pragma unroll
      for (u32 other = 1; other < TILE_WARPS; ++other) sum = plus(sum, shared.sums[at][other][i]);
      store_sum(group, work, i, sum);
    }
    ptx::mbarrier_arrive(shared.read[at]);
  }
};

__device__ __forceinline__ void consume(Shared& shared, const Args& args) {
  const Place place;
  const u32 team = threadIdx.x / 32 / TEAM_WARPS;
  Sums sums(shared, team);
  u32 turn = team / TEAM_TILES, slot = team, phase = 0, end = 0;
  for (u32 tile = first_tile(team); tile < args.tile_count; tile += TILES_APART) {
    const Work work = work_of(args, tile);
    const u32 octets = (group_at(args, work.group).m - work.row + 7) / 8;  // of tokens; no more are multiplied
    end += work.end;
    float4 d[OCTETS][NT] = {};
#pragma unroll 1
    for (; turn < end; turn += TURNS) {
      ptx::mbarrier_wait(shared.full[slot], phase);
      DGX_STAMP(multiply);
      const Stage& stage = shared.ring[slot];
      const StageScales& scales = shared.scales[slot];
      if (NT > 1 && octets == 1) {
        multiply<1>(d, stage, scales, shared.empty[slot], place);
      } else if (NT > 2 && octets == 2) {
        multiply<NT < 2 ? NT : 2>(d, stage, scales, shared.empty[slot], place);
      } else {
        multiply<NT>(d, stage, scales, shared.empty[slot], place);
      }
      sums.settle(args);
      slot += TEAMS;
      if (slot >= SLOTS) {
        slot -= SLOTS;
        phase ^= 1;
      }
    }
    DGX_STAMP(epilogue);
    sums.settle(args);
    sums.write(d, work);
  }
  sums.settle(args);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) dual_gemm(const __grid_constant__ Args args) {
  DGX_STAMP_KERNEL(args, dual_gemm);
  Shared& shared = shared_memory<Shared>();
  if (first_tile(threadIdx.x / 32) < args.tile_count && threadIdx.x / 32 < TEAM_TILES)
    prefetch_maps(args.maps + work_of(args, first_tile(threadIdx.x / 32)).group * MAPS, threadIdx.x % 32);
  if (threadIdx.x == 0) {
    for (u32 i = 0; i < SLOTS; ++i) {
      ptx::mbarrier_init(shared.full[i], 1);
      ptx::mbarrier_init(shared.empty[i], TEAM_WARPS);
    }
    for (u32 i = 0; i < TEAM_TILES; ++i) {
      ptx::mbarrier_init(shared.written[i], 32 * TILE_WARPS);
      ptx::mbarrier_init(shared.read[i], 32 * TEAM_WARPS);
    }
    ptx::mbarrier_init_fence();
  }
  __syncthreads();
  if (threadIdx.x < CONSUMERS) {
    ptx::registers_grow<CONSUMER_REGISTERS>();
    consume(shared, args);
    return;
  }
  ptx::registers_shrink<PRODUCER_REGISTERS>();
  const u32 team = threadIdx.x / 32 - CONSUMER_WARPS;
  if (threadIdx.x % 32 != 0 || team >= TEAMS) return;
  u32 phase = 1;
  for (Producer producer(args, shared, team); !producer.done();) {
    ptx::mbarrier_wait(shared.empty[producer.slot], phase);
    producer.load();
    if (producer.slot == team) phase ^= 1;
  }
}
