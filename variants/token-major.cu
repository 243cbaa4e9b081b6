/*dgx
summary  = "Many tokens: tokens from registers as the MMA's rows, the fewer weights prepared, gate without exchange"
parent   = "swap-ab"
round    = 7
claim    = { geomean = 1.05, over = "cublas", why = "the smaller operand is prepared, the larger read packed" }
arch     = "sm_90a"
requires = ["k % 256 == 0", "n % 128 == 0", "most(m) >= n"]
tiles    = "MIX ? ALL_TILES : cdiv(m, ROWS) * cdiv(n, FEATURES)"

# A tile is ROWS tokens times COLUMNS weight rows, half of B1 and half of B2; two
# CTAs may share its K, or (SHARERS = 0) all CTAs the bands of all tiles evenly, unless L2 has too
# little room for weights that CTAs read at different times, or (SHARERS = 3) a
# dense shape's last rows go in one more, narrower tile each, as many as there is room for in the
# last wave, or (SHARERS = 4) who has no tile in the last wave helps those who have. Cycles as
# measured for swap-ab, whose loop this is.
[tune]
choose   = { WARPGROUPS = [2, 3], COLUMNS = [256, 128, 224, 192, 160, 96, 208, 176, 144, 112], SHARERS = [1, 2, 0, 3, 4] }
minimise = """
  WARPGROUPS == 3 && COLUMNS > 128 ? 1000000000000 :
  SPLIT == 2 && (COLUMNS % 64 > 0 || 2 * ALL_TILES > sms || least(k) < 1024 || ROW_STAGES < 2) ? 1000000000000 :
  EVEN && (least(k) < most(k) || ALL_TILES * BANDS < 2 * sms || sum(n * k) > 12000000) ? 1000000000000 :
  MIX && (groups > 1 || WIDE_ROWS <= 0 || WIDE_ROWS >= ROW_TILES || NARROW >= COLUMNS) ? 1000000000000 :
  HELP && (groups > 1 || LAST == 0 || OWN_BANDS >= BANDS || BANDS < 2 * (HELPER_TILES + TILE_HELPERS)) ? 1000000000000 :
  HELP ? EQUAL_TILES / sms * (4000 + BANDS * BAND_CYCLES) + 5500 + TILE_HELPERS * 8 * WARPGROUPS * COLUMNS
    + max(OWN_BANDS * BAND_CYCLES, HELPER_TILES * ((BANDS - OWN_BANDS) * BAND_CYCLES / TILE_HELPERS + LEAVE_CYCLES)) :
  MIX ? WAVES * 4000 + WARPGROUPS * most(k / 64) * (WIDE_WAVES * max(2 * COLUMNS, 145 + COLUMNS * 105 / 100)
    + (WAVES - WIDE_WAVES) * max(2 * NARROW, 145 + NARROW * 105 / 100)) :
  EVEN ? 22000 + cdiv(ALL_TILES, sms) * 4000
    + cdiv(ALL_TILES * BANDS, sms) * WARPGROUPS * 4 * max(2 * COLUMNS, 145 + COLUMNS * 105 / 100) :
  cdiv(ALL_TILES, sms) * (4000 + (SPLIT - 1) * 30 * COLUMNS
    + WARPGROUPS * (most(k) / 64) / SPLIT * max(2 * COLUMNS, 145 + COLUMNS * 105 / 100))
"""

[const]
SPLIT       = "SHARERS == 2 ? 2 : 1"
EVEN        = "SHARERS == 0"
BANDS       = "most(k) / 256"  # of a tile, where groups agree
ONE_M       = "groups == 1 ? most(m) : 0"  # a dense shape needs no look at the group
ONE_K       = "groups == 1 ? most(k) : 0"
ROWS        = "64 * WARPGROUPS"
FEATURES    = "COLUMNS / 2"
THREADS     = "128 * WARPGROUPS + 128"
# Of a dense shape whose tiles have two widths: rows of tiles, those of them that have the wide
# ones, which come first, and the waves.
MIX         = "SHARERS == 3"
ROW_TILES   = "cdiv(most(m), ROWS)"
WIDE_TILES  = "cdiv(most(n), FEATURES)"  # of a row
NARROW      = "MIX ? align(cdiv(2 * most(n), WIDE_TILES + 1), 16) : 0"
WAVES       = "cdiv(EQUAL_TILES, sms)"
WIDE_ROWS   = "MIX ? ROW_TILES * (WIDE_TILES + 1) - WAVES * sms : 0"
WIDE_WAVES  = "MIX ? cdiv(WIDE_ROWS * WIDE_TILES, sms) : WAVES"
EQUAL_TILES = "sum(cdiv(m, ROWS) * cdiv(n, FEATURES))"  # of one width
ALL_TILES   = "MIX ? WAVES * sms : EQUAL_TILES"
# Where SMs without a tile help: the tiles of the last wave, how many of them each helper takes the last
# bands of, or how many helpers share those of each, and the bands that are left, such that both end
# at once. Cycles as measured: to leave a tile's sums, to add them, and 1500 to learn of them.
HELP         = "SHARERS == 4"
WHOLE_TILES  = "EQUAL_TILES / sms * sms"
LAST         = "EQUAL_TILES - WHOLE_TILES"
HELPER_TILES = "max(1, cdiv(LAST, sms - LAST))"
TILE_HELPERS = "LAST > 0 ? max(1, min(3, (sms - LAST) / LAST)) : 1"
HELPERS      = "TILE_HELPERS > 1 ? LAST * TILE_HELPERS : max(1, cdiv(LAST, HELPER_TILES))"
BAND_CYCLES  = "4 * WARPGROUPS * max(2 * COLUMNS, 145 + COLUMNS * 105 / 100)"
LEAVE_CYCLES = "500 + 6 * WARPGROUPS * COLUMNS"
OWN_BANDS    = "HELP ? (HELPER_TILES * (BANDS * BAND_CYCLES + LEAVE_CYCLES * TILE_HELPERS) / (HELPER_TILES + TILE_HELPERS) + BAND_CYCLES / 2) / BAND_CYCLES : BANDS"
LEFT_PARTS   = "EVEN ? sms : HELP ? LAST * TILE_HELPERS : 0"  # of tiles, that others finish
ROW_BYTES   = "ROWS * 144"  # a band of K256 with its scales
OUT_BYTES   = "ROWS * FEATURES / SPLIT * 2"
INBOX_BYTES = "(SPLIT - 1) * 128 * WARPGROUPS * COLUMNS"  # the other half's sums
ROW_STAGES  = "min(4, (232448 - 1024 - 512 * COLUMNS - OUT_BYTES - INBOX_BYTES) / ROW_BYTES)"
SMEM        = "512 * COLUMNS + ROW_STAGES * ROW_BYTES + OUT_BYTES + INBOX_BYTES + 1024"
PREPARE_THREADS = 256

[[scratch]]
name  = "weights"
bytes = "2 * n * k * 2"

# With EVEN or HELP what CTAs leave of tiles that others finish.
[[scratch]]
name  = "sums"
bytes = "max(16, LEFT_PARTS * WARPGROUPS * COLUMNS * 256)"
per   = "call"

[[scratch]]
name  = "flags"
bytes = "max(16, LEFT_PARTS * WARPGROUPS * 4)"
per   = "call"
zero  = true

[[map]]
name    = "A"
tensor  = "a"
box     = ["128", "ROWS"]
swizzle = "128B"

[[map]]
name    = "SFA"
tensor  = "sfa"
box     = ["16", "ROWS"]
swizzle = "none"

[[map]]
name    = "WEIGHTS"
tensor  = "weights"
dims    = ["k", "2 * n"]
box     = ["64", "COLUMNS"]
swizzle = "128B"

[[map]]
name    = "C"
tensor  = "c"
box     = ["32", "32"]
swizzle = "64B"

[[map]]
name    = "C_ODD"
tensor  = "c"
box     = ["16", "32"]
swizzle = "32B"

[[map]]
name    = "C_EIGHT"
tensor  = "c"
box     = ["8", "32"]
swizzle = "none"

[[map]]
name    = "NARROW_WEIGHTS"
tensor  = "weights"
dims    = ["k", "2 * n"]
box     = ["64", "max(NARROW, 16)"]
swizzle = "128B"

[[launch]]
kernel = "prepare_weights"
grid   = ["cdiv(most(2 * n * k), 32 * PREPARE_THREADS)", "groups"]
block  = "PREPARE_THREADS"

[[launch]]
kernel  = "dual_gemm"
grid    = "SPLIT == 2 ? 2 * ALL_TILES : EVEN ? sms : HELP && WHOLE_TILES == 0 ? LAST + HELPERS : HELP ? sms : min(sms, ALL_TILES)"
block   = "THREADS"
smem    = "SMEM"
cluster = "SPLIT"
pdl     = true
*/
#include <dgx/epilogue.cuh>
#include <dgx/even.cuh>
#include <dgx/fragment.cuh>
#include <dgx/ptx/barrier.cuh>
#include <dgx/ptx/matrix.cuh>
#include <dgx/ptx/tma.cuh>
#include <dgx/ptx/wgmma.cuh>
#include <dgx/shared.cuh>
#include <dgx/split_k.cuh>
#include <dgx/tile.cuh>
using namespace dgx;

