# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Libraries of the host with a few headers for device code, PyTorch's before all (`tests/ordinary_torch/`)."""

from __future__ import annotations

import contextlib
import importlib.util
import re
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest
from jobs import TESTS, make_job, write
from nvcc import PLACES, compile_with_nvcc, differences, install_nvcc, promised_kernels

from hatch_cuda_kernels import installed
from hatch_cuda_kernels.compiler import compile_job
from hatch_cuda_kernels.errors import CompilationError
from hatch_cuda_kernels.installed import installed_labels
from hatch_cuda_kernels.nvrtc import Workspace, workspace
from hatch_cuda_kernels.plan import CompileJob
from hatch_cuda_kernels.sources import ProjectTree, close_over

LABEL = "site-packages/torch/include"
SMALL = {
    "torch/__init__.py": "raise RuntimeError('a build must not import this')\n",
    "torch/include/torch/csrc/api/include/torch/extension.h": (
        "#pragma once\n#include <vector>\n#include <torch/types.h>\n"
        "#include <ATen/core/Tensor.h>\n#include <pybind11.h>\n"
    ),
    "torch/include/torch/csrc/api/include/torch/types.h": (
        "#include <ATen/ATen.h>\nnamespace torch { using namespace at; }\n"
    ),
    "torch/include/ATen/ATen.h": "#pragma once\n#include <ATen/core/Tensor.h>\n",
    "torch/include/ATen/core/Tensor.h": (
        "#pragma once\n#include <ATen/ATen.h>\n#include <c10/util/Half.h>\n#include <missing.h>\n"
        "class Tensor : Hosts {};\n"
    ),
    "torch/include/c10/util/Half.h": (
        "#include <c10/macros/Macros.h>\n#ifdef __GNUC__\n#pragma GCC diagnostic push\n#define BRANCH 1\n#endif\n"
        "namespace c10 { struct Half { short x; }; C10_DEVICE inline int bits(Half h) { return h.x; } }\n"
        "namespace at { using c10::Half; }\n"
    ),
    "torch/include/c10/macros/Macros.h": "#pragma once\n#define C10_DEVICE __device__\n",
    "torch/include/ATen/cuda/detail/IndexUtils.cuh": "#pragma once\n#include <ATen/cuda/detail/TensorInfo.cuh>\n",
    "torch/include/ATen/cuda/detail/TensorInfo.cuh": (
        "#pragma once\nnamespace at::cuda::detail {\n"
        "template <class T, class I> struct TensorInfo { T *data; I sizes[4]; };\n}\n"
    ),
}
"""The shape of the library, of which nothing is here: what a header leads to, and what is told apart in one."""
KERNEL = (
    "#include <torch/extension.h>\n__global__ void k(torch::Half *h, int *p) { *p = c10::bits(*h) + BRANCH; }\n"
    "struct Layer { torch::Tensor weight; };\nvoid run(torch::Tensor t) { k<<<1, 1>>>(nullptr, nullptr); }\n"
)


