// One instruction to stand beside products: CALL(BESIDE)(x, y, z) makes x of itself and, for some, of y
// and z.
#pragma once

#define beside_none(x, y, z) (void)0
#define beside_lop3(x, y, z) asm volatile("lop3.b32 %0, %0, %1, %2, 0xe8;" : "+r"(x) : "r"(y), "r"(z))
#define beside_hmul2(x, y, z) asm volatile("mul.rn.f16x2 %0, %0, %1;" : "+r"(x) : "r"(y))
#define beside_prmt(x, y, z) asm volatile("prmt.b32 %0, %0, %1, 0x5140;" : "+r"(x) : "r"(y))
#define beside_ffma(x, y, z)                                                                                \
  asm volatile("{.reg .f32 a, b, c; mov.b32 a, %0; mov.b32 b, %1; mov.b32 c, %2; fma.rn.f32 a, a, b, c; "   \
               "mov.b32 %0, a;}"                                                                            \
               : "+r"(x)                                                                                    \
               : "r"(y), "r"(z))
#define NAMED(name) beside_##name
#define CALL(name) NAMED(name)
