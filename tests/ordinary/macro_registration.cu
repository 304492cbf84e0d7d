// A macro that registers a function: it pastes names together, and hands one of them to another macro.
// kernels: negate
#include <map>
#include <string>

using Function = void (*)(float *);
struct Registry {
    std::map<std::string, Function> functions;
    static Registry &of(Function *) {
        static Registry registry;
        return registry;
    }
};
#define REGISTRY_OF(name) Registry::of(&name)
#define REGISTER(name, WHERE, value)                                                           \
    struct name##_on_##WHERE {                                                                 \
        name##_on_##WHERE() { REGISTRY_OF(name).functions[#name] = value; }                    \
    };                                                                                         \
    static name##_on_##WHERE made_##name##_on_##WHERE;

__global__ void negate(float *x) { x[threadIdx.x] = -x[threadIdx.x]; }

void negate_all(float *x) { negate<<<1, 32>>>(x); }

Function negated;
REGISTER(negated, CUDA, negate_all);
