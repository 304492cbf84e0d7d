# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The documentation as a site: built without a warning, and opened in a real browser."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from test_pages import DOCS

from hatch_cuda_kernels.cli import _parser

pytestmark = [pytest.mark.isolated, pytest.mark.xdist_group("isolated"), pytest.mark.timeout(600)]

CONTRAST = """
element => {
    const number = text => (text.match(/[0-9.]+/g) || []).slice(0, 3).map(Number);
    const light = color => number(color).map(part => part / 255)
        .map(part => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
        .reduce((sum, part, index) => sum + part * [0.2126, 0.7152, 0.0722][index], 0);
    const [low, high] = [light(getComputedStyle(element).fill), light(getComputedStyle(document.body).backgroundColor)]
        .sort((one, other) => one - other);
    return (high + 0.05) / (low + 0.05);
}
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site. Every warning, and every reference that leads nowhere, is an error."""
    pytest.importorskip("furo", reason="the dependency group docs is not installed")
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "-n", "-q", "--keep-going", str(DOCS), str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, env={**os.environ, "NO_COLOR": "1"})
    assert done.returncode == 0, done.stderr
    return out


def test_every_page_is_built(site: Path) -> None:
    """Each page of the documentation is a page of the site, and each command has its section."""
    pages = {path.relative_to(DOCS) for path in DOCS.rglob("*.md") if not {"_build", "projects"} & set(path.parts)}
    assert {path.with_suffix(".html") for path in pages} <= {path.relative_to(site) for path in site.rglob("*.html")}
    text = (site / "reference/command-lines.html").read_text("utf-8")
    choices: Any = next(action for action in _parser()._actions if action.choices).choices
    for name in choices:
        assert f"hatch-cuda-kernels {name}" in text


@pytest.mark.parametrize("width", [360, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_in_a_browser(browser: Any, site: Path, scheme: str, width: int) -> None:
    """No page scrolls sideways, complains, or asks for anything that is not of the site; pictures have their size."""
    tab = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 900})
    events: list[str] = []
    tab.on("console", lambda message: events.append(message.text) if message.type == "error" else None)
    tab.on("pageerror", lambda error: events.append(str(error)))
    tab.on("requestfailed", lambda request: events.append(request.url))
    tab.on("request", lambda request: events.append(request.url) if request.url.startswith("http") else None)
    for page in sorted(site.rglob("*.html")):
        tab.goto(page.as_uri())
        shown = page.relative_to(site)
        assert tab.evaluate("document.documentElement.scrollWidth") <= width, shown
        assert tab.evaluate("[...document.images].every(image => image.complete && image.naturalWidth)"), shown
        assert events == [], shown
    tab.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_picture_can_be_read(browser: Any, site: Path, scheme: str) -> None:
    """Every word of the way of the data stands out from its ground, as WCAG asks of text (4.5 to 1)."""
    tab = browser.new_page(color_scheme=scheme)
    tab.goto((site / "index.html").as_uri())
    words = tab.locator("div.picture svg text").all()
    assert len(words) > 20
    for word in words:
        assert word.evaluate(CONTRAST) >= 4.5, word.text_content()
    tab.close()
