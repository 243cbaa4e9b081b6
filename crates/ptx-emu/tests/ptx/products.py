# What the kernels of another compiler share: a product by tensor maps, and how one is compiled
# without a GPU.

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


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


def write(path, kernel, signature, constants, capability, warps=4):
    """Writes a kernel's PTX; gives its bytes of shared memory."""
    signature = signature | {name: "constexpr" for name in constants}
    source = ASTSource(fn=kernel, signature=signature, constexprs=constants)
    options = {"num_warps": warps, "num_stages": 3}
    built = triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options)
    with open(f"{path}.ptx", "w") as file:
        file.write(built.asm["ptx"])
    return built.metadata.shared
