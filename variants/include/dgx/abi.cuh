// What the host hands to a kernel. The Rust side of these two structs is
// crates/dgx-run/src/operator/abi.rs; its tests pin the same offsets as the asserts below.
#pragma once

namespace dgx {

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;

// Opaque to device code: only TMA instructions look inside.
struct alignas(64) TensorMap {
  u8 opaque[128];
};

// One problem of the grouped operator, C = silu(A B1^T) * (A B2^T).
struct Group {
  const u8* a;  // e2m1, two per byte, low nibble first, K/2 bytes a row
  const u8* b1;
  const u8* b2;
  const u8* sfa;  // e4m3, one per 16 elements, K/16 bytes a row
  const u8* sfb1;
  const u8* sfb2;
  const u8* sfa_atoms;  // the same scales in 128-row x 4-scale atoms of 512 bytes
  const u8* sfb1_atoms;
  const u8* sfb2_atoms;
  u16* c;  // fp16 bits, row-major M x N
  u8* scratch[8];
  u32 m, n, k;
  u32 tile_begin;  // tiles of all groups before this one
  u32 index;       // place in the shape as the user gave it
  u32 reserved;
};

constexpr u32 NEAR_GROUPS = 8;

struct Args {
  const Group* groups;
  const TensorMap* maps;  // map i of group g at maps[g * MAPS + i]
  const u32* deal;        // see docs/variants.md, "Dealing tiles"
  u8* scratch[8];
  u32 group_count;
  u32 tile_count;
  Group near[NEAR_GROUPS];  // the first of `groups` again: parameters cost no load
#if MAPS > 0 && MAPS <= 24  // parameters have 32 KB
  TensorMap near_maps[NEAR_GROUPS * MAPS];  // theirs again, where no copy waits for memory
#endif
};

static_assert(sizeof(TensorMap) == 128, "the driver fixes the size of a tensor map");
static_assert(sizeof(Group) == 168, "keep in step with crates/dgx-run/src/operator/abi.rs");
#if MAPS == 0
static_assert(sizeof(Args) == 1440, "keep in step with crates/dgx-run/src/operator/abi.rs");
#endif

}  // namespace dgx
