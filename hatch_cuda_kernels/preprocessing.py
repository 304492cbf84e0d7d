# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The files of a job with what NVRTC's own preprocessor makes of their macros, where nothing else could tell.

What it tells is of one compile, with its architecture and its macros; so are the files that are made of it, which are
compiled and never kept.
"""

from __future__ import annotations

from collections.abc import Mapping

from .hostcode import Includes, Inquiry, Surroundings
from .nvrtc import Shown, Workspace, front_end_log
from .plan import CompileJob

__all__ = ["preprocessed"]


def preprocessed(
    job: CompileJob,
    space: Workspace,
    texts: Mapping[str, bytes],
    around: Surroundings,
    own: Includes,
    ahead: bytes,
) -> dict[str, bytes] | None:
    """`texts` with uses of macros expanded, and without arms of conditionals that the job does not take; None where
    nothing is told. `ahead` is what is read before them."""
    inquiry = Inquiry(texts, around, own, job.unit.closure.source)
    if not inquiry.possible:
        return None
    while not inquiry.is_answered:
        shown = Shown(inquiry.questions(), inquiry.prelude + ahead)
        if not inquiry.heed(front_end_log(job, space, shown, all_device=False)):
            return None
    answered = inquiry.answered()
    return None if answered == texts else answered
