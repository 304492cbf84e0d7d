# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""From the spelling of places to layers that work: what cannot be opened is one warning, and left out."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable
from pathlib import Path

from ..errors import first_line, warn_once
from .base import Store
from .directory import DirectoryStore
from .files import POSIX
from .layers import Layer
from .location import Location
from .sealing import SECRET_VARIABLE
from .state import State

__all__ = ["CACHE_VARIABLE", "default_directory", "open_layers", "state_of"]

CACHE_VARIABLE = "HATCH_CUDA_KERNELS_CACHE"

_LOGIN = ("AWS_", "AZURE_", "GOOGLE_", "STORAGE_EMULATOR_HOST")


def default_directory() -> Path | None:
    """The user cache directory of this package; None, with a warning, where the user has no usable home."""
    import platformdirs

    if POSIX:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~")
        if not os.path.isabs(base) or base == "/" or not (os.environ.get("XDG_CACHE_HOME") or Path(base).is_dir()):
            warn_once(f"no compile cache: {base!r} is no home for one; set {CACHE_VARIABLE} to a folder, or to 0")
            return None
    return Path(platformdirs.user_cache_dir("hatch-cuda-kernels", appauthor=False))


def open_layers(
    locations: Iterable[Location] | None, *, max_size: int | None = None, alone: bool = False
) -> list[Layer]:
    """A layer for each place that can be opened; None: the user cache directory, which also stands before places that
    are all on other machines, unless they are to stand `alone`. `max_size` caps each place on a disk of this one."""
    places = [(place, True) for place in locations or ()]
    if all(place.remote for place, _ in places) and not (places and alone):
        directory = default_directory()
        if directory is not None:
            places.insert(0, (Location("directory", str(directory)), False))
    opened = [_layer(place, max_size, asked) for place, asked in places]
    return [layer for layer in opened if layer is not None]


def state_of(layers: Iterable[Layer]) -> State | None:
    """Where processes that share these layers meet: in the first folder or beside the first database to write to."""
    for layer in layers:
        store = layer.store
        if layer.writable and isinstance(store, DirectoryStore):
            return State(store.directory, private=store.private, make=store.make_folders)
        from .database import DatabaseStore

        if layer.writable and isinstance(store, DatabaseStore):
            return State(store.state, private=False, make=functools.partial(_make, store.state))
    return None


def _make(*folders: Path) -> None:
    for folder in folders:
        folder.mkdir(mode=0o700, exist_ok=True)


def _layer(place: Location, max_size: int | None, asked: bool) -> Layer | None:
    try:
        if place.remote:
            login = frozenset(item for item in os.environ.items() if item[0].startswith(_LOGIN))
            return _remote_layer(place, os.environ.get(SECRET_VARIABLE, ""), login, os.getpid())
        return Layer(_open(place, max_size, asked=asked), writable=place.writable)
    except ImportError as error:
        extra = f"hatch-cuda-kernels[{place.extra}]" if place.remote else ""
        hint = f"; `pip install '{extra}'`, or name {extra} among the build requirements" if extra else ""
        warn_once(f"the compile cache at {place} needs a library that is missing ({error}); going on without it{hint}")
    except Exception as error:  # whatever a library or a file system raises, the work goes on without it
        reason = error.strerror if isinstance(error, OSError) and error.strerror else first_line(error)
        warn_once(f"the compile cache at {place} cannot be opened ({reason}); going on without it")
    return None


@functools.lru_cache(maxsize=16)
def _remote_layer(place: Location, secret: str, login: frozenset[tuple[str, str]], process: int) -> Layer:
    """One for the whole process, with its connections and with what is known of its health; another one where the
    variables changed that decide where it leads."""
    from .remote import open_remote

    return Layer(open_remote(place, secret), writable=place.writable)


def _open(place: Location, max_size: int | None, *, asked: bool) -> Store:
    if place.kind == "memory":
        from .memory import MemoryStore

        return MemoryStore(max_size=place.size)
    path = Path(os.path.expanduser(place.value))
    if place.value.startswith("~") and str(path).startswith("~"):
        raise OSError("no home directory is known for it")
    if place.kind == "sqlite":
        from .database import DatabaseStore

        return DatabaseStore(path, max_size=max_size, make=place.writable)
    # Others may read what root compiles into a folder that was asked for: the layer of an image.
    shared = asked and POSIX and os.geteuid() == 0
    return DirectoryStore(path, shared=shared, max_size=max_size, make=place.writable)
