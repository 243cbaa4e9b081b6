# Products for a B200, made by another compiler. `python blackwell.py FOLDER` (Triton 3.9) writes
# each kernel's PTX and its bytes of shared memory there; no GPU is needed. With `90` behind it those
# that an H200 has too. The example `outside` of this crate runs them.

import sys

import products
import triton
import triton.language as tl


@triton.jit
def dot_pointers(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    columns = tl.cdiv(N, BN)
    row = tl.program_id(0) // columns * BM + tl.arange(0, BM)
    column = tl.program_id(0) % columns * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    ap = a + row[:, None] * K + k[None, :]
    bp = b + column[None, :] * K + k[:, None]
    sum = tl.zeros((BM, BN), tl.float32)
    for i in range(0, K, BK):
        sum = tl.dot(tl.load(ap), tl.load(bp), sum)
        ap += BK
        bp += BK
    tl.store(c + row[:, None] * N + column[None, :], sum)

# Takes one tile after the other, by tensor maps.
@triton.jit
def dot_persistent(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, WS: tl.constexpr):
    a_map = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    b_map = tl.make_tensor_descriptor(b, [N, K], [K, 1], [BN, BK])
    c_map = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    columns = tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BM) * columns, tl.num_programs(0), warp_specialize=WS):
        row = tile // columns * BM
        column = tile % columns * BN
        sum = tl.zeros((BM, BN), tl.float32)
        for k in range(0, K, BK):
            sum = tl.dot(a_map.load([row, k]), b_map.load([column, k]).T, sum)
        c_map.store([row, column], sum.to(tl.float16))


