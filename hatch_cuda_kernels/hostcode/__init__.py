# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Host code in a source is passed over: what NVRTC refuses and no kernel can reach is blanked out.

nvcc compiles a `.cu` twice, for the host and for the device; NVRTC takes device code only. This package makes the
second out of the first. A text keeps its shape: what goes becomes white space, line ends and preprocessor directives
stay, so that every other token keeps its line and column. A declaration that carries an execution or memory space
stays as it is, and what is not understood stays as well, for the compiler to judge.

The way of the data: `tokens` -> `brackets` -> `declarations` of a file, and `surroundings` of all files ->
`expansion` of what macros declare, by the `definitions` in force, those that `lists` in files of their own use among
them -> `verdicts` about each declaration -> `passing` -> `editing`. `prelude` is what
nvcc gives unasked. `launches` tells which kernels host code starts; `sites` -> `meanings` -> `mentions`, which
instances of templates it asks for. All of it is a function of the files' texts, without headers and without a table
of types, so that unknown macros do it no harm. `probing` lets the compiler tell the instances that a text does not:
those whose arguments a launch deduces; `hosttypes`, `tensortypes` and `strangers` declare for it what libraries of
the host have, as far as that is known, and as anything where it is not. `units` -> `reach` tell what no kernel can
reach, over all files, where the first text is refused; `parts` -> `shells`, what is left of classes of which only
members are named; `pasting`, what names `##` can make; `instantiating`, which macros only instantiate classes. `asking`
lets the compiler tell what the text of a macro is, and which arms of conditionals there are, where a file is refused
otherwise: not of what hangs on a difference of the compilers (`dependence`); of files that are included again and
again, for each include (`inclusions`); `spelling` reads what it says. `settling` has the last resort for what cannot be
told from the text, such as a type
that only a header of the host declares: it goes by the compiler's own messages (`complaints`), and so do questions
that only such a header answers (`conditionals`). `uncovering` finds what
may not go, since a name would then mean another thing; `calls` tells it what code asks of functions that it cannot
call. `choices` and `standard` find what means another thing to nvcc, and `choices` takes the arms that are nvcc's for
certain; `hidden`, on what conditions there are kernels; `fragments`, which files are parts of something.

Every change of what `pass_over`, `with_lists`, `settle`, `mentions`, `prelude`, `Inquiry` or `make_probe` give raises
PASSING_VERSION in plan.py.
"""

from __future__ import annotations

from .asking import NOT_TAKEN, Inquiry
from .choices import Uses, as_nvcc_chooses, host_choices
from .complaints import NAME_MAP, complaints
from .declarations import device_functions, global_variables
from .dependence import derived_macros
from .fragments import Includes, mark_fragments
from .hidden import Condition, conditions_of_kernels
from .launches import Launch
from .lists import with_lists
from .mentions import Mention, has_made_kernels, may_define, mentions
from .names import CUSTOMIZATIONS, HOST_HEADERS, HOST_LIBRARIES
from .passing import PassedOver, Passing, pass_over
from .prelude import INTEGER_POWER, prelude
from .probing import Instance, Probe, as_nvcc_sees, make_probe
from .settling import Settled, settle
from .standard import other_layouts
from .surroundings import Surroundings
from .tokens import INCLUDE
from .uncovering import demanding, uncovering

__all__ = [
    "CUSTOMIZATIONS",
    "HOST_HEADERS",
    "HOST_LIBRARIES",
    "INCLUDE",
    "INTEGER_POWER",
    "NAME_MAP",
    "NOT_TAKEN",
    "Condition",
    "Includes",
    "Inquiry",
    "Instance",
    "Launch",
    "Mention",
    "PassedOver",
    "Passing",
    "Probe",
    "Settled",
    "Surroundings",
    "Uses",
    "as_nvcc_chooses",
    "as_nvcc_sees",
    "complaints",
    "conditions_of_kernels",
    "demanding",
    "derived_macros",
    "device_functions",
    "global_variables",
    "has_made_kernels",
    "host_choices",
    "make_probe",
    "mark_fragments",
    "may_define",
    "mentions",
    "other_layouts",
    "pass_over",
    "prelude",
    "settle",
    "uncovering",
    "with_lists",
]
