// Parameters and local variables that are called like globals of the host.
// kernels: shadowed
float *x;
int n, m;
static double result = 0;

__global__ void shadowed(float *x, int n) {
    float result = 0;
    for (int m = 0; m < n; ++m) result += x[m];
    x[0] = result;
}

void run() {
    shadowed<<<1, 1>>>(x, n);
    result = m;
}
