// Lists of uses of a macro that makes a kernel and what launches it.
// kernels: add_k, sub_k, mul_k
#include <vector>

#define OPERATIONS(F) F(add, +) F(sub, -) F(mul, *)
#define KERNEL(name, op) __global__ void name##_k(float *p, float v) { p[threadIdx.x] = p[threadIdx.x] op v; }
#define LAUNCH(name, op) \
    static void name##_run(std::vector<float *> all) { for (float *p : all) name##_k<<<1, 32>>>(p, 2.0f); }
#define BOTH(name, op) KERNEL(name, op) LAUNCH(name, op)
OPERATIONS(BOTH)

#define NUMBER(name, op) name##_number,
#define CASE(name, op) case name##_number: name##_run(all); break;
enum Number { OPERATIONS(NUMBER) };

void run(Number which, std::vector<float *> all) {
    switch (which) { OPERATIONS(CASE) }
}
