// Kernels of the harness itself: lay memory out before a call and look at it
// afterwards, judge outputs, hold a stream, read clocks, and what the cuBLAS
// yardstick needs beside its GEMM.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

namespace {

__device__ u64 global_nanos() {
  u64 t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}

__device__ float half_to_float(u16 bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}

__device__ u16 float_to_half(float value) {
  u16 bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}

__device__ float e4m3(u8 code) {
  const int exponent = (code >> 3) & 15;
  const float mantissa = code & 7;
  const float magnitude = exponent == 0
                              ? mantissa * 0.001953125f
                              : (1.0f + mantissa * 0.125f) * __uint_as_float((exponent + 120) << 23);
  if ((code & 127) == 127) return __uint_as_float(0x7fffffff);  // NaN
  return code & 128 ? -magnitude : magnitude;
}

__device__ float e2m1(u32 code) {
  const float magnitudes[8] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
  const float magnitude = magnitudes[code & 7];
  return code & 8 ? -magnitude : magnitude;
}

// Salt::hash of salt.rs.
__device__ u64 mix(u64 word) {
  word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9ull;
  word = (word ^ word >> 27) * 0x94d049bb133111ebull;
  return word ^ word >> 31;
}

__device__ u64 salted(u64 salt, u64 what) { return mix(salt ^ mix(what)); }

// Shuffle of operator/shuffle.rs: what is drawn by a key.
enum Drawn : u32 { SIGNS_OF_A, SIGNS_OF_B1, SIGNS_OF_B2, ROWS_OF_A, ROWS_OF_B, BLOCKS };

__device__ u64 drawn(u64 salt, u32 what, u32 group, u32 row) {
  return salted(salt, 1ull << 63 | u64(what) << 56 | u64(group) << 32 | row);
}

__device__ bool negates(u64 salt, u32 signs, u32 group, u32 row) { return drawn(salt, signs, group, row) & 1; }

// Permutation of operator/shuffle.rs.
struct Permutation {
  u32 count, mask, shift;
  u32 factor[3], summand[3];

  __device__ Permutation() {}
  __device__ Permutation(u64 key, u32 count) : count(count) {
    const u32 bits = count > 1 ? 32 - __clz(count - 1) : 0;
    mask = u32((1ull << bits) - 1);
    shift = bits / 2 + 1;
    for (int round = 0; round < 3; ++round) {
      const u64 own = mix(key + 1 + round);
      factor[round] = u32(own) | 1, summand[round] = u32(own >> 32);
    }
  }

  __device__ u32 operator()(u32 place) const {
    do {
      for (int round = 0; round < 3; ++round) {
        place = (place * factor[round] + summand[round]) & mask;
        place ^= place >> shift;
      }
    } while (place >= count);
    return place;
  }
};

}  // namespace

// A stretch of memory and what is put there before each call: Piece of
// pieces.rs, its sources resolved to addresses. Blocks work on chunks of
// CHUNK bytes; `first` is the piece's first one.
struct Piece {
  u8* at;
  const u8* from;
  u64 bytes, first;
  u32 kind, group;
  // Of operands alone: what is shuffled, and by what.
  u32 rows, blocks, signs, order;
};

namespace {

constexpr u64 CHUNK = 32768;
enum Kind : u32 { CANARY, POISON, SCRATCH, ZERO, SAME, VARIABLE, ELEMENTS, SCALES, ATOMS };

struct Job {
  Piece piece;
  u64 begin, end;  // bytes of the piece
  bool wide;       // in words of 16 bytes
  u64 salt;
  u32 poison;
  Permutation from_row, from_block;

