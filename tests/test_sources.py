# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""What a source can include: found whatever the macros say, in the compiler's order, without ever blocking."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hatch_cuda_kernels import ConfigurationError
from hatch_cuda_kernels.scanning import Include, Scan, scan_text
from hatch_cuda_kernels.sources import Closure, ProjectTree, close_over, join_label, text_problem, walk_files


def scanned(text: str | bytes) -> Scan:
    """What a text could include."""
    return scan_text(text.encode() if isinstance(text, str) else text)


def asked(text: str | bytes) -> list[str]:
    """Headers that a text asks for, in the order of the text: `"x.h"` or `<x.h>`; then its computed operands."""
    scan = scanned(text)
    quoted = [f'"{i.spelling}"' if i.quoted else f"<{i.spelling}>" for i in scan.includes]
    return [*quoted, *scan.computed]


class TestDirectives:
    @pytest.mark.parametrize(
        "text",
        [
            '#include "a.h"',
            '  #  include   "a.h"  ',
            '\t#\tinclude\t"a.h"',
            '\f#include "a.h"',
            '#include"a.h"',
            '#include "a.h" // why',
            '#include "a.h"/* why */',
            '#/**/include/**/"a.h"',
            '/* one\n two */ #include "a.h"',
            '#include \\\n "a.h"',
            '#inc\\\nlude "a\\\n.h"',
            '#include \\ \t\n"a.h"',
            '#include \\\r\n "a.h"\r\n',
            'int x;\r\n#include "a.h"\r\nint y;\r\n',
            '%:include "a.h"',
            '# %\n%: include "a.h"',
            '#import "a.h"',
            '#include_next "a.h"',
            '#embed "a.h" limit(4)',
            '#if 0\n#include "a.h"\n#endif',
            '#if __has_include("a.h")',
            '#elif defined(__has_include) && __has_include ( "a.h" )',
            '#if __has_include_next("a.h")',
            '#if __has_embed("a.h" limit(1))',
            '#include "a.h"\n#include "a.h"\n#if __has_include("a.h")\n#endif',
            "// don't\n#include \"a.h\"\n// won't",
            '#error don\'t /* x */\n#include "a.h"',
            "int x = 1'000'000; // \"\n#include \"a.h\"\nint y = 0x1'f;",
            "char c = '\"'; // x\n#include \"a.h\"\nchar d = '\"';",
            "int x = 1'0; // '/*\n#include \"a.h\"\n//*/",
            "char c = '\\''; /* ' */\n#include \"a.h\"",
            'auto s = "/*";\n#include "a.h"\nauto t = "*/";',
            'auto s = "\\"/*";\n#include "a.h"\nauto t = "*/";',
            'auto s = u8R"(/* " )";\n#include "a.h"\nauto t = "*/";',
            'auto s = R"x(\n/* )" )x";\n#include "a.h"\nauto t = "*/";',
            'auto s = FLOAT_R"(" f()"/*";\n#include "a.h"\nauto t = "*/";',
            'auto s = u8\'"\'; /* " */\n#include "a.h"',
            "float x = .5f, y = 1e5'0;\n#include \"a.h\"\nchar c = '\"';",
            '//*\n#include "a.h"\n//*/',
            '#if 1 //\\\n#include "b.h"\n#include "a.h"',
            'x #include <b//c.h> /*\n#include "a.h"',
            'int x; /* */ #include <b//c.h> /*\n#include "a.h"',
            'auto s = 1.R"(/*)"; /*\n"*/\n#include "a.h"',
        ],
    )
    def test_are_found(self, text: str) -> None:
        """A directive is found in every form that the language allows, whether or not its branch is taken."""
        assert asked(text) == ['"a.h"']

    @pytest.mark.parametrize(
        ("text", "headers"),
        [
            ("#include <a.h>", ["<a.h>"]),
            ("#include<cuda/std/cstdint>//x", ["<cuda/std/cstdint>"]),
            ("#include <a//b.h>", ["<a//b.h>"]),
            ("#include <a/*b.h>\nint x; /* */", ["<a/*b.h>"]),
            ("#include <it's.h>\n#include <b.h> // '", ["<it's.h>", "<b.h>"]),
            ('#include "a//b.h"', ['"a//b.h"']),
            ('#include "a b,c;d=e.h"', ['"a b,c;d=e.h"']),
            ('#include "\u00e4.h"', ['"\u00e4.h"']),
            ("#if __has_include(<a.h>) || __has_include(<b.h>)", ["<a.h>", "<b.h>"]),
            ('#include "a.h"\n#include <a.h>', ['"a.h"', "<a.h>"]),
        ],
    )
    def test_say_what_they_ask_for(self, text: str, headers: list[str]) -> None:
        """Quotes and angle brackets are told apart, and a name is taken as it is written."""
        assert asked(text) == headers

    @pytest.mark.parametrize(
        "text",
        [
            "",
            '// #include "a.h"',
            '/* #include "a.h" */',
            '/*\n#include "a.h"\n*/',
            '// x \\\n#include "a.h"',
            '/* \\\n#include "a.h"',
            'int x; /*\n*/ #include "a.h"',
            'int x = 1; #include "a.h"',
            'auto s = "#include \\"a.h\\"";',
            '#included "a.h"',
            '#define X #include "a.h"',
            '#pragma once\n#line 1 "a.h"',
        ],
    )
    def test_that_are_none(self, text: str) -> None:
        """Comments, strings and other directives include nothing."""
        assert asked(text) == []

    @pytest.mark.parametrize(
        ("text", "operand"),
        [
            ("#include HEADER", "HEADER"),
            ("#include HEADER // x", "HEADER"),
            ("#include STR(x.h)", "STR(x.h)"),
            ("#if __has_include(HEADER)", "HEADER"),
            ("#include <a HEADER", "<a HEADER"),
        ],
    )
    def test_that_are_computed(self, text: str, operand: str) -> None:
        """An operand that is no literal is handed on as it is."""
        assert scanned(text).computed == (operand,)

    def test_include_next(self) -> None:
        """`#include_next` asks for every match on the search path, not for the first."""
        assert scanned('#include_next <a.h>\n#include "b.h"').includes == (
            Include("a.h", False, every=True),
            Include("b.h", True),
        )

    @pytest.mark.parametrize(
        ("text", "names_file", "names_time"),
        [
            ("f(__FILE__)", True, False),
            ("assert(x > 0);", True, False),
            ("std::source_location::current()", True, False),
            ("// __FILE__ __DATE__\n", False, False),
            ("static_assert(1); my_assert(x); MY__FILE__X", False, False),
            ("__DATE__", False, True),
            ("__TIME__ __FILE__", True, True),
            ("__TIMESTAMP__", False, True),
            ("int __TIME__x, __DATE;", False, False),
        ],
    )
    def test_that_make_an_image_vary(self, text: str, names_file: bool, names_time: bool) -> None:
        """A text that can embed its own path or the time of compilation is known as such."""
        scan = scanned(text)
        assert (scan.names_file, scan.names_time) == (names_file, names_time)

    @pytest.mark.timeout(60)
    @pytest.mark.parametrize(
        "text",
        ["/*", "/", '"', "'", 'R"(', "\\", "\\ ", "#", "# ", "1'", "\n", "#include <", "#define A", "(", "//\\\n"],
    )
    def test_repetitive_text(self, text: str) -> None:
        """Text that tempts a pattern into trying everything is scanned in no time."""
        start = time.perf_counter()
        scan_text(text.encode() * 50_000)
        assert time.perf_counter() - start < 10


