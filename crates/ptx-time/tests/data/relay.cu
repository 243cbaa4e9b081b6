// What the tests of the replay run: a producer warp hands words to a consumer
// warp through a ring of two slots, each with a full and an empty barrier.
typedef unsigned u32;
typedef unsigned long long u64;

__device__ __forceinline__ u32 at(const void* p) { return static_cast<u32>(__cvta_generic_to_shared(p)); }

__device__ __forceinline__ void arrive(u32 bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}

__device__ __forceinline__ void await(u32 bar, u32 parity) {
  u32 done;
  do {
    asm volatile(
        "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}\n"
        : "=r"(done)
        : "r"(bar), "r"(parity)
        : "memory");
  } while (!done);
}

extern "C" __global__ void relay(const u32* in, u32* out, u32 steps) {
  __shared__ u32 ring[2][32];
  __shared__ u64 full[2], empty[2];
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2; ++i) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" ::"r"(at(&full[i])) : "memory");
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" ::"r"(at(&empty[i])) : "memory");
    }
  }
  __syncthreads();
  const u32 lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
#pragma unroll 1
    for (u32 step = 0; step < steps; ++step) {
      const u32 slot = step % 2;
      await(at(&empty[slot]), step / 2 % 2 ^ 1);
      ring[slot][lane] = in[step * 32 + lane];
      arrive(at(&full[slot]));
    }
  } else {
    u32 sum = 0;
#pragma unroll 1
    for (u32 step = 0; step < steps; ++step) {
      const u32 slot = step % 2;
      await(at(&full[slot]), step / 2 % 2);
      sum = sum * 31 + ring[slot][lane];
      arrive(at(&empty[slot]));
    }
    out[blockIdx.x * 32 + lane] = sum;
  }
}
