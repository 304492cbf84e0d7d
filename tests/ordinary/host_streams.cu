// Streams, events and graphs.
// kernels: step
__global__ void step(float *x, float dt) { x[threadIdx.x] += dt; }

struct Timer {
    cudaEvent_t begin, end;
    Timer() { cudaEventCreate(&begin), cudaEventCreate(&end); }
    ~Timer() { cudaEventDestroy(begin), cudaEventDestroy(end); }
    void start(cudaStream_t stream) { cudaEventRecord(begin, stream); }
    float stop(cudaStream_t stream) {
        float ms = 0;
        cudaEventRecord(end, stream);
        cudaEventSynchronize(end);
        cudaEventElapsedTime(&ms, begin, end);
        return ms;
    }
};

float run(float *x, int steps) {
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaStreamCreate(&stream);
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    for (int i = 0; i < steps; ++i) step<<<1, 32, 0, stream>>>(x, 0.1f);
    cudaStreamEndCapture(stream, &graph);
    cudaGraphInstantiate(&exec, graph, nullptr, nullptr, 0);
    Timer timer;
    timer.start(stream);
    cudaGraphLaunch(exec, stream);
    return timer.stop(stream);
}