# scales [rows, K/V] plain
@triton.jit
def dot_scaled(a, sa, b, sb, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, FA: tl.constexpr, FB: tl.constexpr, V: tl.constexpr, PA: tl.constexpr, PB: tl.constexpr):
    columns = tl.cdiv(N, BN)
    row = tl.program_id(0) // columns * BM + tl.arange(0, BM)
    column = tl.program_id(0) % columns * BN + tl.arange(0, BN)
    ka = tl.arange(0, BK // PA)
    kb = tl.arange(0, BK // PB)
    ks = tl.arange(0, BK // V)
    ap = a + row[:, None] * (K // PA) + ka[None, :]
    bp = b + column[None, :] * (K // PB) + kb[:, None]
    sap = sa + row[:, None] * (K // V) + ks[None, :]
    sbp = sb + column[:, None] * (K // V) + ks[None, :]
    sum = tl.zeros((BM, BN), tl.float32)
    for i in range(0, K, BK):
        sum = tl.dot_scaled(tl.load(ap), tl.load(sap), FA, tl.load(bp), tl.load(sbp), FB, sum)
        ap += BK // PA
        bp += BK // PB
        sap += BK // V
        sbp += BK // V
    tl.store(c + row[:, None] * N + column[None, :], sum)

# scales packed in blocked atoms: [rows/128, K/V/4, 32, 4, 4]
@triton.jit
def dot_scaled_tma(a, sa, b, sb, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, FA: tl.constexpr, FB: tl.constexpr, V: tl.constexpr, PA: tl.constexpr, PB: tl.constexpr):
    columns = tl.cdiv(N, BN)
    rm = tl.program_id(0) // columns
    cn = tl.program_id(0) % columns
    a_map = tl.make_tensor_descriptor(a, [M, K // PA], [K // PA, 1], [BM, BK // PA])
    b_map = tl.make_tensor_descriptor(b, [N, K // PB], [K // PB, 1], [BN, BK // PB])
    RM: tl.constexpr = BM // 128
    RN: tl.constexpr = BN // 128
    RK: tl.constexpr = BK // V // 4
    sa_map = tl.make_tensor_descriptor(sa, [1, M // 128, K // V // 4, 2, 256], [M // 128 * (K // V // 4) * 512, (K // V // 4) * 512, 512, 256, 1], [1, RM, RK, 2, 256])
    sb_map = tl.make_tensor_descriptor(sb, [1, N // 128, K // V // 4, 2, 256], [N // 128 * (K // V // 4) * 512, (K // V // 4) * 512, 512, 256, 1], [1, RN, RK, 2, 256])
    sum = tl.zeros((BM, BN), tl.float32)
    for i in range(0, K // BK):
        x = a_map.load([rm * BM, i * (BK // PA)])
        y = b_map.load([cn * BN, i * (BK // PB)])
        s = sa_map.load([0, rm * RM, i * RK, 0, 0])
        t = sb_map.load([0, cn * RN, i * RK, 0, 0])
        s = s.reshape(RM, RK, 32, 4, 4).trans(0, 3, 2, 1, 4).reshape(BM, BK // V)
        t = t.reshape(RN, RK, 32, 4, 4).trans(0, 3, 2, 1, 4).reshape(BN, BK // V)
        sum = tl.dot_scaled(x, s, FA, y.T, t, FB, sum)
    row = rm * BM + tl.arange(0, BM)
    column = cn * BN + tl.arange(0, BN)
    tl.store(c + row[:, None] * N + column[None, :], sum)


CAPABILITY = int(sys.argv[2]) if len(sys.argv) > 2 else 100


def write(name, kernel, signature, constants, warps=4):
    path = f"{sys.argv[1]}/{name}"
    shared = products.write(path, kernel, signature, constants, capability=CAPABILITY, warps=warps)
    with open(f"{path}.shared", "w") as file:
        file.write(str(shared))


EXTENTS = {name: "i32" for name in "MNK"}


def write_dot(name, kernel, operand, result, tile, warps=4, **constants):
    signature = {"a": operand, "b": operand, "c": result} | EXTENTS
    write(name, kernel, signature, dict(zip(["BM", "BN", "BK"], tile)) | constants, warps)


def write_scaled(name, types, block, scale, depth):
    pointers = {"e2m1": "*u8", "e4m3": "*fp8e4nv"}
    a, b = (pointers[name] for name in types)
    signature = {"a": a, "sa": scale, "b": b, "sb": scale, "c": "*fp32"} | EXTENTS
    packed = [2 if name == "e2m1" else 1 for name in types]
    constants = {"BM": 128, "BN": 128, "BK": depth, "FA": types[0], "FB": types[1]}
    constants |= {"V": block, "PA": packed[0], "PB": packed[1]}
    write(f"scaled_{name}", dot_scaled, signature, constants)
    write(f"scaled_tma_{name}", dot_scaled_tma, signature, constants)


write_dot("dot_f16", products.matmul, "*fp16", "*fp16", (128, 128, 64))
write_dot("dot_ptr_f16", dot_pointers, "*fp16", "*fp32", (128, 64, 64))
write_dot("dot_ptr_f8", dot_pointers, "*fp8e4nv", "*fp32", (128, 64, 128))
write_dot("dot_ptr_bf16_m64", dot_pointers, "*bf16", "*fp32", (64, 64, 64))
write_dot("dot_ptr_tf32", dot_pointers, "*fp32", "*fp32", (128, 64, 32))
write_dot("dot_ptr_f16_8w", dot_pointers, "*fp16", "*fp32", (128, 256, 64), warps=8)
write_dot("persistent", dot_persistent, "*fp16", "*fp16", (128, 64, 64), WS=False)
write_dot("specialized", dot_persistent, "*fp16", "*fp16", (128, 64, 64), WS=True)
if CAPABILITY < 100:
    sys.exit()
write_scaled("nvfp4", ("e2m1", "e2m1"), 16, "*fp8e4nv", 256)
write_scaled("mxfp4", ("e2m1", "e2m1"), 32, "*u8", 128)
write_scaled("mxfp8", ("e4m3", "e4m3"), 32, "*u8", 128)
write_scaled("mxmixed", ("e4m3", "e2m1"), 32, "*u8", 128)
