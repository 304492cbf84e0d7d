// Threads, clocks, files of the host.
// kernels: tick
#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

__global__ void tick(unsigned *counter) { atomicAdd(counter, 1u); }

static std::mutex guard;
static std::unique_ptr<std::thread> worker;

double timed(unsigned *counter, const char *path) {
    std::lock_guard<std::mutex> lock(guard);
    auto start = std::chrono::steady_clock::now();
    worker = std::make_unique<std::thread>([=] { tick<<<1, 1>>>(counter); });
    worker->join();
    std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    std::ofstream(path) << passed.count();
    return passed.count();
}
