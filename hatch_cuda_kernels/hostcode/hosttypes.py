# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Declarations for a probe (see `probing`) of what libraries of the host are known to have, as far as the types of a
launch's arguments depend on it. No definition, no behaviour: a front end has to tell types, nothing runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from .tensortypes import tensor_members, tensor_types

__all__ = ["ANYTHING", "BRACED", "OF_PROBES", "REGISTRY", "declarations", "members_of_tensors"]

_NAMESPACE = "hatch_cuda_kernels_host"
OF_PROBES = f"{_NAMESPACE}::"
"""What the names of all types begin with that no library has."""
ANYTHING = f"{_NAMESPACE}::anything"
"""A type of the probe that stands for what is not known."""
REGISTRY = f"{_NAMESPACE}::registry"
"""What libraries for bindings are told of functions by: `m.def("name", &function)`."""


def _many(head: str, names: str, tail: str) -> str:
    """One template for each name."""
    return " ".join(f"{head} {name}{tail}" for name in names.split())


BRACED = ", ".join([ANYTHING, *[f"{ANYTHING} = {ANYTHING}()"] * 5])
"""Parameters that also take lists in braces, which no template does."""
_OPERATORS = "+ - * / % & | ^ << >> < > <= >= == != && || += -= *= /= =".split()
_ANYTHING = f"""
struct tm {{ int tm_sec, tm_min, tm_hour, tm_mday, tm_mon, tm_year, tm_wday, tm_yday, tm_isdst; }};
namespace std {{ struct ostream; struct istream; struct iostream; }}
namespace {_NAMESPACE} {{
struct anything {{
    template <class... A> anything(A &&...);
    template <class A> operator A() const;
    template <class... A> anything operator()(A &&...) const;
    template <class A> anything operator[](A &&) const;
    anything operator*() const;
    anything operator-() const;
    bool operator!() const;
    {" ".join(f"template <class A> anything operator{sign}(A &&) const;" for sign in _OPERATORS)}
}};
struct registry : anything {{
    using anything::anything;
    {_many("template <class... A> registry &", "def impl attr def_submodule fallback doc", "(A &&...);")}
}};
template <class T> struct made {{
    template <class... A> static void of(A &&...a) {{ new T((A &&)a...); }}
    template <class... A> static auto perhaps(int, A &&...a) -> decltype((void)new T((A &&)a...)) {{ of((A &&)a...); }}
    template <class... A> static void perhaps(long, A &&...) {{}}
    template <class N> static auto several(int, N n) -> decltype((void)(1u << n)) {{ perhaps(0); }}
    template <class... A> static void several(long, A &&...) {{}}
    template <class U = T> static auto undone(int) -> decltype((void)((U *)0)->~U()) {{ ((U *)0)->~U(); }}
    template <class U = T> static void undone(long) {{}}
}};
template <class T> struct made<T[]> {{ template <class... A> static void of(A &&...); }};
template <class T> struct sequence {{
    template <class... A> sequence(A &&...);
    using value_type = T;
    using size_type = unsigned long;
    using pointer = T *;
    using iterator = T *;
    using const_iterator = const T *;
    T *data(); const T *data() const;
    unsigned long size() const, capacity() const, length() const;
    bool empty() const;
    T &operator[](unsigned long); const T &operator[](unsigned long) const;
    T &at(unsigned long); const T &at(unsigned long) const;
    T &front(); const T &front() const; T &back(); const T &back() const;
    T *begin(); const T *begin() const; T *end(); const T *end() const; const T *cbegin() const; const T *cend() const;
    void push_back(const T &);
    template <class A> void push_back(A &&a) {{ made<T>::perhaps(0, (A &&)a); }}
    template <class... A> void resize(A &&...a) {{ made<T>::several(0, a...); }}
    {_many("template <class... A> void", "reserve assign clear swap", "(A &&...);")}
    template <class... A> T &emplace_back(A &&...a) {{ made<T>::of((A &&)a...); return *(T *)0; }}
    {_many("template <class... A> T *", "insert erase", "(A &&...);")}
    void pop_back(), shrink_to_fit();
}};
template <class T> struct owner {{
    template <class... A> owner(A &&...);
    using element_type = T;
    T *get() const, *operator->() const, *release();
    T &operator*() const, &operator[](unsigned long) const;
    template <class... A> void reset(A &&...);
    explicit operator bool() const;
}};
template <class T> struct bare {{ using type = T; }};
template <class T> struct bare<T[]> {{ using type = T; }};
struct calling {{  // functions of the namespace would be found for its types
    template <class F, class... P> static auto with(F &f, int, P... p) -> decltype((void)f(p()...)) {{ f(p()...); }}
    template <class F, class... P> static void with(F &, long, P...) {{}}
    template <class F, class... A> static auto run(int, F &f, A &...a) -> decltype((void)f(a...)) {{ f(a...); }}
    template <class... A> static void run(long, A &&...) {{}}
}};
template <class K, class V> struct table {{
    template <class... A> table(A &&...);
    struct value_type {{ const K first; V second; }};
    using key_type = K; using mapped_type = V; using iterator = value_type *;
    V &operator[](const K &) {{ made<V>::perhaps(0); return *(V *)0; }}
    V &at(const K &); const V &at(const K &) const;
    value_type *begin() const, *end() const, *find(const K &) const;
    unsigned long size() const, count(const K &) const;
    bool empty() const;
    {_many("template <class... A> anything", "insert emplace erase", "(A &&...);")}
    void clear();
}};
struct text : sequence<char> {{
    template <class... A> text(A &&...);
    const char *c_str() const;
    template <class A> text &operator+=(A &&);
    {_many("template <class... A> text &", "append replace insert erase", "(A &&...);")}
    template <class... A> text substr(A &&...) const;
    template <class... A> unsigned long find(A &&...) const;
    static constexpr unsigned long npos = -1;
    long storage[4];
}};
template <class A> text operator+(const text &, A &&);
template <class A> text operator+(const char *, const text &);
template <class A> bool operator==(const text &, A &&);
template <class A> bool operator!=(const text &, A &&);
struct stream {{
    template <class... A> stream(A &&...);
    template <class A> stream &operator<<(const A &);
    template <class A> stream &operator>>(A &&);
    {_many("template <class... A> stream &", "write read flush", "(A &&...);")}
    {_many("template <class... A> anything", "clear rdstate good eof fail open close is_open getline", "(A &&...);")}
    {_many("template <class... A> anything", "get gcount seekg tellg seekp tellp precision width setf", "(A &&...);")}
    {_many("template <class... A> anything", "put peek unget ignore rdbuf tie imbue", "(A &&...);")}
    text str() const;
    explicit operator bool() const;
    operator std::ostream &() const;
    operator std::istream &() const;
    operator std::iostream &() const;
}};
struct buffer {{
    template <class... A> buffer(A &&...);
    using char_type = char; using int_type = int; using pos_type = long; using off_type = long;
    struct traits_type {{ static int eof(), to_int_type(char), not_eof(int); static char to_char_type(int); }};
    virtual int overflow(int), underflow(), uflow(), sync();
    virtual long xsputn(const char *, long), xsgetn(char *, long);
    virtual ~buffer();
    char *pbase() const, *pptr() const, *epptr() const, *eback() const, *gptr() const, *egptr() const;
    {_many("template <class... A> int", "setp setg pbump gbump sputc sputn sgetc sgetn sbumpc", "(A &&...);")}
}};
struct problem {{
    template <class... A> problem(A &&...);
    virtual const char *what() const noexcept;
    virtual ~problem();
}};
}}
"""

