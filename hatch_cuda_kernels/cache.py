# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Compiled images kept between builds and processes: a record and a blob (docs/explanation/caching.md).

Under a job's key stands a record of its last compiles: what each read and what there is to say of its image, which is
named by its digest. Where what was read still holds, the raw image stands under that digest. Both are checked when
they are read, and anything odd is a miss. No error of a cache ever reaches a build or a load: it is one warning.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import warn_once
from .plan import CompiledImage, CompileJob
from .records import compiled_image, compiles_in, entry_of, image_named, seal, still_holds, unseal, unseal_both
from .stores.directory import DirectoryStore
from .stores.layers import Layer
from .stores.location import Location, parse_locations
from .stores.opening import CACHE_VARIABLE, default_directory, open_layers, state_of
from .stores.state import Counts, State
from .toolkit import Headers

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["CACHE_VARIABLE", "KernelCache", "default_directory", "load_or_compile"]

_COMPILES_KEPT = 8
_LOOKUPS = 32
_LOOKED_UP_AHEAD = 256
_LOCK_SECONDS = 600.0
_NOT_OURS = (errno.EACCES, errno.EPERM, errno.EROFS)
_WHOLE = "*"


class KernelCache:
    """Images by content. All methods are safe to call whatever state the places are in, and none raises."""

    def __init__(self, layers: Sequence[Layer] = (), state: State | None = None) -> None:
        self.layers = tuple(layers)
        """Where images are looked for, in this order; what a later one has is kept in the earlier ones."""
        self.hits = 0
        self.misses = 0
        self._state = state

    @classmethod
    def open(cls, places: bool | str | Iterable[str | Location] = True, *, max_size: int | None = None) -> KernelCache:
        """The cache at `places` (stores/location.py), True for the default one, False for none."""
        if places is False:
            return cls()
        try:
            layers = open_layers(None if places is True else parse_locations(places), max_size=max_size)
        except ValueError as error:
            warn_once(f"no compile cache: {error}")
            return cls()
        return cls(layers, state_of(layers))

    @classmethod
    def from_environment(cls) -> KernelCache:
        """The cache that the environment names: what the run-time loader uses."""
        from .config import cache_switch

        return cls.open(cache_switch(os.environ.get(CACHE_VARIABLE) or ""))

    @property
    def local(self) -> tuple[Layer, ...]:
        """The layers of this machine."""
        return tuple(layer for layer in self.layers if not layer.remote)

    @property
    def directory(self) -> Path | None:
        """The first folder; None where there is none."""
        for layer in self.layers:
            if isinstance(layer.store, DirectoryStore):
                return layer.store.directory
        return None

    # -- images ------------------------------------------------------------------------------------------------

    def lookup(self, job: CompileJob) -> CompiledImage | None:
        """The image that this job gave before, with everything that was told about it; None is a miss."""
        return self.lookup_all([job]).get(job)

    def lookup_all(self, jobs: Iterable[CompileJob]) -> dict[CompileJob, CompiledImage]:
        """The images of those jobs that hit, all at once."""
        return {job: image for job, image in self.lookup_each(jobs) if image is not None}

    def lookup_each(self, jobs: Iterable[CompileJob]) -> Iterator[tuple[CompileJob, CompiledImage | None]]:
        """Every job, with its image or, where that is a miss, None.

        Jobs are taken as there is use for them, many at a time, since another machine takes its time to answer; out of
        so many they come in any order.
        """
        jobs, headers = iter(jobs), Headers()
        while asked := list(itertools.islice(jobs, _LOOKED_UP_AHEAD)):
            missing = asked
            for number, layer in enumerate(self.layers):
                wanted, missing = missing, []
                for job, image in self._find_each(wanted, number, headers):
                    if image is None:
                        missing.append(job)
                    else:
                        yield job, image
                layer.add(Counts(hits=len(wanted) - len(missing), misses=len(missing)))
                layer.report()
            self.hits += len(asked) - len(missing)
            self.misses += len(missing)
            yield from ((job, None) for job in missing)

    def _find_each(
        self, jobs: Sequence[CompileJob], number: int, headers: Headers
    ) -> Iterator[tuple[CompileJob, CompiledImage | None]]:
        """What one layer has, which is kept in those above it."""

        def find(job: CompileJob) -> tuple[CompileJob, CompiledImage | None]:
            image = _find(self.layers[number], job, headers)
            if image is not None:
                self._keep(job, image, self.layers[:number])
            return job, image

        if not self.layers[number].remote or len(jobs) < 2:
            yield from map(find, jobs)
            return
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(_LOOKUPS) as threads:
            yield from threads.map(find, jobs)

    def recheck(self, job: CompileJob) -> CompiledImage | None:
        """Whether another process of this machine has stored it since it was looked up."""
        headers = Headers()
        return next((image for layer in self.local if (image := _find(layer, job, headers)) is not None), None)

    def store(self, job: CompileJob, image: CompiledImage) -> None:
        """Keep an image in every layer that may be written."""
        self._keep(job, image, self.layers)

    def _keep(self, job: CompileJob, image: CompiledImage, layers: Sequence[Layer]) -> None:
        for layer in layers:
            if layer.writable:
                layer.behind(functools.partial(_keep, layer, job, image))

    # -- small facts, see toolchain.Memory -----------------------------------------------------------------------

    def recall(self, key: str) -> bytes | None:
        """A fact remembered by an earlier process of this machine."""
        for layer in self.local:
            record = _load(layer, f"fact {key}")
            value = record.get("value") if record else None
            if isinstance(value, str):
                return value.encode()
        return None

    def remember(self, key: str, value: bytes) -> None:
        """Remember a fact for later processes of this machine."""
        for layer in self.local:
            _save(layer, f"fact {key}", {"value": value.decode()})

    # -- many images in one entry, see bundles.py ----------------------------------------------------------------

    @property
    def keeps_bundles(self) -> bool:
        """Whether there is a place on this machine that may be written."""
        return any(layer.writable for layer in self.local)

    def bundle(self, key: str) -> tuple[dict[str, Any], memoryview] | None:
        """What was bundled under a key: a record, and bytes that belong to it. It is kept in the layers before, too."""
        for number, layer in enumerate(self.local):
            data = layer.read(f"bundle {key}")
            record, raw = (None, None) if data is None else unseal_both(data, f"bundle {key}")
            if data is not None and record is not None and raw is not None:
                for earlier in self.local[:number]:
                    earlier.write(f"bundle {key}", data)
                return record, raw
        return None

    def keep_bundle(self, key: str, record: Mapping[str, Any], raw: bytes) -> None:
        """Keep a record with its bytes for later processes of this machine."""
        for layer in self.local:
            if layer.writable:
                layer.write(f"bundle {key}", seal(f"bundle {key}", record, raw))

    def look_again(self, jobs: Iterable[CompileJob]) -> Iterator[tuple[CompileJob, CompiledImage | None]]:
        """Jobs that were looked up or stored before, each with its image; this counts as no use of it."""
        headers = Headers()
        for job in jobs:
            yield job, next((image for layer in self.local if (image := _find(layer, job, headers))), None)

    def count_served(self, images: int) -> None:
        """Count images that a bundle had."""
        self.hits += images
        for layer in self.local[:1]:
            layer.add(Counts(hits=images))

    # -- locking and counting ------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def lock(self, name: str, *, timeout: float = _LOCK_SECONDS) -> Iterator[None]:
        """Hold a lock among processes. Goes on without it when it cannot be had: that costs work, not truth."""
        with contextlib.ExitStack() as stack:
            if self._state is not None:
                with self._guarded("locked"):
                    try:
                        stack.enter_context(self._state.lock(name).acquire(timeout=timeout))
                    except TimeoutError:  # filelock.Timeout is one
                        if timeout == _LOCK_SECONDS:
                            warn_once(f"waited {timeout:.0f} s for another process that compiles the same; going on")
                    except OSError as error:
                        if error.errno not in _NOT_OURS:  # a cache to read only; whoever writes is told
                            raise
            yield

    def pending(self) -> Iterator[tuple[str, int]]:
        """Where images are still on their way to, and how many."""
        for layer in self.layers:
            if count := layer.pending:
                yield layer.name, count

    def close(self) -> None:
        """Count, and let go of the places; what is still being written behind goes on."""
        self.count()
        for layer in self.layers:
            layer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        """Wait, for a bounded time, for what is still being written, unless it all has to end."""
        for layer in self.layers:
            if kind is None or issubclass(kind, Exception):
                layer.flush()
            else:
                layer.drop()
        self.close()

    def count(self) -> None:
        """Add this object's counts to the totals that `cache info` shows, unless the cache is to read only."""
        counts = {layer.name: found for layer in self.layers if (found := layer.take())}
        if self.hits or self.misses:
            counts[_WHOLE] = Counts(hits=self.hits, misses=self.misses)
        if self._state is None or not counts or not os.access(self._state.folder, os.W_OK):
            return
        with self._guarded("counted in"):
            self._state.add(counts)
            self.hits = self.misses = 0

    def totals(self) -> tuple[int, int]:
        """(hits, misses) of all processes so far."""
        whole = self.layer_totals().get(_WHOLE, Counts())
        return whole.hits, whole.misses

    def layer_totals(self) -> dict[str, Counts]:
        """Name of a layer -> what it did in all processes so far."""
        if self._state is not None:
            with self._guarded("read"):
                return self._state.totals()
        return {}

    @contextlib.contextmanager
    def _guarded(self, doing: str) -> Iterator[None]:
        with self.layers[0].guarded(doing):
            yield

    # -- housekeeping --------------------------------------------------------------------------------------------

    def entries(self) -> Iterator[tuple[Path, int]]:
        """Path and size of every entry of the folders, of whatever kind of file."""
        for layer in self.layers:
            if isinstance(layer.store, DirectoryStore):
                yield from layer.store.entries()

    def usage(self) -> tuple[int, int]:
        """(entries, their bytes) on this machine."""
        found = [layer.usage() or (0, 0) for layer in self.local]
        return sum(entries for entries, _ in found), sum(size for _, size in found)

    def verify(self) -> Iterator[tuple[str, str]]:
        """Name and problem of every entry of this machine that would not be believed."""
        from .stores.database import DatabaseStore

        for layer in self.layers:
            if isinstance(layer.store, DirectoryStore):
                for path, problem in _verify(layer.store):
                    yield str(path), problem
            elif isinstance(layer.store, DatabaseStore):
                for key, damage in layer.store.entries():
                    if damage is not None:
                        yield f"{layer.name}: {key.decode('utf-8', 'replace')}", damage

    def clear(self) -> None:
        """Remove every entry of this machine; processes that use the cache meanwhile see misses. Raises OSError."""
        for layer in self.local:
            layer.store.clear()
        if self._state is not None:
            self._state.clear_locks()


