/*dgx
extend  = "three-reads"
summary = "As three-reads, and the bias is forgotten"
expect  = "wrong"
const   = { BIAS = 0 }
*/
#include "three_reads.cuh"