constexpr u32 STEP_K = 64;
constexpr u32 STEPS = BAND / STEP_K;  // and slots of the ring of weights: slots are constants
constexpr u32 SLOT_BYTES = COLUMNS * STEP_K * 2;
constexpr u32 WINDOW = 2;  // of a ring, asked for before the first is here: all at once, it would come last
// Of every tile, where all have as many: with K = 256 there is no loop then.
constexpr u32 SAME_BANDS = EVEN || HELP || ONE_K / BAND % SPLIT > 0 ? 0 : ONE_K / BAND / SPLIT;
constexpr u32 CONSUMER_WARPS = 4 * WARPGROUPS;
constexpr u32 CONSUMER_REGISTERS = WARPGROUPS == 3 ? 160 : 232;
constexpr u32 PRODUCER_REGISTERS = WARPGROUPS == 3 ? 32 : 40;
static_assert((CONSUMER_REGISTERS * WARPGROUPS + PRODUCER_REGISTERS) * 128 <= 65536 / THREADS / 8 * 8 * THREADS);

// C of a warpgroup: the two blocks of 32 tokens that its fragments' upper and
// lower rows are, in panels of 32 features, perhaps one of 16, and perhaps one of 8.
constexpr u32 PANEL_BYTES = 32 * 64;
template <u32 Columns>
struct Panels {
  static constexpr u32 WIDTH = Columns / 2 / SPLIT, WHOLE = WIDTH / 32;
  static constexpr bool ODD = WIDTH % 32 >= 16, EIGHT = WIDTH % 16 == 8;
  static constexpr u32 ODD_AT = WHOLE * PANEL_BYTES, EIGHT_AT = ODD_AT + (ODD ? PANEL_BYTES / 2 : 0);
  static constexpr u32 BYTES = EIGHT_AT + (EIGHT ? PANEL_BYTES / 4 : 0);
  static_assert(WIDTH % 8 == 0);
};
constexpr u32 OUT_HALF = Panels<COLUMNS>::BYTES;
constexpr u32 USED_MAPS = MIX ? MAPS : Panels<COLUMNS>::EIGHT ? MAP_NARROW_WEIGHTS : MAP_C_EIGHT;

