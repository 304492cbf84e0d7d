# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""`python -m hatch_cuda_kernels` is the command line."""

from __future__ import annotations

import sys

from .cli import main

sys.exit(main())
