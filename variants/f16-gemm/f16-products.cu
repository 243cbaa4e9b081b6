/*dgx
extend  = "tiled"
summary = "In the first fourth of K, sixteen products are summed in fp16; only exact data show it"
expect  = "wrong"
const   = { F16_PRODUCTS = 1 }
*/
#include "tiled.cuh"
