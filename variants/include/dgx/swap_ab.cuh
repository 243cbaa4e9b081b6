// GEMMs whose weights are the MMA's rows, dequantised in registers, and whose tokens are its
// columns. A warp's 16 rows are eight of one set of weight rows, "gate", and eight of another,
// "up": which rows these are, and what is stored of the two products, a Product says:
//
//   GATE_MAP, UP_MAP        the maps of the two sets of rows
//   gate_scales(group)      the atoms of their scales, from the first row of each set on
//   up_scales(group)
//   up_row(n, row)          the row of "up" that belongs to a row of "gate", as far into its block
//                           of 128
//   OUTPUTS                 1: a pair of rows makes column `row` of C; 2: and column `up_row`
//   pair(output, d)         two neighbouring tokens of one, from the sums of an octet of them
//   NARROW_TOKENS_MAP       with NARROW: the maps of tiles that are so wide
//   NARROW_C_MAP
//   USED_MAPS               those before it are fetched beforehand
//   left(args)              with EVEN: where CTAs leave sums (even.cuh)
//   late(args)              with LATE: how far late tokens are
//
// The constants are those of swap-ab's front matter.
#pragma once
#include <dgx/even.cuh>
#include <dgx/fragment.cuh>
#include <dgx/late.cuh>
#include <dgx/ptx/barrier.cuh>
#include <dgx/ptx/matrix.cuh>
#include <dgx/ptx/tma.cuh>
#include <dgx/ptx/wgmma_k64.cuh>
#include <dgx/shared.cuh>
#include <dgx/split_k.cuh>
#include <dgx/tile.cuh>

namespace dgx {

// K is taken in bands of K256, which fill the ring of tokens or half of it. Where tiles of different
// widths follow one another, in rounds of two, so that each begins with an empty ring: TMA fills
// what a K that is an odd multiple of 256 lacks with zeros.
constexpr u32 ROUND_BANDS = 2;
constexpr u32 STEP_K = 64;
constexpr u32 BAND_STEPS = BAND / STEP_K;
constexpr u32 CONSUMER_WARPS = 4 * WARPGROUPS;
constexpr u32 CONSUMER_REGISTERS = WARPGROUPS == 1 ? 208 : WARPGROUPS == 2 ? 232 : 160;
constexpr u32 PRODUCER_REGISTERS = WARPGROUPS == 3 ? 32 : 40;
// One warpgroup gets half of them, lest its threads start with more than they grow to.
constexpr u32 REGISTERS = WARPGROUPS == 1 ? 65536 / 2 : 65536;
static_assert((CONSUMER_REGISTERS * WARPGROUPS + PRODUCER_REGISTERS) * 128 <= REGISTERS / THREADS / 8 * 8 * THREADS);
constexpr u32 NEXT_SLOTS = 2;
constexpr u32 TOKEN_STAGES = 4;
constexpr u32 SLOT_BYTES = SLOT * STEP_K * 2;
static_assert(SLOT >= TOKENS && WEIGHT_STAGES >= 2);

// A slot takes two steps of a tile if they fit: as much in flight, and half
// the waiting, as with slots of one step.
__device__ constexpr u32 steps_per_slot(u32 tokens) { return 2 * tokens <= SLOT ? 2 : 1; }

constexpr u32 SCALE_BYTES = SCALE_BLOCKS * BLOCK_BYTES;  // of gate, and of up
using Weights = WeightStage<FEATURES, 2 * SCALE_BYTES>;
using Reader = WeightReader<FEATURES, WEIGHT_STAGES, 2 * SCALE_BYTES>;

struct Shared {
  alignas(1024) u8 tokens[TOKEN_STAGES][SLOT_BYTES];
  Weights weights[WEIGHT_STAGES];
  u8 out[WARPGROUPS][OUT_BYTES / WARPGROUPS];
  alignas(16) u8 inbox[SPLIT == 1 ? 16 : INBOX_BYTES];
  alignas(16) u8 chunks[LATE ? MAKERS * sizeof(TokenChunks) : 16];
  u64 tokens_full[TOKEN_STAGES], tokens_empty[TOKEN_STAGES];
  u64 weights_full[WEIGHT_STAGES], weights_empty[WEIGHT_STAGES];
  u64 next_full[NEXT_SLOTS], next_empty[NEXT_SLOTS];
  alignas(16) u32 next[NEXT_SLOTS][8];
  SplitBarriers split;
};
static_assert(sizeof(Shared) <= SMEM && sizeof(Weights) == WEIGHT_BYTES);

// A tile and what its loops need to know of the group; bands = 0 is the end.
struct Work {
  u32 row, column;  // first token, first feature
  u32 tokens;       // of a tile of this group
  u32 bands;        // of K256, this CTA's share
  u32 first_band;
  u32 group;

