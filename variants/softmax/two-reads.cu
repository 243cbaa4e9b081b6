/*dgx
operator = "softmax"
summary  = "A CTA a row, read twice: for the maximum and the sum, then for the weights"
arch     = "sm_90a"
requires = ["n % 8 == 0"]

[const]
SUBTRACT = 1                                      # the maximum
THREADS  = "min(256, align(cdiv(n, 8), 32))"

[[launch]]
kernel = "softmax"
grid   = "m"
block  = "THREADS"
*/
#include "two_reads.cuh"