_SEQUENCES = "\n".join(
    f"template <class T, class...> struct {name} : {_NAMESPACE}::sequence<{'const ' * ('set' in name)}T> {{\n"
    f"    template <class... A> {name}(A &&...a) {{ {_NAMESPACE}::made<T>::several(0, a...); }}\n"
    f"    {name}(std::initializer_list<T>);\n    ~{name}() {{ {_NAMESPACE}::made<T>::undone(0); }}\n"
    f"    long storage[{words}];\n}};"
    for name, words in {"vector": 3, "deque": 10, "list": 3, "set": 6, "unordered_set": 7}.items()
)
"""With the sizes that GCC's library gives them: they may be asked for."""
_TABLES = "\n".join(
    f"template <class K, class V, class...> struct {name} : {_NAMESPACE}::table<K, V> {{\n"
    f"    template <class... A> {name}(A &&...);\n"
    f"    {name}(std::initializer_list<typename {_NAMESPACE}::table<K, V>::value_type>);\n"
    f"    ~{name}() {{ {_NAMESPACE}::made<K>::undone(0); {_NAMESPACE}::made<V>::undone(0); }}\n"
    f"    long storage[{words}];\n}};"
    for name, words in {"map": 6, "unordered_map": 7}.items()
)
_MAKES = f"{_NAMESPACE}::made<T>::of((A &&)a...); return 0;"
_STANDARD = f"""
namespace std {{
{_SEQUENCES}
{_TABLES}
template <class T, class... D> struct unique_ptr : {_NAMESPACE}::owner<typename {_NAMESPACE}::bare<T>::type> {{
    template <class... A> unique_ptr(A &&...);
    ~unique_ptr() {{
        {_NAMESPACE}::made<typename {_NAMESPACE}::bare<T>::type>::undone(0);
        int each[] = {{0, (deleted<D>(0), 0)...}};
    }}
    template <class F> static auto deleted(int) -> decltype((void)(*(F *)0)((T *)0)) {{ (*(F *)0)((T *)0); }}
    template <class F> static void deleted(long) {{}}
    long storage[1];
}};
template <class T> struct shared_ptr : {_NAMESPACE}::owner<typename {_NAMESPACE}::bare<T>::type> {{
    template <class... A> shared_ptr(A &&...);
    ~shared_ptr() {{ {_NAMESPACE}::made<typename {_NAMESPACE}::bare<T>::type>::undone(0); }}
    long storage[2];
}};
{_many("template <class T, class... A>", "unique_ptr<T>", f" make_unique(A &&...a) {{ {_MAKES} }}")}
{_many("template <class T, class... A>", "shared_ptr<T>", f" make_shared(A &&...a) {{ {_MAKES} }}")}
template <class> struct function;
template <class R, class... P> struct function<R(P...)> {{
    template <class... A> function(A &&...);
    template <class F> function(F &&f) {{ {_NAMESPACE}::calling::with(f, 0, (P (*)())0 ...); }}
    long storage[4];
    R operator()(P...) const;
    explicit operator bool() const;
}};
using string = {_NAMESPACE}::text;
template <class A> string to_string(A);
struct ostream : {_NAMESPACE}::stream {{ using stream::stream; }};
struct istream : {_NAMESPACE}::stream {{ using stream::stream; }};
struct iostream : {_NAMESPACE}::stream {{ using stream::stream; }};
template <class...> using basic_ostream = ostream;
template <class...> using basic_istream = istream;
template <class...> using basic_iostream = iostream;
using streambuf = {_NAMESPACE}::buffer;
template <class...> using basic_streambuf = streambuf;
using stringstream = {_NAMESPACE}::stream; using ostringstream = stringstream; using istringstream = stringstream;
using ofstream = stringstream; using ifstream = stringstream; using fstream = stringstream;
extern {_NAMESPACE}::stream cout, cerr, clog, cin;
extern {_NAMESPACE}::anything endl, flush, fixed, boolalpha, hex, dec;
{_many(f"template <class... A> {_NAMESPACE}::anything", "setw setprecision setfill", "(A &&...);")}
using exception = {_NAMESPACE}::problem; using runtime_error = exception; using logic_error = exception;
using invalid_argument = exception; using out_of_range = exception; using domain_error = exception;
using bad_alloc = exception; using length_error = exception; using overflow_error = exception;
struct thread {{
    template <class... A> thread(A &&...a) {{ {_NAMESPACE}::calling::run(0, a...); }}
    void join(), detach(), swap(thread &); bool joinable() const;
    static unsigned hardware_concurrency();
    long storage[1];
}};
using jthread = thread;
enum class launch {{ async = 1, deferred = 2 }};
template <class... A> {_NAMESPACE}::anything async(A &&...a) {{
    {_NAMESPACE}::calling::run(0, a...);
    return {{}};
}}
template <class... A> {_NAMESPACE}::anything async(launch, A &&...a) {{ return async((A &&)a...); }}
template <class I, class F> void for_each(I i, I, F f) {{ f(*i); }}
template <class P, class I, class F> void for_each(P &&, I i, I, F f) {{ f(*i); }}
struct mutex {{ void lock(), unlock(); }};
struct recursive_mutex {{ void lock(), unlock(); }};
struct shared_mutex {{ void lock(), unlock(), lock_shared(), unlock_shared(); }};
struct once_flag {{}};
template <class... A> void call_once(once_flag &, A &&...a) {{ {_NAMESPACE}::calling::run(0, a...); }}
template <class...> struct shared_lock {{ template <class... A> shared_lock(A &&...); void lock(), unlock(); }};
template <class...> struct lock_guard {{ template <class... A> lock_guard(A &&...); }};
template <class...> struct unique_lock {{ template <class... A> unique_lock(A &&...); void lock(), unlock(); }};
{_many("template <class... A> void", "sort stable_sort shuffle", "(A &&...);")}
}}
"""

