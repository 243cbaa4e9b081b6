// Warpgroup MMA, m64 x n x k16, fp16 operands, fp32 accumulators, every legal n.
//
// d[i] of a thread is element (row, column) of the 64 x n tile with
//   row    = 16 * warp + lane / 4 + 8 * ((i / 2) % 2)
//   column = 8 * (i / 4) + 2 * (lane % 4) + i % 2
// and a[0..3] of the register form hold rows lane / 4 and + 8 at k = 2 * (lane % 4)
// (a0, a1), then the same at k + 8 (a2, a3), two halves each.
#pragma once
#include <dgx/ptx/wgmma_lists.cuh>
#include <dgx/stamp.cuh>

namespace dgx::ptx {

// Orders register writes (accumulators and A fragments) before the wgmmas that
// follow. Without it ptxas serialises the pipeline (C7519, C7520).
__device__ __forceinline__ void wgmma_fence() {
  DGX_STAMP(multiply);
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

template <int Pending>
__device__ __forceinline__ void wgmma_wait() {
  DGX_STAMP_WAIT(products_but(Pending));
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}

// Pins the accumulators here, so that no use of them moves above a wait.
template <int Count>
__device__ __forceinline__ void pin(float (&d)[Count]) {
#pragma unroll
  for (int i = 0; i < Count; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

template <int Count>
__device__ __forceinline__ void pin(u32 (&a)[Count]) {
#pragma unroll
  for (int i = 0; i < Count; ++i) asm volatile("" : "+r"(a[i])::"memory");
}

// Matrix descriptor of a K-major operand in 128-byte swizzled rows: 8-row
// groups 1024 bytes apart, 1 = 128B in the swizzle field, the leading offset
// unused. Tiles are 1024-byte aligned; k16 steps advance by 32 bytes.
__device__ __forceinline__ u64 swizzled_descriptor(u32 address) {
  constexpr u64 FIXED = (1ull << 62) | (u64(1024 >> 4) << 32) | (1ull << 16);
  return FIXED | ((address & 0x3FFFF) >> 4);
}

template <int N>
struct Wgmma;

#define DGX_WGMMA(N, LIST, BIND, REGISTERS, DESC_A, DESC_B, SS_SCALE, RS_DESC, RS_SCALE)                    \
  template <>                                                                                               \
  struct Wgmma<N> {                                                                                         \
    /* both operands by descriptor; accumulate = 0 overwrites d */                                          \
    static __device__ __forceinline__ void ss(float (&d)[N / 2], u64 a, u64 b, u32 accumulate) {            \
      asm volatile(                                                                                         \
          "{\n.reg .pred add;\nsetp.ne.b32 add, " SS_SCALE ", 0;\n"                                         \
          "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32.f16.f16 {" LIST "}, " DESC_A ", " DESC_B          \
          ", add, 1, 1, 0, 0;\n}"                                                                           \
          : BIND(d)                                                                                         \
          : "l"(a), "l"(b), "r"(accumulate));                                                               \
    }                                                                                                       \
    /* a from registers, b by descriptor */                                                                 \
    static __device__ __forceinline__ void rs(float (&d)[N / 2], const u32 (&a)[4], u64 b, u32 accumulate) { \
      asm volatile(                                                                                         \
          "{\n.reg .pred add;\nsetp.ne.b32 add, " RS_SCALE ", 0;\n"                                         \
          "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32.f16.f16 {" LIST "}, " REGISTERS ", " RS_DESC      \
          ", add, 1, 1, 0;\n}"                                                                              \
          : BIND(d)                                                                                         \
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));                           \
    }                                                                                                       \
  };

DGX_WGMMA(8, DGX_LIST_4, DGX_BIND_4, "{%4, %5, %6, %7}", "%4", "%5", "%6", "%8", "%9")
DGX_WGMMA(16, DGX_LIST_8, DGX_BIND_8, "{%8, %9, %10, %11}", "%8", "%9", "%10", "%12", "%13")
DGX_WGMMA(24, DGX_LIST_12, DGX_BIND_12, "{%12, %13, %14, %15}", "%12", "%13", "%14", "%16", "%17")
DGX_WGMMA(32, DGX_LIST_16, DGX_BIND_16, "{%16, %17, %18, %19}", "%16", "%17", "%18", "%20", "%21")
DGX_WGMMA(40, DGX_LIST_20, DGX_BIND_20, "{%20, %21, %22, %23}", "%20", "%21", "%22", "%24", "%25")
DGX_WGMMA(48, DGX_LIST_24, DGX_BIND_24, "{%24, %25, %26, %27}", "%24", "%25", "%26", "%28", "%29")
DGX_WGMMA(56, DGX_LIST_28, DGX_BIND_28, "{%28, %29, %30, %31}", "%28", "%29", "%30", "%32", "%33")
DGX_WGMMA(64, DGX_LIST_32, DGX_BIND_32, "{%32, %33, %34, %35}", "%32", "%33", "%34", "%36", "%37")
DGX_WGMMA(72, DGX_LIST_36, DGX_BIND_36, "{%36, %37, %38, %39}", "%36", "%37", "%38", "%40", "%41")
DGX_WGMMA(80, DGX_LIST_40, DGX_BIND_40, "{%40, %41, %42, %43}", "%40", "%41", "%42", "%44", "%45")
DGX_WGMMA(88, DGX_LIST_44, DGX_BIND_44, "{%44, %45, %46, %47}", "%44", "%45", "%46", "%48", "%49")
DGX_WGMMA(96, DGX_LIST_48, DGX_BIND_48, "{%48, %49, %50, %51}", "%48", "%49", "%50", "%52", "%53")
DGX_WGMMA(104, DGX_LIST_52, DGX_BIND_52, "{%52, %53, %54, %55}", "%52", "%53", "%54", "%56", "%57")
DGX_WGMMA(112, DGX_LIST_56, DGX_BIND_56, "{%56, %57, %58, %59}", "%56", "%57", "%58", "%60", "%61")
DGX_WGMMA(120, DGX_LIST_60, DGX_BIND_60, "{%60, %61, %62, %63}", "%60", "%61", "%62", "%64", "%65")
DGX_WGMMA(128, DGX_LIST_64, DGX_BIND_64, "{%64, %65, %66, %67}", "%64", "%65", "%66", "%68", "%69")
DGX_WGMMA(136, DGX_LIST_68, DGX_BIND_68, "{%68, %69, %70, %71}", "%68", "%69", "%70", "%72", "%73")
DGX_WGMMA(144, DGX_LIST_72, DGX_BIND_72, "{%72, %73, %74, %75}", "%72", "%73", "%74", "%76", "%77")
DGX_WGMMA(152, DGX_LIST_76, DGX_BIND_76, "{%76, %77, %78, %79}", "%76", "%77", "%78", "%80", "%81")
DGX_WGMMA(160, DGX_LIST_80, DGX_BIND_80, "{%80, %81, %82, %83}", "%80", "%81", "%82", "%84", "%85")
DGX_WGMMA(168, DGX_LIST_84, DGX_BIND_84, "{%84, %85, %86, %87}", "%84", "%85", "%86", "%88", "%89")
DGX_WGMMA(176, DGX_LIST_88, DGX_BIND_88, "{%88, %89, %90, %91}", "%88", "%89", "%90", "%92", "%93")
DGX_WGMMA(184, DGX_LIST_92, DGX_BIND_92, "{%92, %93, %94, %95}", "%92", "%93", "%94", "%96", "%97")
DGX_WGMMA(192, DGX_LIST_96, DGX_BIND_96, "{%96, %97, %98, %99}", "%96", "%97", "%98", "%100", "%101")
DGX_WGMMA(200, DGX_LIST_100, DGX_BIND_100, "{%100, %101, %102, %103}", "%100", "%101", "%102", "%104", "%105")
DGX_WGMMA(208, DGX_LIST_104, DGX_BIND_104, "{%104, %105, %106, %107}", "%104", "%105", "%106", "%108", "%109")
DGX_WGMMA(216, DGX_LIST_108, DGX_BIND_108, "{%108, %109, %110, %111}", "%108", "%109", "%110", "%112", "%113")
DGX_WGMMA(224, DGX_LIST_112, DGX_BIND_112, "{%112, %113, %114, %115}", "%112", "%113", "%114", "%116", "%117")
DGX_WGMMA(232, DGX_LIST_116, DGX_BIND_116, "{%116, %117, %118, %119}", "%116", "%117", "%118", "%120", "%121")
DGX_WGMMA(240, DGX_LIST_120, DGX_BIND_120, "{%120, %121, %122, %123}", "%120", "%121", "%122", "%124", "%125")
DGX_WGMMA(248, DGX_LIST_124, DGX_BIND_124, "{%124, %125, %126, %127}", "%124", "%125", "%126", "%128", "%129")
DGX_WGMMA(256, DGX_LIST_128, DGX_BIND_128, "{%128, %129, %130, %131}", "%128", "%129", "%130", "%132", "%133")

#undef DGX_WGMMA

}  // namespace dgx::ptx