class TestText:
    @pytest.mark.parametrize(
        ("data", "told"),
        [
            (b"int x;\0", "a NUL byte at offset 6: the compiler would drop all that follows"),
            ("int x;".encode("utf-16"), "a NUL byte at offset 3: the compiler would drop all that follows; is it UTF"),
            ("int x;".encode("utf-16-be"), "a NUL byte at offset 0"),
            (b"int x;\rint y;\r", "a carriage return without a line feed at offset 6"),
            (b"a\r\r\n", "a carriage return without a line feed at offset 1"),
        ],
    )
    def test_that_the_compiler_would_misread(self, data: bytes, told: str) -> None:
        """What NVRTC would misread in silence is told with its offset."""
        problem = text_problem(data)
        assert problem is not None
        assert problem.startswith(told)

    @pytest.mark.parametrize("data", [b"", b"int x;\n", b"int x;\r\nint y;\r\n", b"// \xe4\n", "// \u00e4\n".encode()])
    def test_that_is_fine(self, data: bytes) -> None:
        """CRLF and Latin-1 in a comment are fine."""
        assert text_problem(data) is None


# -- closures --------------------------------------------------------------------------------------------------------


def tree(root: Path, files: dict[str, str]) -> Path:
    """A tree of files with their texts."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def close(
    root: Path, *include_dirs: str, source: str = "k.cu", defines: dict[str, str | bool] | None = None
) -> Closure:
    """A source closed over its headers."""
    return close_over(ProjectTree(root), source, include_dirs, defines=defines)


def labels(closure: Closure) -> list[str]:
    """The files of a closure, its source aside."""
    return [label for label in closure.files if label != closure.source]


class TestSearch:
    def test_alone(self, tmp_path: Path) -> None:
        """A source without directives is alone, and needs no toolkit."""
        closure = close(tree(tmp_path, {"k.cu": "int x;", "other.h": ""}))
        assert (list(closure.files), closure.external, closure.unresolved) == (["k.cu"], False, ())

    def test_quotes_look_beside_the_file_first(self, tmp_path: Path) -> None:
        """For quotes the including file's folder comes first, then the folders in order; the first match ends it."""
        files = {"src/k.cu": '#include "x.h"', "src/x.h": "", "one/x.h": "", "two/x.h": ""}
        root = tree(tmp_path, files)
        assert labels(close(root, "one", "two", source="src/k.cu")) == ["src/x.h"]
        (root / "src/x.h").unlink()
        assert labels(close(root, "one", "two", source="src/k.cu")) == ["one/x.h"]
        assert labels(close(root, "two", "one", source="src/k.cu")) == ["two/x.h"]

    def test_brackets_look_in_the_folders_alone(self, tmp_path: Path) -> None:
        """For angle brackets the including file's folder does not count."""
        root = tree(tmp_path, {"k.cu": "#include <x.h>", "x.h": "", "inc/x.h": ""})
        assert labels(close(root, "inc")) == ["inc/x.h"]
        assert labels(close(root)) == []
        assert labels(close(root, ".")) == ["x.h"]

    def test_header_beside_header(self, tmp_path: Path) -> None:
        """A header finds its neighbour, not the one of the same name beside the source."""
        files = {"k.cu": "#include <a/x.h>", "y.h": "", "inc/a/x.h": '#include "y.h"', "inc/a/y.h": ""}
        assert labels(close(tree(tmp_path, files), "inc")) == ["inc/a/x.h", "inc/a/y.h"]

    def test_up_and_down(self, tmp_path: Path) -> None:
        """`../` is followed, above the root too, and one file has one label however it is reached."""
        files = {
            "p/src/k.cu": '#include "../inc/x.h"\n#include "../../common/y.h"\n#include <./z/../x.h>',
            "p/inc/x.h": '#include "../src/./k.cu"',
            "common/y.h": '#include "z.h"',
            "common/z.h": "",
        }
        root = tree(tmp_path, files)
        closure = close(root / "p", "inc", source="src/k.cu")
        assert labels(closure) == ["../common/y.h", "../common/z.h", "inc/x.h"]

    def test_rings_and_chains(self, tmp_path: Path) -> None:
        """Headers that include each other, and long chains, end."""
        chain = {f"h{i}.h": f'#include "h{i + 1}.h"' for i in range(300)}
        last = '#include "h0.h"\n#include "k.cu"'
        closure = close(tree(tmp_path, {"k.cu": '#include "h0.h"', **chain, "h300.h": last}))
        assert len(labels(closure)) == 301

    def test_any_ending(self, tmp_path: Path) -> None:
        """A header may be called anything; `__has_include` asks like an include."""
        files = {"k.cu": '#include "a.inl"\n#include "b.inc"\n#include "c"\n#if __has_include("d.h")\n#endif'}
        closure = close(tree(tmp_path, {**files, "a.inl": "", "b.inc": "", "c": "", "d.h": ""}))
        assert labels(closure) == ["a.inl", "b.inc", "c", "d.h"]

    def test_include_next(self, tmp_path: Path) -> None:
        """`#include_next` takes every match along the path, and the toolkit may have one more."""
        files = {"k.cu": "#include <x.h>", "one/x.h": "#include_next <x.h>", "two/x.h": "", "three/x.h": ""}
        closure = close(tree(tmp_path, files), "one", "two", "three")
        assert labels(closure) == ["one/x.h", "three/x.h", "two/x.h"]
        assert closure.external

    def test_pre_includes(self, tmp_path: Path) -> None:
        """A file that an option includes belongs to the source."""
        root = tree(tmp_path, {"k.cu": "", "pre.h": '#include "more.h"', "more.h": ""})
        closure = close_over(ProjectTree(root), "k.cu", [], pre_includes=["pre.h", "cuda_fp16.h"])
        assert (labels(closure), closure.external) == (["more.h", "pre.h"], True)

    def test_what_is_not_in_the_project(self, tmp_path: Path) -> None:
        """A directive that finds nothing is left to the toolkit; in quotes it is remembered with its file."""
        root = tree(tmp_path, {"k.cu": '#include <cuda_fp16.h>\n#include "x.h"', "x.h": '#include "gone.h"'})
        closure = close(root)
        assert (labels(closure), closure.external, closure.unresolved) == (["x.h"], True, (("x.h", "gone.h"),))
        (root / "x.h").write_text("")
        (root / "k.cu").write_text('#include "x.h"')
        assert not close(root).external

    def test_absolute_names_are_no_project_files(self, tmp_path: Path) -> None:
        """An absolute name is never read from here: its content would escape every key."""
        root = tree(tmp_path, {"k.cu": f'#include "{tmp_path.as_posix()}/x.h"\n#include "C:/x.h"', "x.h": ""})
        assert (labels(close(root)), close(root).external) == ([], True)
        assert join_label("src", "/x.h") is join_label("src", "c:x.h") is join_label("src", "a\0") is None
        assert join_label("src", "../x.h") == "x.h"
        assert join_label("", "../x.h") == "../x.h"

    def test_no_source(self, tmp_path: Path) -> None:
        """A source that is not there is an error; a folder is none."""
        (tmp_path / "k.cu").mkdir()
        with pytest.raises(ConfigurationError, match=r"k\.cu: no such file"):
            close(tmp_path)

    def test_facts_of_all_files(self, tmp_path: Path) -> None:
        """A header's own `__FILE__` and `__TIME__` count as the source's."""
        closure = close(tree(tmp_path, {"k.cu": '#include "x.h"', "x.h": "__FILE__ __TIME__"}))
        assert (closure.names_file, closure.names_time) == (True, ["x.h"])

    def test_byte_order_mark(self, tmp_path: Path) -> None:
        """A UTF-8 byte order mark, which NVRTC refuses, is dropped and hides no directive."""
        tree(tmp_path, {"k.cu": '\ufeff#include "x.h"', "x.h": '\ufeff#include "y.h"', "y.h": ""})
        closure = close(tmp_path)
        assert labels(closure) == ["x.h", "y.h"]
        assert closure.files["x.h"].data == b'#include "y.h"'
        plain = close(tree(tmp_path / "plain", {"k.cu": '#include "x.h"', "x.h": '#include "y.h"', "y.h": ""}))
        assert closure.files["k.cu"].sha256 == plain.files["k.cu"].sha256

    def test_white_space_before_the_end_of_a_line(self, tmp_path: Path) -> None:
        """A line goes on after a backslash and white space, as with nvcc; not where there may be a raw string."""
        loose, raw = '#define A 1 + \\ \t\r\n 2\n// C:\\dir\\ \n#include "x.h"\n', 'R"(\\ \n)"\n'
        closure = close(tree(tmp_path, {"k.cu": loose}))
        assert closure.files["k.cu"].data == b'#define A 1 + \\\r\n 2\n// C:\\dir\\\n#include "x.h"\n'
        assert not labels(closure)
        assert (
            close(tree(tmp_path / "raw", {"k.cu": loose.replace("x.h", "k.cu") + raw}))
            .files["k.cu"]
            .data.endswith(raw.encode())
        )


