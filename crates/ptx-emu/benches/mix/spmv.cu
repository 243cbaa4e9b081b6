// Sparse matrix (CSR) times vector, a thread per row: rows of unequal length, scattered reads.
extern "C" __global__ void spmv(const int* rows, const int* columns, const float* values, const float* x, float* y, int n) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n) return;
    float sum = 0;
    for (int i = rows[row]; i < rows[row + 1]; ++i) sum += values[i] * x[columns[i]];
    y[row] = sum;
}
