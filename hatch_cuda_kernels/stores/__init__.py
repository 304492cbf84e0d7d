# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Places that keep bytes by key: what the cache of images is made of. None of them knows what it keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .layered import LayeredStore

__all__ = ["program_cache"]


def program_cache(*places: Any, max_size: int | None = None) -> LayeredStore:
    """A cache for `Program.compile(cache=...)` at one or several places, the first of them asked first.

    A place is spelled as in the option `cache` of the hook table, or is any `ProgramCacheResource`, such as cuda.core's
    own; none is the user cache directory. `max_size` caps each folder and database, in bytes. Raises ValueError for a
    spelling that means nothing.
    """
    from cuda.core.utils import ProgramCacheResource

    from .base import Store
    from .layered import LayeredStore
    from .layers import Layer
    from .location import parse_locations
    from .opening import open_layers

    ProgramCacheResource.register(Store)
    layers: list[Layer] = []
    for place in places:
        if isinstance(place, str):
            layers += open_layers(parse_locations([place]), max_size=max_size, alone=True)
        elif isinstance(place, ProgramCacheResource):
            layers.append(Layer(place))
        else:
            raise TypeError(f"a place is a str or a ProgramCacheResource, not {type(place).__name__}")
    return LayeredStore(layers if places else open_layers(None, max_size=max_size))
