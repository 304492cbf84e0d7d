# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""A place on another machine: object storage, WebDAV or Redis, through Apache OpenDAL.

Every call has a time limit of its own, whatever the other side does; every entry carries its key and digest, and a
signature where there is a secret, so that what comes back is what was stored under that key.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import os
import re
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

from ..errors import ConfigurationError, first_line
from .base import Store, key_bytes, key_digest, value_bytes
from .location import Location
from .sealing import add_seal, check_seal

__all__ = ["MAX_REMOTE_ENTRY", "RemoteStore", "open_remote"]

MAX_REMOTE_ENTRY = 1 << 28
"""No larger entry is taken from, or given to, another machine."""

_SECONDS = 3.0
_WHOLE_SECONDS = 30.0
_CLEAR_SECONDS = 600.0
_SLOWEST = 100_000
"""Bytes in a second, below which an entry is not worth its wait."""
_CHUNK = 1 << 20
_FOLDER = "hatch-cuda-kernels-1/"
_T = TypeVar("_T")


class RemoteStore(Store):
    """Entries on another machine. A call fails after a few seconds without an answer, and in the end anyhow."""

    remote = True

    def __init__(self, operator: Any, name: str, *, secret: bytes | None = None) -> None:
        """`operator` is an `opendal.AsyncOperator`."""
        self.name = name
        self._secret = secret
        self._process = os.getpid()
        self._operator = operator

    def get(self, key: bytes | str, default: bytes | None = None) -> bytes | None:
        """The bytes under `key`, or `default`. Raises DamagedError for what was not stored under it."""
        key = key_bytes(key)
        entry = self._run(lambda: self._read(_FOLDER + key_digest(key)))
        return default if entry is None else check_seal(key, entry, self._secret)

    async def _read(self, path: str) -> bytes | None:
        data, begin = bytearray(), time.monotonic()
        try:
            file = await self._operator.open(path, "rb")
            while len(data) <= MAX_REMOTE_ENTRY:
                left = begin + _SECONDS + len(data) / _SLOWEST - time.monotonic()
                chunk = await asyncio.wait_for(file.read(_CHUNK), left)
                if not chunk:
                    return bytes(data)
                data += chunk
        except Exception as error:
            if "NotFound" in str(error).split(" ", 1)[0]:  # opendal says it in words alone while a file is read
                return None
            raise
        raise OSError(f"an entry is larger than {MAX_REMOTE_ENTRY} bytes")

    def __setitem__(self, key: bytes | str, value: Any) -> None:
        key, data = key_bytes(key), value_bytes(value)
        if len(data) > MAX_REMOTE_ENTRY:
            raise ValueError(f"an entry of {len(data)} bytes is larger than {MAX_REMOTE_ENTRY}")
        path, entry = _FOLDER + key_digest(key), add_seal(key, data, self._secret)
        limit = min(_SECONDS + len(entry) / _SLOWEST, _WHOLE_SECONDS)
        self._run(lambda: self._operator.write(path, entry, content_type="application/octet-stream"), limit)

    def __delitem__(self, key: bytes | str) -> None:
        path = _FOLDER + key_digest(key)
        if not self._run(lambda: self._operator.exists(path)):
            raise KeyError(key)
        self._run(lambda: self._operator.delete(path))

    def __len__(self) -> int:
        return self._run(self._count)

    async def _count(self) -> int:
        return len([entry async for entry in await self._operator.list(_FOLDER) if not entry.path.endswith("/")])

    def clear(self) -> None:
        """Remove every entry of this package. Redis lists no entries and raises."""
        self._run(lambda: self._operator.remove_all(_FOLDER), _CLEAR_SECONDS)

    def _run(self, start: Callable[[], Awaitable[_T]], limit: float | None = None) -> _T:
        """Wait for what `start` begins, and not for long. Raises TimeoutError, or what the library raises."""
        if self._process != os.getpid():
            raise OSError("it was opened before this process was forked")
        limit = _WHOLE_SECONDS if limit is None else limit
        future = asyncio.run_coroutine_threadsafe(_limited(start, limit), _loop())
        try:
            return future.result(limit + _SECONDS)
        except (TimeoutError, asyncio.TimeoutError, concurrent.futures.TimeoutError):
            future.cancel()
            raise TimeoutError("no answer in time") from None
        except Exception as error:  # the library's own, which tells of its insides at length
            raise OSError(re.sub(r", context: \{.*?\}(?= =>)", "", first_line(error))) from None


