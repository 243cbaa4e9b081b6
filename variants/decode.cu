/*dgx
summary  = "Few tokens: weights stream through one ring that teams of warps empty, tokens meet them in registers"
parent   = "swap-ab"
round    = 7
claim    = { geomean = 2.0, over = "cublas", why = "a quarter of the weight bytes, read once, in one launch" }
arch     = "sm_90a"
requires = ["m <= 64", "k % 256 == 0", "n % 8 == 0"]
tiles    = "cdiv(m, TOKENS) * cdiv(n, FEATURES)"

# A tile is FEATURES features times at most TOKENS tokens, so many that the tiles
# fit the SMs; SPLIT CTAs of a cluster may share its K (clusters of four leave some
# SMs out). Cycles: of a stage, from the instructions of a warp's K128, and more for five octets
# and more, as measured; of a tile; of meeting over the cluster.
[tune]
choose   = { SPLIT = [1, 2, 4, 8], OCTETS = [4, 2, 3, 5, 6, 7, 8], NT = [1, 2, 3, 4] }
minimise = """
  OCTETS * NT > (NT == 1 ? 6 : NT == 2 ? 12 : 16) ? 1000000000000 :
  SPLIT > 1 && (ALL_TILES * SPLIT > (SPLIT > 2 ? sms - 12 : sms) || SPLIT > least(cdiv(k, 512))) ? 1000000000000 :
  cdiv(ALL_TILES * SPLIT, sms) * (1500 + cdiv(most(cdiv(k, 512)), SPLIT) * 3 / 2 * (30 + OCTETS * (135 + 8 * NT) + (groups > 1 ? 70 : 40) * NT))
    * (OCTETS < 5 ? 20 : OCTETS == 6 && most(m) > 8 && sum(m) >= 8 * groups ? 21 : 25) / 20 + (SPLIT > 1 ? 2000 + 200 * SPLIT : 0)
"""

[const]
TEAMS      = "NT == 1 && OCTETS != 5 ? 4 : NT <= 3 ? 3 : 2"  # of four warps; more registers where sums are many, or five octets
ONE_M      = "groups == 1 ? most(m) : 0"  # a dense shape needs no look at the group
ONE_K      = "least(k) == most(k) ? most(k) : 0"
GROUP_TILES = "groups > 1 && least(n) == most(n) && ONE_K > 0 && most(m) <= TOKENS ? cdiv(most(n), FEATURES) : 0"  # of every group
TOKENS     = "8 * NT"
FEATURES   = "8 * OCTETS"
OCTET_ROWS = "OCTETS == 4 && NT <= 2 ? 32 : 8"  # from one to the next: side by side, or as the atoms of scales have them
ALL_TILES  = "sum(cdiv(m, TOKENS) * cdiv(n, FEATURES))"
THREADS    = "128 * TEAMS + (NT == 3 ? 128 : 64)"
GRID       = "SPLIT > 1 ? ALL_TILES * SPLIT : min(ALL_TILES, sms)"
# A CTA's only tile: its sums meet all at once, in the ring, if a slot holds those of a team.
ONCE       = "NT > 1 && ALL_TILES * SPLIT <= sms && OCTETS * NT <= 2 * OCTETS + NT"
# Octets whose sums meet at once.
SUM_OCTETS = "ONCE ? OCTETS : NT == 1 && OCTETS % 4 == 0 ? 4 : NT == 1 && OCTETS % 3 == 0 ? 3 : NT <= 2 && OCTETS % 2 == 0 ? 2 : 1"
SLOT_BYTES = "4608 * OCTETS + 2304 * NT"
FIXED      = "(ONCE ? 0 : 2048 * TEAMS * SUM_OCTETS * NT) + 512 * OCTETS * NT + 2048"
# A slot is always the same team's: a team that is ahead may look at no barrier
# whose last phase another has not seen.
# With one octet of tokens 80 KB under way are best; with more octets, all there is.
ROUNDS     = "min((232448 - FIXED) / (TEAMS * SLOT_BYTES), NT == 1 ? cdiv(81920, TEAMS * SLOT_BYTES) : 16)"
# Stages that may be under way with two octets of tokens and more: 68 KB. The ring is
# deeper, so that teams need not wait, but memory brings what is asked for at once in
# no order: of a whole ring the first stage comes when nearly all are here.
WINDOW     = "NT == 1 ? SLOTS : min(SLOTS, 69632 / SLOT_BYTES)"
SLOTS      = "TEAMS * min(ROUNDS, cdiv(cdiv(ALL_TILES * SPLIT, GRID) * cdiv(most(cdiv(k, 512)), SPLIT), TEAMS))"

[[map]]
name    = "A"
tensor  = "a"
dims    = ["128", "m", "k / 256"]
strides = ["k / 2", "128"]
box     = ["128", "TOKENS", "2"]
swizzle = "128B"

[[map]]
name    = "B1"
tensor  = "b1"
dims    = ["128", "OCTET_ROWS", "n / OCTET_ROWS", "k / 256"]
strides = ["k / 2", "OCTET_ROWS * k / 2", "128"]
box     = ["128", "8", "OCTETS", "2"]
swizzle = "128B"

[[map]]
name    = "B2"
tensor  = "b2"
dims    = ["128", "OCTET_ROWS", "n / OCTET_ROWS", "k / 256"]
strides = ["k / 2", "OCTET_ROWS * k / 2", "128"]
box     = ["128", "8", "OCTETS", "2"]
swizzle = "128B"

[[map]]
name    = "SFA"
tensor  = "sfa"
box     = ["32", "TOKENS"]
swizzle = "none"

[[map]]
name    = "SFB1"
tensor  = "sfb1"
box     = ["32", "FEATURES"]
swizzle = "none"

[[map]]
name    = "ATOMS1"
tensor  = "sfb1_atoms"
type    = "u8"
box     = ["128", "8", "1"]
swizzle = "none"

[[map]]
name    = "SFB2"
tensor  = "sfb2"
box     = ["32", "FEATURES"]
swizzle = "none"

[[map]]
name    = "ATOMS2"
tensor  = "sfb2_atoms"
type    = "u8"
box     = ["128", "8", "1"]
swizzle = "none"

[[launch]]
kernel  = "dual_gemm"
grid    = "GRID"
block   = "THREADS"
smem    = "SLOTS * SLOT_BYTES + FIXED"
cluster = "SPLIT"
*/
#include <dgx/ptx/barrier.cuh>
#include <dgx/ptx/cluster.cuh>
#include <dgx/shared.cuh>
#include <dgx/stage.cuh>
#include <dgx/tile.cuh>
using namespace dgx;