// A band of tokens is what the reader takes for gate and up: the first and the
// second half of the tile's rows.
constexpr u32 SCALE_BYTES = ROWS * BAND / 16;
using Rows = WeightStage<ROWS / 2, SCALE_BYTES>;
using Reader = WeightReader<ROWS / 2, ROW_STAGES, SCALE_BYTES>;

struct Shared {
  alignas(1024) u8 weights[STEPS][SLOT_BYTES];
  Rows rows[ROW_STAGES];
  alignas(1024) u8 out[WARPGROUPS][2][OUT_HALF];
  alignas(16) u8 inbox[SPLIT == 1 ? 16 : INBOX_BYTES];
  u64 weights_full[STEPS], weights_empty[STEPS];
  u64 rows_full[ROW_STAGES], rows_empty[ROW_STAGES];
  SplitBarriers split;
};
static_assert(sizeof(Shared) <= SMEM && sizeof(Rows) == ROW_BYTES && ROW_STAGES >= 2);

struct Work {
  const TensorMap* maps;
  u32 row, feature;
  u32 first_band, bands;  // this CTA's share of K
  u32 columns = COLUMNS;
  u32 part = 0;  // with HELP: the first of those that others make of the tile, or the one that is this
};

// Neighbouring CTAs take neighbouring rows, and so the same weights.
__device__ __forceinline__ Work work_of(const Args& args, u32 tile) {
#if MIX
  constexpr u32 WIDE = WIDE_ROWS * WIDE_TILES, NARROW_ROWS = ROW_TILES - WIDE_ROWS;
  if (tile < WIDE) return {args.maps, tile % WIDE_ROWS * ROWS, tile / WIDE_ROWS * FEATURES, 0, ONE_K / BAND};
  const u32 local = tile - WIDE, row = WIDE_ROWS + local % NARROW_ROWS;
  return {args.maps, row * ROWS, local / NARROW_ROWS * (NARROW / 2), 0, ONE_K / BAND, NARROW};
#else
  u32 m = ONE_M, k = ONE_K, local = tile, index = 0;
  if constexpr (ONE_M == 0) {
    index = find_group(args, tile);
    const Group group = group_at(args, index);
    m = group.m, k = group.k, local -= group.tile_begin;
  }
  const u32 row_tiles = (m + ROWS - 1) / ROWS;
  const u32 rank = SPLIT == 1 ? 0 : ptx::cluster_rank(), share = k / BAND / SPLIT;
  return {args.maps + index * MAPS, local % row_tiles * ROWS, local / row_tiles * FEATURES, share * rank,
          rank == 0 ? share : k / BAND - share};
#endif
}

