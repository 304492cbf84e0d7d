# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Which image a device gets, against an oracle that knows the rules from their text and shares no code or table.

The oracle works on names ("sm_90a") and on data of its own. Whether an image is accepted is tested for every image,
capability, driver and compiler; which one is chosen, for all sets of up to three images by default, and of up to four
with every driver and compiler under `-m slow`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import combinations
from typing import Literal

import pytest

from hatch_cuda_kernels.arch import Architecture
from hatch_cuda_kernels.manifest import Image
from hatch_cuda_kernels.selection import Candidate, Selection, fallback_architecture, select

Version = tuple[int, int]
Mode = tuple[Literal["allow", "forbid", "force"], bool]

# -- the oracle ------------------------------------------------------------------------------------------------------

PUBLISHED = "5.0 5.2 5.3 6.0 6.1 6.2 7.0 7.2 7.5 8.0 8.6 8.7 8.8 8.9 9.0 10.0 10.1 10.3 10.7 11.0 12.0 12.1".split()
INTEGRATED = ["5.3", "6.2", "7.2", "8.7", "10.1", "11.0"]
FAMILY_MEMBERS = {
    "100f": ["10.0", "10.3", "10.7"],
    "103f": ["10.3"],
    "110f": ["11.0"],
    "120f": ["12.0", "12.1"],
    "121f": ["12.1"],
}
SPECIFIC = ["90a", "100a", "101a", "103a", "107a", "110a", "120a", "121a"]
TARGETS = [capability.replace(".", "") for capability in PUBLISHED] + SPECIFIC + list(FAMILY_MEMBERS)
ALL_IMAGES = [f"{kind}_{target}" for target in TARGETS for kind in ("sm", "compute")]
DRIVERS: list[Version] = [(12, minor) for minor in range(10)] + [(13, minor) for minor in range(6)]
COMPILERS: list[Version] = [(12, 9), (13, 0), (13, 5)]
MODES: list[Mode] = [("allow", True), ("allow", False), ("forbid", True), ("force", True), ("force", False)]


def named_for(target: str) -> Version:
    """The capability in a target: "100f" is named for 10.0."""
    digits = target.rstrip("af")
    return int(digits[:-1]), int(digits[-1])


@cache
def runs(image: str, device: str, driver: Version, compiler: Version) -> bool:
    """Whether an image runs on a device, by the rules' text."""
    kind, target = image.split("_")
    x, y = named_for(target)
    major, minor = (int(part) for part in device.split("."))
    exact = f"{x}.{y}" == device
    if target.endswith("a"):
        here = exact
    elif target.endswith("f"):
        here = device in FAMILY_MEMBERS[target]
    elif kind == "compute":
        here = major > x or (major == x and minor >= y)
    elif device in INTEGRATED or f"{x}.{y}" in INTEGRATED:
        here = exact
    else:
        here = major == x and minor >= y
    if kind == "compute":
        known_to_driver = driver[0] > compiler[0] or (driver[0] == compiler[0] and driver[1] >= compiler[1])
    else:
        known_to_driver = driver[0] >= compiler[0]
    return here and known_to_driver


@cache
def worth(image: str) -> tuple[int, Version, int]:
    """Cubins before PTX, then the nearest capability, then `a` before `f` before plain."""
    kind, target = image.split("_")
    return (2 if kind == "sm" else 1, named_for(target), {"a": 2, "f": 1}.get(target[-1], 0))


def expected(
    images: Iterable[str], device: str, driver: Version, compiler: Version, mode: Mode
) -> tuple[str | None, list[str]]:
    """The choice (an image, "jit" or None), and everything that would run here, best first."""
    jit, sources = mode
    serving = sorted((i for i in images if runs(i, device, driver, compiler)), key=worth, reverse=True)
    if sources and jit != "forbid":
        serving.append("jit")
    if jit == "force":
        return ("jit" if sources else None), serving
    return (serving[0] if serving else None), serving


# -- the package against it ------------------------------------------------------------------------------------------


@cache
def image(name: str) -> Image:
    """An image as a manifest lists it."""
    architecture = Architecture.parse(name)
    return Image(architecture=architecture, file=name, size=1, sha256="0" * 64, entries={"k": None})


