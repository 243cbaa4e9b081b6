//! What comes with a process: its beginning and end, forks, and a standard error that is gone. The
//! programs are in C, as their destructors and libraries must be.

use std::path::Path;
use std::process::{Command, Output};

/// Functions and a kernel for the programs. `add_one` of `cuda/mod.rs` takes a pointer and a count.
const PRELUDE: &str = r#"
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
typedef struct { unsigned x, y, z; } dim3;
int cudaMalloc(void **, size_t), cudaFree(void *), cudaDeviceSynchronize(), cudaDeviceReset();
int cudaGetLastError(), cudaMallocMipmappedArray(), cudaFreeMipmappedArray();
int cudaGetMipmappedArrayLevel(), cudaIpcGetMemHandle(), cudaRuntimeGetVersion(int *);
int cudaPointerGetAttributes(void *, void *), cudaGetDeviceProperties(void *, int);
int cudaGetDeviceProperties_v2(void *, int);
int __cudaPushCallConfiguration(dim3, dim3, size_t, void *);
int cuInit(unsigned), cuCtxCreate_v2(void **, unsigned, int), cuCtxSynchronize();
int cuMemAlloc_v2(void **, size_t), cuCtxGetDevice(int *);
int cuModuleLoadData(void **, const char *), cuModuleGetFunction(void **, void *, const char *);
int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   void *, void **, void **);
static void *context, *module, *function;
static void load(void) {
    if (cuInit(0) || cuCtxCreate_v2(&context, 0, 0)
        || cuModuleLoadData(&module, getenv("PTX"))
        || cuModuleGetFunction(&function, module, "add_one")) exit(9);
}
static int launch(void *pointer) {
    unsigned count = 1;
    void *args[] = {&pointer, &count};
    return cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, 0, args, 0);
}
"#;

#[path = "cuda/ptx.rs"]
mod ptx;

/// Compiles a program and runs it.
fn run(program: &str, folder: &Path) -> Output {
    let here = std::env::current_exe().expect("a test has a path");
    let library = std::fs::read(here.with_file_name("libptx_cuda.so")).expect("the library");
    ptx_cuda::library::prepare(folder, &library).expect("the libraries");
    let source = folder.join("program.c");
    std::fs::write(&source, format!("{PRELUDE}{program}")).expect("a source");
    let compiled = folder.join("program");
    let made = Command::new("cc")
        .args(["-w", "-o"])
        .arg(&compiled)
        .arg(&source)
        .arg(folder.join(ptx_cuda::library::DRIVER))
        .arg("-ldl")
        .output()
        .expect("cc runs");
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    let report = folder.join("report");
    std::fs::create_dir(&report).expect("a folder");
    Command::new(compiled)
        .env("LD_LIBRARY_PATH", folder)
        .env("PTX", ptx::PTX)
        .env(ptx_cuda::report::REPORT, &report)
        .output()
        .expect("it starts")
}

/// What a program prints and says, if it ends as it should.
fn prints(program: &str) -> (String, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let out = run(program, folder.path());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (printed, said) = (text(&out.stdout), text(&out.stderr));
    assert!(out.status.success(), "{:?}\n{printed}\n{said}", out.status);
    (printed, said)
}

