/*dgx
summary  = "Weights from registers as the MMA's rows, tokens as its columns, gate without exchange"
parent   = "interleaved"
round    = 6
claim    = { geomean = 1.15, over = "cublas", why = "main loop at the tensor peak; no padding of small M" }
arch     = "sm_90a"
requires = ["k % 256 == 0", "n % FEATURES == 0"]
tiles    = "MIX > 0 ? ALL_TILES : cdiv(m, CAP) * (n / FEATURES)"
order    = "0 - 1000000000 * width - k"

# Tokens a tile of a group multiplies: its share, the same in all of them, rounded up. Each
# width is a loop of its own, which is compiled for half a second and fetched cold. So there
# are few: those by which the least work is padding.
[let]
share = "cdiv(m, cdiv(m, CAP))"
grain = "groups <= 16 ? 8 * SPLIT : share > 32 ? 64 : share > 16 ? 32 : 16"
width = "8 + 8 * next(TOKEN_SIZES, cdiv(share, 8) - 1)"

# A tile is 64 * WARPGROUPS weight rows (half B1, half B2) times at most CAP
# tokens; two CTAs may share its K, three or four if there are so many for each tile (such clusters
# leave some SMs out), or (SHARERS = 0) all CTAs the K of all tiles, evenly, in bands of K256, unless L2
# has too little room for tokens that CTAs read at different times. The tiling is the one whose tiles, dealt out to the SMs, end first. (One warpgroup starts
# with 128 registers a thread, too few for the MMA of more than 192 tokens.)
# Equal widths, a multiple of 8, seldom fit M and the SMs. So the tiles of a dense shape may have
# two: MIX = 1, every feature's last tokens go in tiles eight narrower; MIX = 2, some features' tokens
# go in one more, narrower tile each, as many as there is room for in the last wave.
[tune]
choose   = { FORM = [21, 22, 20, 23, 24, 31, 32, 30, 11, 12], CAP = [256, 248, 240, 232, 224, 216, 208, 200, 192, 184, 176, 168, 160, 152, 144, 136, 128, 120, 112, 104, 96, 88, 80, 72, 64] }
minimise = """
  WARPGROUPS == 3 && (CAP > 160 || TOKENS > 160 || most(n % 96) > 0) ? 1000000000000 :
  WARPGROUPS == 1 && (groups > 1 || TOKENS > 192 || MOST_M > 64 && (MOST_K > 2560 || ALL_TILES > sms)) ? 1000000000000 :
  SPLIT > 1 && (groups > 1 || least(k) < 512 * SPLIT) ? 1000000000000 :
  SPLIT > 1 && (SPLIT * ALL_TILES > sms || SLOT < TOKENS) ? 1000000000000 :
  MIX > 0 && (groups > 1 || ALL_TILES <= sms) ? 1000000000000 :
  MIX > 0 && (NARROW < 8 || NARROW >= WIDE || WIDE_FEATURES <= 0 || NARROW_TILES <= 0) ? 1000000000000 :
  (LATE ? 0 - (sum(m) - EARLY_ROWS) * MOST_K / 1024 : 0) +
  (MIX > 0 ? 1000 + WIDE_WAVES * (3000 + WARPGROUPS * most(k / 64) * max(2 * WIDE, 145 + WIDE * 105 / 100))
    + (cdiv(ALL_TILES, sms) - WIDE_WAVES) * (3000 + WARPGROUPS * most(k / 64) * max(2 * NARROW, 145 + NARROW * 105 / 100)) :
  EVEN == 0 ? makespan :
  least(k) < MOST_K || sum(m * k) > 4000000 || ALL_TILES * UNITS < 2 * sms ? 1000000000000 :
  (ALL_TILES < sms ? 9500 : 4500) + cdiv(ALL_TILES, sms) * 3000
  + max(0, cdiv(sms, ALL_TILES) - 2) * (1000 + 10 * TOKENS)
  + cdiv(ALL_TILES * UNITS, sms) * WARPGROUPS * 4 * UNIT_BANDS * max(2 * TOKENS, (WARPGROUPS == 1 ? 205 : 145) + TOKENS * 105 / 100)
    * (TOKENS > 128 ? 105 : 100) / 100)
"""

# Cycles of a tile of T = width tokens, measured: max(2T, 145 + 1.05T) per warpgroup and
# K64, 60 more if there is but one; fill and epilogue; and to meet the other
# shares of K, each with a like part of the tokens.
[deal]
workers = "min(sms / SPLIT, ALL_TILES)"
cost    = """
  3000 + (SPLIT - 1) * (500 + 60 * width / SPLIT)
  + WARPGROUPS * 4 * cdiv(k / 256, SPLIT) * max(2 * width, (WARPGROUPS == 1 ? 205 : 145) + width * 105 / 100)
"""

[const]
MOST_M        = "most(m)"
MOST_N        = "most(n)"
MOST_K        = "most(k)"
WARPGROUPS    = "FORM / 10"
SHARERS       = "FORM % 10"
SPLIT         = "SHARERS != 2 ? 1 : 4 * ALL_TILES <= sms - 12 && least(k) >= 3072 ? 4 : 3 * ALL_TILES <= sms - 24 && least(k) >= 2048 ? 3 : 2"
MIX           = "SHARERS > 2 ? SHARERS - 2 : 0"
EVEN          = "SHARERS == 0"
FEATURES      = "32 * WARPGROUPS"
ONE_M         = "groups == 1 ? MOST_M : 0"  # a dense shape needs no look at the group
ONE_N         = "groups == 1 ? MOST_N : 0"
ONE_K         = "groups == 1 ? MOST_K : 0"
GROUP_TILES   = "groups > 1 && least(n) == MOST_N && MOST_M <= CAP ? MOST_N / FEATURES : 0"  # of every group, where they are alike
TOKENS        = "most(width)"
# Of a dense shape whose tiles have two widths: token tiles by feature tiles of each, and where
# the narrow ones begin. The wide ones come first.
TOKEN_TILES     = "cdiv(MOST_M, CAP)"
FEATURE_TILES   = "MOST_N / FEATURES"
WIDE            = "align(cdiv(MOST_M, TOKEN_TILES), 8)"
NARROW          = "MIX == 1 ? WIDE - 8 : MIX == 2 ? align(cdiv(MOST_M, TOKEN_TILES + 1), 8) : 0"
WIDE_TILES      = "MIX == 1 ? cdiv(MOST_M - TOKEN_TILES * NARROW, 8) : TOKEN_TILES"
NARROW_TILES    = "MIX == 1 ? TOKEN_TILES - WIDE_TILES : TOKEN_TILES + 1"
NARROW_FEATURES = "MIX == 1 ? FEATURE_TILES : cdiv(FEATURE_TILES * TOKEN_TILES, sms) * sms - FEATURE_TILES * TOKEN_TILES"
WIDE_FEATURES   = "MIX == 1 ? FEATURE_TILES : FEATURE_TILES - NARROW_FEATURES"
WIDE_WAVES      = "cdiv(WIDE_TILES * WIDE_FEATURES, sms)"
NARROW_ROW      = "MIX == 1 ? WIDE_TILES * WIDE : 0"
NARROW_COLUMN   = "MIX == 1 ? 0 : WIDE_FEATURES * FEATURES"
# Tokens that the first wave does not need are prepared beside the products (late.cuh), if the
# makers, two warps a CTA, keep up: with six rows of tiles a wave, and, at 2.5 cycles an element,
# before the last wave. Tiles go through all features before the next tokens, so weights must fit L2.
FIRST_ROWS      = "cdiv(sms, max(1, MIX == 2 ? WIDE_FEATURES : FEATURE_TILES))"
EARLY_ROWS      = "FIRST_ROWS * WIDE"
MADE_IN_TIME    = "FIRST_ROWS <= 6 && 80 * cdiv(MOST_M - EARLY_ROWS, 2 * sms) <= (cdiv(ALL_TILES, sms) - 1) * max(2 * WIDE, 145 + WIDE * 105 / 100)"
LATE            = "groups == 1 && WARPGROUPS == 2 && SPLIT == 1 && EVEN == 0 && ALL_TILES > sms && MADE_IN_TIME && sum(n * k) <= 24000000 && EARLY_ROWS + 64 <= MOST_M"
WIDTHS        = 5
TOKEN_SIZES   = "levels(align(share, grain) / 8 - 1, cdiv(m, CAP) * (n / FEATURES) * (k / 256), WIDTHS) + (MIX > 0 ? bits(max(NARROW, 8) / 8 - 1) : 0)"
THREADS       = "128 * WARPGROUPS + 128"
ALL_TILES     = "MIX > 0 ? WIDE_TILES * WIDE_FEATURES + NARROW_TILES * NARROW_FEATURES : sum(cdiv(m, CAP) * (n / FEATURES))"
# Of even shares: bands that stay together, as many as let tiles of several widths follow one another,
# and how often a tile has so many, where groups agree.
UNIT_BANDS    = "groups == 1 ? 1 : 2"
UNITS         = "cdiv(MOST_K, 256 * UNIT_BANDS)"
PERSISTENT    = "EVEN || ALL_TILES * SPLIT > sms"
SCALE_BLOCKS  = "FEATURES == 96 ? 2 : 1"  # of 128 rows, that a tile may lie in
WEIGHT_BYTES  = "FEATURES * 256 + SCALE_BLOCKS * 4096"
OUT_BYTES     = "TOKENS / SPLIT * FEATURES * 2"
INBOX_BYTES   = "(SPLIT - 1) * 256 * WARPGROUPS * TOKENS / SPLIT"  # the other shares' sums
LIMIT         = "232448 - 1024 - INBOX_BYTES - LATE * 4096"
# Tokens of a slot of the ring: two steps of the widest tile, or what three stages of weights leave.
SLOT          = "1024 * TOKENS + 2 * WEIGHT_BYTES + OUT_BYTES <= LIMIT ? 2 * TOKENS : (LIMIT - 3 * WEIGHT_BYTES - OUT_BYTES) / 4096 * 8"
WEIGHT_STAGES = "min(4, (LIMIT - 512 * SLOT - OUT_BYTES) / WEIGHT_BYTES)"
# Stages of weights under way: where K is split the products wait for memory, which
# brings two stages sooner than four.
WINDOW        = "SPLIT > 1 ? 2 : WEIGHT_STAGES"
# More than half an SM's, or two small CTAs would share one and leave another idle.
SMEM          = "max(116 * 1024, 512 * SLOT + WEIGHT_STAGES * WEIGHT_BYTES + OUT_BYTES + INBOX_BYTES + LATE * 4096 + 1024)"
PREPARE_THREADS = 256
# Groups whose tokens differ so much that as many blocks for each would be thousands without work:
# some 1 ns each. To find a block's group takes longer where they are alike.
UNEVEN          = "most(m * k) * groups - sum(m * k) > 16000000"

[[scratch]]
name  = "tokens"
bytes = "m * k * 2"

# With EVEN what CTAs leave of tiles that others finish.
[[scratch]]
name  = "sums"
bytes = "EVEN ? sms * WARPGROUPS * TOKENS * 256 : 16"
per   = "call"

[[scratch]]
name  = "flags"
bytes = "EVEN ? sms * WARPGROUPS * 4 : 16"
per   = "call"
zero  = true

# With LATE: how many are made of each 256 late rows.
[[scratch]]
name  = "late"
bytes = "LATE ? 4 * cdiv(most(m) - EARLY_ROWS, 256) : 16"
per   = "call"

[[map]]
name    = "TOKENS"
tensor  = "tokens"
dims    = ["64", "m", "k / 64"]
strides = ["2 * k", "128"]
box     = ["64", "width", "2 * width <= SLOT ? 2 : 1"]
swizzle = "128B"

[[map]]
name    = "B1"
tensor  = "b1"
box     = ["128", "FEATURES"]
swizzle = "128B"

[[map]]
name    = "B2"
tensor  = "b2"
box     = ["128", "FEATURES"]
swizzle = "128B"

[[map]]
name    = "C"
tensor  = "c"
box     = ["32", "width / SPLIT"]
swizzle = "64B"

[[map]]
name    = "NARROW_TOKENS"
tensor  = "tokens"
dims    = ["64", "m", "k / 64"]
strides = ["2 * k", "128"]
box     = ["64", "max(8, NARROW)", "2 * NARROW <= SLOT ? 2 : 1"]
swizzle = "128B"

[[map]]
name    = "NARROW_C"
tensor  = "c"
box     = ["32", "max(8, NARROW)"]
swizzle = "64B"

[[launch]]
kernel = "prepare_tokens"
grid   = ["UNEVEN ? sum(cdiv(m * k, 32 * PREPARE_THREADS)) : cdiv(LATE ? EARLY_ROWS * most(k) : most(m * k), 32 * PREPARE_THREADS)", "UNEVEN ? 1 : groups"]
block  = "PREPARE_THREADS"

[[launch]]
kernel  = "dual_gemm"
grid    = "EVEN ? sms : min(sms, ALL_TILES * SPLIT)"
block   = "THREADS"
smem    = "SMEM"
cluster = "SPLIT"
pdl     = true
*/
#include <dgx/epilogue.cuh>
#include <dgx/swap_ab.cuh>
using namespace dgx;

