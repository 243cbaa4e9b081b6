// Overwrites the remains of launches in an SM. Follows tools.cu.

// The CTAs' report on a scrub: how many came, on how many SMs, and how many went on without the
// others.
struct Meeting {
  u32 arrived, covered, gave_up;
  u32 seen[1024];  // by %smid; Meeting of scrub.rs
};

namespace {

constexpr u32 SCRUB_THREADS = 512;
// 128 registers for each of 512 threads are the whole register file. The rest is for addresses and
// counters.
constexpr u32 FILED = 117;

// No CTA goes on before all have come: all of them hold their SMs at once, so no SM is left out.
// Gives up after a second, and reports it.
__device__ void meet(volatile Meeting* meeting, u32 ctas) {
  __syncthreads();
  if (threadIdx.x == 0) {
    u32 sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    Meeting* const all = const_cast<Meeting*>(meeting);
    if (sm < 1024 && atomicExch(&all->seen[sm], 1) == 0) atomicAdd(&all->covered, 1);
    atomicAdd(&all->arrived, 1);
    const u64 began = global_nanos();
    while (meeting->arrived < ctas && global_nanos() - began < 1000000000ull) {
    }
    if (meeting->arrived < ctas) atomicAdd(&all->gave_up, 1);
  }
  __syncthreads();
}

#if defined(__CUDA_ARCH_FEAT_SM100_ALL)
// All 512 columns of tensor memory; its address is returned through `slot`.
__device__ void scrub_tensor_memory(u32 slot, u32 word) {
  const u32 warp = threadIdx.x / 32;
  if (warp == 0) {
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 512;" ::"r"(slot) : "memory");
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
  }
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  __syncthreads();
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  u32 base;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(base) : "r"(slot) : "memory");
  if (warp < 4) {
    for (u32 column = 0; column < 512; ++column)
      asm volatile("tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], {%1};" ::"r"(base + (warp * 32 << 16) + column),
                   "r"(word + column)
                   : "memory");
    asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
  }
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  __syncthreads();
  if (warp == 0) asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 512;" ::"r"(base));
  __syncthreads();
}
#endif

}  // namespace

// Overwrites the memory that a launch leaves in an SM and the next can read without writing it:
// shared memory, registers and tensor memory. One CTA per SM, with all the shared memory (`bytes`)
// that a CTA can have, and the driver's share of it (`reserved`).
extern "C" __global__ void __launch_bounds__(SCRUB_THREADS, 1)
    dgx_scrub(u64 seed, u32 bytes, u32 reserved, Meeting* meeting) {
  extern __shared__ uint4 shared_memory[];
  u32 sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  const u32 word = u32(hashed(seed, u64(sm) << 16 | threadIdx.x));
#if defined(__CUDA_ARCH_FEAT_SM100_ALL)
  scrub_tensor_memory(u32(__cvta_generic_to_shared(shared_memory)), word);
#endif
  for (u32 i = threadIdx.x; i < bytes / 16; i += SCRUB_THREADS) {
    const u32 odd = word + i * 0x9e3779b9u;
    shared_memory[i] = make_uint4(odd, odd ^ 0x85ebca6bu, odd * 0xc2b2ae35u, ~odd);
  }
  __syncthreads();
  // Read before the meeting and used after it, so that each keeps its own register.
  const volatile u32* const words = reinterpret_cast<const volatile u32*>(shared_memory);
  u32 file[FILED];
#pragma unroll
  for (u32 i = 0; i < FILED; ++i) file[i] = words[min(i * SCRUB_THREADS + threadIdx.x, bytes / 4 - 1)];
  meet(meeting, gridDim.x);
  u32 sum = words[0];
#pragma unroll
  for (u32 i = 0; i < FILED; ++i) sum = (sum ^ file[i]) * 0x01000193u;
  if (sum == 0x5eed) reinterpret_cast<volatile u32*>(shared_memory)[threadIdx.x] = sum;
  // The driver's share of a CTA's shared memory lies before it, and any kernel can write there.
  const u32 begin = u32(__cvta_generic_to_shared(shared_memory));
  for (u32 at = begin - reserved + 4 * threadIdx.x; at < begin; at += 4 * SCRUB_THREADS)
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(at), "r"(sum + at) : "memory");
}

namespace {

// Overwrites local memory: all threads that an SM holds, on all SMs at once.
template <u32 BYTES>
__device__ void scrub_local(u64 seed, Meeting* meeting) {
  volatile u32 local[BYTES / 4];
  u32 sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  const u32 word = u32(hashed(seed, u64(sm) << 16 | threadIdx.x));
  for (u32 i = 0; i < BYTES / 4; ++i) local[i] = word + i;
  meet(meeting, gridDim.x);
  if (local[word % (BYTES / 4)] == 0x5eed) meeting->seen[1023] = 1;
}

}  // namespace

// Keep in step with LOCAL of scrub.rs.
extern "C" __global__ void __launch_bounds__(SCRUB_THREADS, 4) dgx_scrub_local_2k(u64 seed, Meeting* meeting) {
  scrub_local<2048>(seed, meeting);
}

extern "C" __global__ void __launch_bounds__(SCRUB_THREADS, 4) dgx_scrub_local_8k(u64 seed, Meeting* meeting) {
  scrub_local<8192>(seed, meeting);
}

extern "C" __global__ void __launch_bounds__(SCRUB_THREADS, 4) dgx_scrub_local_32k(u64 seed, Meeting* meeting) {
  scrub_local<32768>(seed, meeting);
}