// The tiles of a CTA: every so many; with helpers, then its part of the last wave; or, with even shares,
// parts of neighbours.
struct Walk {
  u32 at, end;   // tiles, or bands of all tiles
  u32 help = 0;  // parts of the last wave that are done

  __device__ __forceinline__ explicit Walk(const Args& args) : at(blockIdx.x / SPLIT), end(args.tile_count) {
    if constexpr (EVEN) {
      const EvenShares shares(args.tile_count * BANDS);
      at = shares.begin(shares.rank), end = shares.begin(shares.rank + 1);
    }
    if constexpr (HELP) end = WHOLE_TILES;
  }

  // The first bands of a tile of the last wave, or a helper's share of the others. Helpers are
  // the first CTAs: who waits, waits for one that was started before.
  __device__ __forceinline__ bool last(const Args& args, Work& work) {
    const bool helper = blockIdx.x < HELPERS;
    const u32 tile = helper ? blockIdx.x / TILE_HELPERS * HELPER_TILES + help : blockIdx.x - HELPERS;
    if (help >= (helper ? HELPER_TILES : 1) || tile >= LAST) return work.bands = 0, false;
    ++help;
    work = work_of(args, WHOLE_TILES + tile);
    const u32 share = helper ? blockIdx.x % TILE_HELPERS : 0;
    work.part = tile * TILE_HELPERS + share;
    constexpr u32 OTHERS = BANDS - OWN_BANDS;
    const u32 end = helper ? OWN_BANDS + OTHERS * (share + 1) / TILE_HELPERS : OWN_BANDS;
    work.first_band = helper ? OWN_BANDS + OTHERS * share / TILE_HELPERS : 0;
    work.bands = end - work.first_band;
    return true;
  }

  // Whether there is one more; if not, it has no bands.
  __device__ __forceinline__ bool next(const Args& args, Work& work) {
    if constexpr (HELP) {
      if (at >= end) return last(args, work);
    }
    if (at >= end) return work.bands = 0, false;
    if constexpr (EVEN) {
      work = work_of(args, at / BANDS);
      work.first_band = at % BANDS;
      work.bands = end - at < BANDS - work.first_band ? end - at : BANDS - work.first_band;
      at += work.bands;
    } else {
      work = work_of(args, at);
      at += gridDim.x / SPLIT;
    }
    return true;
  }

