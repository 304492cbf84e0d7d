# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The report in a real browser, without a screen: `pytest -m isolated tests/test_browser.py`.

Needs the dependency group `browser` and a Chromium, either on PATH or installed by playwright.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from projects import Project, make_project
from test_report import FILES, NASTY, made_up, report, summary_of

from hatch_cuda_kernels.commands.report.page import page

pytestmark = pytest.mark.isolated


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The project of test_report.py."""
    table = 'archs = ["sm_80", "sm_90a", "compute_80"]\noptions = { max-register-count = 32 }'
    project = make_project(tmp_path_factory.mktemp("browser"), table, FILES)
    assert project.build().status == 0
    return project


@pytest.fixture(scope="module")
def file(project: Project) -> Path:
    """The page, with a timeline."""
    text = report(project, "--build-report", str(project.root.parent / "report.json"))
    path = project.root.parent / "report.html"
    path.write_text(text, "utf-8")
    return path


def opened(browser: Any, file: Path, **options: Any) -> tuple[Any, list[str]]:
    """A tab with the page, and what it asked for, said or raised."""
    tab = browser.new_page(**{"viewport": {"width": 1280, "height": 900}, **options})
    events: list[str] = []
    tab.on("console", lambda message: events.append(message.text))
    tab.on("pageerror", lambda error: events.append(str(error)))
    tab.on("dialog", lambda dialog: events.append(dialog.message))
    tab.on("request", lambda request: events.append(request.url))
    tab.goto(file.as_uri())
    assert events.pop(0) == file.as_uri()
    return tab, events


def comes_true(tab: Any, expression: str) -> bool:
    """Whether something holds soon: a browser does what a key asks for when it gets to it."""
    for _ in range(50):  # from outside: the page's own policy forbids to wait in it
        if tab.evaluate(expression):
            return True
        tab.wait_for_timeout(100)
    return False


def test_loads_alone(browser: Any, file: Path) -> None:
    """Nothing is asked for beside the file itself, and nothing is complained of."""
    tab, events = opened(browser, file)
    assert tab.title() == "CUDA kernels of demo-1.0-py3-none-any.whl"
    assert events == []


def test_light_and_dark(browser: Any, file: Path) -> None:
    """The page follows the reader's scheme."""
    seen = []
    for scheme in ("light", "dark"):
        tab, _ = opened(browser, file, color_scheme=scheme)
        seen.append(tab.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert seen == ["rgb(255, 255, 255)", "rgb(16, 21, 28)"]


@pytest.mark.parametrize("width", [320, 390, 768, 1280, 2560])
def test_no_sideways_scroll(browser: Any, file: Path, width: int) -> None:
    """At no width does the page itself scroll sideways: what is wide scrolls in a frame of its own."""
    tab, _ = opened(browser, file, viewport={"width": width, "height": 800})
    tab.evaluate("document.querySelectorAll('details').forEach(found => { found.open = true })")
    assert tab.evaluate("document.documentElement.scrollWidth") <= width


def test_keyboard(browser: Any, file: Path) -> None:
    """Tab reaches the skip link first, then every link, frame and fold; Enter opens a fold; arrows scroll a frame."""
    tab, _ = opened(browser, file, viewport={"width": 390, "height": 800})
    tab.keyboard.press("Tab")
    assert comes_true(tab, "document.activeElement.textContent === 'Skip to the report'")
    assert comes_true(tab, "document.activeElement.getBoundingClientRect().left >= 0")
    tab.keyboard.press("Enter")
    assert comes_true(tab, "location.hash === '#report'")
    tab, _ = opened(browser, file, viewport={"width": 390, "height": 800})
    reached: dict[str, int] = {}
    for _ in range(80):
        tab.keyboard.press("Tab")
        name = tab.evaluate("document.activeElement.tagName + (document.activeElement.getAttribute('role') ?? '')")
        reached[name] = reached.get(name, 0) + 1
        if name == "SUMMARY" and reached[name] == 1:
            tab.keyboard.press("Enter")
            assert comes_true(tab, "document.activeElement.parentElement.open")
        if name == "DIVregion" and reached[name] == 1:
            tab.keyboard.press("ArrowRight")
            assert comes_true(tab, "document.activeElement.scrollLeft > 0")
            assert tab.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    visible = "[...document.querySelectorAll('{}')].filter(e => e.checkVisibility()).length"
    assert reached["A"] >= tab.evaluate(visible.format("nav a"))
    assert reached["SUMMARY"] >= tab.evaluate(visible.format("summary"))
    assert reached["DIVregion"] >= tab.evaluate(visible.format(".scroll"))


def test_screen_reader(browser: Any, file: Path) -> None:
    """Landmarks, headings, tables with headers, and drawings with names are in the accessibility tree."""
    tab, _ = opened(browser, file)
    tree = tab.locator("body").aria_snapshot()
    for line in (
        "- banner:", '- navigation "Sections"', "- main:", "- contentinfo:", '- heading "Coverage" [level=2]',
        '- columnheader "8.6"', '- rowheader "spills:heavy"', '- img "Sizes of all images by module and architecture',
        '- region "Compiles over time"', '- cell "cubin sm_80"',
    ):  # fmt: skip
        assert line in tree, f"{line}\n{tree[:3000]}"


def test_nothing_runs(browser: Any, tmp_path: Path) -> None:
    """Names that are markup run nothing, load nothing and are shown as they are."""
    file = tmp_path / "nasty.html"
    file.write_text(page(summary_of(made_up(NASTY, 3, 2, 2))), "utf-8")
    tab, events = opened(browser, file)
    assert events == []
    assert tab.evaluate("document.querySelectorAll('script, img').length") == 0
    assert "<script>alert(1)</script>" in tab.locator("main").inner_text()


def test_large_page(browser: Any, tmp_path: Path) -> None:
    """A page of eight thousand images opens, folds open, and can be read at once."""
    file = tmp_path / "large.html"
    file.write_text(page(summary_of(made_up("k", 1000, 16, 8))), "utf-8")
    tab, events = opened(browser, file)
    assert events == []
    tab.get_by_text("850 more modules").first.wait_for(state="attached", timeout=20_000)
    tab.locator("summary", has_text="more rows").first.click(timeout=20_000)
    assert tab.evaluate("document.querySelectorAll('tbody tr').length") > 5000
