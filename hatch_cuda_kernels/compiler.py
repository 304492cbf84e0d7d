# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""A job compiled: as its files are written, or else with their host code passed over; and linked, where it has parts.

What most jobs do without is imported by those that need it: the fallback compiles while an app waits.
"""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING

from .caveats import caveats
from .errors import CompilationError
from .nvrtc import AS_WRITTEN, RefusalError, Workspace, compile_shown, path_warning
from .outcome import NoKernelError
from .plan import CompiledImage, CompileJob

if TYPE_CHECKING:
    from .precompiled import Precompiled

__all__ = ["compile_job"]


def compile_job(job: CompileJob, space: Workspace, precompiled: Precompiled | None = None) -> CompiledImage:
    """Compile one job, with the prefix that it shares with others if one is given, and link it where it has several
    sources.

    A source that NVRTC refuses is compiled again with its host code passed over, unless `host-code` is "error".

    Raises CompilationError where NVRTC refuses the source or the image is not what was asked for, ToolchainError
    where NVRTC is missing or is not the release that the job names.
    """
    unit = job.unit
    if unit.parts:
        from .linker import link

        image = link(job, [compile_job(dataclasses.replace(job, unit=part), space) for part in unit.parts])
        if os.fsencode(space.path) in image.data:
            image = dataclasses.replace(image, warnings=tuple(dict.fromkeys([*image.warnings, path_warning(job)])))
        return image
    if unit.host_code == "error":
        from .reduction import refuse_host_code

        refuse_host_code(job)
    try:
        shared = precompiled.compile(job) if precompiled is not None else None
        image = shared or compile_shown(job, space, AS_WRITTEN)
    except NoKernelError as error:
        from .reduction import compile_asked

        return compile_asked(job, space, error)
    except RefusalError as refusal:
        from .reduction import compile_passing, refuse_host_code

        if unit.host_code == "error":
            refuse_host_code(job, refusal)
            raise CompilationError(str(refusal)) from None
        return compile_passing(job, space, refusal)
    if b"<<<" in unit.closure.files[unit.source].data and unit.host_code != "error":
        from .reduction import compile_asked

        return compile_asked(job, space, image)
    texts = {label: unit.closure.files[label].data for label in image.reads.files}
    warnings = caveats(job, texts, as_written=True)
    return dataclasses.replace(image, warnings=(*image.warnings, *warnings))
