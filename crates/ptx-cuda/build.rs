//! Names the shared library as programs ask for it, keeps it loaded, as its threads never
//! end, and lets it begin before the program's other libraries, whose runtime it replaces.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libcuda.so.1,-z,nodelete,-z,initfirst");
    println!("cargo::rerun-if-changed=build.rs");
}