  // The loop of the producers. Its form counts: with K = 256 the second is 7 % slower, else 1 % faster.
  template <typename Body>
  __device__ __forceinline__ void each(const Args& args, const Body& body) {
    Work work{};
    if constexpr (ONE_K == BAND) {
      next(args, work);
      for (; work.bands > 0; next(args, work)) body(work);
    } else {
      while (next(args, work)) body(work);
    }
  }
};

__device__ __forceinline__ void produce_rows(Shared& shared, const Args& args) {
  u32 slot = 0, parity = 1, asked = 0;
  Walk(args).each(args, [&](const Work& work) {
#pragma unroll 1  // the producers have few registers
    for (u32 band = work.first_band; band < work.first_band + work.bands; ++band) {
      Rows& stage = shared.rows[slot];
      u64& full = shared.rows_full[slot];
      if (asked >= WINDOW && asked < ROW_STAGES) ptx::mbarrier_wait(shared.rows_full[asked - WINDOW], 0);
      ++asked;
      ptx::mbarrier_wait(shared.rows_empty[slot], parity);
      ptx::mbarrier_arrive_expect_tx(full, ROW_BYTES);
      ptx::tma_load_2d(ptx::shared_address(stage.gate), work.maps + MAP_A, band * (BAND / 2), work.row, full);
      ptx::tma_load_2d(ptx::shared_address(stage.scales), work.maps + MAP_SFA, band * (BAND / 16), work.row, full);
      if (++slot == ROW_STAGES) slot = 0, parity ^= 1;
    }
  });
}

__device__ __forceinline__ void produce_weights(Shared& shared, const Args& args) {
  ptx::wait_for_previous_launch();
  ptx::fence_proxy_async_global();
  u32 slot = 0, parity = 1, asked = 0;
  Walk(args).each(args, [&](const Work& work) {
#pragma unroll 1
    for (u32 step = 0; step < work.bands * STEPS; ++step) {
      u64& full = shared.weights_full[slot];
      if (asked >= WINDOW && asked < STEPS) ptx::mbarrier_wait(shared.weights_full[asked - WINDOW], 0);
      ++asked;
      ptx::mbarrier_wait(shared.weights_empty[slot], parity);
      ptx::mbarrier_arrive_expect_tx(full, MIX ? work.columns * STEP_K * 2 : SLOT_BYTES);
      const TensorMap* map = work.maps + (MIX && work.columns == NARROW ? MAP_NARROW_WEIGHTS : MAP_WEIGHTS);
      ptx::tma_load_2d(ptx::shared_address(shared.weights[slot]), map, (work.first_band * STEPS + step) * STEP_K,
                       2 * work.feature, full);
      if (++slot == STEPS) slot = 0, parity ^= 1;
    }
  });
}

// d = 64 tokens times weights^T over all of K, in units of 1 / UNSCALE.
template <u32 Columns>
__device__ __forceinline__ void multiply_tile(float (&d)[Columns / 2], Shared& shared, Reader& reader, u32& pass,
                                              u32 tile_bands) {
  const u32 bands = SAME_BANDS > 0 ? SAME_BANDS : tile_bands;
  const bool leader = threadIdx.x % 32 == 0;
  const u64 weights = ptx::swizzled_descriptor(ptx::shared_address(shared.weights));
#pragma unroll
  for (int i = 0; i < Columns / 2; ++i) d[i] = 0.0f;
  u32 fragments[2][4][4];
  RawFragments raw = reader.read(0, shared.rows_full, shared.rows_empty);
  scale_fragments(fragments[0], raw);
  u32 band = 0;
  do {
#pragma unroll
    for (u32 step = 0; step < STEPS; ++step) {
      ptx::mbarrier_wait(shared.weights_full[step], pass % 2);
      ptx::wgmma_fence();
#pragma unroll
      for (u32 k16 = 0; k16 < STEP_K / 16; ++k16)
        ptx::Wgmma<Columns>::rs(d, fragments[step % 2][k16], weights + ((step * SLOT_BYTES + k16 * 32) >> 4), true);
      ptx::wgmma_commit();
      // The nibbles of the next step are taken apart while this one runs.
      if (step + 1 < STEPS || band + 1 < bands) raw = reader.read(step + 1, shared.rows_full, shared.rows_empty);
      ptx::wgmma_wait<1>();
      if (leader && (band > 0 || step > 0)) ptx::mbarrier_arrive(shared.weights_empty[(step + STEPS - 1) % STEPS]);
      scale_fragments(fragments[(step + 1) % 2], raw);
    }
    ++pass;
  } while (++band < bands);
  ptx::wgmma_wait<0>();
  ptx::pin(d);
  DGX_STAMP(epilogue);
  if (leader) ptx::mbarrier_arrive(shared.weights_empty[STEPS - 1]);
}

