// Streams of the project's own beside launches that deduce: buffers, conversions to a base, errors that are thrown.
// kernels: scale<double>, scale<float>
#include <ctime>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <streambuf>

#define CHECK(condition)                                                      \
    if (!(condition)) {                                                       \
        std::ostringstream said;                                              \
        report(said, #condition);                                             \
        throw std::runtime_error(said.str());                                 \
    }

class Lines : public std::basic_ostream<char> {
public:
    explicit Lines(int *count) : std::basic_ostream<char>(nullptr), buffer_(count) { rdbuf(&buffer_); }

private:
    class Buffer : public std::streambuf {
    public:
        explicit Buffer(int *count) : count_(count) {}

    protected:
        int_type overflow(int_type c) override {
            *count_ += traits_type::to_char_type(c) == '\n';
            return traits_type::not_eof(c);
        }

    private:
        int *count_;
    };
    Buffer buffer_;
};

std::ostream &report(std::ostream &out, const char *what) {
    std::time_t now = std::time(nullptr);
    std::tm when = *std::localtime(&now);
    return out << when.tm_year << ": " << what << std::endl;
}

template <typename T> __global__ void scale(T *x, int n, T by) {
    if (threadIdx.x < n) x[threadIdx.x] *= by;
}

template <typename T> void run(T *x, int n) {
    CHECK(n > 0);
    CHECK(x != nullptr);
    if (n > 1024) throw std::out_of_range("too many");
    scale<<<1, n>>>(x, n, T(2));
}

int main() {
    int count = 0;
    Lines lines(&count);
    report(lines, "begin");
    run(static_cast<float *>(nullptr), 4);
    run(static_cast<double *>(nullptr), 4);
    return count;
}
