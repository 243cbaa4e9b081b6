#if __has_include(<cuda_runtime.h>)
#define __CUDA_INCLUDE_COMPILER_INTERNAL_HEADERS__
#include <cuda_runtime.h>
#include <cuda_device_runtime_api.h>
#undef __CUDA_INCLUDE_COMPILER_INTERNAL_HEADERS__
#endif
#include <math.h>
#include <stdlib.h>
