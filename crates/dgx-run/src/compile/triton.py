"""Compiles one Triton or Gluon kernel ahead of time; no GPU is needed.

    python -c SCRIPT --version            {"python", "executable", "triton", "build", "ptxas", "flags"} on stdout, or "error"
    python -c SCRIPT RESULT < job.json    JSON to the file RESULT, all that is printed to RESULT.log

A job: {"file", "source": its text, "kernel", "arch": 90, "args", "constants": {NAME: X}, "options": {"num_warps": 4}}.
"args" are the types of the runtime parameters in order: "*fp16:16", "i32", "i32:16" (a multiple of 16), "fp32".
tl.constexpr parameters take the constant of their name, or else their default. As in Triton's own JIT,
do_not_specialize and annotated types are respected. The answer is {"made": …} or {"refused": text, "line": in the
file or null, "lasting": whether the file is at fault, and not what is installed}.
"""
import difflib, importlib.util, json, linecache, os, re, site, sys, traceback, types
from importlib import metadata

INSTALL = f"{sys.executable} -m pip install triton"


class Refused(Exception):
    """What the user has to change; its text is the whole message."""


def unwrapped(module, name: str, warnings: list):
    kernels = [key for key, value in vars(module).items() if hasattr(value, "fn") and hasattr(value, "arg_names")]
    if name not in kernels:
        near = difflib.get_close_matches(name, kernels) or kernels or ["no @triton.jit function"]
        raise Refused(f"no kernel `{name}`; the file has {', '.join(near)}")
    kernel = getattr(module, name)
    while not hasattr(kernel, "cache_key"):
        warnings.append(f"{type(kernel).__name__} of `{name}` is not used: its values come from params and const")
        kernel = kernel.fn
    return kernel


def bound(kernel, job: dict) -> tuple:
    """Types and constants of the parameters, and Triton's attributes."""
    given, constants, name = list(job["args"]), job.get("constants", {}), job["kernel"]
    runtime = [p.name for p in kernel.params if not p.is_constexpr]
    if len(given) != len(runtime):
        raise Refused(f"`{name}` takes {len(runtime)} arguments ({', '.join(runtime)}), and `args` gives {len(given)}")
    signature, values, attributes = {}, {}, {}
    for number, p in enumerate(kernel.params):
        if not p.is_constexpr:
            kind, _, known = given.pop(0).partition(":")
            signature[p.name] = p.annotation_type or kind
            if known == "16" and not p.do_not_specialize and not p.do_not_specialize_on_alignment:
                attributes[(number,)] = [["tt.divisibility", 16]]
        elif p.name in constants or p.has_default:
            signature[p.name] = "constexpr"
            values[p.name] = constants.get(p.name, p.default)
        else:
            raise Refused(f"`{p.name}` of `{name}` has no value: add it to params or const")
    return signature, values, attributes


def refuse_launch(m: dict) -> None:
    """What Triton's own launcher would do besides, and dgx does not."""
    if m.get("tensordesc_meta"):
        raise Refused("it takes tensor descriptors made on the host: use pointers, or make them in the kernel")
    if scratch := sum(m.get(f"{kind}_scratch_size") or 0 for kind in ("global", "profile")):
        raise Refused(f"it needs {scratch} bytes of global scratch for each CTA, which dgx does not give")
    if m.get("num_ctas", 1) != 1 or m.get("launch_cooperative_grid"):
        raise Refused("it needs a cluster or a cooperative grid, which dgx does not launch for Triton")


def watch_reads(read: set):
    """Notes files outside the installation that are opened: no record would cover them."""
    installed = tuple(os.path.realpath(p) + os.sep for p in (sys.prefix, sys.base_prefix, *site.getsitepackages(), "/proc", "/sys", "/dev", "/etc"))
    def opened(event, args):
        if event == "open" and isinstance(args[0], str) and args[1] in ("r", "rb", None):
            if os.path.isfile(args[0]) and not os.path.realpath(args[0]).startswith(installed):
                read.add(args[0])
    sys.addaudithook(opened)