  __device__ Job(const Piece* pieces, u32 count, u64 chunk, u64 salt, u32 poison) : salt(salt), poison(poison) {
    u32 low = 0, high = count;  // the last piece whose first chunk is not after this one
    while (high - low > 1) {
      const u32 middle = (low + high) / 2;
      if (pieces[middle].first <= chunk) low = middle;
      else high = middle;
    }
    piece = pieces[low];
    begin = (chunk - piece.first) * CHUNK;
    end = begin + CHUNK < piece.bytes ? begin + CHUNK : piece.bytes;
    wide = ((reinterpret_cast<u64>(piece.at) | reinterpret_cast<u64>(piece.from)) & 15) == 0;
    if (piece.kind >= ELEMENTS) {
      from_row = Permutation(drawn(salt, piece.order, piece.group, 0), piece.rows);
      from_block = Permutation(drawn(salt, BLOCKS, piece.group, 0), piece.blocks);
    }
  }

  // The eight bytes of elements that come to byte i, a multiple of 8.
  __device__ u64 elements(u64 i) const {
    const u64 place = i / 8;
    const u32 row = u32(place / piece.blocks), block = u32(place - u64(row) * piece.blocks);
    const u64 from = u64(from_row(row)) * piece.blocks + from_block(block);
    const u64 word = *reinterpret_cast<const u64*>(piece.from + 8 * from);
    return negates(salt, piece.signs, piece.group, row) ? word ^ 0x8888888888888888ull : word;
  }

  // Scale (row, block) of the source; zero in what pads an atom.
  __device__ u8 scale(u32 from_row, u32 from_block) const {
    if (piece.kind == SCALES) return piece.from[u64(from_row) * piece.blocks + from_block];
    const u32 r = from_row % 128, across = (piece.blocks + 3) / 4;
    const u64 atom = u64(from_row / 128) * across + from_block / 4;
    return piece.from[atom * 512 + (r % 32) * 16 + r / 32 * 4 + from_block % 4];
  }

  // The scales that come to bytes i to i + 15, i a multiple of 16 (row-major)
  // or of an atom's line.
  __device__ void scales(u64 i, u8 (&out)[16]) const {
    if (piece.kind == SCALES) {
      u32 row = u32(i / piece.blocks), block = u32(i - u64(row) * piece.blocks), source = from_row(row);
      for (int j = 0; j < 16; ++j) {
        if (block == piece.blocks) block = 0, source = ++row < piece.rows ? from_row(row) : 0;
        out[j] = scale(source, from_block(block++));
      }
      return;
    }
    const u32 across = (piece.blocks + 3) / 4;
    const u32 atom = u32(i / 512), row = atom / across * 128 + u32(i % 512) / 16, block = atom % across * 4;
    for (int j = 0; j < 16; ++j) {
      const u32 own = row + j / 4 * 32, column = block + j % 4;
      const bool inside = own < piece.rows && column < piece.blocks;
      out[j] = inside ? scale(from_row(own), from_block(column)) : 0;
    }
  }

  // What byte i of the piece is before a call.
  __device__ u8 byte(u64 i) const {
    const u64 address = reinterpret_cast<u64>(piece.at) + i;
    const u8 canary = 0x7f | (salted(salt, address >> 4) >> (address & 15) & 1) << 7;
    switch (piece.kind) {
      case CANARY: return canary;
      case POISON: return address & 1 ? poison >> 8 : poison;
      case SCRATCH: return address & 1 ? canary : 0xff;
      case ZERO: return 0;
      case ELEMENTS: return u8(elements(i & ~7ull) >> (i & 7) * 8);
      case SCALES:
      case ATOMS: {
        u8 bytes[16];
        scales(i & ~15ull, bytes);
        return bytes[i & 15];
      }
      default: return piece.from[i];
    }
  }

  // What bytes i to i + 15 are, i a multiple of 16.
  __device__ ulonglong2 word(u64 i) const {
    const u64 poisons = poison * 0x0001000100010001ull;
    switch (piece.kind) {
      case CANARY: return canaries(i, 0x7f7f7f7f7f7f7f7full, 0x8080808080808080ull);
      case POISON: return {poisons, poisons};
      case SCRATCH: return canaries(i, 0x7fff7fff7fff7fffull, 0x8000800080008000ull);
      case ZERO: return {0, 0};
      case ELEMENTS: return {elements(i), elements(i + 8)};
      case SCALES:
      case ATOMS: {
        union {
          u8 bytes[16];
          ulonglong2 word;
        } both;
        scales(i, both.bytes);
        return both.word;
      }
      default: return *reinterpret_cast<const ulonglong2*>(piece.from + i);
    }
  }

