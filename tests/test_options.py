# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The `options` table against the dataclass that it is a copy of."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any

import pytest

from hatch_cuda_kernels.options import ALLOWED, REFUSED, check_options, field_name

core = pytest.importorskip("cuda.core")

GOOD: dict[str, list[Any]] = {
    "true or false": [True, False],
    "an integer": [0, 4],
    "a string": ["x"],
    "a string or a list of strings": ["x", ["x", "y"]],
    "an integer or a list of integers": [1, [1, 2]],
}
BAD: dict[str, list[Any]] = {
    "true or false": [1, "true", None, [True]],
    "an integer": [-1, 1 << 31, 1 << 70, datetime.date(1979, 5, 27), True, 1.0, "4", [4]],
    "a string": ["", 1, True, ["x"], "a\0", "a\nb", "a\rb", datetime.time(7, 32)],
    "a string or a list of strings": ["", [], [""], ["x", 1], {"x": 1}, "a\nb"],
    "an integer or a list of integers": [True, [], [-1], [1, 1 << 64], ["1"], 1.0],
}
SPECIAL = {"std": ["c++17"], "ofast-compile": ["0", "min", "mid", "max"], "optimization-info": ["inline"]}


def check(table: object) -> tuple[dict[str, Any], list[str]]:
    """What is usable of an options table, and the mistakes in it."""
    problems: list[str] = []
    return check_options(table, "t.options", problems), problems


def test_every_field_of_cuda_core_is_allowed_or_refused() -> None:
    """The two tables together are exactly the fields of `ProgramOptions`: none is forgotten, none is made up."""
    fields = {field.name.replace("_", "-") for field in dataclasses.fields(core.ProgramOptions)}
    assert fields == ALLOWED.keys() | REFUSED.keys()
    assert not ALLOWED.keys() & REFUSED.keys()


@pytest.mark.parametrize("option", ALLOWED)
def test_a_good_value_reaches_nvrtc(option: str) -> None:
    """A value that the check lets through is one that cuda.core can spell for NVRTC."""
    for value in SPECIAL.get(option, GOOD[ALLOWED[option]]):
        assert check({option: value}) == ({option: value}, [])
        given = core.ProgramOptions(arch="sm_90", **{field_name(option): value}).as_bytes("nvrtc")
        assert all(isinstance(flag, bytes) for flag in given)
        if value is True:
            assert len(given) > 1


@pytest.mark.parametrize("option", ALLOWED)
def test_a_bad_value_is_told_with_its_path(option: str) -> None:
    """A value of the wrong kind is refused with its key path and the kind that is expected."""
    for value in BAD[ALLOWED[option]]:
        usable, problems = check({option: value})
        assert usable == {}
        assert problems == [f"t.options.{option}: expected {ALLOWED[option]}, found {value!r}"]


@pytest.mark.parametrize("option", REFUSED)
def test_a_field_that_cannot_work_names_the_way_out(option: str) -> None:
    """A field that cannot work here is refused, in either spelling, with what to do instead."""
    for spelling in {option, field_name(option)}:
        assert check({spelling: True}) == ({}, [f"t.options.{spelling}: cannot be set; {REFUSED[option]}"])


@pytest.mark.parametrize(
    ("option", "hint"),
    [
        ("use_fast_math", "did you mean use-fast-math?"),
        ("use-fastmath", "did you mean use-fast-math?"),
        ("maxregcount", "did you mean max-register-count?"),
        ("wat", "see cuda.core.ProgramOptions for the fields"),
    ],
)
def test_an_unknown_option_suggests_the_near_one(option: str, hint: str) -> None:
    """An option that does not exist is refused with the near one, or the place where the fields stand."""
    assert check({option: True}) == ({}, [f"t.options.{option}: unknown option; {hint}"])


@pytest.mark.parametrize("value", ["c++20 ", "C++17", "gnu++17", "20", "c++98"])
def test_std_is_one_of_the_standards(value: str) -> None:
    """A standard that NVRTC has not is refused with those it has."""
    problem = f"t.options.std: {value!r} is none of c++03, c++11, c++14, c++17, c++20"
    assert check({"std": value}) == ({}, [problem])


def test_all_mistakes_at_once() -> None:
    """One mistake hides no other, and what is right is kept."""
    usable, problems = check({"arch": "sm_90", "fma": 1, "wat": 1, "ftz": True})
    assert usable == {"ftz": True}
    assert [text.split(":")[0] for text in problems] == ["t.options.arch", "t.options.fma", "t.options.wat"]
    assert check([]) == ({}, ["t.options: expected a table of options, found list"])
