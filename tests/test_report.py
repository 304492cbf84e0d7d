# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The report: what it says, that nothing breaks out of it, and that a large package makes a page that can be used."""

from __future__ import annotations

import itertools
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from projects import KERNEL, Project, make_project

from hatch_cuda_kernels.arch import Architecture
from hatch_cuda_kernels.cli import main
from hatch_cuda_kernels.commands.report.markdown import markdown
from hatch_cuda_kernels.commands.report.markup import element
from hatch_cuda_kernels.commands.report.page import page
from hatch_cuda_kernels.commands.report.style import FILLS, STYLE
from hatch_cuda_kernels.commands.report.summary import Summary, _summarise
from hatch_cuda_kernels.commands.report.timeline import lanes
from hatch_cuda_kernels.commands.report.treemap import Box, squarify
from hatch_cuda_kernels.manifest import Fallback, Image, Manifest, Module, Resources

FILES = {
    "demo/scale.cu": KERNEL,
    "demo/warns.cu": 'extern "C" __global__ void warns(int *x) { int unused; *x = 1; }\n',
    "demo/spills.cu": (
        'extern "C" __global__ void heavy(float *x)\n{\n    float v[64];\n#pragma unroll\n'
        "    for (int i = 0; i < 64; ++i) v[i] = x[i * 32 + threadIdx.x];\n    __syncthreads();\n#pragma unroll\n"
        "    for (int i = 0; i < 64; ++i) x[i * 32 + threadIdx.x] = v[63 - i] * v[i];\n}\n"
    ),
}


class Page(HTMLParser):
    """A page as a reader without eyes gets it; fails where elements are not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open, self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """See HTMLParser."""
        self.tags.append((tag, dict(attrs)))
        if tag != "meta":
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """See HTMLParser."""
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        """See HTMLParser."""
        if self._open[-1:] != ["style"]:
            self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        """Attributes of every element of that name."""
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A built project whose kernels warn, spill, and do neither; `report.json` lies beside it."""
    table = 'archs = ["sm_80", "sm_90a", "compute_80"]\noptions = { max-register-count = 32 }'
    project = make_project(tmp_path_factory.mktemp("report"), table, FILES)
    run = project.build()
    assert run.status == 0, run.output
    return project


def report(project: Project, *arguments: str) -> str:
    """What the command writes."""
    out = project.root.parent / "page"
    assert main(["report", str(project.wheel()), "-o", str(out), *arguments]) == 0
    return out.read_text("utf-8")


@pytest.mark.slow
def test_page(project: Project) -> None:
    """Every section is there, with what the wheel and its build have."""
    text = report(project, "--build-report", str(project.root.parent / "report.json"))
    found = Page(text)
    for word in (
        "CUDA kernels of demo-1.0-py3-none-any.whl", "At a glance", "Coverage", "Sizes", "Kernels", "Settings", "Build",
        "driver of CUDA 13.0", "JIT", "compute_80", "spills:heavy", "9 images: 0 cached, 9 compiled",
        "never referenced", "cuda_occupancy.h", "max-register-count", "demo/spills.cu",
    ):  # fmt: skip
        assert word in found.text, word
    assert report(project) == report(project)  # nothing in it depends on when it is made


def test_page_loads_nothing(project: Project) -> None:
    """One file: no script, no reference to anything outside of it, and a policy that forbids both."""
    text = report(project, "--against", str(project.wheel()))
    found = Page(text)
    assert {tag for tag, _ in found.tags}.isdisjoint({"script", "link", "img", "iframe", "object", "form", "base"})
    targets = [value for _, attributes in found.tags for key, value in attributes.items() if key in ("href", "src")]
    assert targets and all(target is not None and target.startswith("#") for target in targets)
    assert not [key for _, attributes in found.tags for key in attributes if key.startswith("on")]
    assert "url(" not in text and "@import" not in text
    assert any("default-src 'none'" in (meta.get("content") or "") for meta in found.all("meta"))


