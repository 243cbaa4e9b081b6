/*dgx
operator = "nvfp4-gemm"
summary  = "Weights from registers as the MMA's rows, tokens as its columns; K shared where tiles are few"
parent   = "single-gemm"
claim    = { geomean = 1.2, over = "cublas", why = "a quarter of the bytes of fp16 weights, main loop near the tensor peak" }
arch     = "sm_90a"
requires = ["k % 256 == 0", "n % 256 == 0", "n / 2 % FEATURES == 0"]
tiles    = "cdiv(m, CAP) * (features / FEATURES)"
order    = "0 - 1000000000 * width - k"

# Tokens a tile of a group multiplies: its share, the same in all of them, rounded up. Each
# width is a loop of its own, which is compiled for half a second and fetched cold. So there
# are few: those by which the least work is padding.
[let]
features = "n / 2"  # a row of the first half of b, and its row of the second
share    = "cdiv(m, cdiv(m, CAP))"
grain    = "groups <= 16 ? 8 * SPLIT : share > 32 ? 64 : share > 16 ? 32 : 16"
width    = "8 + 8 * next(TOKEN_SIZES, cdiv(share, 8) - 1)"

# A tile is 64 * WARPGROUPS weight rows, from both halves of n, times at most CAP
# tokens; two CTAs may share its K. The tiling is the one whose tiles, dealt out
# to the SMs, end first. (One warpgroup starts with 128 registers a thread, too few
# for the MMA of more than 192 tokens.)
[tune]
choose   = { WARPGROUPS = [2, 3, 1], CAP = [256, 224, 192, 160, 128, 112, 96, 80, 64], SPLIT = [1, 2] }
minimise = """
  WARPGROUPS == 3 && (CAP > 160 || TOKENS > 160 || most(features % 96) > 0) ? 1000000000000 :
  WARPGROUPS == 1 && (groups > 1 || TOKENS > 192 || most(m) > 64 && (most(k) > 2048 || ALL_TILES > sms)) ? 1000000000000 :
  SPLIT == 2 && (groups > 1 || least(k) < 1024) ? 1000000000000 :
  SLOT < TOKENS || SPLIT == 2 && 2 * ALL_TILES > sms ? 1000000000000 :
  makespan
"""

# Cycles of a tile of T = width tokens, measured: max(2T, 145 + 1.05T) per warpgroup and
# K64, 60 more if there is but one; fill and epilogue; and 30T to meet the other half of K.
[deal]
workers = "min(sms / SPLIT, ALL_TILES)"
cost    = """
  3000 + (SPLIT - 1) * 30 * width
  + WARPGROUPS * (k / 64) / SPLIT * max(2 * width, (WARPGROUPS == 1 ? 205 : 145) + width * 105 / 100)
"""

[const]
FEATURES      = "32 * WARPGROUPS"
ONE_M         = "groups == 1 ? most(m) : 0"  # a dense shape needs no look at the group
ONE_N         = "groups == 1 ? most(features) : 0"
ONE_K         = "groups == 1 ? most(k) : 0"
TOKENS        = "most(width)"
WIDTHS        = 5
TOKEN_SIZES   = "levels(align(share, grain) / 8 - 1, cdiv(m, CAP) * (features / FEATURES) * (k / 256), WIDTHS)"
THREADS       = "128 * WARPGROUPS + 128"
ALL_TILES     = "sum(cdiv(m, CAP) * (features / FEATURES))"
GROUP_TILES   = 0  # of every group, where they are alike
EVEN          = 0
NARROW        = 0  # tiles of a second width
LATE          = 0  # tokens prepared beside the products
EARLY_ROWS    = 0
UNIT_BANDS    = 2  # for even shares
UNITS         = 1
PERSISTENT    = "ALL_TILES * SPLIT > sms"
SCALE_BLOCKS  = "FEATURES == 96 ? 2 : 1"  # of 128 rows, that a tile may lie in
WEIGHT_BYTES  = "FEATURES * 256 + SCALE_BLOCKS * 4096"
OUT_BYTES     = "TOKENS / SPLIT * FEATURES * 4"
INBOX_BYTES   = "(SPLIT - 1) * 128 * WARPGROUPS * TOKENS"  # the other half's sums
LIMIT         = "232448 - 1024 - INBOX_BYTES"
# Tokens of a slot of the ring: two steps of the widest tile, or what three stages of weights leave.
SLOT          = "1024 * TOKENS + 2 * WEIGHT_BYTES + OUT_BYTES <= LIMIT ? 2 * TOKENS : (LIMIT - 3 * WEIGHT_BYTES - OUT_BYTES) / 4096 * 8"
WEIGHT_STAGES = "min(4, (LIMIT - 512 * SLOT - OUT_BYTES) / WEIGHT_BYTES)"
# Stages of weights under way: where K is split the products wait for memory, which
# brings two stages sooner than four.
WINDOW        = "SPLIT == 2 ? 2 : WEIGHT_STAGES"
# More than half an SM's, or two small CTAs would share one and leave another idle.
SMEM          = "max(116 * 1024, 512 * SLOT + WEIGHT_STAGES * WEIGHT_BYTES + OUT_BYTES + INBOX_BYTES + 1024)"
PREPARE_THREADS = 256
# Groups whose tokens differ so much that as many blocks for each would be thousands without work:
# some 1 ns each. To find a block's group takes longer where they are alike.
UNEVEN          = "most(m * k) * groups - sum(m * k) > 16000000"

[[scratch]]
name  = "tokens"
bytes = "m * k * 2"

[[map]]
name    = "TOKENS"
tensor  = "tokens"
dims    = ["64", "m", "k / 64"]
strides = ["2 * k", "128"]
box     = ["64", "width", "2 * width <= SLOT ? 2 : 1"]
swizzle = "128B"

[[map]]
name    = "B"
tensor  = "b"
box     = ["128", "FEATURES"]
swizzle = "128B"

[[map]]
name    = "C"
tensor  = "c"
box     = ["32", "width / SPLIT"]
swizzle = "64B"

[[launch]]
kernel = "prepare_tokens"
grid   = ["UNEVEN ? sum(cdiv(m * k, 32 * PREPARE_THREADS)) : cdiv(most(m * k), 32 * PREPARE_THREADS)", "UNEVEN ? 1 : groups"]
block  = "PREPARE_THREADS"

[[launch]]
kernel  = "gemm"
grid    = "min(sms, ALL_TILES * SPLIT)"
block   = "THREADS"
smem    = "SMEM"
cluster = "SPLIT"
pdl     = true
*/
#include <dgx/swap_ab.cuh>
using namespace dgx;