#[test]
fn destructors_of_globals_may_free_and_launch() {
    let (printed, said) = prints(
        "static void *pointer;
        __attribute__((destructor)) static void end(void) {
            dim3 one = {1, 1, 1};
            printf(\"%d \", launch(pointer));
            printf(\"%d %d \", __cudaPushCallConfiguration(one, one, 0, 0), cudaGetLastError());
            printf(\"%d %d\\n\", cudaFree(pointer), cudaDeviceSynchronize());
        }
        int main(void) {
            load();
            return cudaMalloc(&pointer, 4) || launch(pointer);
        }",
    );
    assert_eq!(printed, "0 0 0 0 0\n", "{said}");
    assert_eq!(said, "");
}

#[test]
fn a_program_without_a_standard_error_goes_on() {
    let (printed, _) = prints(
        "int main(void) {
            int ends[2];
            signal(SIGPIPE, SIG_IGN);
            pipe(ends);
            close(ends[0]);
            dup2(ends[1], 2);
            printf(\"%d\\n\", cudaMallocMipmappedArray());
            return 0;
        }",
    );
    assert_eq!(printed, "801\n");
}

#[test]
fn a_fault_stays_until_the_process_ends() {
    let (printed, said) = prints(
        "int main(void) {
            load();
            printf(\"%d \", launch((void *)64));
            printf(\"%d %d \", cuCtxSynchronize(), cudaDeviceReset());
            printf(\"%d %d\\n\", cudaDeviceSynchronize(), cudaGetLastError());
            return 0;
        }",
    );
    assert_eq!(printed, "0 700 700 700 700\n", "{said}");
    assert!(said.contains("add_one"), "{said}");
}

#[test]
fn driver_calls_before_its_beginning_are_refused() {
    let (printed, _) = prints(
        "int main(void) {
            int device;
            void *pointer;
            printf(\"%d %d \", cuMemAlloc_v2(&pointer, 4), cuCtxGetDevice(&device));
            cuInit(0);
            printf(\"%d\\n\", cuMemAlloc_v2(&pointer, 4));
            return 0;
        }",
    );
    assert_eq!(printed, "3 3 201\n");
}

#[test]
fn structs_of_cuda_12_are_not_written_past_their_end() {
    let (printed, said) = prints(
        "int main(void) {
            char attributes[88], properties[1040];
            int version, i, written = 0;
            if (!dlopen(\"libcudart.so.12\", RTLD_NOW)) return 1;
            memset(attributes, 7, sizeof attributes);
            memset(properties, 7, sizeof properties);
            printf(\"%d \", cudaPointerGetAttributes(attributes, &version));
            for (i = 24; i < 88; i++) written += attributes[i] != 7;
            int refused = cudaGetDeviceProperties(properties, 0), kept = properties[0];
            int given = cudaGetDeviceProperties_v2(properties, 0);
            cudaRuntimeGetVersion(&version);
            printf(\"%d %d %d \", written, refused, kept);
            printf(\"%d %d %d\\n\", given, properties[1032], version);
            return 0;
        }",
    );
    assert_eq!(printed, "0 0 801 7 0 7 12040\n", "{said}");
}

#[test]
fn edges_of_cuda_12_have_data_under_names_of_the_second_version_alone() {
    let (printed, said) = prints(
        "int cudaGraphCreate(void **, unsigned);
        int cudaGraphAddEmptyNode(void **, void *, void **, size_t);
        int cudaGraphAddDependencies(void *, void **, void **, size_t);
        int cudaGraphAddDependencies_v2(void *, void **, void **, void *, size_t);
        int cudaGraphRemoveDependencies_v2(void *, void **, void **, void *, size_t);
        int cudaGraphGetEdges(void *, void **, void **, size_t *);
        int cudaGraphGetEdges_v2(void *, void **, void **, void *, size_t *);
        int cudaGraphNodeGetDependencies_v2(void *, void **, void *, size_t *);
        int cudaGraphNodeGetDependentNodes_v2(void *, void **, void *, size_t *);
        int main(void) {
            void *graph, *node[3], *from[2], *to[2];
            char data[24];
            size_t all = 0, few = 2, before = 0, after = 0;
            int i;
            if (!dlopen(\"libcudart.so.12\", RTLD_NOW)) return 1;
            memset(data, 7, sizeof data);
            if (cudaGraphCreate(&graph, 0)) return 2;
            for (i = 0; i < 3; i++) if (cudaGraphAddEmptyNode(node + i, graph, 0, 0)) return 3;
            if (cudaGraphAddDependencies_v2(graph, node, node + 1, 0, 1)) return 4;
            if (cudaGraphAddDependencies(graph, node + 1, node + 2, 1)) return 5;
            if (cudaGraphGetEdges(graph, 0, 0, &all)) return 6;
            if (cudaGraphGetEdges_v2(graph, from, to, data, &few)) return 7;
            if (cudaGraphNodeGetDependencies_v2(node[2], 0, 0, &before)) return 8;
            if (cudaGraphNodeGetDependentNodes_v2(node[0], 0, 0, &after)) return 9;
            printf(\"%zu %zu %zu %zu \", all, few, before, after);
            printf(\"%d %d %d %d \", from[0] == node[0], to[1] == node[2], data[15], data[16]);
            if (cudaGraphRemoveDependencies_v2(graph, node, node + 1, 0, 1)) return 10;
            if (cudaGraphGetEdges_v2(graph, 0, 0, 0, &all)) return 11;
            printf(\"%zu\\n\", all);
            return 0;
        }",
    );
    assert_eq!(printed, "2 2 1 1 1 1 0 7 1\n", "{said}");
}

#[test]
fn names_of_cuda_12_are_there() {
    let (printed, said) = prints(
        "int main(void) {
            int (*call)(void) = dlsym(RTLD_DEFAULT, \"cudaGraphAddNode_v2\");
            int (*signal)(void) = dlsym(RTLD_DEFAULT, \"cudaSignalExternalSemaphoresAsync_v2\");
            int (*wait)(void) = dlsym(RTLD_DEFAULT, \"cudaWaitExternalSemaphoresAsync_v2_ptsz\");
            int (*info)(void *, int *, void *, void *, void *, void *, void *) =
                dlsym(RTLD_DEFAULT, \"cudaStreamGetCaptureInfo_v3_ptsz\");
            int status = 7, code = info(0, &status, 0, 0, 0, 0, 0);
            printf(\"%d %d %d %d %d\\n\", call(), signal(), wait(), code, status);
            return 0;
        }",
    );
    assert_eq!(printed, "801 801 801 0 0\n", "{said}");
}

#[test]
fn reports_outlive_forks_and_other_programs() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = run(
        "int main(int count, char **args) {
            if (count > 1) {
                cudaIpcGetMemHandle();
                return 0;
            }
            cudaMallocMipmappedArray();
            int child = fork();
            if (child == 0) {
                cudaFreeMipmappedArray();
                _exit(0);
            }
            waitpid(child, 0, 0);
            cudaGetMipmappedArrayLevel();
            execl(args[0], args[0], \"again\", (char *)0);
            return 1;
        }",
        folder.path(),
    );
    assert!(out.status.success());
    let files = std::fs::read_dir(folder.path().join("report")).expect("a folder");
    let texts = files.map(|file| std::fs::read_to_string(file.expect("a file").path()));
    let texts: Vec<String> = texts.map(|text| text.expect("text")).collect();
    assert_eq!(texts.len(), 3, "{texts:?}");
    let all = texts.concat();
    for name in [
        "cudaMallocMipmappedArray",
        "cudaFreeMipmappedArray",
        "cudaGetMipmappedArrayLevel",
        "cudaIpcGetMemHandle",
    ] {
        assert!(all.contains(name), "{name}: {all}");
    }
}
