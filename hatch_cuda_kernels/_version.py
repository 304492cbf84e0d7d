# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The one place of the version."""

__all__ = ["__version__"]

__version__ = "0.1.0"
