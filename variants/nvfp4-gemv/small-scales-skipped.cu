/*dgx
extend  = "warp-per-row"
summary = "Blocks of a row whose scale is below 1/16 count as zeros"
expect  = "wrong"
const   = { LEAST_SCALE = 0x18 }  # 2^-4 as e4m3
*/
#include "warp_per_row.cuh"
