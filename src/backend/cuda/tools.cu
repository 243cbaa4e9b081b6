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

__device__ bool negates(u64 salt, u64 group, u64 row) { return salted(salt, 1ull << 63 | group << 40 | row) & 1; }

}  // namespace

// A stretch of memory and what is put there before each call: Piece of
// pieces.rs, its sources resolved to addresses. Blocks work on chunks of
// CHUNK bytes; `first` is the piece's first one.
struct Piece {
  u8* at;
  const u8* from;
  u64 bytes, row_bytes, first;
  u32 kind, group;
};

namespace {

constexpr u64 CHUNK = 32768;
enum Kind : u32 { CANARY, POISON, SCRATCH, ZERO, SAME, SIGNED, VARIABLE };

struct Job {
  Piece piece;
  u64 begin, end;  // bytes of the piece
  bool wide;       // in words of 16 bytes
  u64 salt;
  u32 poison;

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
  }

  __device__ bool negated(u64 i) const { return negates(salt, piece.group, i / piece.row_bytes); }

  // What byte i of the piece is before a call.
  __device__ u8 byte(u64 i) const {
    const u64 address = reinterpret_cast<u64>(piece.at) + i;
    const u8 canary = 0x7f | (salted(salt, address >> 4) >> (address & 15) & 1) << 7;
    switch (piece.kind) {
      case CANARY: return canary;
      case POISON: return address & 1 ? poison >> 8 : poison;
      case SCRATCH: return address & 1 ? canary : 0xff;
      case ZERO: return 0;
      case SIGNED: return piece.from[i] ^ (negated(i) ? 0x88 : 0);
      default: return piece.from[i];
    }
  }

  // What bytes i to i + 15 are, i a multiple of 16.
  __device__ ulonglong2 word(u64 i) const {
    const u64 poisons = poison * 0x0001000100010001ull, signs = 0x8888888888888888ull;
    switch (piece.kind) {
      case CANARY: return canaries(i, 0x7f7f7f7f7f7f7f7full, 0x8080808080808080ull);
      case POISON: return {poisons, poisons};
      case SCRATCH: return canaries(i, 0x7fff7fff7fff7fffull, 0x8000800080008000ull);
      case ZERO: return {0, 0};
      default: break;
    }
    ulonglong2 word = *reinterpret_cast<const ulonglong2*>(piece.from + i);
    if (piece.kind == SIGNED) {
      // Rows are multiples of 8 bytes, not of 16.
      if (negated(i)) word.x ^= signs;
      if (negated(i + 8)) word.y ^= signs;
    }
    return word;
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

// A group's output and the right answer to it, which is sealed with a key: a
// kernel that looks around in memory finds nothing to copy.
struct Judged {
  const u16* c;
  const u32* expected;
  u64 m, n;
  u64 offset;  // of the group's first element among all
  u64 group;
};

// Counts the elements of C (a grid row per group) that are not surely within
// tolerance. What is close to it is left to the host.
extern "C" __global__ void dgx_judge(const Judged* groups, u64 salt, u32 poison, u64 seal, float rtol, float atol,
                                     u64* wrong) {
  const Judged group = groups[blockIdx.y];
  const u64 stride = u64(gridDim.x) * blockDim.x;
  u64 count = 0;
  for (u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x; i < group.m * group.n; i += stride) {
    float right = __uint_as_float(group.expected[i] ^ u32(salted(seal, group.offset + i)));
    if (negates(salt, group.group, i % group.n)) right = -right;
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
