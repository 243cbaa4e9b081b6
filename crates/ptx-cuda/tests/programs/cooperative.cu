// A cooperative launch, a cluster launch, managed variables, printf, and a graph built by hand.
#include <cooperative_groups.h>
#include <cstdio>

namespace cg = cooperative_groups;

__managed__ int counter = 40;

__global__ void both_halves(int *data) {
    cg::grid_group grid = cg::this_grid();
    data[grid.thread_rank()] = 1;
    grid.sync();
    if (grid.thread_rank() == 0) {
        int all = 0;
        for (int i = 0; i < (int)grid.size(); i++) all += data[i];
        counter += all / 128;
    }
}

__global__ void __cluster_dims__(2, 1, 1) neighbours(int *out) {
    __shared__ int mine;
    cg::cluster_group cluster = cg::this_cluster();
    if (threadIdx.x == 0) mine = 10 + cluster.block_rank();
    cluster.sync();
    if (threadIdx.x == 0) {
        int *other = cluster.map_shared_rank(&mine, cluster.block_rank() ^ 1);
        out[blockIdx.x] = *other;
    }
    cluster.sync();
}

__global__ void greet(int *out) { printf("block %d has %d\n", blockIdx.x, out[blockIdx.x]); }

int main() {
    int *data;
    cudaMallocManaged(&data, 256 * sizeof(int));
    void *args[] = {&data};
    if (cudaLaunchCooperativeKernel((void *)both_halves, 4, 64, args, 0, 0)) return 2;
    if (cudaDeviceSynchronize()) return 3;
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    cudaGraphNode_t first, second;
    cudaKernelNodeParams node = {};
    node.func = (void *)neighbours;
    node.gridDim = 4;
    node.blockDim = 32;
    node.kernelParams = args;
    if (cudaGraphCreate(&graph, 0)) return 4;
    if (cudaGraphAddKernelNode(&first, graph, nullptr, 0, &node)) return 5;
    node.func = (void *)greet;
    node.gridDim = 2;
    node.blockDim = 1;
    if (cudaGraphAddKernelNode(&second, graph, &first, 1, &node)) return 6;
    if (cudaGraphInstantiate(&ready, graph, 0)) return 7;
    if (cudaGraphLaunch(ready, 0) || cudaDeviceSynchronize()) return 8;
    bool right = counter == 42 && data[0] == 11 && data[1] == 10 && data[3] == 10;
    printf("counter %d: %s\n", counter, right ? "right" : "wrong");
    return right ? 0 : 1;
}
