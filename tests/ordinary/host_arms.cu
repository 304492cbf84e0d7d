// A namespace that both arms of a conditional open, and one bracket closes.
// kernels: timing::scale
#include <cstdio>

#if defined(_MSC_VER)
namespace timing {
class Watch {
public:
    Watch() { QueryPerformanceCounter(&start); }

private:
    LARGE_INTEGER start;
};
#else
#include <sys/time.h>
namespace timing {
class Watch {
public:
    Watch() { gettimeofday(&start, nullptr); }
    void tell() { printf("%ld\n", long(start.tv_sec)); }

private:
    struct timeval start;
};
#endif

class Report {
public:
    explicit Report(const char *name) : name(name) {}
    ~Report() { watch.tell(); }

private:
    Watch watch;
    const char *name;
};

__global__ void scale(float *x, float by) { x[threadIdx.x] *= by; }

void run(float *x) {
    Report report("scale");
    scale<<<1, 32>>>(x, 2.0f);
}
}  // namespace timing