  __device__ ulonglong2 canaries(u64 i, u64 base, u64 mask) const {
    const u64 bits = salted(salt, (reinterpret_cast<u64>(piece.at) + i) >> 4);
    return {base | (spread(bits) & mask), base | (spread(bits >> 8) & mask)};
  }

  // Bit j of the lowest byte to the top of byte j.
  __device__ static u64 spread(u64 bits) {
    u64 tops = 0;
    for (int j = 0; j < 8; ++j) tops |= (bits >> j & 1) << (8 * j + 7);
    return tops;
  }

  __device__ u64 words_end() const { return wide ? end & ~15ull : begin; }
};

}  // namespace

// Puts every piece in its place, from chunk `skip` on.
extern "C" __global__ void dgx_lay(const Piece* pieces, u32 count, u64 skip, u64 salt, u32 poison) {
  const Job job(pieces, count, skip + blockIdx.x, salt, poison);
  u8* const at = job.piece.at;
  for (u64 i = job.begin + threadIdx.x * 16; i < job.words_end(); i += blockDim.x * 16)
    *reinterpret_cast<ulonglong2*>(at + i) = job.word(i);
  for (u64 i = job.words_end() + threadIdx.x; i < job.end; i += blockDim.x) at[i] = job.byte(i);
}

// Whether what no kernel may change is still in its place. *lowest becomes
// the complement of the lowest address that is not; it starts at 0.
extern "C" __global__ void dgx_check(const Piece* pieces, u32 count, u64 skip, u64 salt, u64* lowest) {
  const Job job(pieces, count, skip + blockIdx.x, salt, 0);
  const u32 kind = job.piece.kind;
  if (kind == POISON || kind == SCRATCH || kind == VARIABLE) return;
  const u8* const at = job.piece.at;
  u64 changed = ~0ull;  // lowest of this thread
  for (u64 i = job.begin + threadIdx.x * 16; i < job.words_end(); i += blockDim.x * 16) {
    const ulonglong2 now = *reinterpret_cast<const ulonglong2*>(at + i), laid = job.word(i);
    if (now.x == laid.x && now.y == laid.y) continue;
    for (u64 j = i; j < i + 16; ++j)
      if (at[j] != job.byte(j) && j < changed) changed = j;
  }
  for (u64 i = job.words_end() + threadIdx.x; i < job.end; i += blockDim.x)
    if (at[i] != job.byte(i) && i < changed) changed = i;
  if (changed != ~0ull) atomicMax(lowest, ~(reinterpret_cast<u64>(at) + changed));
}

// A group's output and the right products for it, as they are before operands
// are shuffled, and sealed with a key: a kernel that looks around in memory
// finds nothing to copy.
struct Judged {
  const u16* c;
  const u32* expected;
  u64 m, n;
  u64 gate, up;  // the group's first elements among all
  u64 group;
};