_RUNTIME = """
template <class... P, class... A> cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *, void (*)(P...), A &&...);
template <class K, class... A> cudaError_t cudaLaunchKernel(K *, dim3, dim3, void **, A...);
template <class K, class... A> cudaError_t cudaLaunchCooperativeKernel(K *, dim3, dim3, void **, A...);
"""

_THRUST = f"""
namespace thrust {{
template <class T> struct device_ptr {{
    template <class... A> device_ptr(A &&...);
    T *get() const;
    T &operator*() const, &operator[](long) const;
    device_ptr operator+(long) const, operator-(long) const;
}};
template <class T> device_ptr<T> device_pointer_cast(T *);
template <class T> T *raw_pointer_cast(device_ptr<T>);
template <class T> T *raw_pointer_cast(T *);
template <class T, class...> struct device_vector : {_NAMESPACE}::sequence<T> {{
    template <class... A> device_vector(A &&...);
    device_ptr<T> data(), begin(), end();
    device_ptr<const T> data() const, begin() const, end() const;
}};
template <class T, class...> struct host_vector : {_NAMESPACE}::sequence<T> {{
    template <class... A> host_vector(A &&...);
}};
}}
"""


def members_of_tensors(names: Iterable[str]) -> str:
    """What to read before the declarations where the compiler asks for further members of tensors."""
    return tensor_members(names, _NAMESPACE, BRACED)


