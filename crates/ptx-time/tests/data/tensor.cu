// A tile by the tensor core of a Blackwell: one thread hands it copies of
// scales and products, four warps read what it has summed and store it.
typedef unsigned u32;
typedef unsigned long long u64;

enum : u32 { INSTRUCTION = 1 << 7 | 1 << 10 | 64 / 8 << 17 | 128 / 128 << 27 };  // nvfp4, 128 x 64

extern "C" __global__ void __launch_bounds__(128) tensor(float* out, u32 steps) {
  extern __shared__ __align__(1024) unsigned char tile[];
  __shared__ u64 done;
  __shared__ u32 columns;
  const u32 shared = static_cast<u32>(__cvta_generic_to_shared(tile));
  const u32 done_at = static_cast<u32>(__cvta_generic_to_shared(&done));
  const u32 columns_at = static_cast<u32>(__cvta_generic_to_shared(&columns));
#pragma unroll 1
  for (u32 i = threadIdx.x; i < 26 * 1024 / 4; i += 128) reinterpret_cast<u32*>(tile)[i] = 0x38383838;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(done_at));
    asm volatile("fence.mbarrier_init.release.cluster;");
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncwarp();
  if (threadIdx.x < 32) {
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 128;" ::"r"(columns_at) : "memory");
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
  }
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  __syncthreads();
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  const u32 tmem = columns;
  u32 elected;
  asm volatile("{ .reg .pred one; elect.sync _|one, 0xffffffff; selp.u32 %0, 1, 0, one; }" : "=r"(elected));
  if (threadIdx.x < 32 && elected) {
    const u64 a = (shared >> 4) | u64(0x40004040) << 32, b = (shared + 16384 >> 4) | u64(0x40004040) << 32;
    const u64 scales = (shared + 24576 >> 4) | u64(0x4008) << 32;
#pragma unroll 1
    for (u32 step = 0; step < steps; ++step) {
      asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" ::"r"(tmem + 64), "l"(scales) : "memory");
      asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" ::"r"(tmem + 68), "l"(scales + 32) : "memory");
      asm volatile(
          "{ .reg .pred add; setp.ne.u32 add, %4, 0;\n"
          "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X [%0], %1, %2, %3, [%5], [%6], add; }" ::"r"(
              tmem),
          "l"(a), "l"(b), "r"(INSTRUCTION), "r"(step), "r"(tmem + 64), "r"(tmem + 68)
          : "memory");
    }
    asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(done_at) : "memory");
  }
  __syncwarp();
  asm volatile(
      "{ .reg .pred through;\n"
      "WAIT: mbarrier.try_wait.parity.shared::cta.b64 through, [%0], 0;\n"
      "@!through bra WAIT; }" ::"r"(done_at)
      : "memory");
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  const u32 own = tmem + (threadIdx.x / 32 << 21);
#pragma unroll 1
  for (u32 column = 0; column < 64; column += 4) {
    float x[4];
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3])
                 : "r"(own + column));
    asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
    for (float& y : x) asm volatile("" : "+f"(y)::"memory");
    for (int i = 0; i < 4; ++i) out[threadIdx.x * 64 + column + i] = x[i];
  }
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  __syncthreads();
  if (threadIdx.x < 32) asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 128;" ::"r"(tmem));
}