NESTED = """#include <torch/extension.h>
#include <c10/cuda/CUDAGuard.h>
#include <stdexcept>
#include <string>
#include <fstream>
#include <optional>
struct Failure : std::exception {
    std::string text;
    const char *what() const noexcept override { return text.c_str(); }
};
template <typename T, typename I, bool B>
__global__ void gather(const T *x, const I *i, T *y, int64_t n) { if (B) y[n] = x[i[n]]; }
template <typename T> __global__ void fill(T *x, T v) { x[0] = v; }
template <typename F> struct Launcher {
    F f;
    template <typename T> void run(T *x) { fill<<<1, 1>>>(x, f(x)); }
};
struct One { template <typename T> T operator()(T *) const { return T(1); } };
#define BOOL(cond, NAME, ...) [&] { \\
    if (cond) { constexpr bool NAME = true; return __VA_ARGS__(); } \\
    else { constexpr bool NAME = false; return __VA_ARGS__(); } }()
torch::Tensor f(const at::Tensor &x, at::Tensor i, c10::optional<at::Tensor> m, std::vector<at::Tensor> list,
                const std::string &name) {
    TORCH_CHECK(x.dim() == 2, "x");
    const c10::cuda::CUDAGuard guard(x.device());
    auto stream = at::cuda::getCurrentCUDAStream().stream();
    at::Tensor y = torch::empty({x.size(0), 1}, x.options().dtype(at::kFloat));
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "g", [&] {
        using T = scalar_t;
        AT_DISPATCH_INDEX_TYPES(i.scalar_type(), "h", [&] {
            BOOL(m.has_value(), kMask, [&] {
                gather<T, index_t, kMask><<<dim3(1, 2), 32, 0, stream>>>(
                    x.data_ptr<T>(), i.const_data_ptr<index_t>(), y.data_ptr<T>(), x.numel());
            });
        });
    });
    Launcher<One> l{};
    for (auto &t : list) l.run(t.data_ptr<short>());
    if (m) l.run(m->data_ptr<uint8_t>());
    std::ifstream in(name); if (!in.good()) throw Failure{};
    return y;
}
TORCH_LIBRARY(lib, m) { m.def("f", &f); }
"""
"""What extensions have around their launches: dispatches in dispatches, launches in members, errors, streams."""


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on `sys.path` with the small library; the project beside it."""
    monkeypatch.syspath_prepend(write(tmp_path / "environment", SMALL))
    installed._search.cache_clear()
    yield tmp_path / "project"
    installed._search.cache_clear()


class TestNarrowed:
    def test_a_header_of_the_host_stands_for_what_it_leads_to(self, small: Path) -> None:
        """In the order of the text, through headers that include each other, each once; what is not there is passed."""
        tree = ProjectTree(write(small, {"k.cu": KERNEL}))
        text = tree.open(f"{LABEL}/ATen/ATen.h")
        assert text is not None
        assert re.findall(rb"<(.*)>", text.data) == [b"c10/util/Half.h"]
        text = tree.open(f"{LABEL}/torch/csrc/api/include/torch/extension.h")
        assert text is not None
        assert re.findall(rb"<(.*)>", text.data) == [b"torch/types.h", b"c10/util/Half.h"]
        assert tree.open(f"{LABEL}/ATen/absent.h") is None

    def test_headers_for_device_code_are_the_librarys_own(self, small: Path) -> None:
        """Byte for byte, unless they tell the host's compiler or rely on others to be read once."""
        tree = ProjectTree(write(small, {"k.cu": KERNEL}))
        macros, half = tree.open(f"{LABEL}/c10/macros/Macros.h"), tree.open(f"{LABEL}/c10/util/Half.h")
        assert macros is not None and half is not None
        assert macros.data.decode() == SMALL["torch/include/c10/macros/Macros.h"]
        assert half.data.startswith(b"#define __CUDA_KERNELS_GNUC__ 13\n#pragma once\n#include <c10/macros/Macros.h>\n")
        assert b"__GNUC__" not in half.data.replace(b"__CUDA_KERNELS_GNUC__", b"")

    def test_the_closure_is_small_and_its_content_decides(self, small: Path) -> None:
        """What a unit depends on are those headers; an edit of a header of the host that leads elsewhere counts."""
        tree = ProjectTree(write(small, {"k.cu": KERNEL}))
        before = close_over(tree, "k.cu", installed_labels("torch"))
        assert {label.removeprefix(f"{LABEL}/") for label in before.files} == {
            "k.cu",
            "torch/csrc/api/include/torch/extension.h",
            "torch/csrc/api/include/torch/types.h",
            "c10/util/Half.h",
            "c10/macros/Macros.h",
        }

    def test_compiles(self, small: Path) -> None:
        """A kernel has the types of the library by both names, and the branch that nvcc takes."""
        job = make_job(write(small, {"k.cu": KERNEL}), include_dirs=installed_labels("torch"), toolkit_headers="auto")
        with workspace() as space:
            image = compile_job(job, space)
        assert set(image.kernels) == {"k"}
        assert {(passing.kind, passing.name) for passing in image.passed_over} >= {
            ("class definition", "Layer"),
            ("function", "run"),
        }

    def test_what_only_the_host_has_is_an_error(self, small: Path) -> None:
        """A kernel that takes one of the library's own objects names it, and no other kernel comes out."""
        text = KERNEL.replace("int *p)", "int *p, at::Tensor t)", 1)
        job = make_job(write(small, {"k.cu": text}), include_dirs=installed_labels("torch"), toolkit_headers="auto")
        with workspace() as space, pytest.raises(CompilationError, match="Tensor"):
            compile_job(job, space)