// The same row of B1 and of B2, and the gate of their products.
struct DualGemm {
  static constexpr u32 GATE_MAP = MAP_B1, UP_MAP = MAP_B2, OUTPUTS = 1;
  static constexpr u32 NARROW_TOKENS_MAP = MAP_NARROW_TOKENS, NARROW_C_MAP = MAP_NARROW_C;
  static constexpr u32 USED_MAPS = NARROW > 0 ? MAPS : MAP_NARROW_TOKENS;

  static __device__ __forceinline__ const u8* gate_scales(const Group& group) { return group.sfb1_atoms; }
  static __device__ __forceinline__ const u8* up_scales(const Group& group) { return group.sfb2_atoms; }
  static __device__ __forceinline__ u32 up_row(u32, u32 row) { return row; }
  static __device__ __forceinline__ u32 pair(u32, const float* d) {
    return ptx::f32x2_to_f16x2(gated(d[0], d[2]), gated(d[1], d[3]));
  }
  static __device__ __forceinline__ LeftSums<WARPGROUPS, TOKENS / 2> left(const Args& args) {
    return {reinterpret_cast<float4*>(args.scratch[SCRATCH_SUMS]), reinterpret_cast<u32*>(args.scratch[SCRATCH_FLAGS])};
  }
#if LATE
  static __device__ __forceinline__ LateRows late(const Args& args) {
    return {reinterpret_cast<u32*>(args.scratch[SCRATCH_LATE])};
  }
#endif
};

extern "C" __global__ void __launch_bounds__(PREPARE_THREADS) prepare_tokens(const __grid_constant__ Args args) {
  DGX_STAMP_KERNEL(args, prepare_tokens);
#if LATE
  if (blockIdx.x == 0) open_late(DualGemm::late(args));
#endif
  prepare(args);
}

extern "C" __global__ void __launch_bounds__(THREADS, 65536 / REGISTERS) dual_gemm(const __grid_constant__ Args args) {
  DGX_STAMP_KERNEL(args, dual_gemm);
  multiply_all<DualGemm>(args);
}
