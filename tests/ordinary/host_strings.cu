// Texts that look like code.
// kernels: plain
static const char *source = R"cuda(
extern "C" __global__ void generated(float *x) { x[0] = "}"; }
)cuda";
static const char *odd = "__device__ } // \" {";
static const char brace = '{', quote = '\'';
/* __global__ void commented(int *p) { */
// void line(int *p) {

__global__ void plain(int *p) { *p = 1'000; }

const char *text() { return source[0] == brace || quote ? odd : source; }