def chosen(names: Iterable[str], device: str, driver: Version, compiler: Version, mode: Mode) -> Selection:
    """What the package chooses."""
    major, minor = device.split(".")
    return select(
        kernel="k",
        images=[image(name) for name in names],
        device=(int(major), int(minor)),
        driver=driver,
        compiler=compiler,
        has_sources=mode[1],
        jit=mode[0],
    )


def told(candidate: Candidate | None) -> str | None:
    """A candidate as the oracle names it."""
    if candidate is None:
        return None
    return "jit" if candidate.kind == "jit" else candidate.arch


def check(names: tuple[str, ...], device: str, driver: Version, compiler: Version, mode: Mode) -> None:
    """Hold one choice, and the trace of all candidates, against the oracle."""
    selection = chosen(names, device, driver, compiler, mode)
    choice, serving = expected(names, device, driver, compiler, mode)
    case = (names, device, driver, compiler, mode)
    assert told(selection.choice) == choice, case
    assert [told(candidate) for candidate in selection.candidates if candidate.accepted] == serving, case
    flags = [candidate.accepted for candidate in selection.candidates]
    assert flags == sorted(flags, reverse=True), case
    assert len(flags) == len(names) + 1, case


def sets(names: list[str], largest: int) -> Iterator[tuple[str, ...]]:
    """All sets of up to `largest` names."""
    for size in range(largest + 1):
        yield from combinations(names, size)


def test_acceptance_of_every_image(record_property: Callable[[str, object], None]) -> None:
    """Every image is accepted exactly where NVIDIA's rules say so: all capabilities, drivers and compilers."""
    cases = 0
    for device in PUBLISHED:
        for driver in DRIVERS:
            for compiler in COMPILERS:
                (*candidates, fallback) = sorted(
                    chosen(ALL_IMAGES, device, driver, compiler, ("allow", True)).candidates,
                    key=lambda candidate: candidate.kind == "jit",
                )
                accepted = {candidate.arch for candidate in candidates if candidate.accepted}
                assert accepted == {name for name in ALL_IMAGES if runs(name, device, driver, compiler)}
                assert fallback.accepted
                cases += len(candidates)
    record_property("cases", cases)
    assert cases == len(PUBLISHED) * len(DRIVERS) * len(COMPILERS) * len(ALL_IMAGES) == 73_920


REPRESENTATIVE = (
    "sm_53 sm_80 sm_86 sm_87 sm_90 sm_90a sm_100 sm_100a sm_100f sm_103f sm_110 sm_120 sm_120f sm_121a "
    "compute_72 compute_80 compute_90 compute_90a compute_100f compute_120"
).split()

# One pair for each thing that driver and compiler can decide: all loads, cubins alone do, nothing does.
PAIRS: list[tuple[Version, Version]] = [((13, 5), (13, 5)), ((13, 0), (13, 5)), ((12, 9), (13, 0))]


@pytest.mark.slow
@pytest.mark.parametrize("of_three", [MODES[:1], MODES], ids=["some", "all"])
def test_choice_among_up_to_three(of_three: list[Mode], record_property: Callable[[str, object], None]) -> None:
    """The best image wins on every capability whatever lies beside it, with the fallback allowed or not. Modes beside
    the usual one see all sets of two, and in the long run those of three as well."""
    cases = 0
    for names in sets(REPRESENTATIVE, 3):
        for device in PUBLISHED:
            for driver, compiler in PAIRS:
                for mode in of_three if len(names) == 3 else MODES:
                    check(names, device, driver, compiler, mode)
                    cases += 1
    record_property("cases", cases)
    assert cases == (211 * len(MODES) + 1140 * len(of_three)) * len(PUBLISHED) * len(PAIRS)


FEWER = (
    "sm_80 sm_86 sm_87 sm_90 sm_90a sm_100 sm_100f sm_103 sm_103a sm_120 sm_120f compute_80 compute_90 compute_90a "
    "compute_100f compute_120"
).split()


@pytest.mark.slow
@pytest.mark.parametrize("device", PUBLISHED)
def test_choice_among_up_to_four(device: str, record_property: Callable[[str, object], None]) -> None:
    """As above with sets of up to four images, each driver from 12.0 to 13.5 and each compiler."""
    cases = 0
    for names in sets(FEWER, 4):
        for driver in DRIVERS:
            for compiler in COMPILERS:
                for mode in MODES:
                    check(names, device, driver, compiler, mode)
                    cases += 1
    record_property("cases", cases)
    assert cases == 2517 * len(DRIVERS) * len(COMPILERS) * len(MODES) == 604_080


