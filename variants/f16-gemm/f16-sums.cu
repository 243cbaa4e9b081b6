/*dgx
extend  = "tiled"
summary = "The sums of the first half of K are kept in fp16"
expect  = "wrong"
const   = { F16_SUMS = 1 }
*/
#include "tiled.cuh"
