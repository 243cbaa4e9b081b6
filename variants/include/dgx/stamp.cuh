// When a warp began, waited, multiplied and ended: for `dgx profile` on a GPU.
// All of it is empty unless that compiles, which defines DGX_STAMPS (records a
// warp has room for), SCRATCH_STAMPS, and DGX_ROWS_kernel (the warps of all
// launches before). src/profile/stamps has the other end.
#pragma once
#include <dgx/abi.cuh>

#ifndef DGX_STAMPS

#define DGX_STAMP_KERNEL(args, kernel)
#define DGX_STAMP_WAIT(what)
#define DGX_STAMP(what)

#else

// First in a kernel: its warps have a row each.
#define DGX_STAMP_KERNEL(args, kernel) const dgx::stamp::Row dgx_row(args, DGX_ROWS_##kernel)
// From here to the end of the block, the lane that stamps waits.
#define DGX_STAMP_WAIT(what) const dgx::stamp::Wait dgx_wait(dgx::stamp::what)
// The lane that stamps comes to this point.
#define DGX_STAMP(what) dgx::stamp::record(dgx::stamp::what, dgx::stamp::clock())

namespace dgx::stamp {

// In small letters: a variant may define any word in capitals.
enum What : u32 { phase = 1, barrier, products, copies, launch, multiply, epilogue, some_products };

// What a wait is for that leaves so many groups of products under way.
__device__ constexpr What products_but(int pending) { return pending == 0 ? products : some_products; }

struct Head {
  u64 began_ns, began;  // by the card's clock, and by the SM's
  u64 ended_ns, ended;
  u32 sm, left;
  u32 reserved[6];
};
constexpr u32 row_bytes = sizeof(Head) + DGX_STAMPS * 8;
static_assert(sizeof(Head) == 64, "keep in step with src/profile/stamps");

__device__ __forceinline__ u32 clock() {
  u32 now;
  asm volatile("mov.u32 %0, %%clock;" : "=r"(now)::"memory");
  return now;
}

__device__ __forceinline__ void both_clocks(u64& nanos, u64& cycles) {
  asm volatile("mov.u64 %0, %%globaltimer;\nmov.u64 %1, %%clock64;" : "=l"(nanos), "=l"(cycles)::"memory");
}

// Where the next record goes and how many fit are registers of the kernel that
// only these lines name: nothing has to be handed down to where a warp waits.
__device__ __forceinline__ void record(u32 what, u32 from) {
  const u32 took = clock() - from;
  asm volatile(
      "{\n.reg .pred fits;\n"
      "setp.ne.u32 fits, dgx_stamps_left, 0;\n"
      "@fits st.global.v2.u32 [dgx_stamps_at], {%0, %1};\n"
      "@fits add.u64 dgx_stamps_at, dgx_stamps_at, 8;\n"
      "@fits sub.u32 dgx_stamps_left, dgx_stamps_left, 1;\n}" ::"r"(from),
      "r"(took << 4 | what)
      : "memory");
}

struct Wait {
  u32 what, from;
  __device__ __forceinline__ explicit Wait(What what) : what(what), from(clock()) {}
  __device__ __forceinline__ ~Wait() { record(what, from); }
};

struct Row {
  const Args& args;
  u32 first;  // row of the launch

  __device__ __forceinline__ Row(const Args& args, u32 first) : args(args), first(first) {
    u64 nanos, cycles;
    both_clocks(nanos, cycles);
    const bool leads = elected();
    asm volatile(
        ".reg .u64 dgx_stamps_at;\n.reg .u32 dgx_stamps_left;\n"
        "mov.u64 dgx_stamps_at, %0;\nmov.u32 dgx_stamps_left, %1;" ::"l"(leads ? head() + 1 : nullptr),
        "r"(leads ? DGX_STAMPS : 0)
        : "memory");
    if (leads) {
      head()->began_ns = nanos, head()->began = cycles;
      asm volatile("mov.u32 %0, %%smid;" : "=r"(head()->sm));
    }
  }

  __device__ __forceinline__ ~Row() {
    u64 nanos, cycles;
    both_clocks(nanos, cycles);
    u64 at;
    asm volatile("mov.u64 %0, dgx_stamps_at;" : "=l"(at));
    if (at == 0) return;
    head()->ended_ns = nanos, head()->ended = cycles;
    asm volatile("mov.u32 %0, dgx_stamps_left;" : "=r"(head()->left));
  }

  static __device__ __forceinline__ u32 thread() {
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  }

  // The lane that a whole warp elects, which is the same every time: what only
  // one thread does, it does, and it stamps for its warp.
  static __device__ __forceinline__ bool elected() {
    u32 elected;
    asm volatile(
        "{\n.reg .pred one;\n.reg .b32 here;\n"
        "activemask.b32 here;\nelect.sync _|one, here;\nselp.u32 %0, 1, 0, one;\n}"
        : "=r"(elected)::"memory");
    return elected != 0;
  }

  // Found anew, not kept: the kernels have no registers to spare.
  __device__ __forceinline__ Head* head() const {
    const u32 warps = (blockDim.x * blockDim.y * blockDim.z + 31) / 32;
    const u32 cta = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    const u64 row = first + cta * warps + thread() / 32;
    return reinterpret_cast<Head*>(args.scratch[SCRATCH_STAMPS] + row * row_bytes);
  }
};

}  // namespace dgx::stamp

#endif
