/*probe
question = "How many cycles does an access to shared memory hold the SM's one path to it, by width and conflicts, and how long until the data are there?"

[[case]]
name = "{ACCESS}/latency"
each = { ACCESS = ["lds4"] }
define = { CHAINS = 1, STRIDE = 4 }
block = 32
[[case]]
name = "{ACCESS}/latency"
each = { ACCESS = ["lds8"] }
define = { CHAINS = 1, STRIDE = 8 }
block = 32
[[case]]
name = "{ACCESS}/latency"
each = { ACCESS = ["lds16"] }
define = { CHAINS = 1, STRIDE = 16 }
block = 32
[[case]]
name = "{ACCESS}/latency"
each = { ACCESS = ["ldsm1", "ldsm4"] }
define = { CHAINS = 1, STRIDE = 16, MATRICES = 1 }
block = 32

[[case]]
name = "{ACCESS}/1-warp"
each = { ACCESS = ["lds4", "sts4"] }
define = { CHAINS = 8, STRIDE = 4 }
block = 128
[[case]]
name = "{ACCESS}/4-warps"
each = { ACCESS = ["lds4", "sts4"] }
define = { CHAINS = 8, STRIDE = 4 }
block = 512

[[case]]
name = "{ACCESS}/1-warp"
each = { ACCESS = ["lds8", "sts8"] }
define = { CHAINS = 8, STRIDE = 8 }
block = 128
[[case]]
name = "{ACCESS}/4-warps"
each = { ACCESS = ["lds8", "sts8"] }
define = { CHAINS = 8, STRIDE = 8 }
block = 512

[[case]]
name = "{ACCESS}/1-warp"
each = { ACCESS = ["lds16", "sts16"] }
define = { CHAINS = 8, STRIDE = 16 }
block = 128
[[case]]
name = "{ACCESS}/4-warps"
each = { ACCESS = ["lds16", "sts16", "both16"] }
define = { CHAINS = 8, STRIDE = 16 }
block = 512

[[case]]
name = "{ACCESS}/1-warp"
each = { ACCESS = ["ldsm1", "ldsm2", "ldsm4", "stsm1", "stsm2", "stsm4", "stsm4t"] }
define = { CHAINS = 8, STRIDE = 16, MATRICES = 1 }
block = 128
[[case]]
name = "{ACCESS}/4-warps"
each = { ACCESS = ["ldsm1", "ldsm2", "ldsm4", "stsm4"] }
define = { CHAINS = 8, STRIDE = 16, MATRICES = 1 }
block = 512

# Strides that make lanes meet in a bank; 0: all lanes read one word.
[[case]]
name = "lds4/stride-{STRIDE}"
each = { STRIDE = [0, 8, 16, 32, 64, 128] }
define = { ACCESS = "lds4", CHAINS = 8 }
block = 128
[[case]]
name = "sts4/stride-{STRIDE}"
each = { STRIDE = [8, 32, 128] }
define = { ACCESS = "sts4", CHAINS = 8 }
block = 128
[[case]]
name = "lds16/stride-{STRIDE}"
each = { STRIDE = [32, 64, 128] }
define = { ACCESS = "lds16", CHAINS = 8 }
block = 128
[[case]]
name = "sts16/stride-{STRIDE}"
each = { STRIDE = [64, 128] }
define = { ACCESS = "sts16", CHAINS = 8 }
block = 128
*/
#include <probe.cuh>

#ifndef MATRICES
#define MATRICES 0
#endif

// A lane's place holds the address of that place, so that each load needs the
// one before in its chain and none can be left out. `at` is the chain's part of
// shared memory. Volatile: else ptxas loads no more words than are used.
#define LOADED(form, list) asm volatile("{.reg .b32 q, r, s; " form " " list ", [%0 + %1];}" : "+r"(x) : "n"(at) : "memory")
#define STORED(form, list) asm volatile(form " [%0 + %1], " list ";" ::"r"(x), "n"(at), "r"(x) : "memory")