class TestDispatches:
    """Dispatches over the types of tensors, whose device types are the library's own."""

    SCALE = (
        "#include <torch/extension.h>\n"
        "template <typename T> __global__ void scale(T *x, long long n) { x[n] = x[0]; }\n"
        "template <typename T> void run(at::Tensor t) { scale<<<1, 1>>>(t.data_ptr<T>(), t.size(0)); }\n"
    )

    USES: ClassVar = {
        'AT_DISPATCH_FLOATING_TYPES_AND_HALF(t.scalar_type(), "s", [&] { run<scalar_t>(t); });': "double float H",
        'AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::ScalarType::Bool, t.type(), "s", ([&] {\n'
        "run<scalar_t>(t); }));": "double float H bool",
        'AT_DISPATCH_V2(t.scalar_type(), "s", AT_WRAP([&] { int a = 0, b = a; (void)b; run<scalar_t>(t); }),\n'
        "AT_EXPAND(AT_FLOATING_TYPES), at::kInt);": "double float int",
        "switch (t.scalar_type()) { case at::ScalarType::Half: run<at::Half>(t); break;\n"
        "case torch::kInt32: run<int>(t); break; default: TORCH_CHECK(false, toString(t)); }": "H int",
        "const at::cuda::OptionalCUDAGuard guard(device_of(t)); auto s = at::cuda::getCurrentCUDAStream();\n"
        "scale<<<1, 1, 0, s>>>(t.packed_accessor32<float, 2, torch::RestrictPtrTraits>().data(), 1);": "float",
    }

    USES |= {
        "auto masked = t.masked_fill_(t == 0, 1).vendor_member({1, 2}); /* zeros & at::zeros */ // zeros x\n"
        "scale<<<1, 1>>>(at::zeros({1, 2}, t.options()).data_ptr<float>(), masked.size(0));": "float",
        'static const std::map<std::string, int> kinds = {{"a", 1}, {"b", 2}}; auto sizes = t.sizes().vec();\n'
        'scale<<<1, 1>>>(t.data_ptr<double>(), kinds.at("a") + sizes[0]);': "double",
        "auto info = at::cuda::detail::getTensorInfo<short, int>(t); scale<<<1, 1>>>(info.data, info.sizes[0]);\n"
        "scale<<<1, 1>>>((int *)vendor::pointer<int, float>(t), vendor::size<int>(t));": "short int",
    }

    @pytest.mark.parametrize(("use", "types"), USES.items())
    def test_instances(self, small: Path, use: str, types: str) -> None:
        """Every type of a dispatch is an instance, and what no kernel depends on costs none."""
        text = "#include <ATen/cuda/detail/IndexUtils.cuh>\n#include <map>\n" + self.SCALE
        text += f"void f(at::Tensor t) {{\n{use}\n}}\n"
        job = make_job(write(small, {"k.cu": text}), include_dirs=installed_labels("torch"), toolkit_headers="auto")
        with workspace() as space:
            image = compile_job(job, space)
        assert set(image.kernels) == {f"scale<{'c10::Half' if kind == 'H' else kind}>" for kind in types.split()}
        assert not image.warnings

    @pytest.mark.slow
    def test_dispatches_in_dispatches(self, small: Path) -> None:
        """Of every combination there is an instance, and of what a member launches for its callers."""
        job = make_job(write(small, {"k.cu": NESTED}), include_dirs=installed_labels("torch"), toolkit_headers="auto")
        with workspace() as space:
            image = compile_job(job, space)
        kinds = [(real, index, mask) for real in ("float", "double") for index in ("int", "int64_t") for mask in (0, 1)]
        gathers = {f"gather<{real},{index},{'true' if mask else 'false'}>" for real, index, mask in kinds}
        assert set(image.kernels) == {*gathers, "fill<short>", "fill<uint8_t>"} and not image.warnings

    @pytest.mark.parametrize("besides", [True, False], ids=["besides", "alone"])
    def test_macros_of_the_librarys_own_builds(self, small: Path, besides: bool) -> None:
        """Where an operator is one of two for a type of the library, the macros that its builds define are named."""
        text = self.SCALE.replace("x[0];", "T(x[0] < 1.0 ? 1 : 2);").replace(
            "template",
            "__device__ bool operator<(c10::Half, int);\n__device__ bool operator<(c10::Half, long);\ntemplate",
            1,
        )
        text += "void f(at::Tensor t) { run<at::Half>(t); }\n" + "void g(at::Tensor t) { run<float>(t); }\n" * besides
        job = make_job(write(small, {"k.cu": text}), include_dirs=installed_labels("torch"), toolkit_headers="auto")
        with workspace() as space, contextlib.ExitStack() as stack:
            raised = None if besides else stack.enter_context(pytest.raises(CompilationError))
            said = " ".join(compile_job(job, space).warnings)
        said = str(raised.value) if raised is not None else said
        assert "torch's builds of extensions define macros" in said and "__CUDA_NO_HALF_OPERATORS__ = true" in said


