# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Fixtures that several test files share."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_driver import build
from support import Site, build_demo


@pytest.fixture(scope="session")
def fake_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that holds the fake driver."""
    return build(tmp_path_factory.mktemp("driver"))


@pytest.fixture(scope="session")
def build_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A compile cache for the builds of one session."""
    return tmp_path_factory.mktemp("build-cache")


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory, build_cache: Path) -> Site:
    """The package `demo`, as its wheel would be installed. Not to be written to."""
    return build_demo(tmp_path_factory.mktemp("demo"), cache=build_cache)