_OF_TORCH = re.compile(r"(?:site-packages/torch|torch|ATen|c10|caffe2|THC)/")
_IN_ITS_NAMESPACE = """
#ifdef THRUST_CUB_WRAPPED_NAMESPACE
namespace THRUST_CUB_WRAPPED_NAMESPACE {{
#endif
{}
#ifdef THRUST_CUB_WRAPPED_NAMESPACE
}}
#endif
"""
"""A project may have Thrust in a namespace of its own."""
_OF_THRUST = re.compile(r"thrust/")
_LAUNCHES = re.compile(rb"\bcudaLaunch(?:Cooperative)?Kernel")


def declarations(headers: Iterable[str], texts: Iterable[bytes]) -> bytes:
    """What to read before the texts of a probe, by the names of the headers that were passed over, or narrowed."""
    names = list(headers)
    found = [_ANYTHING, _STANDARD if names else ""]
    found += [tensor_types(ANYTHING, _NAMESPACE, BRACED)] if any(map(_OF_TORCH.match, names)) else []
    found += [_IN_ITS_NAMESPACE.format(_THRUST)] if any(map(_OF_THRUST.match, names)) else []
    found += [_RUNTIME] if any(_LAUNCHES.search(text) for text in texts) else []
    return "".join(found).encode()
