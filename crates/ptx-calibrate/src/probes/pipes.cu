/*probe
question = "How often can an SM partition issue an instruction of a class, and after how long is its result there?"

# One warp, each instruction needs the one before.
[[case]]
name = "{OP}/latency"
each = { OP = ["iadd", "lop3", "shf", "prmt", "sel", "imad", "fadd", "fmul", "ffma", "hfma2", "hmul2", "hadd2", "pack", "shfl", "imad_hi", "setp_sel"] }
define = { CHAINS = 2 }
block = 32

[[case]]
name = "{OP}/latency"
each = { OP = ["ex2", "rsqrt", "f16_to_f32", "e4m3_to_f16", "i2f", "popc", "vote"] }
define = { CHAINS = 1 }
block = 32

[[case]]
name = "{OP}/1-warp"
each = { OP = ["iadd", "lop3", "shf", "prmt", "sel", "imad", "imad_hi", "fadd", "fmul", "ffma", "hfma2", "hmul2", "hadd2", "pack", "shfl", "setp_sel", "ex2", "rsqrt", "f16_to_f32", "e4m3_to_f16", "i2f", "popc", "vote"] }
define = { CHAINS = 8 }
block = 128

[[case]]
name = "{OP}/4-warps"
each = { OP = ["iadd", "lop3", "shf", "prmt", "sel", "imad", "imad_hi", "fadd", "fmul", "ffma", "hfma2", "hmul2", "hadd2", "pack", "shfl", "setp_sel", "ex2", "rsqrt", "f16_to_f32", "e4m3_to_f16", "i2f", "popc", "vote"] }
define = { CHAINS = 8 }
block = 512

[[case]]
name = "{OP}/2-warps"
each = { OP = ["lop3", "imad", "ffma", "hmul2", "ex2"] }
define = { CHAINS = 8 }
block = 256

[[case]]
name = "{OP}/8-warps"
each = { OP = ["lop3", "imad", "ffma", "hmul2", "ex2"] }
define = { CHAINS = 8 }
block = 1024

# Two classes by turns: do they share a pipe?
[[case]]
name = "lop3+{OTHER}/4-warps"
each = { OTHER = ["imad", "ffma", "hmul2", "prmt", "shf", "pack", "e4m3_to_f16", "ex2", "sel", "iadd", "shfl"] }
define = { OP = "lop3", CHAINS = 8 }
block = 512

[[case]]
name = "hmul2+{OTHER}/4-warps"
each = { OTHER = ["ffma", "imad", "e4m3_to_f16", "prmt"] }
define = { OP = "hmul2", CHAINS = 8 }
block = 512

[[case]]
name = "ex2+{OTHER}/4-warps"
each = { OTHER = ["pack", "e4m3_to_f16", "popc", "f16_to_f32"] }
define = { OP = "ex2", CHAINS = 8 }
block = 512

[[case]]
name = "imad+ffma/4-warps"
define = { OP = "imad", OTHER = "ffma", CHAINS = 8 }
block = 512
*/
#include <probe.cuh>

// x is a chain's own word, y its neighbour's, z the same for all. Every
// result is used twice, so that ptxas cannot make one instruction of two; and none reads three
// registers, which might lie in one bank.
#define R "r"
#define op_iadd(x, y, z) asm volatile("add.s32 %0, %0, %1;" : "+r"(x) : R(y))
#define op_lop3(x, y, z) asm volatile("lop3.b32 %0, %0, %1, %2, 0xe8;" : "+r"(x) : R(y), R(z))
#define op_shf(x, y, z) asm volatile("shf.l.wrap.b32 %0, %0, %1, 7;" : "+r"(x) : R(y))
#define op_prmt(x, y, z) asm volatile("prmt.b32 %0, %0, %1, 0x5140;" : "+r"(x) : R(y))
#define op_sel(x, y, z) \
  asm volatile("{.reg .pred p; setp.ne.s32 p, %2, 5; selp.b32 %0, %0, %1, p;}" : "+r"(x) : R(y), R(z))
#define op_setp_sel(x, y, z) \
  asm volatile("{.reg .pred p; setp.lt.s32 p, %0, %1; selp.b32 %0, %2, %0, p;}" : "+r"(x) : R(z), R(y))
