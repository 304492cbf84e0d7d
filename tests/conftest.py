# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Fixtures that several test files share."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_driver import build
from frontends import run
from support import Site, build_demo

from hatch_cuda_kernels import errors

REPOSITORY = Path(__file__).parent.parent


def pytest_configure() -> None:
    """A shell starts what it runs in the background with Ctrl-C ignored, which builds of the tests would inherit."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What needs a trace of headers first: after some errors NVRTC's trace names no header any more in that process."""
    first = ("test_headerlist.py", "test_names.py", "test_prefix.py")
    items.sort(key=lambda item: item.path.name not in first)


@pytest.fixture
def warn_anew() -> Iterator[None]:
    """Warnings are given once per process; here, once per test."""
    errors._warned.clear()
    yield
    errors._warned.clear()


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


@pytest.fixture(scope="session")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This project's own wheel, built from a fresh copy."""
    base = tmp_path_factory.mktemp("ours")
    ignored = shutil.ignore_patterns(".*", "__pycache__", "dist", "build", "wheelhouse")
    shutil.copytree(REPOSITORY, base / "copy", ignore=ignored)
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", base / "dist", base / "copy")
    (wheel,) = (base / "dist").glob("*.whl")
    return wheel


@pytest.fixture(scope="session")
def frontend_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One compile cache for all front ends."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def way(ours: Path, frontend_cache: Path, tmp_path: Path) -> dict[str, str]:
    """Environment in which every installer finds this project's wheel, and builds use one cache and write a report."""
    given = os.environ.get("PIP_FIND_LINKS", "")
    return {
        "PIP_FIND_LINKS": f"{given} {ours.parent}".strip(),
        "UV_FIND_LINKS": f"{os.environ.get('UV_FIND_LINKS', '')} {ours.parent}".strip(),
        "HATCH_CUDA_KERNELS_CACHE": str(frontend_cache),
        "HATCH_CUDA_KERNELS_REPORT": str(tmp_path / "report.json"),
    }


_BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A headless Chromium, from PATH or installed by playwright."""
    playwright = pytest.importorskip("playwright.sync_api", reason="the dependency group `browser` is not installed")
    path = next((found for name in _BROWSERS if (found := shutil.which(name))), None)
    with playwright.sync_playwright() as driver:
        try:
            opened = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        except playwright.Error as error:
            pytest.skip(f"no Chromium can be started ({str(error).splitlines()[0]})")
        yield opened
        opened.close()
