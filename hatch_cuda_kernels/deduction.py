# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The instances whose arguments a launch deduces: the compiler is asked for them before the job is compiled."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from .hostcode import PassedOver, Surroundings, make_probe, prelude
from .installed import is_of_library
from .instances import Instances
from .nvrtc import Shown, Workspace, front_end_log
from .plan import CompileJob
from .standins import AS_NVCC, declares_others

__all__ = ["deduce"]

_OPTIONS = frozenset("std builtin-move-forward builtin-initializer-list device-int128 device-float128".split())
"""Options that decide what a text means; others could silence what the compiler tells."""
_TRIES = 4


def deduce(
    job: CompileJob,
    space: Workspace,
    asked: Instances,
    around: Surroundings,
    passed: Mapping[str, PassedOver],
    *,
    as_written: bool = False,
) -> Instances:
    """`asked` with all that the compiler tells; `passed` are the job's files as they are passed over.

    What the compiler does not know of the host is declared, and it is asked again.
    """
    unit = job.unit
    libraries = {label: found.data for label, found in passed.items() if is_of_library(label)}
    files = {label: file.data for label, file in unit.closure.files.items() if label not in libraries}
    probe = make_probe(files, around, {label: passed[label].passed for label in files}, libraries)
    first = b"" if as_written else AS_NVCC
    ahead = prelude(dataclasses.replace(found, data=files.get(label, found.data)) for label, found in passed.items())
    options = {name: value for name, value in unit.options.items() if name in _OPTIONS}
    plain = dataclasses.replace(job, unit=dataclasses.replace(unit, options=options))
    for _ in range(_TRIES):
        log = front_end_log(plain, space, Shown(probe.texts, first + ahead + probe.prelude))
        if first and declares_others(log):
            first = b""
            log = front_end_log(plain, space, Shown(probe.texts, ahead + probe.prelude))
        probe.heed(log)
        if not probe.goes_on:
            break
    return asked.told(probe)