// A row of the first half of b with the row as far into the second, and both products.
struct Halves {
  static constexpr u32 GATE_MAP = MAP_B, UP_MAP = MAP_B, OUTPUTS = 2;
  static constexpr u32 NARROW_TOKENS_MAP = MAP_TOKENS, NARROW_C_MAP = MAP_C, USED_MAPS = MAPS;

  static __device__ __forceinline__ const u8* gate_scales(const Group& group) { return group.sfb_atoms; }
  static __device__ __forceinline__ const u8* up_scales(const Group& group) {
    return group.sfb_atoms + u64(group.n / 2 / BLOCK_ROWS) * (group.k / BAND) * BLOCK_BYTES;
  }
  static __device__ __forceinline__ u32 up_row(u32 n, u32 row) { return row + n / 2; }
  static __device__ __forceinline__ u32 pair(u32 output, const float* d) {
    return ptx::f32x2_to_f16x2(d[2 * output] * UNSCALE, d[2 * output + 1] * UNSCALE);
  }
};

extern "C" __global__ void __launch_bounds__(PREPARE_THREADS) prepare_tokens(const __grid_constant__ Args args) {
  DGX_STAMP_KERNEL(args, prepare_tokens);
  prepare(args);
}

extern "C" __global__ void __launch_bounds__(THREADS, 65536 / REGISTERS) gemm(const __grid_constant__ Args args) {
  DGX_STAMP_KERNEL(args, gemm);
  multiply_all<Halves>(args);
}