template <int at>
struct Access {
  static __device__ __forceinline__ void lds4(u32& x) { LOADED("ld.volatile.shared.u32", "%0"); }
  static __device__ __forceinline__ void lds8(u32& x) { LOADED("ld.volatile.shared.v2.u32", "{%0, q}"); }
  static __device__ __forceinline__ void lds16(u32& x) { LOADED("ld.volatile.shared.v4.u32", "{%0, q, r, s}"); }
  static __device__ __forceinline__ void ldsm1(u32& x) { LOADED("ldmatrix.sync.aligned.m8n8.x1.shared.b16", "{%0}"); }
  static __device__ __forceinline__ void ldsm2(u32& x) { LOADED("ldmatrix.sync.aligned.m8n8.x2.shared.b16", "{%0, q}"); }
  static __device__ __forceinline__ void ldsm4(u32& x) {
    LOADED("ldmatrix.sync.aligned.m8n8.x4.shared.b16", "{%0, q, r, s}");
  }
  static __device__ __forceinline__ void sts4(u32& x) { STORED("st.volatile.shared.u32", "%2"); }
  static __device__ __forceinline__ void sts8(u32& x) { STORED("st.volatile.shared.v2.u32", "{%2, %2}"); }
  static __device__ __forceinline__ void sts16(u32& x) { STORED("st.volatile.shared.v4.u32", "{%2, %2, %2, %2}"); }
  static __device__ __forceinline__ void stsm1(u32& x) { STORED("stmatrix.sync.aligned.m8n8.x1.shared.b16", "{%2}"); }
  static __device__ __forceinline__ void stsm2(u32& x) { STORED("stmatrix.sync.aligned.m8n8.x2.shared.b16", "{%2, %2}"); }
  static __device__ __forceinline__ void stsm4(u32& x) {
    STORED("stmatrix.sync.aligned.m8n8.x4.shared.b16", "{%2, %2, %2, %2}");
  }
  static __device__ __forceinline__ void stsm4t(u32& x) {
    STORED("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16", "{%2, %2, %2, %2}");
  }
  // A load and a store by turns, elsewhere.
  static __device__ __forceinline__ void both16(u32& x) {
    lds16(x);
    Access<at + 512>::sts16(x);
  }
};

// Bytes between the places of two chains.
constexpr int PART = 4096;

template <int C>
__device__ __forceinline__ void round(u32 (&x)[CHAINS]) {
  Access<(CHAINS - C) * PART>::ACCESS(x[CHAINS - C]);
  if constexpr (C > 1) round<C - 1>(x);
}

PROBE probe(ARGUMENTS) {
  __shared__ __align__(1024) u8 memory[8 * PART + 1024];
  const u32 base = shared_address(memory);
  const u32 mine = base + lane() * STRIDE;
  for (int c = 0; c < 8 && warp() == 0; ++c) {
    // Of an 8 x 8 matrix lane l is given word l. Otherwise it is given its own
    // first word, which is written last: other lanes' later words lie there too.
    if (MATRICES) store_shared_u32(base + c * PART + lane() * 4, mine);
    for (int word = MATRICES ? 0 : 4; word-- > 0;) store_shared_u32(mine + c * PART + 4 * word, mine);
  }
  u32 x[CHAINS];
#pragma unroll
  for (int c = 0; c < CHAINS; ++c) x[c] = mine;
  u64 start = 0, end = 0;
#pragma unroll 1
  for (int repetition = 0; repetition < 2; ++repetition) {
    __syncthreads();
    start = now();
#pragma unroll 1
    for (int i = 0; i < 8; ++i) {
#pragma unroll
      for (int u = 0; u < 32 / CHAINS; ++u) round<CHAINS>(x);
    }
    u32 sum = 0;
#pragma unroll
    for (int c = 0; c < CHAINS; ++c) sum += x[c];
    need(scratch, sum);
    end = now();
  }
  report(out, start, end);
}
