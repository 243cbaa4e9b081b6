/*probe
question = "What do an instruction of the integer unit and one of the multipliers cost together, by the registers they read, the banks these lie in, and their order?"

# By turns, each chain with its neighbours' words: ptxas puts these into banks that do not get in each
# other's way.
[[case]]
name = "{LOGIC}+{PRODUCT}/{block}"
each = { LOGIC = ["logic1", "logic2", "logic3"], PRODUCT = ["imad1", "imad2", "imad3", "half1", "half2", "single2", "single3"] }
block = 512
[[case]]
name = "{LOGIC}+{PRODUCT}/{block}"
each = { LOGIC = ["logic1", "logic2", "logic3"], PRODUCT = ["imad1", "imad2", "half1", "half2", "single3"] }
block = 128
[[case]]
name = "{LOGIC}+{PRODUCT}/{block}"
each = { LOGIC = ["logic1", "logic2"], PRODUCT = ["imad2", "half1", "half2"] }
block = 256
[[case]]
name = "{LOGIC}+{PRODUCT}/{block}"
each = { LOGIC = ["imad1", "imad2"], PRODUCT = ["half1", "half2", "single2"] }
block = 512

# One class alone: how many registers can be read.
[[case]]
name = "{LOGIC}/{block}"
each = { LOGIC = ["logic1", "logic2", "logic3", "imad1", "imad2", "imad3", "half1", "half2", "single1", "single2", "single3"] }
block = 512

# Two of the integer unit for one of the multipliers, as dequantising is.
[[case]]
name = "two-to-one/{LOGIC}+{PRODUCT}/{block}"
each = { LOGIC = ["logic1", "logic2", "logic3"], PRODUCT = ["imad2", "half1", "half2"] }
define = { TWICE = 1 }
block = 512
[[case]]
name = "two-to-one/{LOGIC}+{PRODUCT}/{block}"
each = { LOGIC = ["logic1", "logic2"], PRODUCT = ["imad2", "half1"] }
define = { TWICE = 1 }
block = 256

# Values that all lanes share are the uniform datapath's, if something else is on the usual one.
[[case]]
name = "shared/{LOGIC}+{PRODUCT}/{block}"
each = { LOGIC = ["logic2", "imad2"], PRODUCT = ["half2"] }
define = { SHARED = 1 }
block = 128
[[case]]
name = "shared/{LOGIC}+{PRODUCT}/{block}"
each = { LOGIC = ["logic2", "imad2"], PRODUCT = ["half2"] }
define = { SHARED = 1 }
block = 512
*/
#include <probe.cuh>

// x is a chain's own word, y and z are its neighbours'. The number says how many registers are read.
#define op_logic1(x, y, z) asm volatile("shf.l.wrap.b32 %0, %0, %0, 7;" : "+r"(x))
#define op_logic2(x, y, z) asm volatile("lop3.b32 %0, %0, 0x80808080, %1, 0xe2;" : "+r"(x) : "r"(y))
#define op_logic3(x, y, z) asm volatile("lop3.b32 %0, %0, %1, %2, 0xe8;" : "+r"(x) : "r"(y), "r"(z))
#define op_imad1(x, y, z) asm volatile("mad.lo.s32 %0, %0, %0, %0;" : "+r"(x))
#define op_imad2(x, y, z) asm volatile("mad.lo.s32 %0, %0, 12345, %1;" : "+r"(x) : "r"(y))
#define op_imad3(x, y, z) asm volatile("mad.lo.s32 %0, %0, %1, %2;" : "+r"(x) : "r"(y), "r"(z))
#define op_half1(x, y, z)                                                                                              \
  asm volatile("{.reg .b16 l, h; .reg .b32 c; mov.b32 {l, h}, %0; mov.b32 c, {l, l}; mul.rn.f16x2 %0, %0, c;}"         \
               : "+r"(x))
#define op_half2(x, y, z)                                                                                              \
  asm volatile("{.reg .b16 l, h; .reg .b32 c; mov.b32 {l, h}, %1; mov.b32 c, {l, l}; mul.rn.f16x2 %0, %0, c;}"         \
               : "+r"(x)                                                                                               \
               : "r"(y))
#define op_single1(x, y, z) \
  asm volatile("{.reg .f32 a; mov.b32 a, %0; fma.rn.f32 a, a, a, a; mov.b32 %0, a;}" : "+r"(x))
#define op_single2(x, y, z)                                                                                            \
  asm volatile("{.reg .f32 a, b; mov.b32 a, %0; mov.b32 b, %1; fma.rn.f32 a, a, 0f3f800001, b; mov.b32 %0, a;}"        \
               : "+r"(x)                                                                                               \
               : "r"(y))
#define op_single3(x, y, z)                                                                                            \
  asm volatile("{.reg .f32 a, b, c; mov.b32 a, %0; mov.b32 b, %1; mov.b32 c, %2; fma.rn.f32 a, a, b, c; "              \
               "mov.b32 %0, a;}"                                                                                       \
               : "+r"(x)                                                                                               \
               : "r"(y), "r"(z))

#define NAMED(name) op_##name
#define CALL(name) NAMED(name)

constexpr int CHAINS = 8;
#define X(chain) x[(chain) % CHAINS]
#define W(chain) w[(chain) % CHAINS]

PROBE probe(ARGUMENTS) {
  // w: chains of the other class.
  u32 x[CHAINS], w[CHAINS];
#pragma unroll
  for (int c = 0; c < CHAINS; ++c) {
#ifdef SHARED
    x[c] = seed * (c + 1);
#else
    x[c] = seed * (c + 1) + threadIdx.x * 5;
#endif
    w[c] = seed * (c + 3) + threadIdx.x * 11;
  }
  u64 start = 0, end = 0;
#pragma unroll 1
  for (int repetition = 0; repetition < 2; ++repetition) {
    __syncthreads();
    start = now();
#pragma unroll 1
    for (int i = 0; i < 8; ++i) {
#pragma unroll
      for (int u = 0; u < 64; ++u) {
        CALL(LOGIC)(X(u), X(u + 1), X(u + 2));
#ifdef TWICE
        CALL(LOGIC)(X(u + CHAINS / 2), X(u + CHAINS / 2 + 1), X(u + CHAINS / 2 + 2));
#endif
#ifdef PRODUCT
        CALL(PRODUCT)(W(u), W(u + 1), W(u + 2));
#endif
      }
    }
    u32 sum = 0;
#pragma unroll
    for (int c = 0; c < CHAINS; ++c) sum += x[c] ^ w[c];
    need(scratch, sum);
    end = now();
  }
  report(out, start, end);
}
