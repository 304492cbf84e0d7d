# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Architectures: every accepted spelling, every refused one with its hint, and what a compiler can make."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hatch_cuda_kernels.arch import (
    Architecture,
    cubin_verdict,
    expand_architectures,
    format_capability,
    parse_version,
    ptx_verdict,
    split_list,
    unsupported_reason,
)

NVRTC_12_9 = [50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90, 100, 101, 103, 120, 121]
NVRTC_13_5 = [75, 80, 86, 87, 88, 89, 90, 100, 103, 107, 110, 120, 121]


def expand(*spellings: str, supported: Sequence[int] = NVRTC_13_5) -> list[str]:
    """The architectures of spellings that have no mistake."""
    found, problems = expand_architectures(spellings, supported=lambda: supported)
    assert not problems
    return [str(architecture) for architecture in found]


def problem(spelling: str) -> str:
    """The one problem of a spelling that is a mistake."""
    found, problems = expand_architectures([spelling])
    assert found == []
    assert len(problems) == 1
    return problems[0]


class TestSpellings:
    @pytest.mark.parametrize(
        ("spelling", "architectures"),
        [
            ("sm_80", "sm_80"),
            ("sm_90a", "sm_90a"),
            ("sm_100f", "sm_100f"),
            ("compute_80", "compute_80"),
            ("compute_90a", "compute_90a"),
            ("compute_120f", "compute_120f"),
            ("8.0", "sm_80"),
            ("9.0a", "sm_90a"),
            ("10.0f", "sm_100f"),
            ("12.1", "sm_121"),
            ("9.0+PTX", "sm_90 compute_90"),
            ("9.0a+PTX", "sm_90a compute_90a"),
            ("90-real", "sm_90"),
            ("90a-real", "sm_90a"),
            ("90-virtual", "compute_90"),
            ("100f-virtual", "compute_100f"),
            ("90", "sm_90 compute_90"),
            ("120f", "sm_120f compute_120f"),
        ],
    )
    def test_is_read(self, spelling: str, architectures: str) -> None:
        """NVRTC's, PyTorch's and CMake's spellings mean what they mean there."""
        assert expand(spelling) == architectures.split()

    def test_all(self) -> None:
        """`all` is a cubin for each architecture that the compiler has, and PTX of the newest."""
        assert expand("all") == [*(f"sm_{number}" for number in NVRTC_13_5), "compute_121"]
        assert expand("all", supported=[90, 80]) == ["sm_80", "sm_90", "compute_90"]

    def test_all_major(self) -> None:
        """`all-major` is the lowest of each major capability, and PTX of the newest of them."""
        assert expand("all-major") == ["sm_75", "sm_80", "sm_90", "sm_100", "sm_110", "sm_120", "compute_120"]

    def test_native(self) -> None:
        """`native` is a cubin for each kind of device of this machine."""
        found, problems = expand_architectures(["native"], native=lambda: [(9, 0), (12, 1), (9, 0)])
        assert ([str(architecture) for architecture in found], problems) == (["sm_90", "sm_121"], [])

    def test_keywords_ask_nobody_unless_told_whom(self) -> None:
        """Checking a list probes neither compiler nor device, and a list without `native` never probes a device."""

        def probe() -> list[tuple[int, int]]:
            raise AssertionError("probed")

        assert expand_architectures(["all", "all-major", "native"]) == ([], [])
        assert expand_architectures(["sm_90", "all"], supported=lambda: [90], native=probe)[1] == []

    def test_order_is_kept_and_repetitions_are_dropped(self) -> None:
        """A list that names one architecture in several spellings compiles it once, where it was named first."""
        assert expand("sm_90", "9.0+PTX", "8.0", "80", "all", supported=[80, 90]) == [
            "sm_90",
            "compute_90",
            "sm_80",
            "compute_80",
        ]

    @pytest.mark.parametrize("text", ["8.0;8.6 9.0+PTX", "8.0,8.6,9.0+PTX", " 8.0 ;, 8.6\n9.0+PTX\t"])
    def test_pasted_lists(self, text: str) -> None:
        """TORCH_CUDA_ARCH_LIST and CUDAARCHS can be pasted whatever separates their items."""
        assert split_list(text) == ["8.0", "8.6", "9.0+PTX"]
        assert split_list(" ;, ") == []