def test_page_for_screen_readers(project: Project) -> None:
    """Language, title, landmarks, one h1, headings without gaps, captions, scopes, named regions and drawings."""
    text = report(project, "--build-report", str(project.root.parent / "report.json"))
    found = Page(text)
    assert found.all("html") == [{"lang": "en"}]
    names = [tag for tag, _ in found.tags]
    for landmark in ("header", "nav", "main", "footer", "title", "h1"):
        assert names.count(landmark) == 1 or landmark == "title"  # drawings have titles, too
    levels = [int(tag[1]) for tag in names if re.fullmatch(r"h[1-6]", tag)]
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    assert names.count("caption") == names.count("table") > 3
    assert all(header.get("scope") in ("col", "row") for header in found.all("th"))
    regions = [found_ for found_ in found.all("div") if found_.get("role") == "region"]
    assert regions and all(region["tabindex"] == "0" and region["aria-label"] for region in regions)
    drawings = [index for index, (tag, _) in enumerate(found.tags) if tag == "svg"]
    assert len(drawings) == 2
    assert all(found.tags[i][1]["role"] == "img" and found.tags[i + 1][0] == "title" for i in drawings)
    ids = [attributes["id"] for _, attributes in found.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {str(link["href"])[1:] for link in found.all("a")} <= set(ids)


@pytest.mark.slow
def test_changes_against_an_older_build(project: Project, tmp_path: Path) -> None:
    """--against shows what changed, in the page and in Markdown."""
    other = make_project(tmp_path, 'archs = ["sm_80"]', {"demo/scale.cu": KERNEL})
    assert other.build().status == 0
    assert "Images gone or new" in Page(report(project, "--against", str(other.wheel()))).text
    text = report(project, "--against", str(other.wheel()), "--format", "markdown")
    assert "Images gone or new:" in text and "| spills | sm\\_80 | - |" in text
    assert "nothing changed" in Page(report(project, "--against", str(project.wheel()))).text


def test_markdown(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """Coverage, sizes, spills and the build, on standard output or for a FILE.md."""
    build = str(project.root.parent / "report.json")
    assert main(["report", str(project.wheel()), "--format", "markdown", "--build-report", build]) == 0
    text = capsys.readouterr().out
    for line in ("### CUDA kernels of", "| kernels | 7.5 | 8.0", "Kernels that spill:", "Build: 9 images, 0 cached"):
        assert line in text
    out = project.root.parent / "comment.md"
    assert main(["report", str(project.wheel()), "-o", str(out)]) == 0
    assert out.read_text().startswith("### CUDA kernels")


def test_json(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """--json has the facts, and equals what -o writes."""
    assert main(["report", str(project.wheel()), "--json"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert value == json.loads(report(project, "--format", "json"))
    (package,) = value["packages"]
    assert [coverage["driver"] for coverage in package["coverage"]][1:] == ["13.0", "12.9"]
    heavy = [found for found in package["kernels"] if found["kernel"] == "heavy"]
    assert heavy[0]["resources"]["spill_bytes"] > 0
    assert heavy[0]["occupancy"]["percent"] > 0
    assert package["kernels"][0] in heavy  # what spills comes first


# -- hostile, huge and broken ------------------------------------------------------------------------------------

NASTY = "</title></script><script>alert(1)</script>\"'><img src=x onerror=alert(2)>\x1b[2J\u202e&lt;"


def made_up(name: str, modules: int, kernels: int, architectures: int) -> Manifest:
    """A manifest of made-up images; `name` is part of every name."""
    archs = [Architecture(number, suffix) for suffix in ("", "a", "f") for number in (100, 103, 110, 120, 121)]
    archs = archs[:architectures] or [Architecture(80, virtual=True)]
    symbols = [f"{name}{index}" for index in range(kernels)]
    needs = Resources(
        registers=128, shared_bytes=0, local_bytes=0, stack_bytes=0, constant_bytes=0, spill_bytes=len(name)
    )
    found = [
        Module(
            name=f"{name}{index}",
            source=f"{name}{index}.cu",
            options={"std": name},
            defines={"X": name},
            include_dirs=(),
            toolkit_headers="auto",
            host_code="skip",
            name_expressions=(),
            kernels={symbol: symbol for symbol in symbols},
            images=tuple(
                Image(
                    architecture=arch,
                    file=f"{index}.{arch}",
                    size=1000 + index,
                    sha256="0" * 64,
                    entries=dict.fromkeys(symbols, None if arch.virtual else needs),
                )
                for arch in archs
            ),
        )
        for index in range(modules)
    ]
    return Manifest(package=name, release="13.5.37", modules=found, fallback=Fallback(files={}))


def summary_of(manifest: Manifest, build: dict[str, Any] | None = None) -> Summary:
    """The summary of one manifest."""
    return Summary(title=manifest.package, size=1, packages=(_summarise(manifest, None),), build=build)


def test_nothing_breaks_out(tmp_path: Path) -> None:
    """Names, options and warnings that are markup are shown as they are, wherever they stand."""
    warning = {"module": NASTY, "arch": "sm_80", "outcome": "compiled", "seconds": 1.0, "finished": 2.0, "bytes": 5}
    build = {"compiled": 1, "cached": 0, "seconds": 3.0, "images": [{**warning, "warnings": [NASTY]}]}
    summary = summary_of(made_up(NASTY, 2, 2, 2), build)
    text = page(summary)
    found = Page(text)
    assert {tag for tag, _ in found.tags}.isdisjoint({"script", "img"})
    assert "<script" not in text and "onerror=alert(2)>" not in text
    assert found.text.count("alert(1)") > 8
    assert "\x1b" not in text and "\u202e" not in text
    comment = markdown(summary)
    assert "<script" not in comment and "<img" not in comment


@given(st.text(), st.text())
def test_markup_escapes(text: str, value: str) -> None:
    """Any text at all stays text, in an element and in an attribute."""
    found = Page(f"<b>{element('i', text, title=value)}</b>")
    assert [tag for tag, _ in found.tags] == ["b", "i"]
    assert list(found.tags[1][1]) == ["title"]


@pytest.mark.slow
def test_large_package() -> None:
    """Eight thousand images with six thousand kernels: a page that stays within bounds."""
    text = page(summary_of(made_up("k", 1000, 6, 8)))
    assert len(text) < 6_000_000
    assert "850 more modules" in text and "rows are left out" in text
    assert len(markdown(summary_of(made_up("k" * 200, 100, 20, 8)))) < 65_000


@pytest.mark.parametrize("archs", [0, 1])
def test_small_packages(archs: int) -> None:
    """PTX alone, and a module without kernels, make a page too."""
    Page(page(summary_of(made_up("k", 1, archs, archs))))


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{",
        '{"schema": 2}',
        '{"schema": 1}',
        '{"schema": 1, "images": [1], "compiled": 1}',
        "\x00",
        "[" * 9999,
    ],
)
def test_bad_build_report(project: Project, tmp_path: Path, content: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What is no build report is misuse, told in a line."""
    path = tmp_path / "report.json"
    path.write_text(content)
    assert main(["report", str(project.wheel()), "--build-report", str(path)]) == 2
    assert "build report" in capsys.readouterr().err


# -- drawings ----------------------------------------------------------------------------------------------------


@given(st.lists(st.floats(1, 1e9), min_size=1, max_size=40), st.floats(10, 2000), st.floats(10, 2000))
def test_treemap(sizes: list[float], width: float, height: float) -> None:
    """Areas are as the sizes, everything lies inside, and nothing overlaps."""
    sizes.sort(reverse=True)
    boxes = squarify(sizes, Box(5, 7, width, height))
    scale = width * height / sum(sizes)
    for size, box in zip(sizes, boxes, strict=True):
        assert box.width * box.height == pytest.approx(size * scale, rel=1e-3, abs=1e-3)
        assert box.x >= 5 - 1e-6 and box.y >= 7 - 1e-6
        assert box.x + box.width <= 5 + width + 1e-3 and box.y + box.height <= 7 + height + 1e-3
    for index, one in enumerate(boxes):
        for other in boxes[index + 1 :]:
            across = min(one.x + one.width, other.x + other.width) - max(one.x, other.x)
            down = min(one.y + one.height, other.y + other.height) - max(one.y, other.y)
            assert min(across, down) < 1e-3


def test_lanes() -> None:
    """Compiles at the same time lie in different lanes, and a lane is used again."""
    assert lanes([(0, 2), (0.5, 1), (1.1, 3), (2, 4)]) == [0, 1, 1, 0]


def _luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_contrast() -> None:
    """Every pair of colours that carries text has the contrast that WCAG asks for (AA), in both schemes."""
    schemes = [dict(re.findall(r"--([\w-]+): (#\w{6})", part)) for part in STYLE.split("prefers-color-scheme")]
    assert [len(colours) for colours in schemes] == [16, 16]
    for colours in schemes:
        for ink, ground in (
            ("ink", "page"), ("ink", "panel"), ("muted", "page"), ("muted", "panel"), ("accent", "page"),
            ("cubin-ink", "cubin"), ("ptx-ink", "ptx"), ("jit-ink", "jit"), ("none-ink", "none"),
        ):  # fmt: skip
            assert _contrast(colours[ink], colours[ground]) >= 4.5, (ink, ground)
    assert all(_contrast("#ffffff", fill) >= 4.5 for fill in FILLS)