FILES = {"inc/a.h": "", "inc/b.h": "", "inc/deep/c.h": "", "elsewhere/d.h": "", "e.h": ""}


class TestComputedIncludes:
    def closed(self, root: Path, text: str, /, **defines: str | bool) -> tuple[list[str], bool]:
        """(headers, whether the toolkit has to be at hand)"""
        closure = close(tree(root, {"src/k.cu": text, **FILES}), "inc", source="src/k.cu", defines=defines)
        return labels(closure), closure.external

    @pytest.mark.parametrize(
        ("text", "headers"),
        [
            ('#define H "a.h"\n#include H', ["inc/a.h"]),
            ("#define H <a.h> // x\n#include H", ["inc/a.h"]),
            ('#define H \\\n  "a.h"\r\n#include H\r\n', ["inc/a.h"]),
            ('#if X\n#define H "a.h"\n#else\n#define H "b.h"\n#endif\n#include H', ["inc/a.h", "inc/b.h"]),
            ('#define G "a.h"\n#define H G\n#if __has_include(H)\n#include H\n#endif', ["inc/a.h"]),
            ('%: define H "a.h"\n%: include H', ["inc/a.h"]),
            ("#define LIB(x) <x>\n#include LIB(a.h)", ["inc/a.h"]),
            ("#define LIB( name ) <deep/name> // x\n#define H LIB( c.h )\n#include H", ["inc/deep/c.h"]),
            ("#if X\n#define L(x) <a.h>\n#else\n#define L(x) <x>\n#endif\n#include L(b.h)", ["inc/a.h", "inc/b.h"]),
        ],
    )
    def test_of_macros_that_stand_for_names(self, tmp_path: Path, text: str, headers: list[str]) -> None:
        """A macro that only ever stands for names means exactly those."""
        assert self.closed(tmp_path, text) == (headers, False)

    def test_of_a_macro_that_a_header_defines(self, tmp_path: Path) -> None:
        """The macro may be defined in a file that another computed include brings."""
        text = '#define FIRST "first.h"\n#include FIRST\n#include SECOND'
        tree(tmp_path, {"inc/first.h": '#define SECOND "b.h"'})
        assert "inc/b.h" in self.closed(tmp_path, text)[0]

    def test_what_they_can_stand_for_is_told(self, tmp_path: Path) -> None:
        """Of each file, all that its includes by macros can stand for; where one of them is not known, nothing."""
        text = '#include H\n#include "one.h"\n#include "two.h"\n'
        files = {
            "one.h": "#define H <a.h>\n#include L(b.h)\n#include <c.h>\n#include H\n",
            "two.h": '#define H "b.h"\n#define L(x) <x>\n#include __UNKNOWN\n#include H\n',
        }
        closure = close(tree(tmp_path, {"k.cu": text, **files}), source="k.cu")
        told = {label: sorted(include.spelling for include in found) for label, found in closure.computed.items()}
        assert told == {"k.cu": ["a.h", "b.h"], "one.h": ["a.h", "b.h", "b.h"]}

    def test_of_a_macro_that_nothing_defines(self, tmp_path: Path) -> None:
        """A place for plugins of others reads nothing; a macro that a compiler or CUDA may define, anything."""
        text = "#ifdef %s\n#include %s\n#endif\n"
        assert self.closed(tmp_path, text % ("PLUGIN", "PLUGIN")) == ([], False)
        assert self.closed(tmp_path, text % ("PLUGIN", "PLUGIN"), PLUGIN='"a.h"') == (["inc/a.h"], False)
        for name in ("__HEADER", "THRUST_HEADER", "LIST(PLUGIN)"):
            assert len(self.closed(tmp_path, text % ("PLUGIN", name))[0]) > 2

    def test_of_a_macro_from_the_table(self, tmp_path: Path) -> None:
        """A macro of `defines` counts, beside what the text may define."""
        assert self.closed(tmp_path, "#include H", H='"a.h"') == (["inc/a.h"], False)
        text = '#ifndef H\n#define H "b.h"\n#endif\n#include H'
        assert self.closed(tmp_path, text, H="<a.h>") == (["inc/a.h", "inc/b.h"], False)

    @pytest.mark.parametrize(
        "text",
        [
            "#define STR(x) #x\n#define H STR(a.h)\n#include H",
            "#define STR(x) #x\n#include STR(a.h)",
            "#include __H",
            "#define H\n#include H",
            "#define H H\n#include H",
            '#define H PREFIX "a.h"\n#include H',
            '#define H(x) "a.h"\n#include H(1)',
            '#define H(x) "x"\n#include H(a.h)',
            "#define a b\n#define L(x) <x>\n#include L(a.h)",
            "#define L(...) <__VA_ARGS__>\n#include L(a.h)",
            "#if X\n#define L(x) <x>\n#else\n#define L(x, y) <y>\n#endif\n#include L(a.h)",
            "#if X\n#define L(x) <x>\n#else\n#define L <b.h>\n#endif\n#include L(a.h)",
            "#define M(x) x\n#define L(x) M(<x>)\n#include L(a.h)",
            "#define L(x) <x.h>\n#include L(a b)",
            "#if __has_include(STR(a.h))\n#endif",
        ],
    )
    def test_of_anything_else(self, tmp_path: Path, text: str) -> None:
        """Where it cannot be told, everything on the search path is taken, and the toolkit may be meant too."""
        assert self.closed(tmp_path, text) == (["inc/a.h", "inc/b.h", "inc/deep/c.h"], True)

    def test_of_a_bare_macro_from_the_table(self, tmp_path: Path) -> None:
        """A macro that is only defined stands for no name."""
        assert len(self.closed(tmp_path, "#include H", H=True)[0]) == 3

    def test_beside_a_source_at_the_root(self, tmp_path: Path) -> None:
        """Beside a source at the root, everything is the whole project."""
        assert labels(close(tree(tmp_path, {"k.cu": "#include __H", **FILES}))) == sorted(FILES)

    def test_of_too_many_files(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Beyond a bound it is an error that names the directive and the ways out."""
        monkeypatch.setattr("hatch_cuda_kernels.sources._MAX_COMPUTED", 3)
        with pytest.raises(ConfigurationError, match=r"src/k\.cu: cannot tell what `#include __H` may read, .* narrow"):
            self.closed(tmp_path, "#include __H")


@contextmanager
def ordinary_user() -> Iterator[None]:
    """Without the superuser's right to read everything."""
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX files")
@pytest.mark.timeout(10)
class TestFilesThatAreNone:
    """A header or a source that cannot be read as a file ends in an error at once: nothing blocks."""

    @pytest.mark.parametrize("name", ["k.cu", "x.h"])
    @pytest.mark.parametrize(
        ("kind", "told"),
        [
            ("fifo", "is not a regular file"),
            ("device", "is not a regular file"),
            ("socket", "cannot be read ("),
            ("loop", "cannot be read ("),
            ("unreadable", "cannot be read (Permission denied)"),
        ],
    )
    def test_never_block(self, tmp_path: Path, kind: str, told: str, name: str) -> None:
        """A FIFO, a device, a socket, a ring of links and a forbidden file are errors that name the file."""
        tree(tmp_path, {"k.cu": '#include "x.h"', "x.h": ""})
        path = tmp_path / name
        path.unlink()
        if kind == "fifo":
            os.mkfifo(path)
        elif kind == "device":
            path.symlink_to("/dev/zero")
        elif kind == "loop":
            path.symlink_to(path.name)
        elif kind == "socket":
            here = os.getcwd()
            os.chdir(tmp_path)  # a socket's path is short
            try:
                with socket.socket(socket.AF_UNIX) as server:
                    server.bind(name)
            finally:
                os.chdir(here)
        files = ProjectTree(tmp_path)
        if kind == "unreadable":
            path.write_text("")
            path.chmod(0)
            if name == "x.h":
                files.open("k.cu")
            with ordinary_user(), pytest.raises(ConfigurationError) as caught:
                close_over(files, "k.cu", [])
        else:
            with pytest.raises(ConfigurationError) as caught:
                close_over(files, "k.cu", [])
        assert str(caught.value).startswith(f"{name}: {told}")

    def test_folders_and_gaps_are_passed_over(self, tmp_path: Path) -> None:
        """A folder of the header's name, or a file where a folder should be, is no match: the search goes on."""
        text = '#include "x.h"\n#include "f/y.h"'
        tree(tmp_path, {"k.cu": text, "x.h/z": "", "f": "", "inc/x.h": "", "inc/f/y.h": ""})
        assert labels(close(tmp_path, "inc")) == ["inc/f/y.h", "inc/x.h"]

    def test_a_link_to_a_file_is_a_file(self, tmp_path: Path) -> None:
        """A link is read; one that leads nowhere is no match."""
        tree(tmp_path, {"k.cu": '#include "x.h"\n#include "gone.h"', "real.h": "int real;"})
        (tmp_path / "x.h").symlink_to("real.h")
        (tmp_path / "gone.h").symlink_to("nowhere.h")
        closure = close(tmp_path)
        assert closure.files["x.h"].data == b"int real;"
        assert closure.unresolved == (("k.cu", "gone.h"),)

    def test_everything_with_a_ring_of_folders(self, tmp_path: Path) -> None:
        """A computed include over folders that link to each other ends."""
        tree(tmp_path, {"k.cu": "#include __H", "a/x.h": ""})
        (tmp_path / "a/up").symlink_to("..", target_is_directory=True)
        assert labels(close(tmp_path)) == ["a/x.h"]

    def test_a_name_that_is_not_utf_8(self, tmp_path: Path) -> None:
        """A header whose name is no text cannot stand in a manifest, and is told as such."""
        (tmp_path / "k.cu").write_bytes(b'#include "\xe4.h"')
        try:
            Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xe4.h")).touch()
        except OSError:
            pytest.skip("this file system has only names in UTF-8")
        with pytest.raises(ConfigurationError, match="the file's name is not UTF-8; rename it"):
            close(tmp_path)


def test_a_file_is_read_once(tmp_path: Path) -> None:
    """What was hashed is what is compiled: a file that changes in between is not read again."""
    files = ProjectTree(tree(tmp_path, {"k.cu": "int one;"}))
    first = files.open("k.cu")
    (tmp_path / "k.cu").write_text("int two;")
    assert files.open("k.cu") is first
    assert close_over(files, "k.cu", []).files["k.cu"].data == b"int one;"


def test_walk_is_sorted_and_skips_what_is_hidden(tmp_path: Path) -> None:
    """Walks come in one order on every system; hidden folders and caches are left out."""
    tree(tmp_path, {"b/x": "", "a/y": "", "c": "", ".git/z": "", "b/__pycache__/q": "", "a/.h": ""})
    assert list(walk_files(tmp_path)) == ["c", "a/.h", "a/y", "b/x"]
    assert list(walk_files(tmp_path / "gone")) == []
