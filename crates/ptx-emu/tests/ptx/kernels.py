# Kernels of another compiler. `TRITON_DISABLE_LINE_INFO=1 python kernels.py` (Triton 3.9) writes
# softmax.ptx and matmul.ptx beside this file; no GPU is needed.

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def softmax(x, y, n, WIDTH: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, WIDTH)
    inside = column < n
    value = tl.load(x + row * n + column, mask=inside, other=-float("inf"))
    power = tl.exp(value - tl.max(value, 0))
    tl.store(y + row * n + column, power / tl.sum(power, 0), mask=inside)


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    a_map = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    b_map = tl.make_tensor_descriptor(b, [N, K], [K, 1], [BN, BK])
    c_map = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    columns = tl.cdiv(N, BN)
    row = tl.program_id(0) // columns * BM
    column = tl.program_id(0) % columns * BN
    sum = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        sum = tl.dot(a_map.load([row, k]), b_map.load([column, k]).T, sum)
    c_map.store([row, column], sum.to(tl.float16))


def write(kernel, signature, constants):
    signature |= {name: "constexpr" for name in constants}
    source = ASTSource(fn=kernel, signature=signature, constexprs=constants)
    options = {"num_warps": 4, "num_stages": 3}
    built = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)
    with open(f"{kernel.__name__}.ptx", "w") as file:
        file.write(built.asm["ptx"])
    print(kernel.__name__, "needs", built.metadata.shared, "bytes of shared memory")


write(softmax, {"x": "*fp32", "y": "*fp32", "n": "i32"}, {"WIDTH": 1024})
pointers = {name: "*fp16" for name in "abc"}
extents = {name: "i32" for name in "MNK"}
write(matmul, pointers | extents, {"BM": 64, "BN": 64, "BK": 64})