class TestMistakes:
    @pytest.mark.parametrize(
        ("spelling", "suggestion"),
        [
            ("SM_80", "sm_80"),
            ("Compute_90A", "compute_90a"),
            ("80 ", "80"),
            (" sm_90", "sm_90"),
            ("sm-90a", "sm_90a"),
            ("sm 90", "sm_90"),
            ("sm90", "sm_90"),
            ("sm_90-real", None),
            ("ALL", "all"),
            ("all_major", "all-major"),
            ("nativ", "native"),
            ("sm_090", None),
            ("sm_9", None),
            ("sm_1000", None),
            ("sm_90b", None),
            ("sm_9\u0660", None),
            ("lto_90", None),
            ("9.0+ptx", None),
            ("9", None),
            ("", None),
            ("sm_90\n", "sm_90"),
            ("sm_90,sm_80", None),
        ],
    )
    def test_is_refused_with_the_spellings_there_are(self, spelling: str, suggestion: str | None) -> None:
        """What is no architecture is refused before any compile, with the spellings there are and the near one."""
        message = problem(spelling)
        assert message.startswith(f"{spelling!r} is no architecture; write sm_90, sm_90a, compute_90, 9.0, ")
        if suggestion is not None:
            assert message.endswith(f"Did you mean {suggestion!r}?")

    def test_all_are_reported(self) -> None:
        """Every mistake of a list is reported, and what is right is still read."""
        found, problems = expand_architectures(["SM_80", "sm_90", "nativ"])
        assert [str(architecture) for architecture in found] == ["sm_90"]
        assert [text.split(" is no ")[0] for text in problems] == ["'SM_80'", "'nativ'"]

    @pytest.mark.parametrize("name", ["90", "9.0", "sm_90 ", "SM_90", "all", "sm_9\u0660", ""])
    def test_parse_takes_only_what_nvrtc_writes(self, name: str) -> None:
        """A manifest's architecture is NVRTC's spelling, nothing else."""
        with pytest.raises(ValueError, match="is no architecture as NVRTC spells it"):
            Architecture.parse(name)


class TestSupport:
    @pytest.mark.parametrize(
        ("name", "release", "parts"),
        [
            ("sm_99", "13.5.37", ["sm_99 is not supported by NVRTC 13.5.37", "it has: sm_75 sm_80 sm_86", "sm_121"]),
            ("sm_70", "13.5.37", ["sm_70 is not supported by NVRTC 13.5.37", "it has: sm_75"]),
            ("compute_70", "13.5.37", ["compute_70 is not supported by NVRTC 13.5.37"]),
            ("sm_101", "13.5.37", ["sm_101 is not supported", "sm_101 is called sm_110 since CUDA 13"]),
            ("sm_110", "12.9.86", ["sm_110 is not supported by NVRTC 12.9.86", "sm_101"]),
            ("sm_90f", "13.5.37", ["sm_90f does not exist", "begins with sm_100f", "write sm_90"]),
            ("compute_80a", "13.5.37", ["compute_80a does not exist", "begins with compute_90a", "write compute_80"]),
            ("sm_100f", "12.8.93", ["sm_100f", "12.8.93", "12.9"]),
        ],
    )
    def test_is_refused_with_the_reason(self, name: str, release: str, parts: list[str]) -> None:
        """An architecture that this NVRTC has not is refused before any compile, with what it has."""
        supported = NVRTC_13_5 if release.startswith("13.") else NVRTC_12_9
        reason = unsupported_reason(Architecture.parse(name), supported, release)
        assert reason is not None
        assert [part for part in parts if part not in reason] == []

    @pytest.mark.parametrize("release", ["12.9.86", "13.5.37"])
    def test_what_exists_is_let_through(self, release: str) -> None:
        """Each base architecture of a compiler can be asked for as cubin and PTX, with each suffix that it can have."""
        supported = NVRTC_13_5 if release.startswith("13.") else NVRTC_12_9
        for number in supported:
            for suffix in ("", *("a" if number >= 90 else ""), *("f" if number >= 100 else "")):
                for virtual in (False, True):
                    assert unsupported_reason(Architecture(number, suffix, virtual), supported, release) is None


