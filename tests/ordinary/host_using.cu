// using-directives and aliases of namespaces.
// kernels: half_of
#include <cmath>
#include <string>
#include <vector>
using namespace std;
namespace literals = std::literals;
using Row = vector<float>;
typedef std::vector<Row> Table;

__global__ void half_of(float *x) { x[threadIdx.x] = sqrt(x[threadIdx.x]) + max(x[threadIdx.x], 0.5f); }

Table loaded(const string &path) {
    Table table(3, Row(4, 0.0f));
    half_of<<<1, 4>>>(table[0].data());
    return table;
}
