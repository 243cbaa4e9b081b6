// Kernels of the harness itself: write memory before a call and check it afterwards, judge outputs,
// hold a stream, read clocks, and the kernels that the cuBLAS yardstick needs besides its GEMM.

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

// CallSeed::hash of call_seed.rs.
__device__ u64 mix(u64 word) {
  word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9ull;
  word = (word ^ word >> 27) * 0x94d049bb133111ebull;
  return word ^ word >> 31;
}

__device__ u64 hashed(u64 seed, u64 what) { return mix(seed ^ mix(what)); }

// Shuffle of operator/shuffle.rs: the values drawn from a key.
enum Drawn : u32 { SIGNS_OF_A, SIGNS_OF_B1, SIGNS_OF_B2, ROWS_OF_A, ROWS_OF_B, BLOCKS };

__device__ u64 drawn(u64 seed, u32 what, u32 group, u32 row) {
  return hashed(seed, 1ull << 63 | u64(what) << 56 | u64(group) << 32 | row);
}

__device__ bool negates(u64 seed, u32 signs, u32 group, u32 row) { return drawn(seed, signs, group, row) & 1; }

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

// The changes of calls along an axis of a tensor: Axis of operator/fresh.rs.
struct Axis {
  u32 extent, unit, count, order, signs;
};

struct Moves {
  Axis axes[5];
  u32 rank, group, bits;
};

// A stretch of memory and its contents before each call: Piece of pieces.rs, with its sources as
// addresses. Blocks work on chunks of CHUNK bytes; `first` is the piece's first one.
struct Piece {
  u8* at;
  const u8* from;
  u64 bytes, first;
  u32 kind, element;  // of poison: the place of its type
  Moves moves;        // of operands
};

// Eight bytes of an output before a call, by the index of its type in types.rs. Eight bytes are
// whole elements of every type.
struct Poisons {
  u64 words[15];
};

namespace {

constexpr u64 CHUNK = 32768;
enum Kind : u32 { CANARY, POISON, SCRATCH, ZERO, SAME, VARIABLE, MOVED, MOVED_ATOMS, BEGUN, NOISE };

// The sources of a tensor's elements in one call. Made by a whole block.
struct Origins {
  const Moves moves;
  const u64 seed;
  const Permutation* orders;  // of each axis

  __device__ Origins(const Moves& moves, u64 seed, Permutation* shared) : moves(moves), seed(seed), orders(shared) {
    if (threadIdx.x < moves.rank && moves.axes[threadIdx.x].count != 0) {
      const Axis& axis = moves.axes[threadIdx.x];
      shared[threadIdx.x] = Permutation(drawn(seed, axis.order, moves.group, 0), axis.count);
    }
    __syncthreads();
  }

  // The source of the element at a place, and whether its sign changes.
  __device__ u64 of(u64 place, bool& negative) const {
    // Division by 64 bits takes a hundred instructions.
    return place >> 32 == 0 ? walk(u32(place), negative) : walk(place, negative);
  }

  template <class Place>
  __device__ u64 walk(Place place, bool& negative) const {
    u64 from = 0, inner = 1;
    negative = false;
    for (int i = int(moves.rank) - 1; i >= 0; --i) {
      const Axis& axis = moves.axes[i];
      const Place rest = place / axis.extent;
      const u32 index = u32(place - rest * axis.extent);
      place = rest;
      u32 source = index;
      if (index < axis.count * axis.unit) {
        const u32 piece = index / axis.unit;
        source = orders[i](piece) * axis.unit + index - piece * axis.unit;
      }
      for (u32 signs = axis.signs; signs != 0; signs &= signs - 1)
        negative ^= negates(seed, __ffs(int(signs)) - 1, moves.group, index);
      from += source * inner, inner *= axis.extent;
    }
    return from;
  }

  __device__ u32 columns() const { return moves.axes[moves.rank - 1].extent; }

  // Whether eight bytes move together, and share their sign.
  __device__ bool by_words() const {
    const Axis& last = moves.axes[moves.rank - 1];
    return last.signs == 0 && (last.count == 0 ? last.extent : last.unit) * moves.bits % 64 == 0 &&
           u64(last.extent) * moves.bits % 64 == 0;
  }

  // Bytes i to i + 7 of the tensor that is made of `source`, i a multiple of 8.
  __device__ u64 word(const u8* source, u64 i) const {
    const u32 per_word = 64 / moves.bits;
    bool negative;
    if (by_words()) {
      const u64 word = *reinterpret_cast<const u64*>(source + of(i / 8 * per_word, negative) / per_word * 8);
      const u64 tops = moves.bits == 4    ? 0x8888888888888888ull
                       : moves.bits == 8  ? 0x8080808080808080ull
                       : moves.bits == 16 ? 0x8000800080008000ull
                       : moves.bits == 32 ? 0x8000000080000000ull
                                          : 0x8000000000000000ull;
      return negative ? word ^ tops : word;
    }
    u64 word = 0;
    for (u32 j = 0; j < 8; ++j) word |= u64(byte(source, i + j)) << 8 * j;
    return word;
  }

