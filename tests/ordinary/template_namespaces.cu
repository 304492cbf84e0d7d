// Types and kernels of namespaces.
// kernels: app::load<app::Rgb, app::channels>, app::load<app::Gray, 1>
namespace app {
struct Rgb { float v[3]; };
struct Gray { float v[1]; };
constexpr int channels = 3;

template <typename Pixel, int N>
__global__ void load(const Pixel *in, float *out) {
    for (int i = 0; i < N; ++i) out[threadIdx.x * N + i] = in[threadIdx.x].v[i];
}

void run(const Rgb *a, const Gray *b, float *out) {
    load<Rgb, channels><<<1, 32>>>(a, out);
    app::load<Gray, 1><<<1, 32>>>(b, out);
}
}  // namespace app
