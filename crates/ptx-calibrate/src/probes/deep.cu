/*probe
question = "How fast do short pieces of many rows come by loads, where many are asked for before any is looked at?"

# As in `rows`: 64 bytes of eight rows an instruction, 64 rows a CTA; all pieces of AHEAD spans at once.
[[case]]
name = "{FORM}/one/{WARPS}x{AHEAD}"
each = { FORM = ["once", "both"], AHEAD = [1, 2] }
define = { WARPS = 14 }
block = "32 * WARPS"
smem = "512 * WARPS"
data = "64 * 4032"
[[case]]
name = "{FORM}/all/cold/{WARPS}x{AHEAD}"
each = { FORM = ["plain", "once", "both", "wide", "scales"], WARPS = [4, 7, 14], AHEAD = [1, 2] }
grid = 132
block = "32 * WARPS"
smem = "512 * WARPS"
data = "132 * 64 * 4032"
read = "nanos"
l2 = "cold"
# Half of the SMs: 17 MB, which L2 has room for wherever they lie.
[[case]]
name = "{FORM}/half/warm/{WARPS}x{AHEAD}"
each = { FORM = ["plain", "once", "both"], WARPS = [14], AHEAD = [1] }
grid = 66
block = "32 * WARPS"
smem = "512 * WARPS"
data = "66 * 64 * 4032"
read = "nanos"
*/
#include <probe.cuh>

constexpr u32 OCTETS = 8, ROWS = 8 * OCTETS, WIDTH = 3584, SCALES = WIDTH / 8, SPANS = WIDTH / 64;

// A lane's piece of a row, and its scales.
struct At {
  const u8 *words, *scale;
};
struct Found {
  uint4 words;
  u32 scale;
};

// Not by way of `.nc`, which may be moved across a barrier.
#define WORDS(form, v, at)                                                  \
  asm volatile("ld.global" form ".v4.u32 {%0, %1, %2, %3}, [%4];"           \
               : "=r"(v.words.x), "=r"(v.words.y), "=r"(v.words.z), "=r"(v.words.w) \
               : "l"(at.words)                                              \
               : "memory")
#define SCALE(form, v, at)                                                                    \
  {                                                                                           \
    u16 scale;                                                                                \
    asm volatile("ld.global" form ".u16 %0, [%1];" : "=h"(scale) : "l"(at.scale) : "memory"); \
    v.scale = scale;                                                                          \
  }
#define ONCE ".L1::no_allocate.L2::256B"

__device__ __forceinline__ void plain(Found& v, const At& at) { WORDS("", v, at); }
__device__ __forceinline__ void once(Found& v, const At& at) { WORDS(ONCE, v, at); }
__device__ __forceinline__ void scales(Found& v, const At& at) { SCALE("", v, at); }
__device__ __forceinline__ void both(Found& v, const At& at) {
  WORDS(ONCE, v, at);
  SCALE("", v, at);
}
// Scales in whole blocks, too.
__device__ __forceinline__ void wide(Found& v, const At& at) {
  WORDS(ONCE, v, at);
  SCALE(".L2::256B", v, at);
}

PROBE __launch_bounds__(448) probe(ARGUMENTS) {
  const u32 row = lane() / 4;
  const u8* words = data + u64(blockIdx.x) * ROWS * WIDTH + row * WIDTH + lane() % 4 * 16;
  const u8* scale = data + u64(gridDim.x) * ROWS * WIDTH + (u64(blockIdx.x) * ROWS + row) * SCALES + lane() % 4 * 2;
  extern __shared__ __align__(16) u8 memory[];
  const u32 own = shared_address(memory) + threadIdx.x * 16;
  __syncthreads();
  const u64 start = now();
#pragma unroll 1
  for (u32 span = warp(); span < SPANS; span += WARPS * AHEAD) {
    Found v[AHEAD][OCTETS] = {};
#pragma unroll
    for (u32 s = 0; s < AHEAD; ++s)
#pragma unroll
      for (u32 octet = 0; octet < OCTETS; ++octet) {
        const u32 at = span + s * WARPS;
        FORM(v[s][octet], {words + octet * 8 * WIDTH + at * 64, scale + octet * 8 * SCALES + at * 8});
      }
    // The assembler moves neither loads nor stores across a barrier, so nothing is waited for before all
    // are on their way.
    asm volatile("barrier.sync %0, 32;" ::"r"(warp() + 1) : "memory");
#pragma unroll
    for (u32 s = 0; s < AHEAD; ++s)
#pragma unroll
      for (u32 octet = 0; octet < OCTETS; ++octet) {
        store_shared_v4(own, v[s][octet].words);
        store_shared_u32(own, v[s][octet].scale);
      }
  }
  __syncthreads();
  const u64 end = now();
  report(out, start, end);
}
