// Packs, template templates, values of enumerations, of characters and of deduced types.
// kernels: count<int, float *, double>, count<>, apply<Plus, float>, apply<Minus, float>, move<Way::Out, true>, move<Way::In, false>, letter<'x'>, letter<7>, pack<1, 2, 3>
enum class Way { In, Out };

template <typename T>
struct Plus {
    static __device__ T of(T a, T b) { return a + b; }
};

template <typename T>
struct Minus {
    static __device__ T of(T a, T b) { return a - b; }
};

template <typename... A>
__global__ void count(int *n, A... a) {
    *n = sizeof...(a);
}

template <template <typename> class Op, typename T>
__global__ void apply(T *x) {
    x[0] = Op<T>::of(x[1], x[2]);
}

template <Way W, bool B>
__global__ void move(int *x) {
    x[W == Way::In ? 0 : 1] = B;
}

template <auto Value>
__global__ void letter(int *x) {
    *x = Value;
}

template <int... I>
__global__ void pack(int *x) {
    *x = (I + ...);
}

template <template <typename> class Op>
void applied(float *x) {
    apply<Op><<<1, 1>>>(x);
}

template <Way W>
void moved(int *x) {
    move<W, W == Way::Out><<<1, 1>>>(x);
}

template <int... I>
void packed(int *x) {
    pack<I...><<<1, 1>>>(x);
}

void run(float *x, int *y) {
    count<<<1, 1>>>(y, 1, x, 2.0);
    count<<<1, 1>>>(y);
    applied<Plus>(x);
    applied<Minus>(x);
    moved<Way::Out>(y);
    moved<Way::In>(y);
    letter<'x'><<<1, 1>>>(y);
    letter<7><<<1, 1>>>(y);
    packed<1, 2, 3>(y);
}