def _find(layer: Layer, job: CompileJob, headers: Headers) -> CompiledImage | None:
    """The image of a job in one layer, every part of it checked."""
    known = compiles_in(_load(layer, f"compiles {job.key}"))
    for reads, entry in itertools.islice(known, _COMPILES_KEPT):  # whoever wrote more wants us to be busy
        named = image_named(entry, job)
        if named is None or not still_holds(reads, job.unit, headers):
            continue
        digest, size = named
        data = layer.read(f"blob {digest}")
        if data is None or len(data) != size or hashlib.sha256(data).hexdigest() != digest:
            continue
        if (image := compiled_image(entry, job, data, reads)) is not None:
            return image
    return None


def _keep(layer: Layer, job: CompileJob, image: CompiledImage) -> None:
    """Write an image to one layer: the blob first, then the record that leads there."""
    key = f"compiles {job.key}"
    known = [entry for reads, entry in compiles_in(_load(layer, key)) if reads != image.reads]
    if layer.write(f"blob {image.sha256}", image.data):
        _save(layer, key, {"compiles": [entry_of(image), *known][:_COMPILES_KEPT]})


def _load(layer: Layer, key: str) -> dict[str, Any] | None:
    data = layer.read(key)
    return None if data is None else unseal(data, key)


def _save(layer: Layer, key: str, record: Mapping[str, Any]) -> bool:
    return layer.write(key, seal(key, record))


def _verify(store: DirectoryStore) -> Iterator[tuple[Path, str]]:
    for path, _ in store.entries():
        try:
            data = store.read_file(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            yield path, str(error)
            continue
        if store.path(f"blob {hashlib.sha256(data).hexdigest()}") == path:
            continue
        record = unseal(data)
        if record is None or store.path(record["at"]) != path:
            yield path, "fails its digest"


def load_or_compile(
    job: CompileJob, cache: KernelCache, compile_now: Callable[[CompileJob], CompiledImage]
) -> tuple[CompiledImage, bool]:
    """The image of a job, and whether it was cached; among processes that want the same one, one compiles it."""
    image = cache.lookup(job)
    if image is not None:
        return image, True
    with cache.lock(job.key):
        image = cache.recheck(job)
        if image is not None:
            return image, True
        image = compile_now(job)
        cache.store(job, image)
    return image, False