// Counts the elements of C (a grid row per group) that are not surely within
// tolerance. What is close to it is left to the host.
extern "C" __global__ void dgx_judge(const Judged* groups, u64 salt, u32 poison, u64 seal, float rtol, float atol,
                                     u64* wrong) {
  const Judged group = groups[blockIdx.y];
  const u32 index = u32(group.group), n = u32(group.n);
  const Permutation from_row(drawn(salt, ROWS_OF_A, index, 0), u32(group.m));
  const Permutation from_column(drawn(salt, ROWS_OF_B, index, 0), n);
  const u64 stride = u64(gridDim.x) * blockDim.x;
  u64 count = 0;
  for (u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x; i < group.m * group.n; i += stride) {
    const u32 row = u32(i / n), column = u32(i - u64(row) * n);
    const u64 from = u64(from_row(row)) * n + from_column(column);
    const bool other = negates(salt, SIGNS_OF_A, index, row);
    const auto product = [&](u64 first, u32 signs) {
      const float value = __uint_as_float(group.expected[first + from] ^ u32(salted(seal, first + from)));
      return negates(salt, signs, index, column) != other ? -value : value;
    };
    const float gate = product(group.gate, SIGNS_OF_B1), up = product(group.up, SIGNS_OF_B2);
    const float right = gate / (1.0f + expf(-gate)) * up;
    const u16 bits = group.c[i];
    const float got = half_to_float(bits), allowed = 0.999f * (atol + rtol * fabsf(right));
    bool accepted;
    if (right != right) accepted = got != got && bits != poison;
    // Infinity is the number at which fp16 overflows.
    else if (fabsf(got) > 65504.0f) accepted = 65520.0f - (got < 0.0f ? -right : right) <= allowed;
    // NaN compares false, and so is wrong.
    else accepted = fabsf(got - right) <= allowed;
    if (!accepted) ++count;
  }
  if (count != 0) atomicAdd(wrong, count);
}

// Keeps the stream busy until the host has queued everything behind it, so
// that no launch latency is timed. Gives up after two seconds: a host that
// died must not leave the device spinning.
extern "C" __global__ void dgx_hold(const volatile u32* released, u32 ticket) {
  const u64 began = global_nanos();
  while (*released != ticket && global_nanos() - began < 2000000000ull) {
  }
}

// Cycle counter and time of every SM the grid lands on.
extern "C" __global__ void dgx_stamp(u64* stamps) {
  if (threadIdx.x != 0) return;
  u32 sm;
  u64 cycles;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(cycles));
  if (sm >= 1024) return;
  stamps[2 * sm] = cycles;
  stamps[2 * sm + 1] = global_nanos();
}

// e2m1 with e4m3 scales to fp16, exactly: 16 elements a step.
extern "C" __global__ void dgx_dequantise(const u8* codes, const u8* scales, u16* out, u64 blocks) {
  const u64 stride = u64(gridDim.x) * blockDim.x;
  for (u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x; i < blocks; i += stride) {
    const float scale = e4m3(scales[i]);
    for (int j = 0; j < 8; ++j) {
      const u32 pair = codes[i * 8 + j];
      out[i * 16 + 2 * j] = float_to_half(e2m1(pair & 15) * scale);
      out[i * 16 + 2 * j + 1] = float_to_half(e2m1(pair >> 4) * scale);
    }
  }
}

struct GateGroup {
  const u16* products;  // m x 2n: A B1^T beside A B2^T
  u16* c;               // m x n
  u64 m, n;
};

// C = silu(left half) * right half for every group (blockIdx.y), eight columns a thread.
extern "C" __global__ void dgx_gate(const GateGroup* groups) {
  const GateGroup group = groups[blockIdx.y];
  const u64 index = (u64(blockIdx.x) * blockDim.x + threadIdx.x) * 8;
  if (index >= group.m * group.n) return;
  const u64 row = index / group.n, column = index % group.n;
  const u16* gates = group.products + row * 2 * group.n + column;
  uint4 gate = *reinterpret_cast<const uint4*>(gates);
  uint4 up = *reinterpret_cast<const uint4*>(gates + group.n);
  const u16* g = reinterpret_cast<const u16*>(&gate);
  const u16* u = reinterpret_cast<const u16*>(&up);
  uint4 result;
  u16* r = reinterpret_cast<u16*>(&result);
  for (int j = 0; j < 8; ++j) {
    const float x = half_to_float(g[j]);
    r[j] = float_to_half(x / (1.0f + __expf(-x)) * half_to_float(u[j]));
  }
  *reinterpret_cast<uint4*>(group.c + index) = result;
}