class TestArchitecture:
    @pytest.mark.parametrize("name", ["sm_75", "sm_90a", "sm_100f", "compute_75", "compute_90a", "compute_121f"])
    def test_name_and_back(self, name: str) -> None:
        """An architecture is written as it is read."""
        assert str(Architecture.parse(name)) == name

    @pytest.mark.parametrize(
        ("name", "capability", "image_format"),
        [("sm_75", (7, 5), "cubin"), ("sm_100f", (10, 0), "cubin"), ("compute_121a", (12, 1), "ptx")],
    )
    def test_facts(self, name: str, capability: tuple[int, int], image_format: str) -> None:
        """A name tells the capability and the format of the image."""
        architecture = Architecture.parse(name)
        assert (architecture.capability, architecture.format) == (capability, image_format)

    def test_preference(self) -> None:
        """The nearest capability wins, then `a` before `f` before plain."""
        best_first = ["sm_103a", "sm_103f", "sm_103", "sm_100a", "sm_100f", "sm_100", "sm_90a", "sm_90"]
        by_preference = sorted(map(Architecture.parse, sorted(best_first)), key=lambda a: a.preference, reverse=True)
        assert [str(architecture) for architecture in by_preference] == best_first

    @pytest.mark.parametrize(
        ("name", "device", "words"),
        [
            ("sm_90a", (10, 0), "sm_90a is architecture-specific: it runs on 9.0 only"),
            ("sm_100f", (12, 0), "12.0 is not in the family of sm_100f"),
            ("sm_86", (8, 7), "8.7 is a Tegra part"),
            ("sm_87", (8, 9), "8.7 is a Tegra part"),
            ("sm_90", (8, 0), "major compute capability (9.0 to 8.0)"),
            ("sm_89", (8, 6), "made for 8.9, newer than 8.6"),
            ("compute_90", (8, 9), "PTX for 9.0 needs a capability of at least that, not 8.9"),
            ("compute_90a", (10, 0), "compute_90a is architecture-specific"),
        ],
    )
    def test_a_refusal_names_its_rule(self, name: str, device: tuple[int, int], words: str) -> None:
        """The reason against an image names the rule that it breaks."""
        architecture = Architecture.parse(name)
        accepted, reason = (ptx_verdict if architecture.virtual else cubin_verdict)(architecture, device)
        assert not accepted
        assert words in reason


class TestVersions:
    @pytest.mark.parametrize(
        ("value", "expected"),
        [("9.0", (9, 0)), ("12.1", (12, 1)), ((13, 0), (13, 0)), ([8, 6], (8, 6)), ("13.10", (13, 10))],
    )
    def test_is_read(self, value: str | Sequence[int], expected: tuple[int, int]) -> None:
        """Capabilities and CUDA versions are given as text or as two numbers."""
        assert parse_version(value, "compute_capability") == expected
        assert parse_version(format_capability(expected), "x") == expected

    @pytest.mark.parametrize(
        "value",
        [
            "",
            "9",
            "9.0.1",
            "9.",
            ".0",
            "v9.0",
            "9.0 ",
            "9.0\n",
            "-9.0",
            "\u0669.0",
            "sm_90",
            (9,),
            (9, 0, 0),
            (9, -1),
            (9, True),
            ("9", "0"),
            (9.0, 0),
            b"\x09\x00",
        ],
    )
    def test_is_refused(self, value: str | Sequence[int]) -> None:
        """What is no version is refused with the name of the argument and the two ways to write one."""
        with pytest.raises(ValueError, match=r"driver_version must look like '9\.0' or \(9, 0\), not "):
            parse_version(value, "driver_version")
