// Uses of macros that only a preprocessor tells: definitions in arms, arguments that are macros, variadics, minus signs.
// kernels: add_k, scale_k, f_run_k, i_run_k, one_k, two_three_k, sign_k, checked_k, lane_k
#include <cassert>
#include <cstdio>
#include <string>
#include <vector>

#define THREADS 128
#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define APPLY(M, ...) M(__VA_ARGS__)
#define LOG(format, args...) std::fprintf(stderr, format, ##args)
#define KERNEL(name, op, rest...) \
    __global__ void name##_k(float *p, ##rest) { \
        __shared__ float tile[THREADS]; \
        tile[threadIdx.x] = p[threadIdx.x]; \
        __syncthreads(); \
        p[threadIdx.x] = tile[THREADS - 1 - threadIdx.x] op 2; \
    } \
    static std::vector<float> name##_host() { LOG("%s", #name); LOG(#op); return {}; }
APPLY(KERNEL, add, +)
APPLY(KERNEL, scale, * scale *, float scale)

#ifdef DOUBLES
#define TYPES(X) X(double, d)
#else
#define TYPES(X) X(float, f) X(int, i)
#endif
#define RUN(type, letter) \
    __global__ void CAT(letter, _run_k)(type *p) { p[__LINE__] = sizeof(type); } \
    static void CAT(letter, _run)(std::vector<type> v) { CAT(letter, _run_k)<<<1, THREADS>>>(v.data()); }
TYPES(RUN)

#define ONE(a) __global__ void a##_k(int *p) { *p = 1; } static std::string a##_name() { return #a; }
#define TWO(a, b) __global__ void a##_##b##_k(int *p) { *p = 2; } static std::string a##_##b##_name() { return #a #b; }
#define PICK(first, second, name, ...) name
#define MADE(...) PICK(__VA_ARGS__, TWO, ONE)(__VA_ARGS__)
MADE(one)
MADE(two, three)

#define NEGATIVE -x
#define SIGN(name, e) __global__ void name##_k(int *p) { int x = p[1]; p[2] = -e; p[3] = x; } static void name##_f() { std::string s; }
APPLY(SIGN, sign, NEGATIVE)

#ifndef ABSENT
#define CHECKED(name, e) __global__ void name##_k(int *p, int n) { assert(n < THREADS && "it's \"n\""); assert(e); p[n] = 1; } static std::string name##_f() { return #e; }
#else
#define CHECKED(name, e)
#endif
CHECKED(checked, n>=0)

#define LANE(name, ...) __global__ void name##_k(int *p) { __VA_ARGS__ } static std::string name##_f() { return #__VA_ARGS__ "é"; }
#undef LANE_OF
#ifdef ABSENT
#define LANE_OF(name)
#else
#define LANE_OF(name) \
    LANE(name, asm volatile("{ .reg .pred q; setp.ne.s32 q, %0, 0; @q mov.u32 %0, %%laneid; }" : "+r"(p[0])); p[1] = '@';)
#endif
LANE_OF(lane)

struct Entry {
    std::string name;
    void (*run)();
};
#undef KERNEL
#define KERNEL(name) {#name, name##_entry},
static void add_entry() {}
static std::vector<Entry> entries = {APPLY(KERNEL, add)};