// What the CTAs of a scrub leave word of: how many came, on how many SMs, and how many went on
// without the others.
struct Meeting {
  u32 arrived, covered, gave_up;
  u32 seen[1024];  // by %smid; Meeting of scrub.rs
};

namespace {

constexpr u32 SCRUB_THREADS = 512;
// 128 registers for each of 512 threads are the whole register file. What is
// not for these is taken by addresses and counters.
constexpr u32 FILED = 117;

// No CTA goes on before all have come: all of them hold their SMs at once, so
// no SM is left out. Gives up after a second, and says so.
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
// All 512 columns of tensor memory; its address passes through `slot`.
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

// Overwrites what a launch leaves in an SM and the next can read without
// having written it: shared memory, registers and tensor memory. One CTA per
// SM, with all the shared memory (`bytes`) that a CTA can have, and what the
// driver keeps of it (`reserved`).
extern "C" __global__ void __launch_bounds__(SCRUB_THREADS, 1)
    dgx_scrub(u64 salt, u32 bytes, u32 reserved, Meeting* meeting) {
  extern __shared__ uint4 shared_memory[];
  u32 sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  const u32 word = u32(salted(salt, u64(sm) << 16 | threadIdx.x));
#if defined(__CUDA_ARCH_FEAT_SM100_ALL)
  scrub_tensor_memory(u32(__cvta_generic_to_shared(shared_memory)), word);
#endif
  for (u32 i = threadIdx.x; i < bytes / 16; i += SCRUB_THREADS) {
    const u32 odd = word + i * 0x9e3779b9u;
    shared_memory[i] = make_uint4(odd, odd ^ 0x85ebca6bu, odd * 0xc2b2ae35u, ~odd);
  }
  __syncthreads();
  // Read before the meeting and used after it, so that each has a register of its own meanwhile.
  const volatile u32* const words = reinterpret_cast<const volatile u32*>(shared_memory);
  u32 file[FILED];
#pragma unroll
  for (u32 i = 0; i < FILED; ++i) file[i] = words[min(i * SCRUB_THREADS + threadIdx.x, bytes / 4 - 1)];
  meet(meeting, gridDim.x);
  u32 sum = words[0];
#pragma unroll
  for (u32 i = 0; i < FILED; ++i) sum = (sum ^ file[i]) * 0x01000193u;
  if (sum == 0x5eed) reinterpret_cast<volatile u32*>(shared_memory)[threadIdx.x] = sum;
  // What the driver keeps of a CTA's shared memory lies before it, and any kernel can write there.
  const u32 begin = u32(__cvta_generic_to_shared(shared_memory));
  for (u32 at = begin - reserved + 4 * threadIdx.x; at < begin; at += 4 * SCRUB_THREADS)
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(at), "r"(sum + at) : "memory");
}

namespace {

// Overwrites local memory: all threads that an SM holds, on all SMs at once.
template <u32 BYTES>
__device__ void scrub_local(u64 salt, Meeting* meeting) {
  volatile u32 local[BYTES / 4];
  u32 sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  const u32 word = u32(salted(salt, u64(sm) << 16 | threadIdx.x));
  for (u32 i = 0; i < BYTES / 4; ++i) local[i] = word + i;
  meet(meeting, gridDim.x);
  if (local[word % (BYTES / 4)] == 0x5eed) meeting->seen[1023] = 1;
}

}  // namespace

// Keep in step with LOCAL of scrub.rs.
extern "C" __global__ void __launch_bounds__(SCRUB_THREADS, 4) dgx_scrub_local_2k(u64 salt, Meeting* meeting) {
  scrub_local<2048>(salt, meeting);
}

extern "C" __global__ void __launch_bounds__(SCRUB_THREADS, 4) dgx_scrub_local_8k(u64 salt, Meeting* meeting) {
  scrub_local<8192>(salt, meeting);
}

extern "C" __global__ void __launch_bounds__(SCRUB_THREADS, 4) dgx_scrub_local_32k(u64 salt, Meeting* meeting) {
  scrub_local<32768>(salt, meeting);
}