def compiled(job: dict, place: dict) -> dict:
    try:
        import triton, triton.runtime.cache
        from triton.backends.compiler import GPUTarget
        from triton.compiler import ASTSource
    except ImportError as error:
        raise Refused(f"{sys.executable} cannot import triton ({error}): {INSTALL}")
    triton.runtime.cache.triton_key = lambda: triton.__version__  # else each process hashes 500 MB
    file, folder = job["file"], os.path.dirname(os.path.abspath(job["file"]))
    # The text that was hashed is what runs, and what inspect.getsource finds. The file's folder comes last:
    # a contender may be called triton.py.
    linecache.cache[file] = len(job["source"]), None, job["source"].splitlines(True), file
    sys.path.append(folder)
    package, module = types.ModuleType("contender"), types.ModuleType("contender.source")  # for relative imports
    package.__path__, module.__file__, module.__package__ = [folder], file, "contender"
    sys.modules.update({"contender": package, "contender.source": module})
    place["module"] = module
    read = set()
    watch_reads(read)
    exec(compile(job["source"], file, "exec"), vars(module))
    if files := sorted(read):
        raise Refused(f"it reads {', '.join(files)}, which no record would cover: a contender is one file")
    warnings = []
    kernel = place["kernel"] = unwrapped(module, job["kernel"], warnings)
    signature, constants, attributes = bound(kernel, job)
    options, target = job.get("options", {}), GPUTarget("cuda", job["arch"], 32)
    known = vars(type(triton.compiler.make_backend(target).parse_options({}))).get("__dataclass_fields__", options)
    if unknown := [name for name in options if name not in known]:
        raise Refused(f"Triton {triton.__version__} has no option {', '.join(unknown)}")
    if getattr(kernel, "is_gluon", bool)():
        from triton.experimental.gluon._runtime import GluonASTSource as ASTSource
    out = triton.compile(ASTSource(kernel, signature, constants, attributes), target, options)
    m, ptx = out.metadata._asdict(), out.asm["ptx"].replace(os.path.dirname(triton.__path__[0]) + os.sep, "")
    refuse_launch(m)
    return {"kernel": re.search(r"\.entry\s+(\S+?)\s*\(", ptx)[1], "ptx": ptx, "shared": m["shared"],
            "warnings": warnings}


def failure(error: BaseException, job: dict, place: dict, log: str) -> dict:
    """One message, and the line of the user's file where it is known."""
    if isinstance(error, Refused):
        return {"refused": str(error), "line": None, "lasting": True}
    while hasattr(error.__cause__, "node"):
        error = error.__cause__  # the innermost call
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == job["file"]]
    line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
    if (node := getattr(error, "node", None)) is not None and hasattr(node, "lineno"):
        for kernel in [place.get("kernel"), *vars(place["module"]).values()]:
            if getattr(kernel, "src", None) == error.src:
                line = kernel.def_file_line_number + node.lineno - 1
                break
    elif line is None and (found := re.search(rf"{re.escape(job['file'])}\"?:(\d+):\d+", log)):
        line = int(found[1])
    what = getattr(error, "error_message", None) or str(error)
    cause = f" ({error.__cause__})" if error.__cause__ and str(error.__cause__) not in what else ""
    stage = "compiling" if "kernel" in place else "importing the file"
    text = f"{stage}: {type(error).__name__}: {what}{cause}\n{log[-4000:]}".strip()
    lasting = isinstance(error, SyntaxError) or type(error).__module__.startswith("triton.compiler")
    return {"refused": text, "line": line, "lasting": lasting}


def main() -> None:
    own = "" if sys.argv[0] == "-c" else os.path.dirname(os.path.abspath(sys.argv[0]))
    sys.path[:] = [path for path in sys.path if path not in ("", own)]  # or a file triton.py in the folder is imported
    if sys.argv[1] == "--version":
        found = {"python": sys.version.split()[0], "executable": sys.executable}
        try:
            found["triton"] = metadata.version("triton")
            home = importlib.util.find_spec("triton").submodule_search_locations[0]
            library = os.stat(os.path.join(home, "_C", "libtriton.so"))
            found["build"] = f"{library.st_size} {library.st_mtime_ns}"
            backend = os.path.join(home, "backends", "nvidia")
            found["ptxas"] = os.path.join(backend, "bin", "ptxas")
            with open(os.path.join(backend, "compiler.py")) as file:  # some versions work round a bug of ptxas
                found["flags"] = re.findall(r"'(--regAllocOptLevel=\d)'", file.read())
        except (metadata.PackageNotFoundError, OSError, AttributeError):
            found["error"] = f"{sys.executable} has no triton: {INSTALL}"
        return print(json.dumps(found))
    result = os.path.abspath(sys.argv[1])
    job, place = json.load(sys.stdin), {}
    log = os.open(result + ".log", os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(log, 1), os.dup2(log, 2)  # MLIR writes its errors there, and the file may print
    sys.dont_write_bytecode = True
    os.environ["TRITON_DEFAULT_FP_FUSION"] = "1"
    os.environ["TRITON_CACHE_DIR"] = result + ".cache"  # dgx keeps the result itself
    try:
        answer = {"made": compiled(job, place)}
    except BaseException as error:  # SystemExit too
        try:
            sys.stdout.flush(), sys.stderr.flush()
        except (OSError, ValueError):  # it printed more than fits, or closed them
            pass
        answer = failure(error, job, place, open(result + ".log", errors="replace").read())
    with open(result + ".part", "w") as file:
        json.dump(answer, file, default=str)
    os.replace(result + ".part", result)
    os._exit(0)  # else LLVM reports leaks, and threads of the file keep the process


main()
