/*probe
question = "What do CTAs of a cluster pay to wait for one another and to reach each other's shared memory?"

[[case]]
name = "barrier/{CTAS}"
each = { CTAS = [2, 4, 8] }
define = { DEED = "barrier" }
grid = "CTAS"
cluster = "CTAS"
block = 128

[[case]]
name = "{DEED}"
each = { DEED = ["load", "ping_pong"] }
define = { CTAS = 2 }
grid = 2
cluster = 2
block = 32

# 16 bytes a thread by st.async, counted by the other CTA's barrier, both ways.
[[case]]
name = "store/{block}"
define = { DEED = "store", CTAS = 2 }
grid = 2
cluster = 2
block = 32
[[case]]
name = "store/{block}"
define = { DEED = "store", CTAS = 2 }
grid = 2
cluster = 2
block = 256
[[case]]
name = "read/{block}"
define = { DEED = "read", CTAS = 2 }
grid = 2
cluster = 2
block = 256
*/
#include <probe.cuh>
#include <dgx/ptx/cluster.cuh>
#include <dgx/ptx/mbarrier.cuh>

struct Shared {
  u64 full, ping;
  u32 self[32];
  float4 rows[8][256];
};

__device__ __forceinline__ u32 barrier(Shared&, u32 value, u32) {
  cluster_arrive();
  cluster_wait();
  return value;
}

// Each load needs the one before: the word there is its own address.
__device__ __forceinline__ u32 load(Shared&, u32 value, u32) {
  asm volatile("ld.shared::cluster.u32 %0, [%0];" : "+r"(value)::"memory");
  return value;
}

// Without .release.cluster: it is the way there and back that is asked for.
__device__ __forceinline__ void arrive_remote(u32 barrier) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}

__device__ __forceinline__ u32 ping_pong(Shared& s, u32 value, u32 i) {
  const u32 other = remote_address(shared_address(&s.ping), 1 - cluster_rank());
  if (threadIdx.x != 0) return value;
  if (cluster_rank() == 0) {
    arrive_remote(other);
    mbarrier_wait(s.ping, i & 1);
  } else {
    mbarrier_wait(s.ping, i & 1);
    arrive_remote(other);
  }
  return value;
}

// Eight rows to the other CTA, and as many from it.
__device__ __forceinline__ u32 store(Shared& s, u32 value, u32 i) {
  const u32 other = 1 - cluster_rank();
  const u32 full = remote_address(shared_address(&s.full), other);
  if (threadIdx.x == 0) mbarrier_arrive_expect_tx(s.full, 8 * 16 * blockDim.x);
#pragma unroll
  for (int row = 0; row < 8; ++row) {
    const u32 to = remote_address(shared_address(&s.rows[row][threadIdx.x]), other);
    store_async(to, 1.0f, 2.0f, 3.0f, 4.0f, full);
  }
  mbarrier_wait(s.full, i & 1);
  return value;
}

__device__ __forceinline__ u32 read(Shared& s, u32 value, u32 i) {
#pragma unroll
  for (int row = 0; row < 8; ++row) {
    // Other rows each time: else they are loaded once.
    const u32 from = remote_address(shared_address(&s.rows[(row + i) % 8][threadIdx.x]), 1 - cluster_rank());
    u32 a, b, c, d;
    asm volatile("ld.shared::cluster.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
                 : "r"(from)
                 : "memory");
    value ^= a ^ b ^ c ^ d;
  }
  return value;
}

PROBE probe(ARGUMENTS) {
  __shared__ Shared s;
  const u32 peer = (cluster_rank() + 1) % CTAS;
  const u32 self = remote_address(shared_address(&s.self[lane()]), peer);
  if (threadIdx.x == 0) {
    mbarrier_init(s.full, 1);
    mbarrier_init(s.ping, 1);
    mbarrier_init_fence();
  }
  // What the peer of this CTA's peer will follow is here: two CTAs.
  if (threadIdx.x < 32) s.self[lane()] = remote_address(shared_address(&s.self[lane()]), cluster_rank());
  for (int row = 0; row < 8; ++row) s.rows[row][threadIdx.x] = float4{1, 2, 3, 4};
  u32 value = self;
  u64 start = 0, end = 0;
  u32 i = 0;
#pragma unroll 1
  for (int repetition = 0; repetition < 2; ++repetition) {
    cluster_arrive();
    cluster_wait();
    start = now();
#pragma unroll 1
    for (int j = 0; j < 16; ++j, ++i) value = DEED(s, value, i);
    need(scratch, value);
    end = now();
  }
  // Nobody leaves while others may still reach into its memory.
  cluster_arrive();
  cluster_wait();
  report(out, start, end);
}