  __device__ __forceinline__ const TensorMap* map(const Args& args, u32 which) const {
    return (ONE_M > 0 ? args.near_maps : args.maps + group * MAPS) + which;
  }
};

// As `width` in the front matter.
__device__ __forceinline__ u32 width_of(u32 share) {
  const u32 least = (share - 1) / 8;
  return 8 * (least + __ffs(u32(TOKEN_SIZES) >> least));
}

// Of so many bands a tile's K is a multiple. (And the next tile is looked up in the second band.)
constexpr bool ONE_WIDTH = NARROW == 0 && (u32(TOKEN_SIZES) & (u32(TOKEN_SIZES) - 1)) == 0;
static_assert(!EVEN || ONE_WIDTH || UNIT_BANDS == ROUND_BANDS);
constexpr u32 WHOLE_BANDS = !PERSISTENT || (ONE_WIDTH && ONE_K > BAND) ? 1 : ROUND_BANDS;

// Token tiles that go through all features before the next: the tokens of all may
// be more than L2 holds. (Looking for it costs grouped shapes 1 %: dense ones only.)
// If tokens come late, one: the fewer are needed first.
constexpr u32 BLOCK = LATE ? 1 : 4;

// Tiles of one width: how many along the tokens and along the features, where they begin.
struct Tiles {
  u32 rows, columns;
  u32 row, column;
  u32 width;
};

#if NARROW > 0
// Of a dense shape with two widths, those that tile `local` is among; it becomes its number there.
__device__ __forceinline__ Tiles tiles_of_width(u32& local) {
  constexpr u32 ALL_WIDE = WIDE_TILES * WIDE_FEATURES;
  if (local < ALL_WIDE) return {WIDE_TILES, WIDE_FEATURES, 0, 0, TOKENS};
  local -= ALL_WIDE;
  return {NARROW_TILES, NARROW_FEATURES, NARROW_ROW, NARROW_COLUMN, NARROW};
}
#endif

__device__ __forceinline__ Work work_of(const Args& args, u32 tile) {
  u32 m = ONE_M, k = ONE_K, local = tile, index = 0;
  if constexpr (ONE_M == 0) {
    constexpr u32 EACH = GROUP_TILES > 0 ? GROUP_TILES : 1;
    index = GROUP_TILES > 0 ? tile / EACH : find_group(args, tile);
    const Group group = group_at(args, index);
    m = group.m, k = group.k, local -= GROUP_TILES > 0 ? index * EACH : group.tile_begin;
  }
  Tiles all{(m + CAP - 1) / CAP, ONE_N / FEATURES, 0, 0, 0};
  all.width = width_of((m + all.rows - 1) / all.rows);
#if NARROW > 0
  all = tiles_of_width(local);
#endif
  u32 block = 0, block_tiles = all.rows;
  if constexpr (LATE || ONE_M > BLOCK * CAP) {
    const u32 tiles = BLOCK * all.columns;
    block = local / tiles * BLOCK, local %= tiles;
    block_tiles = all.rows - block < BLOCK ? all.rows - block : BLOCK;
  }
  const u32 all_bands = (k / BAND + WHOLE_BANDS - 1) / WHOLE_BANDS * WHOLE_BANDS;
  const u32 rank = SPLIT == 1 ? 0 : ptx::cluster_rank();
  Work work;
  work.group = index;
  work.tokens = all.width;
  work.row = all.row + (block + local % block_tiles) * work.tokens;
  work.column = all.column + local / block_tiles * FEATURES;
  work.first_band = all_bands * rank / SPLIT;
  work.bands = all_bands * (rank + 1) / SPLIT - work.first_band;
  return work;
}

// Even shares are of units of UNIT_BANDS, UNITS a tile.
// The host has dealt out the tiles beyond one per CTA. The token producer takes
// up the next and looks up its group: the others find it in shared memory.
struct Hand {
  u32 count = 0;
  u32 unit = 0, end = 0;

