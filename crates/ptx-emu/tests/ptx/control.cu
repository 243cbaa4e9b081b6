// Control flow as compilers emit it. Compiled to control.ptx by NVRTC 13.0 with
//   --gpu-architecture=compute_90a --std=c++17 -lineinfo
// and checked against the same computation in Rust.

typedef unsigned int u32;

extern "C" __global__ void collatz(const u32* in, u32* out, u32 n) {
  const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  u32 x = in[i], steps = 0;
  while (x != 1) {
    x = x % 2 ? 3 * x + 1 : x / 2;
    if (++steps == 200) break;
  }
  out[i] = steps;
}

extern "C" __global__ void nested(const u32* in, u32* out) {
  const u32 i = threadIdx.x;
  u32 sum = 0;
#pragma unroll 1
  for (u32 a = 0; a <= in[i] % 7; ++a) {
    if (a == 3) continue;
#pragma unroll 1
    for (u32 b = 0; b < 10; ++b) {
      if (b * a > i) break;
      sum += a * 16 + b;
      if ((sum & 15) == 5) {
        sum ^= i;
        continue;
      }
      sum += 1;
    }
  }
  out[i] = sum;
}

extern "C" __global__ void table(const u32* in, u32* out) {
  const u32 i = threadIdx.x;
  u32 x = in[i];
  switch (x % 11) {
    case 0: x += 7; break;
    case 1: x = __brev(x); break;
    case 2: x ^= 0x5555; [[fallthrough]];
    case 3: x *= 3; break;
    case 4: out[i] = 99; return;
    case 5: x = x << (i & 7); break;
    case 6: x = __popc(x); break;
    case 7: x -= i; break;
    case 8: x = x / 5; break;
    default: x = ~x;
  }
  out[i] = x;
}

struct Pair {
  u32 low;
  unsigned long long high;
  unsigned char tag;
};

__device__ __noinline__ Pair twist(Pair p, u32 turns) {
  for (u32 t = 0; t < turns; ++t) {
    if (p.low & 1) p.high += p.low;
    p.low = p.low * 5 + 1;
  }
  p.tag += 1;
  return p;
}

__device__ __noinline__ u32 checked(u32 x) {
  if (x % 3 == 0) return x + 100;
  Pair p = {x, 1, 2};
  p = twist(p, x % 4);
  return p.low + static_cast<u32>(p.high) + p.tag;
}

extern "C" __global__ void calls(const u32* in, u32* out) {
  const u32 i = threadIdx.x;
  u32 x = in[i];
  if (i % 2) x = checked(x);
  out[i] = checked(x + i);
}

__device__ __noinline__ u32 plus(u32 x) { return x + 13; }
__device__ __noinline__ u32 minus(u32 x) { return x - 17; }

extern "C" __global__ void pointers(const u32* in, u32* out, u32 which) {
  const u32 i = threadIdx.x;
  u32 (*chosen)(u32) = which ? plus : minus;
  out[i] = chosen(in[i]) + chosen(i);
}

extern "C" __global__ void leave_before_barrier(u32* out, u32 n) {
  __shared__ u32 cells[128];
  const u32 i = threadIdx.x;
  cells[i] = i * i;
  if (i >= n) return;
  asm volatile("barrier.sync 1, %0;" ::"r"((n + 31) / 32 * 32));
  out[i] = cells[n - 1 - i];
}

extern "C" __global__ void reduction(const u32* in, u32* out) {
  __shared__ u32 partial[4];
  u32 x = in[threadIdx.x];
  for (u32 step = 16; step; step /= 2) x += __shfl_xor_sync(~0u, x, step);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = x;
  __syncthreads();
  if (threadIdx.x == 0) out[0] = partial[0] + partial[1] + partial[2] + partial[3];
}

extern "C" __global__ void local_array(const u32* in, u32* out) {
  const u32 i = threadIdx.x;
  u32 box[16];
#pragma unroll 1
  for (u32 k = 0; k < 16; ++k) box[(k * 5 + i) % 16] = in[(i + k) % 128] + k;
  u32 sum = 0;
#pragma unroll 1
  for (u32 k = 0; k < 16; k += 1 + i % 3) sum = sum * 31 + box[k];
  out[i] = sum;
}

extern "C" int printf(const char*, ...);

extern "C" __global__ void shout(u32 n) {
  if (threadIdx.x < n)
    printf("cta %d thread %u: %5.2f %s %x|%-4d|%lld %c %%\n", blockIdx.x, threadIdx.x, 1.5f * threadIdx.x, "hey",
           255, 7, -5ll, 'q');
}
