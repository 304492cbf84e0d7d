// Static members for the host in a class that a kernel uses.
// kernels: count
struct Config {
    static int instances;
    static const int limit = 8;
    static constexpr float step = 0.25f;
    static Config *create();
    int value;
    __device__ float scaled() const { return value * step; }
};
int Config::instances = 0;
Config *Config::create() { return new Config{++instances}; }

__global__ void count(const Config *c, float *out) {
    for (int i = 0; i < Config::limit; ++i) out[i] = c->scaled();
}