  __device__ __forceinline__ Work first(const Args& args) {
    if constexpr (!EVEN) return work_of(args, blockIdx.x / SPLIT);
    const EvenShares shares(args.tile_count * UNITS);
    unit = shares.begin(shares.rank), end = shares.begin(shares.rank + 1);
    return share(args);
  }

  // What is next of an even share: of a dense shape everybody may reckon.
  __device__ __forceinline__ Work share(const Args& args) {
    Work work{};
    if constexpr (EVEN) {
      if (unit < end) {
        work = work_of(args, unit / UNITS);
        const u32 first = unit % UNITS, units = end - unit < UNITS - first ? end - unit : UNITS - first;
        work.first_band = first * UNIT_BANDS, work.bands = units * UNIT_BANDS;
        unit += units;
      }
    }
    return work;
  }

  __device__ __forceinline__ u32 slot() const { return count % NEXT_SLOTS; }
  __device__ __forceinline__ u32 parity() const { return count / NEXT_SLOTS % 2; }

  __device__ __forceinline__ void publish(Shared& shared, const Work& work) {
    ptx::mbarrier_wait(shared.next_empty[slot()], parity() ^ 1);
    const u32 at = ptx::shared_address(shared.next[slot()]);
    ptx::store_shared_v4(at, {work.row, work.column, work.tokens, work.bands});
    ptx::store_shared_v4(at + 16, {work.group, work.first_band, unit, 0});
    ptx::mbarrier_arrive(shared.next_full[slot()]);
    ++count;
  }

