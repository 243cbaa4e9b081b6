#include <stddef.h>
#define DGX_INT(N, T) \
  typedef signed T int##N##_t; typedef unsigned T uint##N##_t; \
  namespace std { using ::int##N##_t; using ::uint##N##_t; }
DGX_INT(8, char) DGX_INT(16, short) DGX_INT(32, int) DGX_INT(64, long long)
DGX_INT(ptr, long long) DGX_INT(max, long long)
#undef DGX_INT
#define INT8_MIN (-128)
#define INT8_MAX 127
#define UINT8_MAX 255
#define INT16_MIN (-32768)
#define INT16_MAX 32767
#define UINT16_MAX 65535
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define UINT32_MAX 4294967295U
#define INT64_MIN (-9223372036854775807LL - 1)
#define INT64_MAX 9223372036854775807LL
#define UINT64_MAX 18446744073709551615ULL
