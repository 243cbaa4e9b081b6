#include <stddef.h>
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
