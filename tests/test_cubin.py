# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Facts read out of images: against real NVRTC, against cuobjdump, and out of any bytes at all."""

from __future__ import annotations

import dataclasses
import random
import re
import shutil
import struct
import subprocess
import time
import tracemalloc
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

from hatch_cuda_kernels.arch import Architecture
from hatch_cuda_kernels.cubin import (
    CubinFacts,
    PtxFacts,
    plain_names,
    read_cubin,
    read_ptx,
    spills_from_log,
)
from hatch_cuda_kernels.elf import ImageFormatError, cubin_number

nvrtc = pytest.importorskip("cuda.bindings.nvrtc")
try:
    RELEASE = distribution("nvidia-cuda-nvrtc").version
except PackageNotFoundError:
    pytest.skip("nvidia-cuda-nvrtc is not installed", allow_module_level=True)

CUBINS = ["sm_75", "sm_80", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_100f", "sm_120", "sm_121f"]
PTX = ["compute_75", "compute_90", "compute_90a", "compute_100f", "compute_121"]

KERNELS = rb"""
extern "C" __global__ void simple(float *x, int n) { x[threadIdx.x] = n; }
extern "C" __global__ void shared(float *x) {
    __shared__ float s[1024];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = s[1023 - threadIdx.x];
}
extern "C" __global__ void dynamic(float *x) {
    extern __shared__ float s[];
    s[threadIdx.x] = x[0];
    __syncthreads();
    x[1] = s[3];
}
extern "C" __global__ void stack(int *x, int n) {
    int a[64];
    for (int i = 0; i < 64; i++) a[i] = x[i] * n;
    for (int i = 0; i < n; i++) a[i & 63] += i;
    x[1] = a[x[2] & 63];
}
extern "C" __global__ void spilling(float *x) {
    float a[48];
#pragma unroll
    for (int i = 0; i < 48; i++) a[i] = x[i * 32 + threadIdx.x];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 48; i++) x[i * 32 + threadIdx.x] = a[(i * 7 + 5) % 48] * a[i];
}
struct Big { float v[200]; };
extern "C" __global__ void parameters(Big b, float *x) { x[0] = b.v[threadIdx.x]; }
__constant__ float table[256];
extern "C" __global__ void constants(float *x) { x[threadIdx.x] = table[threadIdx.x]; }
__device__ __noinline__ int leaf(int n, int *x) {
    volatile int a[8];
    for (int i = 0; i < 8; i++) a[i] = x[i] * n;
    return a[x[0] & 7];
}
extern "C" __global__ void calling(int *x) {
    volatile int a[16];
    for (int i = 0; i < 16; i++) a[i] = x[i + 1];
    x[0] = leaf(x[1], x) + a[x[3] & 15];
}
namespace ns {
template <class T> __global__ void instance(T *x) {
    __shared__ T s[32];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[0] = s[x[1] > 0 ? 1 : 2];
}
template __global__ void instance<double>(double *);
}
"""

NAMES = rb"""
extern "C" __global__ void c_name(float *x) { *x = 1; }
__global__ void plain(float *x, int n) { *x = n; }
static __global__ void internal(float *x) { *x = 2; }
namespace ns {
__global__ void inner(float *x) { *x = 3; }
namespace deep { __global__ void nested(float *x) { *x = 4; } }
inline namespace v1 { __global__ void versioned(float *x) { *x = 5; } }
static __global__ void hidden(float *x) { *x = 6; }
}
namespace { __global__ void unnamed(float *x) { *x = 7; } }
namespace ns { namespace { __global__ void within(float *x) { *x = 8; } } }
__global__ void overloaded(float x, float *y) { *y = x; }
__global__ void overloaded(int x, float *y) { *y = x; }
namespace ns { __global__ void overloaded(int x, float *y) { *y = x; } }
template <class T> __global__ void instance(T *x) { *x = 9; }
template __global__ void instance<float>(float *);
namespace ns {
template <int N> __global__ void sized(float *x) { *x = N; }
template __global__ void sized<3>(float *);
}
__global__ void same_prefix(float *x) { *x = 1; }
__global__ void same_prefix_longer(float *x) { *x = 1; }
__global__ void L1(float *x) { *x = 1; }
"""


@cache
def compiled(source: bytes, architecture: str, *options: bytes) -> tuple[bytes, str]:
    """An image and the compiler's log. NVRTC needs no driver for this."""

    def call(function: str, *arguments: object) -> int:
        status, *rest = getattr(nvrtc, function)(*arguments)
        assert int(status) == 0, (function, status)
        return rest[0] if rest else 0

    def fetch(what: str) -> bytes:
        # NVRTC writes into the bytes. An empty log is one byte, which Python shares with all equal ones: so a NUL, as
        # it will be anyway.
        buffer = b"\0" * call(f"nvrtcGet{what}Size", program)
        call(f"nvrtcGet{what}", program, buffer)
        return buffer

    program = call("nvrtcCreateProgram", source, b"kernels.cu", 0, [], [])
    flags = [f"--gpu-architecture={architecture}".encode(), *options]
    call("nvrtcCompileProgram", program, len(flags), flags)
    return fetch("PTX" if architecture.startswith("compute") else "CUBIN"), fetch("ProgramLog").decode().strip("\0 ")


def small_cubin(architecture: str = "sm_90") -> bytes:
    """A cubin with one kernel."""
    return compiled(b'extern "C" __global__ void k(float *x) { *x = 1; }', architecture)[0]


class TestArchitecture:
    @pytest.mark.parametrize("name", CUBINS)
    def test_cubin(self, name: str) -> None:
        """A cubin tells its architecture, the suffix too, and the compiler's full release."""
        data = small_cubin(name)
        facts = read_cubin(data)
        assert (facts.target, facts.release, list(facts.entries)) == (name, RELEASE, ["k"])
        assert facts.number == cubin_number(data) == Architecture.parse(name).number
        assert [other for other in CUBINS + PTX if facts.matches(Architecture.parse(other))] == [name]

    @pytest.mark.parametrize("name", PTX)
    def test_ptx(self, name: str) -> None:
        """PTX tells its target, the compiler's full release and its entries."""
        data, _ = compiled(KERNELS, name)
        for image in (data, data.rstrip(b"\0"), data.replace(b"\n", b"\r\n")):
            facts = read_ptx(image)
            assert (facts.target, facts.release) == (name.replace("compute", "sm"), RELEASE)
            assert set(facts.entries) == set(read_cubin(compiled(KERNELS, "sm_90")[0]).entries)
            assert [other for other in CUBINS + PTX if facts.matches(Architecture.parse(other))] == [name]

    def test_nothing_to_launch(self) -> None:
        """An image without a kernel has no entries: device functions are none."""
        assert read_cubin(compiled(b"__device__ __noinline__ int f(int x) { return x; }", "sm_90")[0]).entries == {}
        assert read_ptx(compiled(b"__device__ __noinline__ int f(int x) { return x; }", "compute_90")[0]).entries == ()

    @pytest.mark.parametrize(("number", "suffix"), [(80, ""), (90, ""), (90, "a")])
    def test_cubin_of_cuda_12(self, number: int, suffix: str) -> None:
        """The older file header has the architecture, and the suffix, in other bits."""
        data = bytearray(small_cubin("sm_90").replace(b".note.nv.tkinfo", b".note.nv.nothing"[:15]))
        data[7] = 51
        struct.pack_into("<I", data, 48, 0x500 | number | (0x800 if suffix else 0))
        facts = read_cubin(bytes(data))
        assert (facts.number, facts.target, facts.release) == (number, f"sm_{number}{suffix}", None)
        assert cubin_number(bytes(data)) == number

    def test_without_the_note(self) -> None:
        """Where a file does not tell the suffix, the number alone has to match."""
        facts = read_cubin(small_cubin("sm_90a").replace(b".note.nv.tkinfo", b".note.nv.nothing"[:15]))
        assert (facts.number, facts.target) == (90, None)
        matching = [name for name in CUBINS if facts.matches(Architecture.parse(name))]
        assert matching == ["sm_90", "sm_90a"]


def find_cuobjdump() -> str | None:
    """NVIDIA's own reader: on the path, or in the wheel nvidia-cuda-cuobjdump."""
    if found := shutil.which("cuobjdump"):
        return found
    try:
        files = distribution("nvidia-cuda-cuobjdump").files or []
    except PackageNotFoundError:
        return None
    return next((str(file.locate()) for file in files if file.stem == "cuobjdump" and file.parent.name == "bin"), None)


class TestResources:
    @pytest.mark.parametrize("options", [(), (b"--maxrregcount=24",)], ids=["free", "few-registers"])
    @pytest.mark.parametrize("name", CUBINS)
    def test_equal_cuobjdump(self, name: str, options: tuple[bytes, ...], tmp_path: Path) -> None:
        """Registers, shared memory, stack, local memory and constants are those that NVIDIA's tool reads."""
        tool = find_cuobjdump()
        if tool is None:
            pytest.skip("cuobjdump (nvidia-cuda-cuobjdump) is not installed")
        data, _ = compiled(KERNELS, name, *options)
        Path(tmp_path, "image.cubin").write_bytes(data)
        command = [tool, "--dump-resource-usage", str(tmp_path / "image.cubin")]
        text = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
        told = re.findall(r"Function (\S+):\s+REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+) CONSTANT\[0\]:(\d+)", text)
        expected = {entry: tuple(map(int, numbers)) for entry, *numbers in told}
        assert len(expected) == 9
        assert {
            entry: (r.registers, r.stack_bytes, r.shared_bytes, r.local_bytes, r.constant_bytes)
            for entry, r in read_cubin(data).entries.items()
        } == expected

    @pytest.mark.parametrize("name", CUBINS)
    def test_are_those_of_the_source(self, name: str) -> None:
        """Without any tool: the source's own numbers are found again."""
        entries = read_cubin(compiled(KERNELS, name)[0]).entries
        reserved = entries["simple"].shared_bytes
        assert reserved in (0, 1024)
        assert entries["shared"].shared_bytes == reserved + 4096
        assert entries["_ZN2ns8instanceIdEEvPT_"].shared_bytes == reserved + 256
        assert entries["parameters"].constant_bytes - entries["constants"].constant_bytes == 800
        assert entries["stack"].stack_bytes == 256
        assert entries["calling"].stack_bytes >= 96
        assert entries["simple"].stack_bytes == 0
        assert all(0 < resources.registers <= 255 for resources in entries.values())

    def test_stack_of_a_recursion(self) -> None:
        """Where no stack size can be told, it is that of the kernel's own frame, not an absurd number."""
        source = b"""
            __device__ __noinline__ int f(int n, int *x) { return n < 2 ? x[n] : f(n - 1, x) * f(n - 2, x); }
            extern "C" __global__ void recursive(int *x) { x[0] = f(x[1], x); }
        """
        assert read_cubin(compiled(source, "sm_90")[0]).entries["recursive"].stack_bytes < 1024

    @pytest.mark.parametrize("name", ["sm_80", "sm_100f"])
    def test_spills(self, name: str) -> None:
        """Spills stand in the report of ptxas alone: none with registers enough, some with too few."""
        _, free = compiled(KERNELS, name, b"--ptxas-options=-v")
        data, few = compiled(KERNELS, name, b"--ptxas-options=-v", b"--maxrregcount=24")
        entries = read_cubin(data).entries
        assert entries.keys() <= spills_from_log(free).keys()
        assert set(spills_from_log(free).values()) == {0}
        spills = spills_from_log(few)
        assert {entry for entry in entries if spills[entry]} == {"spilling"}
        assert entries["spilling"].stack_bytes > 0
        assert entries["spilling"].registers <= 24
        assert spills_from_log(compiled(KERNELS, name)[1]) == {}

    def test_spills_are_stores_and_loads(self) -> None:
        """The number is stores plus loads, whatever else stands in the log."""
        log = (
            'k.cu(3): warning #177-D: variable "x" was declared but never referenced\n\n'
            "ptxas info    : Compiling entry function 'k' for 'sm_90'\n"
            "ptxas info    : Function properties for k\n"
            "ptxas         .     8 bytes stack frame, 12 bytes spill stores, 20 bytes spill loads\n"
            "ptxas info    : Used 24 registers\n"
            "ptxas info    : Function properties for _Z1fv\n"
            "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
        )
        assert spills_from_log(log) == {"k": 32, "_Z1fv": 0}
        assert spills_from_log("") == {}


class TestNames:
    @pytest.mark.parametrize("architecture", ["sm_90", "compute_90"])
    def test_of_a_real_image(self, architecture: str) -> None:
        """Every kernel that has one name in the source is found under it, whatever its namespace and linkage."""
        data, _ = compiled(NAMES, architecture)
        symbols = list(read_ptx(data).entries) if architecture == "compute_90" else list(read_cubin(data).entries)
        assert len(symbols) == 17
        names = plain_names(symbols)
        assert sorted(names) == sorted(
            "c_name plain internal ns::inner ns::deep::nested ns::v1::versioned ns::hidden unnamed ns::within "
            "ns::overloaded same_prefix same_prefix_longer L1".split()
        )
        assert set(names.values()) <= set(symbols)
        assert all(name.rpartition("::")[2] in symbol for name, symbol in names.items())

    @pytest.mark.parametrize(
        ("symbol", "name"),
        [
            ("saxpy", "saxpy"),
            ("_private", "_private"),
            ("_Z1kv", "k"),
            ("_ZL1kv", "k"),
            ("_Z12abcdefghijklPf", "abcdefghijkl"),
            ("_ZN1a1b1cEv", "a::b::c"),
            ("_ZN12_GLOBAL__N_11kEv", "k"),
            ("_ZN1a38_GLOBAL__N__0123abcd_9_kernel_cu_scale1kEv", "a::k"),
            ("_ZN1a3L1bEv", "a::L1b"),
            ("_Z1kIfEvPT_", None),
            ("_ZN1a1kILi3EEvv", None),
            ("_ZN1aIfE1kEv", None),
            ("_ZplRK1aS1_", None),
            ("_ZN1aplERKS_", None),
            ("_ZN1acviEv", None),
            ("_ZZ1fvENKUlvE_clEv", None),
            ("_ZSt4sortv", None),
            ("_ZTV1a", None),
            ("_Z", None),
            ("_ZN", None),
            ("_ZNE", None),
            ("_Z999k", None),
            ("_Z0kv", None),
        ],
    )
    def test_of_one_symbol(self, symbol: str, name: str | None) -> None:
        """Plain names are read out of symbols; templates, operators and what is damaged have none."""
        assert plain_names([symbol]) == ({} if name is None else {name: symbol})

    def test_overloads_have_none(self) -> None:
        """Two kernels of one name in the source have no name of their own, however they come by it."""
        assert plain_names(["_Z1kf", "_Z1ki", "_Z1jf"]) == {"j": "_Z1jf"}
        assert plain_names(["k", "_Z1ki"]) == {}
        assert plain_names(["_Z1kf", "_Z1kIfEvT_"]) == {"k": "_Z1kf"}
        assert plain_names([]) == {}


class TestDamage:
    """Whatever the bytes, the answer is facts or ImageFormatError, quickly and without much memory."""

    @staticmethod
    def facts(data: bytes) -> CubinFacts | None:
        try:
            return read_cubin(data)
        except ImageFormatError as error:
            assert str(error)
            return None

    @pytest.mark.timeout(60)
    def test_every_truncation(self) -> None:
        """A cubin that was cut off anywhere never passes for whole with fewer kernels."""
        data = small_cubin()
        whole = read_cubin(data)
        assert [n for n in range(len(data)) if self.facts(data[:n]) not in (None, whole)] == []
        assert self.facts(data[: len(data) // 2]) is None
        assert [n for n in range(64) if cubin_number(data[:n]) is not None] == []

    @pytest.mark.timeout(60)
    @pytest.mark.parametrize("name", ["sm_75", "sm_100f"])
    def test_flipped_bits(self, name: str) -> None:
        """Flipped bits give facts or ImageFormatError."""
        chance = random.Random(name)
        data = small_cubin(name)
        read = 0
        for _ in range(2000):
            damaged = bytearray(data)
            for _ in range(chance.choice([1, 1, 2, 8])):
                damaged[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            found = self.facts(bytes(damaged))
            cubin_number(bytes(damaged))
            if found is not None:
                read += 1
                assert all(type(v) is int for r in found.entries.values() for v in dataclasses.astuple(r))
        assert read > 0

    @pytest.mark.timeout(60)
    def test_every_byte_of_the_header(self) -> None:
        """Each byte of the file header with each of some values gives facts or ImageFormatError."""
        data = small_cubin()
        for position in range(64):
            for value in (0, 1, 0x7F, 0x80, 0xFF):
                self.facts(data[:position] + bytes([value]) + data[position + 1 :])

    @pytest.mark.timeout(60)
    def test_every_field_of_the_section_table(self) -> None:
        """Absurd numbers in the section table give facts or ImageFormatError."""
        data = small_cubin()
        (table,) = struct.unpack_from("<Q", data, 40)
        (count,) = struct.unpack_from("<H", data, 60)
        for start in range(table, table + 64 * count, 8):
            for value in (0, 1, 2**31, 2**63, 2**64 - 1, len(data) - 1):
                self.facts(data[:start] + value.to_bytes(8, "little") + data[start + 8 :])

    @pytest.mark.parametrize("field", [24, 32], ids=["offset", "size"])
    def test_sections_past_the_end(self, field: int) -> None:
        """A section that is read and reaches past the end of the file is damage, never a short read."""
        data = small_cubin()
        (table,) = struct.unpack_from("<Q", data, 40)
        (count,) = struct.unpack_from("<H", data, 60)
        refused = 0
        for start in range(table, table + 64 * count, 64):
            damaged = bytearray(data)
            struct.pack_into("<Q", damaged, start + field, len(data) - 7 if field == 24 else len(data) * 2)
            try:
                read_cubin(bytes(damaged))
            except ImageFormatError as error:
                refused += str(error) == "a section reaches past the end of the file"
        assert refused >= 5  # names of sections, names of symbols, symbols, attributes, the note

    @pytest.mark.parametrize(
        "data", [b"", b"\x7fELF", b"\0" * 4096, b"\x7fELF\x02\x01\x01" + b"\0" * 57, b"MZ" * 99, b".version 8.0"]
    )
    def test_no_cubin(self, data: bytes) -> None:
        """Other files are refused."""
        with pytest.raises(ImageFormatError):
            read_cubin(data)
        assert cubin_number(data) is None

    def test_elf_of_another_machine(self) -> None:
        """A program of this computer is an ELF file, and refused as one of another machine."""
        data = bytearray(small_cubin())
        struct.pack_into("<H", data, 18, 62)
        with pytest.raises(ImageFormatError, match="an ELF file for machine 62, not CUDA"):
            read_cubin(bytes(data))
        assert cubin_number(bytes(data)) is None

    @pytest.mark.timeout(60)
    @pytest.mark.parametrize("symbols", [False, True], ids=["sections", "symbols"])
    def test_names_that_overlap(self, symbols: bool) -> None:
        """Thousands of names that share one long text cost no more than the file is long."""
        text = b"x" * 500_000 + b"\0"
        count = 4000
        body = 64 + len(text)
        rows = [(i, 3, 0, 0, 64, len(text), 0, 0, 0, 0) for i in range(2 if symbols else count)]
        listing = b""
        if symbols:
            listing = b"".join(struct.pack("<IBBHQQ", i, 0x12, 0x10, 1, 0, 0) for i in range(count))
            rows.append((len(text) - 1, 2, 0, 0, body, len(listing), 0, 0, 0, 24))
        head = b"\x7fELF\x02\x01\x01\x41".ljust(16, b"\0") + struct.pack(
            "<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, body + len(listing), 90 << 8, 64, 0, 0, 64, len(rows), 0
        )
        data = head + text + listing + b"".join(struct.pack("<IIQQQQIIQQ", *row) for row in rows)
        tracemalloc.start()
        try:
            start = time.perf_counter()
            self.facts(data)
            assert time.perf_counter() - start < 10
            assert tracemalloc.get_traced_memory()[1] < 64 * len(data)
        finally:
            tracemalloc.stop()

    @pytest.mark.timeout(60)
    @pytest.mark.parametrize(
        "text", ["\n", " \n", "\t", ".visible\n", ".visible ", ".weak .visible\n", ".target\n", "V1", "V1.", "-"]
    )
    def test_repetitive_ptx(self, text: str) -> None:
        """Text that tempts a pattern into trying everything is refused at once."""
        start = time.perf_counter()
        with pytest.raises(ImageFormatError, match=r"no PTX: \.version or \.target is missing"):
            read_ptx((text * 200_000).encode())
        body = f".version 8.0\n.target sm_90\n{text * 200_000}\n.visible .entry k(\n"
        assert read_ptx(body.encode()) == PtxFacts(target="sm_90", release=None, entries=("k",))
        assert time.perf_counter() - start < 10

    def test_truncated_ptx(self) -> None:
        """PTX that was cut off gives facts or ImageFormatError."""
        data = compiled(KERNELS, "compute_90")[0]
        known = set(read_ptx(data).entries)
        for length in range(0, len(data), 7):
            try:
                found = read_ptx(data[:length])
            except ImageFormatError:
                continue
            assert len(set(found.entries) - known) <= 1  # the last name may be cut
