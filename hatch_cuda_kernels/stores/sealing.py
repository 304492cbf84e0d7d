# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""A seal at the end of an entry: the digest of its key and its bytes, and a signature where there is a secret.

It stands behind the bytes, as a comment, so that NVIDIA's tools still read an image.
"""

from __future__ import annotations

import hashlib
import hmac
import re

__all__ = ["SECRET_VARIABLE", "DamagedError", "add_seal", "check_seal"]

SECRET_VARIABLE = "HATCH_CUDA_KERNELS_CACHE_SECRET"

_UNSIGNED = b"-" * 64
_SEAL = re.compile(rb"\n//hatch-cuda-kernels 1 ([0-9a-f]{64}) ([0-9a-f]{64}|-{64})\n")
_LENGTH = len(b"\n//hatch-cuda-kernels 1 ") + 64 + 1 + 64 + 1


class DamagedError(ValueError):
    """An entry is not what was stored there."""


def add_seal(key: bytes, data: bytes, secret: bytes | None) -> bytes:
    """An entry as it is kept."""
    digest = _digest(key, data)
    signature = _signature(digest, secret) if secret else _UNSIGNED
    return data + b"\n//hatch-cuda-kernels 1 " + digest + b" " + signature + b"\n"


def check_seal(key: bytes, entry: bytes, secret: bytes | None) -> bytes:
    """The bytes of an entry. Raises DamagedError, also for an unsigned one where there is a secret."""
    match = _SEAL.fullmatch(entry[-_LENGTH:]) if len(entry) >= _LENGTH else None
    data = entry[:-_LENGTH]
    if match is None or match[1] != _digest(key, data):
        raise DamagedError("an entry fails its digest")
    if secret and not hmac.compare_digest(match[2], _signature(match[1], secret)):
        raise DamagedError(f"an entry is not signed with the secret in {SECRET_VARIABLE}")
    return data


def _digest(key: bytes, data: bytes) -> bytes:
    state = hashlib.sha256(b"hatch-cuda-kernels entry\0" + len(key).to_bytes(8, "big") + key)
    state.update(data)
    return state.hexdigest().encode()


def _signature(digest: bytes, secret: bytes) -> bytes:
    return hmac.new(secret, b"hatch-cuda-kernels entry " + digest, "sha256").hexdigest().encode()
