// Attributes that lay classes out, before them and behind them, and macros for these.
// kernels: k, k2
#include <vector>
#define PACKED __attribute__((packed))
#define ALIGNED(n) __attribute__((aligned(n)))
struct __attribute__((packed)) Q { char c; int i; double d; };
static_assert(sizeof(Q) == 13, "leading");
struct __attribute__((aligned(16))) A { float x, y, z; };
static_assert(sizeof(A) == 16, "aligned leading");
typedef struct __attribute__((packed)) { char c; int i; } R;
static_assert(sizeof(R) == 5, "typedef leading");
typedef struct { char c; int i; } __attribute__((packed)) S;
static_assert(sizeof(S) == 5, "typedef trailing");
struct __align__(16) T { float x; };
static_assert(sizeof(T) == 16, "align");
struct Q2 { char c; int i __attribute__((packed)); };
static_assert(sizeof(Q2) == 5, "member");
struct Q3 { char c; float f[3] __attribute__((aligned(16))); };
static_assert(sizeof(Q3) == 32, "member aligned");
struct O { struct N { char c; int i; } __attribute__((packed)) n; };
static_assert(sizeof(O) == 5, "nested trailing with variable");
struct O2 { struct __attribute__((packed)) N { char c; int i; } n; };
static_assert(sizeof(O2) == 5, "nested leading with variable");
template <class T> struct TT { char c; T t; } __attribute__((packed));
static_assert(sizeof(TT<int>) == 5, "template trailing");
template <class T> struct __attribute__((packed)) TL { char c; T t; };
static_assert(sizeof(TL<int>) == 5, "template leading");
struct P2 { char c; int i; } __attribute__((packed));
static_assert(sizeof(P2) == 5, "trailing");
__global__ void k(int *p) { *p = 1; }

struct M1 { char c; int i; } PACKED;
struct M2 { char c; int i; } PACKED m2, *m3;
typedef struct { char c; int i; } ALIGNED(32) M4;
typedef enum { A0, B0 } PACKED M5;
class M6 { char c; int i; std::vector<int> f(); } PACKED;
__global__ void k2(int *p, M1 a, M2 b, M4 c, M5 d, M6 e) { *p = sizeof a + sizeof b * 10 + sizeof c * 100 + sizeof d * 1000 + sizeof(e) * 10000; }
void host(std::vector<int> v) {}