class TestNotInstalled:
    def test_says_what_to_add(self, tmp_path: Path) -> None:
        """Without the library, the message has the names in device code, who includes it, and both lines to write."""
        text = "// at::Comment\n" + KERNEL.replace("torch::Half", "torch::PackedTensorAccessor32<float, 1>")
        job = make_job(write(tmp_path, {"k.cu": text}), toolkit_headers="auto")
        with workspace() as space, pytest.raises(CompilationError) as raised:
            compile_job(job, space)
        assert (
            "device code has torch::PackedTensorAccessor32, c10::bits, which the headers of torch declare "
            "(<torch/extension.h> of k.cu(2)): add torch to build-system.requires, and include-packages = "
            '["torch"] to the hook table'
        ) in str(raised.value)


FOLDER = TESTS / "ordinary_torch"
FILES = sorted(path.stem for path in FOLDER.glob("*.cu"))
_UNWANTED = ("HALF_OPERATORS", "HALF_CONVERSIONS", "BFLOAT16_CONVERSIONS", "HALF2_OPERATORS")
DEFINES = {f"__CUDA_NO_{name}__": True for name in _UNWANTED}
"""What PyTorch's own builds of extensions define."""


@pytest.fixture(scope="module")
def torch() -> list[Path]:
    """Include folders of the installed PyTorch."""
    spec = importlib.util.find_spec("torch")
    folders = [Path(spec.origin).parent / "include"] if spec is not None and spec.origin else []
    folders += [folder / "torch/csrc/api/include" for folder in folders]
    if not folders or not folders[-1].is_dir():
        pytest.skip("PyTorch is not installed here; its headers are what is tested")
    return folders


@pytest.fixture(scope="module")
def space() -> Iterator[Workspace]:
    """A workspace for all tests here."""
    with workspace() as found:
        yield found


def promised(name: str) -> set[str]:
    """The kernels that a file says it gives."""
    return promised_kernels(FOLDER / f"{name}.cu")


def extension(name: str, **options: str) -> CompileJob:
    """The job of a file, as PyTorch's own builds of extensions have it."""
    folders = installed_labels("torch")
    return make_job(
        FOLDER, f"{name}.cu", include_dirs=folders, toolkit_headers="auto", defines=DEFINES, options=options
    )


@pytest.mark.slow
@pytest.mark.usefixtures("torch")
@pytest.mark.parametrize("name", FILES)
def test_extension_compiles_as_it_is(name: str, space: Workspace) -> None:
    """A file of an extension compiles with no edit, to the kernels that it says, without a warning."""
    image = compile_job(extension(name), space)
    assert set(image.kernels) >= promised(name)
    assert len(image.entries) == len(promised(name))
    assert not [warning for warning in image.warnings if "instances of kernels" not in warning]


_ABSENT = r"fatal error: cu\w+\.h: No such file"
"""What nvcc says where a library that PyTorch's headers of the host include is not installed."""


@pytest.mark.isolated
def test_kernels_of_extensions_are_those_of_nvcc(
    torch: list[Path], space: Workspace, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """nvcc, with all of PyTorch's headers, makes the same kernels of each file.

    One differs in where a constant of a class type lies, which nvcc has in the instruction and NVRTC in memory.
    """
    nvcc = install_nvcc(tmp_path_factory.mktemp("nvcc"))
    packages = Path(sysconfig.get_path("purelib"), "nvidia").glob("*/include")
    includes = [f"-I{folder}" for folder in (*torch, sysconfig.get_path("include"), *packages)]
    flags = ["--expt-relaxed-constexpr", "-std=c++20", "-DTORCH_EXTENSION_NAME=x", *(f"-D{name}" for name in DEFINES)]
    found: dict[str, dict[str, str]] = {}
    for name in FILES:
        target = tmp_path_factory.mktemp("images") / f"{name}.cubin"
        refused = compile_with_nvcc(nvcc, FOLDER / f"{name}.cu", "sm_80", target, [*flags, *includes])
        if refused is not None:
            assert re.search(_ABSENT, refused), refused
            continue
        image = compile_job(extension(name, std="c++20"), space)
        found[name] = differences(image.data, target.read_bytes())
    assert len(found) >= 4
    other = {name: kinds for name, what in found.items() if (kinds := {*what.values()} - {PLACES})}
    assert other.keys() <= {"small_floats"}, found
    assert all(kind.startswith("machine code") for kinds in other.values() for kind in kinds), found