  __device__ u8 byte(const u8* source, u64 i) const {
    bool negative;
    if (moves.bits >= 8) {
      const u32 width = moves.bits / 8;
      const u32 at = u32(i % width);
      const u8 byte = source[of(i / width, negative) * width + at];
      return negative && at == width - 1 ? byte ^ 0x80 : byte;
    }
    // Two elements; rows begin with a byte of their own.
    const u32 width = columns(), row_bytes = (width + 1) / 2;
    const u64 row = i / row_bytes, first = row * width + (i - row * row_bytes) * 2;
    const u64 from = of(first, negative);
    const u8 byte = source[from / width * row_bytes + from % width / 2];
    bool second = false;
    if ((first + 1) / width == row) of(first + 1, second);
    return byte ^ (negative ? 0x08 : 0) ^ (second ? 0x80 : 0);
  }

  // Byte i of atoms of 128 rows by four scales; zero in what pads them.
  __device__ u8 atom(const u8* source, u64 i) const {
    const u32 width = columns(), across = (width + 3) / 4;
    u64 rows = 1;
    for (u32 axis = 0; axis + 1 < moves.rank; ++axis) rows *= moves.axes[axis].extent;
    const u64 nth = i / 512;
    const u32 within = u32(i % 512);
    const u64 row = nth / across * 128 + within / 16 + within % 16 / 4 * 32;
    const u32 column = u32(nth % across) * 4 + within % 4;
    if (row >= rows || column >= width) return 0;
    bool negative;
    const u64 from = of(row * width + column, negative), r = from / width % 128;
    const u32 scale = u32(from % width);
    return source[(from / width / 128 * across + scale / 4) * 512 + r % 32 * 16 + r / 32 * 4 + scale % 4];
  }
};

struct Job {
  Piece piece;
  u64 begin, end;  // bytes of the piece
  bool wide;       // in words of 16 bytes
  u64 seed, poison;

  __device__ Job(const Piece* pieces, u32 count, u64 chunk, u64 seed, const Poisons& poisons) : seed(seed) {
    u32 low = 0, high = count;  // the last piece whose first chunk is not after this one
    while (high - low > 1) {
      const u32 middle = (low + high) / 2;
      if (pieces[middle].first <= chunk) low = middle;
      else high = middle;
    }
    piece = pieces[low];
    poison = poisons.words[piece.element];
    begin = (chunk - piece.first) * CHUNK;
    end = begin + CHUNK < piece.bytes ? begin + CHUNK : piece.bytes;
    wide = ((reinterpret_cast<u64>(piece.at) | reinterpret_cast<u64>(piece.from)) & 15) == 0;
  }

  // Byte i of the piece before a call.
  __device__ u8 byte(const Origins& origins, u64 i) const {
    const u64 address = reinterpret_cast<u64>(piece.at) + i;
    const u8 canary = 0x7f | (hashed(seed, address >> 4) >> (address & 15) & 1) << 7;
    switch (piece.kind) {
      case CANARY: return canary;
      case POISON: return poison >> (address & 7) * 8;
      case SCRATCH: return scratch(address & 15, canary);
      case NOISE: return noise(address, canary);
      case ZERO: return 0;
      case MOVED:
      case BEGUN: return origins.byte(piece.from, i);
      case MOVED_ATOMS: return origins.atom(piece.from, i);
      default: return piece.from[i];
    }
  }

  // Bytes i to i + 15 of the piece before a call, i a multiple of 16.
  __device__ ulonglong2 word(const Origins& origins, u64 i) const {
    switch (piece.kind) {
      case CANARY: return canaries(i, 0x7f7f7f7f7f7f7f7full, 0x8080808080808080ull);
      case POISON: return {poison, poison};
      case SCRATCH: return scratch_word(i);
      case NOISE: return noise_word(i);
      case ZERO: return {0, 0};
      case MOVED:
      case BEGUN: return {origins.word(piece.from, i), origins.word(piece.from, i + 8)};
      case MOVED_ATOMS: {
        u64 words[2] = {};
        for (u32 j = 0; j < 16; ++j) words[j / 8] |= u64(origins.atom(piece.from, i + j)) << j % 8 * 8;
        return {words[0], words[1]};
      }
      default: return *reinterpret_cast<const ulonglong2*>(piece.from + i);
    }
  }

