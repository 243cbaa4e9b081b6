"""Makes the PTX of the benchmark from the sources beside it: LD_LIBRARY_PATH=DIR python3 compile.py DIR/libnvrtc.so.13"""

import ctypes
import pathlib
import sys

nvrtc = ctypes.CDLL(sys.argv[1])
options = [b"--gpu-architecture=compute_90", b"--use_fast_math"]


def text(program, size, get):
    length = ctypes.c_size_t()
    getattr(nvrtc, size)(program, ctypes.byref(length))
    buffer = ctypes.create_string_buffer(length.value)
    getattr(nvrtc, get)(program, buffer)
    return buffer.value.decode()


for source in sorted(pathlib.Path(__file__).parent.glob("*.cu")):
    program = ctypes.c_void_p()
    code = source.read_bytes()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), code, source.name.encode(), 0, None, None)
    if nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options)):
        sys.exit(text(program, "nvrtcGetProgramLogSize", "nvrtcGetProgramLog"))
    source.with_suffix(".ptx").write_text(text(program, "nvrtcGetPTXSize", "nvrtcGetPTX"))