constexpr u32 CONSUMER_WARPS = TEAMS * TEAM_WARPS;
constexpr u32 CONSUMERS = 32 * CONSUMER_WARPS;
static_assert(SLOTS % TEAMS == 0);

constexpr u32 PASS_SUMS = SUM_OCTETS * NT * 32;  // float4s: gate and up of one feature, two tokens
constexpr u32 PASSES = OCTETS / SUM_OCTETS;
constexpr u32 OWN_SUMS = PASS_SUMS / SPLIT;  // of a pass, that this CTA of the cluster ends

struct Shared {
  Stage ring[SLOTS];
  StageScales scales[SLOTS];
  float4 sums[CONSUMER_WARPS][ONCE ? 1 : PASS_SUMS];
  float4 inbox[PASSES][SPLIT][OWN_SUMS];
  u64 full[SLOTS], empty[SLOTS];
  u64 arrived;  // the other CTAs' sums

  __device__ __forceinline__ float4* sums_of(u32 warp) {
    if constexpr (ONCE) return reinterpret_cast<float4*>(&ring[warp / TEAM_WARPS]) + warp % TEAM_WARPS * PASS_SUMS;
    return sums[warp];
  }
};
static_assert(!ONCE || sizeof(Stage) >= TEAM_WARPS * PASS_SUMS * sizeof(float4));
static_assert(sizeof(Shared) <= SLOTS * SLOT_BYTES + FIXED);