  __device__ static u8 noise(u64 address, u8 canary) { return address & 1 ? canary : 0xff; }

  __device__ ulonglong2 noise_word(u64 i) const {
    return canaries(i, 0x7fff7fff7fff7fffull, 0x8000800080008000ull);
  }

  // Poison of the kind that the last bits of the seed choose, as in call_seed.rs.
  __device__ u8 scratch(u64 address, u8 canary) const {
    switch (seed & 7) {
      case 4: return 0;
      case 5: return 0x7a | canary >> 7;
      case 6: return 0xfa | canary >> 7;
      case 7: return (address & 3) == 0;
      default: return noise(address, canary);
    }
  }

  __device__ ulonglong2 scratch_word(u64 i) const {
    const ulonglong2 tops = canaries(i, 0, 0x8080808080808080ull);
    switch (seed & 7) {
      case 4: return {0, 0};
      case 5: return {0x7a7a7a7a7a7a7a7aull | tops.x >> 7, 0x7a7a7a7a7a7a7a7aull | tops.y >> 7};
      case 6: return {0xfafafafafafafafaull | tops.x >> 7, 0xfafafafafafafafaull | tops.y >> 7};
      case 7: return {0x0000000100000001ull, 0x0000000100000001ull};
      default: return noise_word(i);
    }
  }

