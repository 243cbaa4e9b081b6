# Kernels of another compiler. `TRITON_DISABLE_LINE_INFO=1 python kernels.py` (Triton 3.9) writes
# softmax.ptx and matmul.ptx beside this file; no GPU is needed.

import products
import triton
import triton.language as tl


@triton.jit
def softmax(x, y, n, WIDTH: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, WIDTH)
    inside = column < n
    value = tl.load(x + row * n + column, mask=inside, other=-float("inf"))
    power = tl.exp(value - tl.max(value, 0))
    tl.store(y + row * n + column, power / tl.sum(power, 0), mask=inside)


def write(kernel, signature, constants):
    shared = products.write(kernel.__name__, kernel, signature, constants, capability=90)
    print(kernel.__name__, "needs", shared, "bytes of shared memory")


write(softmax, {"x": "*fp32", "y": "*fp32", "n": "i32"}, {"WIDTH": 1024})
pointers = {name: "*fp16" for name in "abc"}
extents = {name: "i32" for name in "MNK"}
write(products.matmul, pointers | extents, {"BM": 64, "BN": 64, "BK": 64})
