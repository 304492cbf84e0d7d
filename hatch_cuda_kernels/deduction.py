# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The instances whose arguments a launch deduces: the compiler is asked for them before the job is compiled."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from .hostcode import PassedOver, Surroundings, make_probe, prelude
from .instances import Instances
from .nvrtc import Shown, Workspace, front_end_log
from .plan import CompileJob

__all__ = ["deduce"]

_OPTIONS = frozenset("std builtin-move-forward builtin-initializer-list device-int128 device-float128".split())
"""Options that decide what a text means; others could silence what the compiler tells."""


def deduce(
    job: CompileJob, space: Workspace, asked: Instances, around: Surroundings, passed: Mapping[str, PassedOver]
) -> Instances:
    """`asked` with all that the compiler tells; `passed` are the job's files as they are passed over."""
    unit = job.unit
    texts = {label: file.data for label, file in unit.closure.files.items()}
    absent = {label: {p.line for p in found.passed if p.kind == "include"} for label, found in passed.items()}
    probe = make_probe(texts, around, absent)
    whole = [dataclasses.replace(found, data=texts[label]) for label, found in passed.items()]
    options = {name: value for name, value in unit.options.items() if name in _OPTIONS}
    plain = dataclasses.replace(job, unit=dataclasses.replace(unit, options=options))
    log = front_end_log(plain, space, Shown(probe.texts, prelude(whole) + probe.prelude))
    return asked.told(probe.instances(log), everything=probe.is_complete(log))