__device__ __forceinline__ Work work_of(const Args& args, u32 tile) {
  const u32 rank = SPLIT == 1 ? 0 : ptx::cluster_rank();
  if constexpr (GROUP_TILES > 0) {
    constexpr u32 STAGES = (ONE_K + STAGE_K - 1) / STAGE_K;
    return {tile / TILES_EACH, 0, first_feature(tile % TILES_EACH), STAGES * rank / SPLIT, STAGES * (rank + 1) / SPLIT};
  }
  const u32 index = ONE_M ? 0 : find_group(args, tile);
  const Group group = group_at(args, index);
  const u32 m = ONE_M ? ONE_M : group.m, k = ONE_K ? ONE_K : group.k;
  const u32 token_tiles = (m + TOKENS - 1) / TOKENS, local = tile - group.tile_begin;
  const u32 stages = (k + STAGE_K - 1) / STAGE_K;
  return {index, local % token_tiles * TOKENS, first_feature(local / token_tiles), stages * rank / SPLIT,
          stages * (rank + 1) / SPLIT};
}

constexpr u32 TILES_APART = GRID / SPLIT;

__device__ __forceinline__ const TensorMap* maps_of(const Args& args, u32 group) {
  return (ONE_M || group < NEAR_GROUPS ? args.near_maps : args.maps) + group * MAPS;
}

// Two threads ask for all stages of all tiles, in the order they are consumed, each
// for its half of every stage.
struct Producer {
  const Args& args;
  Shared& shared;
  u32 tile, stage, slot = 0;
  Work work;

  __device__ __forceinline__ Producer(const Args& args, Shared& shared)
      : args(args), shared(shared), tile(blockIdx.x / SPLIT), work(work_of(args, tile)) {
    stage = work.begin;
  }

  __device__ __forceinline__ bool done() const { return tile >= args.tile_count; }

  __device__ __forceinline__ void load(bool gate, bool up) {
    const TensorMap* maps = maps_of(args, work.group);
    if (gate) {
      ptx::mbarrier_arrive_expect_tx(shared.full[slot], SLOT_BYTES);
      load_gate(shared.ring[slot], shared.scales[slot], shared.full[slot], maps, work, stage);
    }
    if (up) load_up(shared.ring[slot], shared.scales[slot], shared.full[slot], maps, work, stage);
    slot = slot + 1 == SLOTS ? 0 : slot + 1;
    if (++stage == work.end) {
      tile += TILES_APART;
      if (done()) return;
      work = work_of(args, tile);
      stage = work.begin;
    }
  }
};

// The warps' sums meet in shared memory, some octets at a time. With K split,
// each CTA of the cluster ends its share of them and sends the rest to theirs.
__device__ __forceinline__ void finish_tile(const float4 (&d)[OCTETS][NT], Shared& shared, const Args& args,
                                            const Work& work) {
  const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const Group group = group_at(args, work.group);
  const u32 rank = SPLIT == 1 ? 0 : ptx::cluster_rank();
#pragma unroll
  for (u32 pass = 0; pass < PASSES; ++pass) {
    if constexpr (ONCE) {
      ptx::named_sync<32 * TEAM_WARPS>(2 + warp / TEAM_WARPS);  // the team's last stage is read
    } else {
      ptx::named_sync<1, CONSUMERS>();  // the sums before are read
    }
#pragma unroll
    for (u32 octet = 0; octet < SUM_OCTETS; ++octet)
#pragma unroll
      for (u32 t = 0; t < NT; ++t)
        shared.sums_of(warp)[(octet * NT + t) * 32 + lane] = d[pass * SUM_OCTETS + octet][t];
    ptx::named_sync<1, CONSUMERS>();
    for (u32 at = threadIdx.x; at < PASS_SUMS; at += CONSUMERS) {
      float4 sum = shared.sums_of(0)[at];
#pragma unroll
      for (u32 other = 1; other < CONSUMER_WARPS; ++other) sum = plus(sum, shared.sums_of(other)[at]);
      if constexpr (SPLIT == 1) {
        store_sum(group, work, pass * PASS_SUMS + at, sum);
      } else {
        const u32 owner = at / OWN_SUMS;
        const u32 to = ptx::shared_address(&shared.inbox[pass][rank][at % OWN_SUMS]);
        if (owner == rank) {
          shared.inbox[pass][rank][at % OWN_SUMS] = sum;
        } else {
          ptx::store_async(ptx::remote_address(to, owner), sum.x, sum.y, sum.z, sum.w,
                           ptx::remote_address(ptx::shared_address(&shared.arrived), owner));
        }
      }
    }
  }
  if constexpr (SPLIT > 1) {
    ptx::named_sync<1, CONSUMERS>();
    ptx::mbarrier_wait(shared.arrived, 0);
    for (u32 at = threadIdx.x; at < PASSES * OWN_SUMS; at += CONSUMERS) {
      const u32 pass = at / OWN_SUMS, own = at % OWN_SUMS;
      float4 sum = shared.inbox[pass][0][own];
#pragma unroll
      for (u32 other = 1; other < SPLIT; ++other) sum = plus(sum, shared.inbox[pass][other][own]);
      store_sum(group, work, pass * PASS_SUMS + rank * OWN_SUMS + own, sum);
    }
  }
}

