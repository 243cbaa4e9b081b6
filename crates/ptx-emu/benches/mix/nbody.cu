// Accelerations of all bodies by all, through shared tiles, and a wave that shakes them.
extern "C" __global__ void nbody(const float4* bodies, float4* out, int n, float time) {
    __shared__ float4 tile[128];
    const float4 me = bodies[blockIdx.x * 128 + threadIdx.x];
    float ax = 0, ay = 0, az = 0;
    for (int first = 0; first < n; first += 128) {
        __syncthreads();
        tile[threadIdx.x] = bodies[first + threadIdx.x];
        __syncthreads();
#pragma unroll 4
        for (int i = 0; i < 128; ++i) {
            const float4 other = tile[i];
            const float dx = other.x - me.x, dy = other.y - me.y, dz = other.z - me.z;
            const float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-3f);
            const float pull = other.w * inverse * inverse * inverse;
            ax += dx * pull;
            ay += dy * pull;
            az += dz * pull;
        }
    }
    const float wave = sinf(me.x + time) * expf(-me.w);
    out[blockIdx.x * 128 + threadIdx.x] = make_float4(ax + wave, ay + cosf(me.y) * wave, az, sqrtf(ax * ax + ay * ay));
}
