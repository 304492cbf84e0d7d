# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Places that keep bytes by key: what the cache of images is made of. None of them knows what it keeps."""
