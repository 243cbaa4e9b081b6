//! Launches kernels of a module on emulated memory.
