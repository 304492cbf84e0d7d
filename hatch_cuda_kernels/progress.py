# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""How far a build is: one line that moves on a terminal, one line for each image elsewhere."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable
from typing import TextIO

__all__ = ["Progress", "is_live"]

_BEAT = 0.5
"""Seconds after which the line is drawn anew, so that a long compile is seen to go on."""


def is_live(stream: TextIO | None) -> bool:
    """Whether a stream is a terminal that can draw over a line; None stands for one that was closed ahead of Python."""
    return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"


class Progress:
    """The images of one build, as they are done.

    `display` prints a plain line; `live` is the terminal to draw on instead, or None. Whatever else is printed has to
    be preceded by `clear`.
    """

    def __init__(self, prefix: str, display: Callable[[str], None], live: TextIO | None) -> None:
        self._prefix, self._display, self._live = prefix, display, live
        self._lock = threading.Lock()
        self._start = 0.0
        self._line: str | None = None
        self._ticker: threading.Thread | None = None
        self._ended = threading.Event()

    def step(self, done: int, total: int, what: str) -> None:
        """`done` of `total` images are there; `what` says which one came last. The first call may have none."""
        if self._live is None:
            if what:
                self._display(f"{self._prefix}: [{done}/{total}] {what}")
            return
        with self._lock:
            self._line = f"[{done}/{total}] {{elapsed}}  {what}"
            if self._ticker is None:
                self._start = time.monotonic()
                self._ended.clear()
                self._ticker = threading.Thread(target=self._tick, daemon=True)
                self._ticker.start()
            self._draw()

    def clear(self) -> None:
        """Take the moving line away."""
        with self._lock:
            ticker, self._ticker, self._line = self._ticker, None, None
            self._ended.set()
            if ticker is not None:
                self._write("\r\x1b[K")
        if ticker is not None:
            ticker.join()

    def _tick(self) -> None:
        while not self._ended.wait(_BEAT):
            with self._lock:
                self._draw()

    def _draw(self) -> None:
        if self._line is not None:
            elapsed = f"{time.monotonic() - self._start:.0f} s"
            text = f"{self._prefix}: {self._line.replace('{elapsed}', elapsed, 1)}"
            self._write(f"\r{text[: shutil.get_terminal_size().columns - 1]}\x1b[K")

    def _write(self, text: str) -> None:
        if self._live is not None:
            self._live.write(text)
            self._live.flush()