  __device__ ulonglong2 canaries(u64 i, u64 base, u64 mask) const {
    const u64 bits = hashed(seed, (reinterpret_cast<u64>(piece.at) + i) >> 4);
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

// Writes every piece to its place, from chunk `skip` on.
extern "C" __global__ void dgx_lay(const Piece* pieces, u32 count, u64 skip, u64 seed, Poisons poisons) {
  __shared__ Permutation orders[5];
  const Job job(pieces, count, skip + blockIdx.x, seed, poisons);
  const Origins origins(job.piece.moves, seed, orders);
  u8* const at = job.piece.at;
  for (u64 i = job.begin + threadIdx.x * 16; i < job.words_end(); i += blockDim.x * 16)
    *reinterpret_cast<ulonglong2*>(at + i) = job.word(origins, i);
  for (u64 i = job.words_end() + threadIdx.x; i < job.end; i += blockDim.x) at[i] = job.byte(origins, i);
}

// Checks that nothing changed that no kernel may change. *lowest becomes the complement of the
// lowest changed address; it starts at 0.
extern "C" __global__ void dgx_check(const Piece* pieces, u32 count, u64 skip, u64 seed, u64* lowest) {
  __shared__ Permutation orders[5];
  const Job job(pieces, count, skip + blockIdx.x, seed, Poisons{});
  const Origins origins(job.piece.moves, seed, orders);
  const u32 kind = job.piece.kind;
  if (kind == POISON || kind == SCRATCH || kind == VARIABLE || kind == BEGUN || kind == NOISE) return;
  const u8* const at = job.piece.at;
  u64 changed = ~0ull;  // lowest of this thread
  for (u64 i = job.begin + threadIdx.x * 16; i < job.words_end(); i += blockDim.x * 16) {
    const ulonglong2 now = *reinterpret_cast<const ulonglong2*>(at + i), laid = job.word(origins, i);
    if (now.x == laid.x && now.y == laid.y) continue;
    for (u64 j = i; j < i + 16; ++j)
      if (at[j] != job.byte(origins, j) && j < changed) changed = j;
  }
  for (u64 i = job.words_end() + threadIdx.x; i < job.end; i += blockDim.x)
    if (at[i] != job.byte(origins, i) && i < changed) changed = i;
  if (changed != ~0ull) atomicMax(lowest, ~(reinterpret_cast<u64>(at) + changed));
}

// A group's output and its expected products for the unshuffled operands, hidden by a key: a kernel
// that searches memory finds nothing to copy.
struct Judged {
  const u16* c;
  const u32* expected;
  u64 m, n;
  u64 gate, up;  // the group's first elements among all
  u64 group;
};

// Counts the elements of C (a grid row per group) that are not certainly within tolerance: the rule
// of `Tolerance` in validate/mod.rs. Elements close to it are left to the host.
extern "C" __global__ void dgx_judge(const Judged* groups, u64 seed, u32 poison, u64 seal, float rtol, float atol,
                                     u64* wrong) {
  const Judged group = groups[blockIdx.y];
  const u32 index = u32(group.group), n = u32(group.n);
  const Permutation from_row(drawn(seed, ROWS_OF_A, index, 0), u32(group.m));
  const Permutation from_column(drawn(seed, ROWS_OF_B, index, 0), n);
  const u64 stride = u64(gridDim.x) * blockDim.x;
  u64 count = 0;
  for (u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x; i < group.m * group.n; i += stride) {
    const u32 row = u32(i / n), column = u32(i - u64(row) * n);
    const u64 from = u64(from_row(row)) * n + from_column(column);
    const bool other = negates(seed, SIGNS_OF_A, index, row);
    const auto product = [&](u64 first, u32 signs) {
      const float value = __uint_as_float(group.expected[first + from] ^ u32(hashed(seal, first + from)));
      return negates(seed, signs, index, column) != other ? -value : value;
    };
    const float gate = product(group.gate, SIGNS_OF_B1), up = product(group.up, SIGNS_OF_B2);
    const float right = gate / (1.0f + expf(-gate)) * up;
    const u16 bits = group.c[i];
    const float got = half_to_float(bits), allowed = 0.999f * (atol + rtol * fabsf(right));
    bool accepted;
    if (right != right) accepted = got != got && bits != poison;
    // Infinity counts as the number at which fp16 overflows.
    else if (fabsf(got) > 65504.0f) accepted = 65520.0f - (got < 0.0f ? -right : right) <= allowed;
    // NaN compares false, and so is wrong.
    else accepted = fabsf(got - right) <= allowed;
    if (!accepted) ++count;
  }
  if (count != 0) atomicAdd(wrong, count);
}

// An output of a group and its expected elements, hidden likewise.
struct JudgedValues {
  const u8* output;
  const u32* expected;
  u64 count, first;   // elements, and the first of them among all
  const float* rows;  // what comes on top of atol in each row, or nothing
  u32 element;        // its type's place in types.rs
  float rtol, atol;
  float step;  // between the least numbers of the type
  Moves moves;
};

namespace {

enum Element : u32 { F64, F32, F16, BF16, E4M3, E5M2, E2M1, MXFP4, MXFP8, NVFP4, I32, I8, U8, BOOL };

// Element i of an output, and its bits.
__device__ double element(const u8* output, u32 type, u64 i, u64& bits) {
  switch (type) {
    case F64: bits = reinterpret_cast<const u64*>(output)[i]; return __longlong_as_double(bits);
    case F32: bits = reinterpret_cast<const u32*>(output)[i]; return __uint_as_float(u32(bits));
    case F16: bits = reinterpret_cast<const u16*>(output)[i]; return half_to_float(u16(bits));
    case BF16: bits = reinterpret_cast<const u16*>(output)[i]; return __uint_as_float(u32(bits) << 16);
    case I32: bits = reinterpret_cast<const u32*>(output)[i]; return int(bits);
    case E2M1: bits = output[i / 2] >> i % 2 * 4 & 15; return e2m1(u32(bits));
    case E4M3: bits = output[i]; return e4m3(u8(bits));
    // The first byte of a half.
    case E5M2: bits = output[i]; return half_to_float(u16(bits << 8));
    case I8: bits = output[i]; return static_cast<signed char>(bits);
    case BOOL: bits = output[i]; return bits > 1 ? __longlong_as_double(~0ull) : double(bits);
    default: bits = output[i]; return double(bits);
  }
}

}  // namespace

// Counts the elements of outputs (a grid row for each) that are not certainly within tolerance.
// Elements close to it, infinite, or finer than the expected results here are left to the host. The
// rule is that of `Tolerance` in validate/mod.rs.
extern "C" __global__ void dgx_judge_values(const JudgedValues* outputs, u64 seed, Poisons poisons, u64 seal,
                                            u64* wrong) {
  __shared__ Permutation orders[5];
  const JudgedValues own = outputs[blockIdx.y];
  const Origins origins(own.moves, seed, orders);
  const u64 poison = poisons.words[own.element] & ~0ull >> (64 - own.moves.bits);
  const u64 stride = u64(gridDim.x) * blockDim.x;
  u64 count = 0;
  for (u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x; i < own.count; i += stride) {
    bool negative;
    const u64 from = origins.of(i, negative), place = own.first + from;
    const float value = __uint_as_float(own.expected[place] ^ u32(hashed(seal, place)));
    const double right = negative ? -value : value;
    u64 bits;
    const double got = element(own.output, own.element, i, bits);
    double allowed = own.atol + own.rtol * fabs(right);
    if (own.rows != nullptr) allowed += own.rows[from / origins.columns()];
    allowed = fmax(allowed, fmin(double(own.step), allowed + 0.5 * own.step));
    // NaN compares false, and so is wrong where a number is right.
    const bool accepted = right != right ? got != got && bits != poison : fabs(got - right) <= 0.999 * allowed;
    if (!accepted) ++count;
  }
  if (count != 0) atomicAdd(wrong, count);
}

// Keeps the stream busy until the host has queued everything behind it, so that no launch latency
// is timed. Gives up after two seconds: a host that died must not leave the device spinning.
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

