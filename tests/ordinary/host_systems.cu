// Conditionals on the system, of which the last arm is an error.
// kernels: fill
#include <cstddef>

#if defined(_WIN32)
#define HOST_ADD(a, x) InterlockedAdd((volatile LONG *)a, x)
#elif defined(__linux__)
#define HOST_ADD(a, x) __sync_add_and_fetch(a, x)
#else
#error this system is not supported
#endif
#if defined(__APPLE__)
#define LITTLE 1
#elif defined(__GLIBC__)
#include <endian.h>
#define LITTLE (__BYTE_ORDER == __LITTLE_ENDIAN)
#else
#error the order of bytes is not known
#endif
#ifdef __unix__
#define SLOTS 48
#else
#define SLOTS 16
#endif

__global__ void fill(char *data, int size, char value) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < size; i += gridDim.x * blockDim.x) data[i % SLOTS] = value;
}

int count(int *users) { return LITTLE + HOST_ADD(users, 1); }
