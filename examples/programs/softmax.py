"""A softmax in Triton, checked on the host. It needs triton and no torch: a few lines stand in for
what Triton itself asks of it."""
import array
import ctypes
import math
import random
import sys
import types

cuda = ctypes.CDLL("libcuda.so.1")


def ok(code):
    assert code == 0, f"CUDA error {code}"


class Tensor:
    """Numbers on the device."""

    dtype = "fp32"

    def __init__(self, values):
        self.pointer, self.count = ctypes.c_uint64(), len(values)
        self.bytes = ctypes.c_size_t(4 * self.count)
        ok(cuda.cuMemAlloc_v2(ctypes.byref(self.pointer), self.bytes))
        ok(cuda.cuMemcpyHtoD_v2(self.pointer, array.array("f", values).tobytes(), self.bytes))

    def data_ptr(self):
        return self.pointer.value

    def values(self):
        values = (ctypes.c_float * self.count)()
        ok(cuda.cuMemcpyDtoH_v2(values, self.pointer, self.bytes))
        return list(values)


torch = types.ModuleType("torch")
torch.Tensor = Tensor
torch.cuda = types.SimpleNamespace(
    is_available=lambda: True, current_device=lambda: 0, set_device=lambda device: None,
    get_device_capability=lambda device=None: (9, 0),
    current_stream=lambda device=None: types.SimpleNamespace(cuda_stream=0))
torch.version = types.SimpleNamespace(hip=None)
sys.modules["torch"] = torch

import triton
import triton.language as tl


@triton.jit
def softmax(x, y, columns, WIDTH: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, WIDTH)
    inside = at < columns
    values = tl.load(x + row * columns + at, mask=inside, other=-float("inf"))
    weights = tl.exp(values - tl.max(values, axis=0))
    tl.store(y + row * columns + at, weights / tl.sum(weights, axis=0), mask=inside)


context = ctypes.c_void_p()
ok(cuda.cuInit(0))
ok(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
ok(cuda.cuCtxSetCurrent(context))
rows, columns = 32, 500
values = [random.gauss(0, 1) for _ in range(rows * columns)]
x, y = Tensor(values), Tensor([0.0] * len(values))
softmax[(rows,)](x, y, columns, WIDTH=512)
found = y.values()
for first in range(0, len(values), columns):
    weights = [math.exp(value) for value in values[first:first + columns]]
    for at, weight in enumerate(weights):
        assert math.isclose(found[first + at], weight / sum(weights), rel_tol=1e-5), (first, at)
print("right")