# -- by hand ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("images", "device", "choice"),
    [
        ("sm_80 sm_86 compute_80", "8.6", "sm_86"),
        ("sm_80 sm_86 compute_80", "8.9", "sm_86"),
        ("sm_80 sm_86 compute_80", "8.7", "compute_80"),
        ("sm_80 sm_87 compute_80", "8.7", "sm_87"),
        ("sm_90 sm_90a", "9.0", "sm_90a"),
        ("sm_90a compute_90", "10.0", "compute_90"),
        ("sm_100 sm_100f", "10.3", "sm_100f"),
        ("sm_100f sm_103", "10.3", "sm_103"),
        ("sm_100 sm_100a", "10.3", "sm_100"),
        ("sm_120f", "12.1", "sm_120f"),
        ("sm_121f", "12.0", "jit"),
        ("compute_90 compute_90a", "9.0", "compute_90a"),
        ("", "9.0", "jit"),
    ],
)
def test_examples(images: str, device: str, choice: str) -> None:
    """What a reader of the rules would say, oracle aside."""
    assert told(chosen(images.split(), device, (13, 5), (13, 5), ("allow", True)).choice) == choice


def test_order_of_the_images_does_not_matter() -> None:
    """The choice depends on the images, not on where they stand in the manifest."""
    forward = chosen(REPRESENTATIVE, "10.3", (13, 5), (13, 5), ("allow", True))
    backward = chosen(REPRESENTATIVE[::-1], "10.3", (13, 5), (13, 5), ("allow", True))
    assert told(forward.choice) == told(backward.choice) == "sm_103f"


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        (("forbid", True), "HATCH_CUDA_KERNELS_JIT=0"),
        (("allow", False), "the package ships no sources"),
        (("force", False), "the package ships no sources"),
        (("force", True), "forced by HATCH_CUDA_KERNELS_JIT=force"),
        (("allow", True), "the shipped source can be compiled there"),
    ],
)
def test_the_fallback_says_why(mode: Mode, reason: str) -> None:
    """The trace says why the fallback can or cannot serve."""
    fallback = next(c for c in chosen(["sm_80"], "9.0", (13, 5), (13, 5), mode).candidates if c.kind == "jit")
    assert reason in fallback.reason
    assert fallback.accepted == (mode in (("allow", True), ("force", True)))


@pytest.mark.parametrize(
    ("images", "device", "target"),
    [
        ("sm_80", (9, 0), "sm_90"),
        ("sm_90", (9, 0), "sm_90"),
        ("sm_90a", (9, 0), "sm_90a"),
        ("compute_90a", (9, 0), "sm_90a"),
        ("sm_90 compute_90a", (9, 0), "sm_90a"),
        ("sm_120f", (12, 0), "sm_120f"),
        ("sm_120f sm_120a", (12, 0), "sm_120a"),
        ("", (12, 1), "sm_121"),
    ],
)
def test_fallback_architecture(images: str, device: Version, target: str) -> None:
    """The fallback compiles for the device's own architecture, with the suffix that the author listed for it."""
    assert str(fallback_architecture([image(name) for name in images.split()], device)) == target


def test_as_json_and_as_text() -> None:
    """The trace has the documented shape, and its text marks the taken, the usable and the refused."""
    selection = chosen(["sm_80", "sm_86", "sm_90"], "8.6", (13, 0), (13, 0), ("allow", True))
    told_json = selection.to_dict()
    assert {key: told_json[key] for key in ("schema", "kernel", "compute_capability", "choice")} == {
        "schema": 1,
        "kernel": "k",
        "compute_capability": "8.6",
        "choice": {"kind": "cubin", "arch": "sm_86"},
    }
    assert [(c["kind"], c["arch"], c["accepted"]) for c in told_json["candidates"]] == [
        ("cubin", "sm_86", True),
        ("cubin", "sm_80", True),
        ("jit", "sm_86", True),
        ("cubin", "sm_90", False),
    ]
    assert all(c.keys() == {"kind", "arch", "accepted", "reason"} for c in told_json["candidates"])
    assert [line.split()[0] for line in str(selection).splitlines()[1:]] == ["->", "ok", "ok", "no"]
    nothing = chosen(["sm_80"], "9.0", (13, 0), (13, 0), ("forbid", True))
    assert nothing.to_dict()["choice"] is None
    assert "nothing serves" in str(nothing)
