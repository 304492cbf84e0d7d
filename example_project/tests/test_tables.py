# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0

"""Plain text tables."""

from __future__ import annotations

from mandelscope.tables import table


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert table(["a", "long"], [["wide", "b"], ["c", ""]]).splitlines() == [
        "a     long",
        "----  ----",
        "wide  b",
        "c",
    ]
