//! Names the shared library as programs ask for it, and keeps it loaded: its threads never end.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libcuda.so.1,-z,nodelete");
    println!("cargo::rerun-if-changed=build.rs");
}