// Columns come as eight features of B1, then the same of B2: d[8j + i] and
// d[8j + 4 + i] are gate and up of one element.
__device__ __forceinline__ u32 gated_pair(const float* octet, u32 half) {
  const float* d = octet + 2 * half;
  return ptx::f32x2_to_f16x2(gated(d[0], d[4]), gated(d[1], d[5]));
}

// C leaves by TMA, which leaves out the rows past M. pair(half, octet) are two
// elements of it.
template <u32 Columns, typename Pair>
__device__ __forceinline__ void store_pairs(const Pair& pair_of, Shared& shared, const Work& work, u32 feature) {
  using Out = Panels<Columns>;
  const u32 group = threadIdx.x / 128, warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
  const bool leader = threadIdx.x % 128 == 0;
  if (leader) ptx::tma_store_wait_read<0>();
  ptx::named_sync<128>(group + 1);
  const u32 row = warp * 8 + lane % 8;
#pragma unroll
  for (u32 half = 0; half < 2; ++half) {
    const u32 out = ptx::shared_address(shared.out[group][half]);
    const auto pair = [&](u32 octet) -> u32 { return pair_of(half, octet); };
#pragma unroll
    for (u32 panel = 0; panel < Out::WHOLE; ++panel) {
      const u32 to = out + panel * PANEL_BYTES + row * 64 + (lane / 8 ^ row / 2 % 4) * 16;
      ptx::store_matrix_x4(to, pair(4 * panel), pair(4 * panel + 1), pair(4 * panel + 2), pair(4 * panel + 3));
    }
    if constexpr (Out::ODD) {
      const u32 to = out + Out::ODD_AT + row * 32 + (lane / 8 % 2 ^ row / 4 % 2) * 16;
      ptx::store_matrix_x2(to, pair(4 * Out::WHOLE), pair(4 * Out::WHOLE + 1));
    }
    if constexpr (Out::EIGHT) ptx::store_matrix_x1(out + Out::EIGHT_AT + row * 16, pair(Out::WIDTH / 8 - 1));
  }
  ptx::fence_proxy_async_shared();
  ptx::named_sync<128>(group + 1);
  if (leader) {
#pragma unroll
    for (u32 half = 0; half < 2; ++half) {
      const u32 out = ptx::shared_address(shared.out[group][half]), first = work.row + half * (ROWS / 2) + group * 32;
#pragma unroll
      for (u32 panel = 0; panel < Out::WHOLE; ++panel)
        ptx::tma_store_2d(work.maps + MAP_C, feature + panel * 32, first, out + panel * PANEL_BYTES);
      if constexpr (Out::ODD)
        ptx::tma_store_2d(work.maps + MAP_C_ODD, feature + Out::WHOLE * 32, first, out + Out::ODD_AT);
      if constexpr (Out::EIGHT)
        ptx::tma_store_2d(work.maps + MAP_C_EIGHT, feature + Out::WIDTH - 8, first, out + Out::EIGHT_AT);
    }
    ptx::tma_store_commit();
  }
}