__device__ __forceinline__ void consume(Shared& shared, const Args& args) {
  const Place place;
  const u32 team = threadIdx.x / 32 / TEAM_WARPS;
  u32 turn = team, slot = team, phase = 0, end = 0;  // teams take stages by turns
  for (u32 tile = blockIdx.x / SPLIT; tile < args.tile_count; tile += TILES_APART) {
    const Work work = work_of(args, tile);
    end += work.end - work.begin;
    float4 d[OCTETS][NT] = {};
#pragma unroll 1
    for (; turn < end; turn += TEAMS) {
      ptx::mbarrier_wait(shared.full[slot], phase);
      DGX_STAMP(multiply);
      multiply<NT>(d, shared.ring[slot], shared.scales[slot], shared.empty[slot], place);
      slot += TEAMS;
      if (slot >= SLOTS) {
        slot -= SLOTS;
        phase ^= 1;
      }
    }
    DGX_STAMP(epilogue);
    if constexpr (SPLIT > 1) ptx::cluster_wait();
    finish_tile(d, shared, args, work);
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) dual_gemm(const __grid_constant__ Args args) {
  DGX_STAMP_KERNEL(args, dual_gemm);
  Shared& shared = shared_memory<Shared>();
  Producer producer(args, shared);
  prefetch_maps(maps_of(args, producer.work.group), threadIdx.x);
  const bool first = threadIdx.x == CONSUMERS, second = threadIdx.x == CONSUMERS + 32;
  if (first) {
    for (u32 i = 0; i < SLOTS; ++i) {
      ptx::mbarrier_init(shared.full[i], 1);
      ptx::mbarrier_init(shared.empty[i], TEAM_WARPS);
    }
    if constexpr (SPLIT > 1) ptx::mbarrier_init(shared.arrived, 1);
    ptx::mbarrier_init_fence();
    if constexpr (SPLIT > 1)
      ptx::mbarrier_arrive_expect_tx(shared.arrived, (SPLIT - 1) * PASSES * OWN_SUMS * sizeof(float4));
  }
  if (first) producer.load(true, true);  // before anybody is told that there are barriers
  __syncthreads();
  if constexpr (SPLIT > 1) ptx::cluster_arrive();
  if (threadIdx.x < CONSUMERS) {
    if constexpr (NT == 3) ptx::registers_grow<152>();
    consume(shared, args);
    return;
  }
  if constexpr (NT == 3) ptx::registers_shrink<56>();
  if (second) producer.load(false, false);
  if (first || second) {
    for (u32 i = 1; i < WINDOW && !producer.done(); ++i) producer.load(first, second);
    u32 here = 0, here_phase = 0;  // the stage that must be here before the next is asked for
    for (u32 phase = WINDOW < SLOTS; !producer.done();) {
      if constexpr (WINDOW < SLOTS) {
        ptx::mbarrier_wait(shared.full[here], here_phase);
        if (++here == SLOTS) here = 0, here_phase ^= 1;
      }
      ptx::mbarrier_wait(shared.empty[producer.slot], phase);
      producer.load(first, second);
      if (producer.slot == 0) phase ^= 1;
    }
  }
  __syncwarp();
  if constexpr (SPLIT > 1) ptx::cluster_wait();
}