#define op_imad(x, y, z) asm volatile("mad.lo.s32 %0, %0, %1, %0;" : "+r"(x) : R(y))
#define op_imad_hi(x, y, z) asm volatile("mul.hi.u32 %0, %0, %1;" : "+r"(x) : R(y))
#define op_fadd(x, y, z) \
  asm volatile("{.reg .f32 a, b; mov.b32 a, %0; mov.b32 b, %1; add.rn.f32 a, a, b; mov.b32 %0, a;}" : "+r"(x) : R(y))
#define op_fmul(x, y, z) \
  asm volatile("{.reg .f32 a, b; mov.b32 a, %0; mov.b32 b, %1; mul.rn.f32 a, a, b; mov.b32 %0, a;}" : "+r"(x) : R(y))
#define op_ffma(x, y, z)                                                                                    \
  asm volatile("{.reg .f32 a, b; mov.b32 a, %0; mov.b32 b, %1; fma.rn.f32 a, a, b, a; "      \
               "mov.b32 %0, a;}"                                                                               \
               : "+r"(x)                                                                                       \
               : R(y))
#define op_hfma2(x, y, z) asm volatile("fma.rn.f16x2 %0, %0, %1, %0;" : "+r"(x) : R(y))
#define op_hmul2(x, y, z) asm volatile("mul.rn.f16x2 %0, %0, %1;" : "+r"(x) : R(y))
#define op_hadd2(x, y, z) asm volatile("add.rn.f16x2 %0, %0, %1;" : "+r"(x) : R(y))
#define op_pack(x, y, z)                                                                                 \
  asm volatile("{.reg .f32 a, b; mov.b32 a, %0; mov.b32 b, %1; cvt.rn.f16x2.f32 %0, a, b;}" : "+r"(x) : R(y))
#define op_ex2(x, y, z) \
  asm volatile("{.reg .f32 a; mov.b32 a, %0; ex2.approx.ftz.f32 a, a; mov.b32 %0, a;}" : "+r"(x))
#define op_rsqrt(x, y, z) \
  asm volatile("{.reg .f32 a; mov.b32 a, %0; rsqrt.approx.ftz.f32 a, a; mov.b32 %0, a;}" : "+r"(x))
#define op_f16_to_f32(x, y, z) \
  asm volatile("{.reg .f32 a; .reg .b16 l, h; mov.b32 {l, h}, %0; cvt.f32.f16 a, l; mov.b32 %0, a;}" : "+r"(x))
#define op_e4m3_to_f16(x, y, z) \
  asm volatile("{.reg .b16 l, h; mov.b32 {l, h}, %0; cvt.rn.f16x2.e4m3x2 %0, l;}" : "+r"(x))
#define op_i2f(x, y, z) asm volatile("{.reg .f32 a; cvt.rn.f32.s32 a, %0; mov.b32 %0, a;}" : "+r"(x))
#define op_popc(x, y, z) asm volatile("popc.b32 %0, %0;" : "+r"(x))
#define op_shfl(x, y, z) asm volatile("shfl.sync.idx.b32 %0, %0, %1, 0x1f, 0xffffffff;" : "+r"(x) : R(y))
#define op_vote(x, y, z) \
  asm volatile("{.reg .pred p; setp.ne.s32 p, %0, 5; vote.sync.ballot.b32 %0, p, 0xffffffff;}" : "+r"(x))

#define NAMED(name) op_##name
#define CALL(name) NAMED(name)

PROBE probe(ARGUMENTS) {
  // w: chains of the other class.
  u32 x[CHAINS], w[CHAINS];
  const u32 z = seed * 3 + 7;
#pragma unroll
  for (int c = 0; c < CHAINS; ++c) {
    x[c] = seed * (c + 1) + threadIdx.x * 5;
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
      for (int u = 0; u < 64 / CHAINS; ++u) {
#pragma unroll
        for (int c = 0; c < CHAINS; ++c) {
          CALL(OP)(x[c], x[(c + 1) % CHAINS], z);
#ifdef OTHER
          CALL(OTHER)(w[c], w[(c + 1) % CHAINS], z);
#endif
        }
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