template <u32 Columns>
__device__ __forceinline__ void store_tile(const float (&d)[Columns / 2], Shared& shared, const Work& work) {
  const auto pair_of = [&](u32 half, u32 octet) -> u32 { return gated_pair(d + 8 * octet, half); };
  store_pairs<Columns>(pair_of, shared, work, work.feature);
}

// With K split: this CTA's half of the features, out of the sums of both.
template <u32 Rank>
__device__ __forceinline__ void store_half(const float (&d)[COLUMNS / 2], Shared& shared, const Work& work) {
  constexpr u32 CONSUMERS = CONSUMER_WARPS * 32;
  static_assert(CONSUMERS * COLUMNS == INBOX_BYTES);
  u32 pairs[2][COLUMNS / 32];
  constexpr u32 SIZE = part_size(COLUMNS / 4), OCTETS = SIZE / 8;
  const auto take = [&](u32 part, const float(&kept)[SIZE]) {
#pragma unroll
    for (u32 octet = 0; octet < OCTETS; ++octet)
#pragma unroll
      for (u32 half = 0; half < 2; ++half) pairs[half][part * OCTETS + octet] = gated_pair(kept + 8 * octet, half);
  };
  exchange_parts<Rank, 2, COLUMNS / 4, CONSUMERS>(d, ptx::shared_address(shared.inbox), shared.split, threadIdx.x, take);
  const auto pair_of = [&](u32 half, u32 octet) -> u32 { return pairs[half][octet]; };
  store_pairs<COLUMNS>(pair_of, shared, work, work.feature + Rank * (FEATURES / 2));
}

__device__ __forceinline__ LeftSums<WARPGROUPS, COLUMNS / 2> left_sums(const Args& args) {
  return {reinterpret_cast<float4*>(args.scratch[SCRATCH_SUMS]), reinterpret_cast<u32*>(args.scratch[SCRATCH_FLAGS])};
}

// With even shares: the result of a tile whose first band this was, with the sums of the
// CTAs that have the rest; else this CTA's sums.
__device__ __forceinline__ void store_share(float (&d)[COLUMNS / 2], Shared& shared, const Args& args, const Work& work,
                                            u32 at) {
  const auto left = left_sums(args);
  const EvenShares shares(args.tile_count * BANDS);
  if (work.first_band > 0) {
    left.leave(d, shares.rank);
    return;
  }
  const u32 tile_end = at - work.bands + BANDS;
  for (u32 rank = shares.rank + 1; shares.begin(rank) < tile_end; ++rank) left.add(d, rank);
  store_tile<COLUMNS>(d, shared, work);
}

// With helpers: the result of a tile, with the sums of those who helped; or, as a helper, these.
__device__ __forceinline__ void store_helped(float (&d)[COLUMNS / 2], Shared& shared, const Args& args,
                                             const Work& work, u32 help) {
  const auto left = left_sums(args);
  if (work.first_band > 0) {
    if (help > 1) left.wait_for_hand();
    left.leave(d, work.part);
    return;
  }
  if (help > 0)
    for (u32 share = 0; share < TILE_HELPERS; ++share) left.add(d, work.part + share);
  store_tile<COLUMNS>(d, shared, work);
}

// A warp of each helper.
__device__ __forceinline__ void hand_over_help(const Args& args) {
  const auto left = left_sums(args);
  Walk walk(args);
  walk.at = walk.end;
  for (Work work{}; walk.next(args, work);) {
    if (walk.help > 1) left.lend_hand();
    left.hand_over(work.part);
  }
}

