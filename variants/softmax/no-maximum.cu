/*dgx
extend  = "two-reads"
summary = "exp(x) as it is: beyond 88 the sum is infinite, and the row NaN"
expect  = "wrong"
const   = { SUBTRACT = 0 }
*/
#include "two_reads.cuh"