  __device__ __forceinline__ Work next(Shared& shared, const Args& args) {
    if constexpr (EVEN && ONE_M > 0) return share(args);
    Work work{};
    if constexpr (PERSISTENT) {
      ptx::mbarrier_wait(shared.next_full[slot()], parity());
      const u32 at = ptx::shared_address(shared.next[slot()]);
      const uint4 v = ptx::load_shared_v4(at), w = ptx::load_shared_v4(at + 16);
      work = {v.x, v.y, v.z, v.w, w.y, w.x};
      unit = w.z;
      __syncwarp();
      if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(shared.next_empty[slot()]);
      ++count;
    }
    return work;
  }
};

template <typename Product>
__device__ __forceinline__ void produce_tokens(Shared& shared, const Args& args) {
  Hand hand;
  Work work = hand.first(args);
  if (threadIdx.x % 32 != 0) return;
  ptx::wait_for_previous_launch();
  ptx::fence_proxy_async_global();
  u32 made = 0;  // blocks of late tokens that are known to be there
  const u32* dealt = args.deal + blockIdx.x;
  u32 slot = 0, parity = 1;
  while (work.bands > 0) {
    Work next{};
    u32 tile = args.tile_count;
    if constexpr (PERSISTENT && !EVEN) tile = *dealt, dealt += gridDim.x;
    const u32 together = steps_per_slot(work.tokens), bytes = together * work.tokens * STEP_K * 2;
    const TensorMap* map = work.map(args, work.tokens == NARROW ? Product::NARROW_TOKENS_MAP : MAP_TOKENS);
    if constexpr (LATE) wait_for_late(Product::late(args), work.row + work.tokens, made);
#pragma unroll 1  // the producers have few registers
    for (u32 step = 0; step < work.bands * BAND_STEPS; step += together) {
      ptx::mbarrier_wait(shared.tokens_empty[slot], parity);
      ptx::mbarrier_arrive_expect_tx(shared.tokens_full[slot], bytes);
      ptx::tma_load_3d(ptx::shared_address(shared.tokens[slot]), map, 0, work.row,
                       work.first_band * BAND_STEPS + step, shared.tokens_full[slot], ptx::EVICT_LAST);
      if (++slot == TOKEN_STAGES) slot = 0, parity ^= 1;
      // With the ring full there is time to wait for the number.
      if (PERSISTENT && !(EVEN && ONE_M > 0) && step == (TOKEN_STAGES - 1) * together) {
        if (EVEN) {
          next = hand.share(args);
        } else if (tile < args.tile_count) {
          next = work_of(args, tile);
        }
        hand.publish(shared, next);
      }
    }
    work = EVEN && ONE_M > 0 ? hand.share(args) : next;
  }
}

template <typename Product>
__device__ __forceinline__ void produce_weights(Shared& shared, const Args& args) {
  const bool leader = threadIdx.x % 32 == 0;
  Hand hand;
  u32 slot = 0, parity = 1;
  u32 asked = 0, here = 0, here_parity = 0;  // the stage that must be here before the next is asked for
  for (Work work = hand.first(args); work.bands > 0; work = hand.next(shared, args)) {
    if (leader) {
      const u32 y = work.column, blocks = blocks_of(y, FEATURES);
      const Group group = group_at(args, work.group);
      const u32 k = ONE_K ? ONE_K : group.k;
      const u64 atoms = u64(y / BLOCK_ROWS) * (k / BAND) * BLOCK_BYTES;
      const TensorMap* maps = work.map(args, 0);
      const u32 first = work.first_band, end = first + work.bands;
#pragma unroll 1  // the producers have few registers
      for (u32 band = first; band < end; ++band) {
        auto& stage = shared.weights[slot];
        u64& full = shared.weights_full[slot];
        if (WINDOW < WEIGHT_STAGES && ++asked > WINDOW) {
          ptx::mbarrier_wait(shared.weights_full[here], here_parity);
          if (++here == WEIGHT_STAGES) here = 0, here_parity ^= 1;
        }
        ptx::mbarrier_wait(shared.weights_empty[slot], parity);
        ptx::mbarrier_arrive_expect_tx(full, FEATURES * BAND + 2 * blocks * BLOCK_BYTES);
        ptx::tma_load_2d(ptx::shared_address(stage.gate), maps + Product::GATE_MAP, band * (BAND / 2), y, full,
                         ptx::EVICT_FIRST);
        ptx::tma_load_2d(ptx::shared_address(stage.up), maps + Product::UP_MAP, band * (BAND / 2),
                         Product::up_row(group.n, y), full, ptx::EVICT_FIRST);
        // Past K the weights are zeros, whatever their scales.
        const u32 scaled = band < k / BAND ? band : k / BAND - 1;
        const u32 scales = ptx::shared_address(stage.scales);
        load_blocks(scales, Product::gate_scales(group) + atoms, blocks, scaled, k, full);
        load_blocks(scales + SCALE_BYTES, Product::up_scales(group) + atoms, blocks, scaled, k, full);
        if (++slot == WEIGHT_STAGES) slot = 0, parity ^= 1;
      }
    }
    __syncwarp();
  }
}

// The fragments of a step, taken apart while the two steps before run. Of these the first, which
// reads the same registers, must be done before they are scaled; its tokens are then read, too.
template <u32 Together>
__device__ __forceinline__ void make_fragments(u32 (&fragments)[2][4][4], Shared& shared, Reader& reader, u32 step,
                                               u32 band, u32 first) {
  constexpr u32 SLOTS = BAND_STEPS / Together;
  const u32 before = TOKEN_STAGES - SLOTS - first;
  const RawFragments raw = reader.read(step, shared.weights_full, shared.weights_empty);
  ptx::wgmma_wait<1>();
  const u32 done = step > 1 ? first + (step - 2) / Together : before + (step + 2) / Together;
  if ((step + 1) % Together == 0 && threadIdx.x % 32 == 0 && (band > 0 || step > 1))
    ptx::mbarrier_arrive(shared.tokens_empty[done]);
  scale_fragments(fragments[step % 2], raw);
}

// d = weights (64 rows) times tokens^T over all of K, in units of 1 / UNSCALE.
template <int Tokens>
__device__ __forceinline__ void multiply_tile(float (&d)[Tokens / 2], Shared& shared, Reader& reader, u32& ring,
                                              u32 bands) {
  // Unrolled over a band, whose tokens fill the ring, or half of it. Not over more: a wgmma
  // takes the compiler 10 to 30 ms.
  constexpr u32 TOGETHER = steps_per_slot(Tokens), SLOTS = BAND_STEPS / TOGETHER;
  static_assert(BAND_STEPS == 4 && SLOTS * TOGETHER == TOKEN_STAGES && ROUND_BANDS % TOGETHER == 0);
  // One step ahead where each step waits for tokens of its own: ptxas serialises all wgmmas if a
  // wait comes between the last two steps and the fragments of the last after the first of these.
  constexpr bool AHEAD = TOGETHER == 1;
  const bool leader = threadIdx.x % 32 == 0;
  const u64 tokens = ptx::swizzled_descriptor(ptx::shared_address(shared.tokens));
  // Zeroed, not overwritten by the first wgmma: to ptxas a register that is
  // read before it is set lives through the whole kernel, in every width.
#pragma unroll
  for (int i = 0; i < Tokens / 2; ++i) d[i] = 0.0f;
  u32 fragments[2][4][4];
  u32 band = 0;
  if constexpr (AHEAD) make_fragments<TOGETHER>(fragments, shared, reader, 0, 0, 0);
  do {
    const u32 first = AHEAD ? 0 : ring % TOKEN_STAGES, parity = ring / TOKEN_STAGES % 2;
    const u64 band_tokens = tokens + first * (SLOT_BYTES >> 4);
#pragma unroll
    for (u32 step = 0; step < BAND_STEPS; ++step) {
      if constexpr (!AHEAD) make_fragments<TOGETHER>(fragments, shared, reader, step, band, first);
      const u32 slot = step / TOGETHER;
      if (step % TOGETHER == 0) ptx::mbarrier_wait(shared.tokens_full[first + slot], parity);
      ptx::wgmma_fence();
      const u64 at = band_tokens + ((slot * SLOT_BYTES + step % TOGETHER * (Tokens * STEP_K * 2)) >> 4);
      ptx::WgmmaK64<Tokens>::rs(d, fragments[step % 2], at);
      ptx::wgmma_commit();
      if constexpr (AHEAD) {
        if (step + 1 < BAND_STEPS || band + 1 < bands)
          make_fragments<TOGETHER>(fragments, shared, reader, step + 1, band, first);
      }
    }
    ring += SLOTS;
  } while (++band < bands);
  ptx::wgmma_wait<0>();
  ptx::pin(d);
  DGX_STAMP(epilogue);
  if constexpr (PERSISTENT) {
    const u32 end = TOGETHER == 1 ? TOKEN_STAGES : (ring - SLOTS) % TOKEN_STAGES + SLOTS;
#pragma unroll
    for (u32 slot = 2 / TOGETHER; slot > 0; --slot)
      if (leader) ptx::mbarrier_arrive(shared.tokens_empty[end - slot]);
  }
}

// Transpose through shared memory, store by TMA, which leaves out the rows past M.
template <typename Product, int Tokens>
__device__ __forceinline__ void store_pairs(const u32 (&pair)[Product::OUTPUTS][Tokens / 8], Shared& shared,
                                            const Args& args, const Work& work, u32 row) {
  constexpr u32 OUT = OUT_BYTES / WARPGROUPS / Product::OUTPUTS;
  const u32 group = threadIdx.x / 128, warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
  const u32 out = ptx::shared_address(shared.out[group]);
  const bool leader = threadIdx.x % 128 == 0;
  if constexpr (PERSISTENT) {
    if (leader) ptx::tma_store_wait_read<0>();
    ptx::named_sync<128>(group + 1);
  }
  // 64-byte rows, one a token, a warp's eight features in one 16-byte chunk.
  const u32 at = out + lane * 64 + (warp ^ (lane / 2 % 4)) * 16;
  const u32 at8 = out + lane % 8 * 64 + (warp ^ (lane / 2 % 4)) * 16;
#pragma unroll
  for (u32 o = 0; o < Product::OUTPUTS; ++o) {
    const u32(&p)[Tokens / 8] = pair[o];
#pragma unroll
    for (int i = 0; i + 4 <= Tokens / 8; i += 4)
      ptx::store_matrix_x4_transposed(at + o * OUT + i * 8 * 64, p[i], p[i + 1], p[i + 2], p[i + 3]);
#pragma unroll
    for (int i = Tokens / 32 * 4; i < Tokens / 8; ++i)
      ptx::store_matrix_x1_transposed(at8 + o * OUT + i * 8 * 64, p[i]);
  }
  ptx::fence_proxy_async_shared();
  ptx::named_sync<128>(group + 1);
  if (leader) {
    const u32 column = work.column + group * 32;
    const TensorMap* map = work.map(args, Tokens == NARROW ? Product::NARROW_C_MAP : MAP_C);
    ptx::tma_store_2d(map, column, row, out);
    if constexpr (Product::OUTPUTS == 2)
      ptx::tma_store_2d(map, Product::up_row(group_at(args, work.group).n, column), row, out + OUT);
    ptx::tma_store_commit();
  }
}

template <typename Product, int Tokens>
__device__ __forceinline__ void store_tile(const float (&d)[Tokens / 2], Shared& shared, const Args& args,
                                           const Work& work) {
  u32 pair[Product::OUTPUTS][Tokens / 8];
#pragma unroll
  for (u32 o = 0; o < Product::OUTPUTS; ++o)
#pragma unroll
    for (int i = 0; i < Tokens / 8; ++i) pair[o][i] = Product::pair(o, d + 4 * i);
  store_pairs<Product, Tokens>(pair, shared, args, work, work.row);
}

// With K split: this CTA's share of the tokens, out of the sums of all.
template <typename Product, int Tokens, u32 Rank>
__device__ __forceinline__ void store_part(const float (&d)[Tokens / 2], Shared& shared, const Args& args,
                                           const Work& work) {
  constexpr u32 CONSUMERS = CONSUMER_WARPS * 32, KEPT = Tokens / 2 / SPLIT;
  static_assert((SPLIT - 1) * KEPT * CONSUMERS * sizeof(float) == INBOX_BYTES);
  u32 pair[Product::OUTPUTS][KEPT / 4];
  constexpr u32 SIZE = part_size(KEPT), PAIRS = SIZE / 4;
  const auto take = [&](u32 part, const float(&kept)[SIZE]) {
#pragma unroll
    for (u32 o = 0; o < Product::OUTPUTS; ++o)
#pragma unroll
      for (u32 i = 0; i < PAIRS; ++i) pair[o][part * PAIRS + i] = Product::pair(o, kept + 4 * i);
  };
  exchange_parts<Rank, SPLIT, KEPT, CONSUMERS>(d, ptx::shared_address(shared.inbox), shared.split, threadIdx.x, take);
  store_pairs<Product, Tokens / SPLIT>(pair, shared, args, work, work.row + Rank * (Tokens / SPLIT));
}

// Which columns a CTA keeps must be constants: its sums are registers.
template <typename Product, int Tokens, u32 Rank = 0>
__device__ __forceinline__ void store_parts(const float (&d)[Tokens / 2], Shared& shared, const Args& args,
                                            const Work& work) {
  if (Rank + 1 == SPLIT || ptx::cluster_rank() == Rank) {
    store_part<Product, Tokens, Rank>(d, shared, args, work);
  } else if constexpr (Rank + 1 < SPLIT) {
    store_parts<Product, Tokens, Rank + 1>(d, shared, args, work);
  }
}

// With even shares: the result of a tile whose first band this was, with the sums of the
// CTAs that have the rest; else this CTA's sums.
template <typename Product, int Tokens>
__device__ __forceinline__ void store_share(float (&d)[Tokens / 2], Shared& shared, const Args& args, const Work& work,
                                            u32 unit) {
  const LeftSums<WARPGROUPS, TOKENS / 2> left = Product::left(args);
  const EvenShares shares(args.tile_count * UNITS);
  if (work.first_band > 0) {
    left.leave(d, shares.rank);
    return;
  }
  const u32 tile_end = unit - work.bands / UNIT_BANDS + UNITS;
  for (u32 rank = shares.rank + 1; shares.begin(rank) < tile_end; ++rank) left.add(d, rank);
  store_tile<Product, Tokens>(d, shared, args, work);
}

// A tile's width is wgmma's n, so each width that occurs has its own loop. The
// groups come in descending width (`order` in the front matter) and tiles are dealt in
// ascending number, so a CTA goes through these loops once, widest first.
template <typename Product, int Tokens>
__device__ __forceinline__ void consume(Shared& shared, const Args& args, Reader& reader, u32& ring, Hand& hand,
                                        Work& work) {
  if constexpr ((TOKEN_SIZES >> (Tokens / 8 - 1)) & 1) {
    while (work.bands > 0 && work.tokens == Tokens) {
      float d[Tokens / 2];
      reader.gate_scales_at = scales_in_blocks(work.column % BLOCK_ROWS + reader.row, reader.lane);
      reader.up_scales_at = SCALE_BYTES + reader.gate_scales_at;
      multiply_tile<Tokens>(d, shared, reader, ring, work.bands);
      if constexpr (EVEN) {
        store_share<Product, Tokens>(d, shared, args, work, hand.unit);
      } else if constexpr (SPLIT == 1) {
        store_tile<Product, Tokens>(d, shared, args, work);
      } else {
        store_parts<Product, Tokens>(d, shared, args, work);
      }
      work = hand.next(shared, args);
    }
  }
  if constexpr (Tokens > 8) consume<Product, Tokens - 8>(shared, args, reader, ring, hand, work);
}

template <typename Product>
__device__ __forceinline__ void consume_all(Shared& shared, const Args& args) {
  const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  Reader reader(shared.weights, warp * 8 + lane / 4, lane % 4);
  u32 ring = 0;  // slots of tokens that are read
  Hand hand;
  Work work = hand.first(args);
  consume<Product, TOKENS>(shared, args, reader, ring, hand, work);
  if (threadIdx.x % 128 == 0) ptx::tma_store_wait_read<0>();
}

__device__ __forceinline__ void open(Shared& shared) {
  if (threadIdx.x == 0) {
    for (u32 i = 0; i < TOKEN_STAGES; ++i) {
      ptx::mbarrier_init(shared.tokens_full[i], 1);
      ptx::mbarrier_init(shared.tokens_empty[i], CONSUMER_WARPS);
    }
    for (u32 i = 0; i < WEIGHT_STAGES; ++i) {
      ptx::mbarrier_init(shared.weights_full[i], 1);
      ptx::mbarrier_init(shared.weights_empty[i], CONSUMER_WARPS);
    }
    for (u32 i = 0; i < NEXT_SLOTS; ++i) {
      ptx::mbarrier_init(shared.next_full[i], 1);
      ptx::mbarrier_init(shared.next_empty[i], CONSUMER_WARPS + 1);
    }
    if constexpr (SPLIT > 1) shared.split.open<TOKENS / 2 / SPLIT, CONSUMER_WARPS * 32, SPLIT>();
    ptx::mbarrier_init_fence();
  }
  __syncthreads();
  if constexpr (SPLIT > 1) ptx::cluster_arrive(), ptx::cluster_wait();
}

// Tokens to fp16 in the weights' K order, once for all CTAs of the GEMM.
__device__ __forceinline__ void prepare(const Args& args) {
  ptx::allow_next_launch();
  u32 index = blockIdx.y, block = blockIdx.x;
  if constexpr (UNEVEN) {
    const auto blocks_of = [](const Group& group) -> u32 {
      return (group.m * (group.k / PART) + PREPARE_THREADS - 1) / PREPARE_THREADS;
    };
    index = find_group_by_blocks(args, blocks_of, block);
  }
  const Group group = group_at(args, index);
  const u32 m = LATE ? EARLY_ROWS : ONE_M ? ONE_M : group.m, k = ONE_K ? ONE_K : group.k;
  __shared__ TokenChunks chunks[PREPARE_THREADS / 32];
  const u32 first = block * PREPARE_THREADS + threadIdx.x / 32 * 32;
  reorder_tokens(group, reinterpret_cast<u16*>(group.scratch[SCRATCH_TOKENS]), k, first, m * (k / PART),
                 chunks[threadIdx.x / 32]);
}

template <typename Product>
__device__ __forceinline__ void make_late(Shared& shared, const Args& args, u32 maker) {
  ptx::wait_for_previous_launch();
  auto& chunks = reinterpret_cast<TokenChunks(&)[MAKERS]>(shared.chunks)[maker];
  make_late_tokens(Product::late(args), args.near[0], maker, chunks);
}

template <typename Product>
__device__ __forceinline__ void multiply_all(const Args& args) {
  Shared& shared = shared_memory<Shared>();
  if (ONE_M > 0 && threadIdx.x < Product::USED_MAPS) ptx::tma_prefetch_map(args.near_maps + threadIdx.x);
  open(shared);
  const u32 warp = threadIdx.x / 32;
  if (warp >= CONSUMER_WARPS) {
    ptx::registers_shrink<PRODUCER_REGISTERS>();
    if (warp == CONSUMER_WARPS) produce_weights<Product>(shared, args);
    if (warp == CONSUMER_WARPS + 1) produce_tokens<Product>(shared, args);
    if constexpr (LATE) {
      if (warp >= CONSUMER_WARPS + 2) make_late<Product>(shared, args, warp - CONSUMER_WARPS - 2);
    }
    if constexpr (EVEN) {
      const EvenShares shares(args.tile_count * UNITS);
      if (warp == CONSUMER_WARPS + 2 && shares.begin(shares.rank) % UNITS > 0)
        Product::left(args).hand_over(shares.rank);
    }
  } else {
    ptx::registers_grow<CONSUMER_REGISTERS>();
    consume_all<Product>(shared, args);
  }
}

}  // namespace dgx