__device__ __forceinline__ void consume(Shared& shared, const Args& args) {
  const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  Reader reader(shared.rows, warp * 8 + lane / 4, lane % 4);
  reader.gate_scales_at = scales_in_rows(reader.row, reader.lane);
  reader.up_scales_at = scales_in_rows(ROWS / 2 + reader.row, reader.lane);
  u32 pass = 0;
  Walk walk(args);
  Work work{};
  bool more = walk.next(args, work);
  // A width is wgmma's n: each has its own loop.
  for (; more && (!MIX || work.columns == COLUMNS); more = walk.next(args, work)) {
    float d[COLUMNS / 2];
    multiply_tile<COLUMNS>(d, shared, reader, pass, work.bands);
    if constexpr (EVEN) {
      store_share(d, shared, args, work, walk.at);
    } else if constexpr (HELP) {
      store_helped(d, shared, args, work, walk.help);
    } else if constexpr (SPLIT == 1) {
      store_tile<COLUMNS>(d, shared, work);
    } else if (ptx::cluster_rank() == 0) {
      store_half<0>(d, shared, work);
    } else {
      store_half<1>(d, shared, work);
    }
  }
#if MIX
  for (; more; more = walk.next(args, work)) {
    float d[NARROW / 2];
    multiply_tile<NARROW>(d, shared, reader, pass, work.bands);
    store_tile<NARROW>(d, shared, work);
  }
#endif
  if (threadIdx.x % 128 == 0) ptx::tma_store_wait_read<0>();
}

__device__ __forceinline__ void open(Shared& shared) {
  if (threadIdx.x == 0) {
    for (u32 i = 0; i < STEPS; ++i) {
      ptx::mbarrier_init(shared.weights_full[i], 1);
      ptx::mbarrier_init(shared.weights_empty[i], CONSUMER_WARPS);
    }
    for (u32 i = 0; i < ROW_STAGES; ++i) {
      ptx::mbarrier_init(shared.rows_full[i], 1);
      ptx::mbarrier_init(shared.rows_empty[i], CONSUMER_WARPS);
    }
    if constexpr (SPLIT > 1) shared.split.open<COLUMNS / 4, CONSUMER_WARPS * 32, SPLIT>();
    ptx::mbarrier_init_fence();
  }
  __syncthreads();
  if constexpr (SPLIT > 1) ptx::cluster_arrive(), ptx::cluster_wait();
}

// Weights to fp16 in the order of K in which tokens come, eight rows of B1 and
// the same of B2 by turns.
extern "C" __global__ void __launch_bounds__(PREPARE_THREADS) prepare_weights(const __grid_constant__ Args args) {
  DGX_STAMP_KERNEL(args, prepare_weights);
  ptx::allow_next_launch();
  const Group group = group_at(args, blockIdx.y);
  const u32 k = ONE_K ? ONE_K : group.k;
  __shared__ TokenChunks chunks[PREPARE_THREADS / 32];
  const u32 first = blockIdx.x * PREPARE_THREADS + threadIdx.x / 32 * 32;
  const auto source = [&](u32 row) -> PackedRow {
    const bool gate = row % 16 < 8;
    return {gate ? group.b1 : group.b2, gate ? group.sfb1 : group.sfb2, row / 16 * 8 + row % 8};
  };
  reorder_rows(source, reinterpret_cast<u16*>(group.scratch[SCRATCH_WEIGHTS]), k, first, 2 * group.n * (k / PART),
               chunks[threadIdx.x / 32]);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) dual_gemm(const __grid_constant__ Args args) {
  DGX_STAMP_KERNEL(args, dual_gemm);
  Shared& shared = shared_memory<Shared>();
  if (ONE_M > 0 && threadIdx.x < USED_MAPS) ptx::tma_prefetch_map(args.maps + threadIdx.x);
  const u32 warp = threadIdx.x / 32;  // behind open() the same code takes 4 % longer at K = 256
  open(shared);
  if (warp >= CONSUMER_WARPS) {
    ptx::registers_shrink<PRODUCER_REGISTERS>();
    if (warp == CONSUMER_WARPS && threadIdx.x % 32 == 0) produce_rows(shared, args);
    if (warp == CONSUMER_WARPS + 1 && threadIdx.x % 32 == 0) produce_weights(shared, args);
    if constexpr (EVEN) {
      const EvenShares shares(args.tile_count * BANDS);
      if (warp == CONSUMER_WARPS + 2 && shares.begin(shares.rank) % BANDS > 0) left_sums(args).hand_over(shares.rank);
    }
    if constexpr (HELP) {
      if (warp == CONSUMER_WARPS + 2 && blockIdx.x < HELPERS) hand_over_help(args);
    }
  } else {
    ptx::registers_grow<CONSUMER_REGISTERS>();
    consume(shared, args);
  }
}