@functools.lru_cache(maxsize=1)
def _loop() -> asyncio.AbstractEventLoop:
    """The loop that serves all other machines: it ends with the process."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="remote cache", daemon=True).start()
    return loop


async def _limited(start: Callable[[], Awaitable[_T]], limit: float) -> _T:
    return await asyncio.wait_for(start(), limit)


def open_remote(location: Location, secret: str) -> RemoteStore:
    """The place that a URL names; what is read has to be signed with `secret`, unless that is empty.

    Raises ImportError without the library.
    """
    import opendal

    url = urlsplit(location.value)
    given = dict(parse_qsl(url.query))
    scheme, options = _SERVICES[location.kind](url, given, os.environ)

    operator = opendal.AsyncOperator(scheme, **{name: value for name, value in options.items() if value})
    retrying = opendal.layers.RetryLayer(max_times=2, min_delay=0.05, max_delay=0.5, jitter=True)
    limited = operator.layer(retrying).layer(opendal.layers.TimeoutLayer(timeout=_SECONDS, io_timeout=_SECONDS))
    return RemoteStore(limited, str(location), secret=secret.encode() or None)


_Service = Callable[[Any, Mapping[str, str], Mapping[str, str]], "tuple[str, dict[str, str | None]]"]


def _s3(url: Any, given: Mapping[str, str], environ: Mapping[str, str]) -> tuple[str, dict[str, str | None]]:
    region = given.get("region") or environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION") or "us-east-1"
    endpoint = given.get("endpoint") or environ.get("AWS_ENDPOINT_URL_S3") or environ.get("AWS_ENDPOINT_URL")
    return "s3", {"bucket": url.netloc, "root": url.path, "region": region, "endpoint": endpoint}


def _gcs(url: Any, given: Mapping[str, str], environ: Mapping[str, str]) -> tuple[str, dict[str, str | None]]:
    emulator = environ.get("STORAGE_EMULATOR_HOST")
    options = {"bucket": url.netloc, "root": url.path, "endpoint": given.get("endpoint") or emulator}
    return "gcs", {**options, "allow_anonymous": "true" if emulator else None}


def _azure(url: Any, given: Mapping[str, str], environ: Mapping[str, str]) -> tuple[str, dict[str, str | None]]:
    account = given.get("account") or environ.get("AZURE_STORAGE_ACCOUNT")
    endpoint = given.get("endpoint") or (account and f"https://{account}.blob.core.windows.net")
    if not endpoint:
        raise ConfigurationError("it names no account; add ?account=NAME, or set AZURE_STORAGE_ACCOUNT")
    return "azblob", {
        "container": url.netloc,
        "root": url.path,
        "endpoint": endpoint,
        "account_name": account,
        "account_key": environ.get("AZURE_STORAGE_KEY"),
        "sas_token": environ.get("AZURE_STORAGE_SAS_TOKEN"),
    }


def _webdav(url: Any, given: Mapping[str, str], environ: Mapping[str, str]) -> tuple[str, dict[str, str | None]]:
    endpoint = f"{url.scheme}://{_host(url)}"
    return "webdav", {"endpoint": endpoint, "root": url.path, **_login(url)}


def _redis(url: Any, given: Mapping[str, str], environ: Mapping[str, str]) -> tuple[str, dict[str, str | None]]:
    return "redis", {"endpoint": f"{url.scheme}://{_host(url)}", "db": url.path.strip("/"), **_login(url)}


def _host(url: Any) -> str:
    return str(url.netloc.rpartition("@")[2])


def _login(url: Any) -> dict[str, str | None]:
    return {"username": unquote(url.username or ""), "password": unquote(url.password or "")}


_SERVICES: Mapping[str, _Service] = {
    "s3": _s3,
    "gs": _gcs,
    "az": _azure,
    "http": _webdav,
    "https": _webdav,
    "redis": _redis,
    "rediss": _redis,
}
