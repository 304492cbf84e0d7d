# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Servers that keep a cache, each started as a process of its own: real ones, and one that misbehaves on demand."""

from __future__ import annotations

import base64
import contextlib
import hmac
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

__all__ = ["SERVERS", "Served", "odd_server", "started"]

BUCKET = "kernels"


@dataclass(frozen=True)
class Served:
    """A running server: the place of the cache on it, and the variables that lead there."""

    url: str
    environment: Mapping[str, str] = field(default_factory=dict)


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def started(command: list[str], port: int, log: Path, **variables: str) -> Iterator[None]:
    """A server process that listens on a port; ended afterwards."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env={**os.environ, **variables})
        try:
            for _ in range(600):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                    break
                assert process.poll() is None, log.read_text(errors="replace")
                time.sleep(0.1)
            else:
                raise AssertionError(f"{command[0]} does not listen: {log.read_text(errors='replace')}")
            yield
            assert process.poll() is None, log.read_text(errors="replace")[-2000:]
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def program(name: str, *, beside: bool = False) -> str:
    """The path of a program, or a skip that says what is missing. `beside`: one of this Python environment's."""
    path = shutil.which(name, path=str(Path(sys.executable).parent)) if beside else shutil.which(name)
    if path is None:
        group = "pip install --group servers" if beside else "a package of the system"
        pytest.skip(f"{name} is not installed ({group})")
    return path


def request(method: str, url: str, **headers: str) -> None:
    """Send one request and expect it to be fine."""
    with urllib.request.urlopen(urllib.request.Request(url, None, headers, method=method), timeout=30):
        pass


@contextmanager
def s3(folder: Path) -> Iterator[Served]:
    """moto's S3 server."""
    port = free_port()
    with started([program("moto_server", beside=True), "-H", "127.0.0.1", "-p", str(port)], port, folder / "s3.log"):
        url = f"http://127.0.0.1:{port}"
        request("PUT", f"{url}/{BUCKET}")
        environment = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_ENDPOINT_URL": url}
        yield Served(f"s3://{BUCKET}/some/prefix", environment)


@contextmanager
def gcs(folder: Path) -> Iterator[Served]:
    """gcp-storage-emulator."""
    port = free_port()
    command = [program("gcp-storage-emulator", beside=True), "start", "--host=127.0.0.1", f"--port={port}"]
    with started([*command, "--in-memory", f"--default-bucket={BUCKET}"], port, folder / "gcs.log"):
        yield Served(f"gs://{BUCKET}/prefix", {"STORAGE_EMULATOR_HOST": f"http://127.0.0.1:{port}"})


@contextmanager
def azure(folder: Path) -> Iterator[Served]:
    """Azurite, of the npm registry."""
    port, account = free_port(), "devstoreaccount1"
    key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
    command = [program("azurite-blob"), "--blobPort", str(port), "--location", str(folder), "--skipApiVersionCheck"]
    with started(command, port, folder / "azure.log"):
        endpoint = f"http://127.0.0.1:{port}/{account}"
        environment = {"AZURE_STORAGE_KEY": key, "AZURE_STORAGE_ACCOUNT": account}
        signed = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
        lines = ["PUT", *[""] * 11, *(f"{name}:{value}" for name, value in signed.items())]
        text = "\n".join([*lines, f"/{account}/{account}/{BUCKET}", "restype:container"])
        digest = base64.b64encode(hmac.digest(base64.b64decode(key), text.encode(), "sha256")).decode()
        login = {"Authorization": f"SharedKey {account}:{digest}", "Content-Length": "0"}
        request("PUT", f"{endpoint}/{BUCKET}?restype=container", **signed, **login)
        yield Served(f"az://{BUCKET}/prefix?endpoint={endpoint}", environment)


NGINX = """\
daemon off; master_process off; pid PORT.pid; error_log stderr;
LOAD
events {}
http {
  access_log off; client_max_body_size 0; client_body_temp_path body;
  server {
    listen 127.0.0.1:PORT;
    location / {
      root files;
      dav_methods PUT DELETE MKCOL COPY MOVE; dav_ext_methods PROPFIND OPTIONS;
      create_full_put_path on; min_delete_depth 0;
    }
  }
}
"""


@contextmanager
def nginx(folder: Path) -> Iterator[Served]:
    """nginx with its WebDAV modules."""
    port, path = free_port(), program("nginx")
    (folder / "files").mkdir()
    modules = [Path("/usr/lib/nginx/modules/ngx_http_dav_ext_module.so")]
    load = "".join(f"load_module {module};\n" for module in modules if module.exists())
    (folder / "nginx.conf").write_text(NGINX.replace("PORT", str(port)).replace("LOAD", load))
    for name in ("files", "body"):
        (folder / name).mkdir(exist_ok=True)
    folder.chmod(0o755)
    command = [path, "-p", str(folder), "-c", "nginx.conf"]
    with started(command, port, folder / "nginx.log"):
        yield Served(f"http://127.0.0.1:{port}/team/kernels")


@contextmanager
def wsgidav(folder: Path) -> Iterator[Served]:
    """WsgiDAV on cheroot, behind a user name and a password."""
    port = free_port()
    (folder / "files").mkdir()
    settings = f"""\
host: 127.0.0.1
port: {port}
provider_mapping: {{"/": "{folder}/files"}}
http_authenticator: {{accept_basic: true, accept_digest: false, default_to_digest: false}}
simple_dc: {{user_mapping: {{"*": {{team: {{password: "p@ss"}}}}}}}}
"""
    (folder / "dav.yaml").write_text(settings)
    command = [program("wsgidav", beside=True), "-c", str(folder / "dav.yaml")]
    with started(command, port, folder / "dav.log"):
        yield Served(f"http://team:p%40ss@127.0.0.1:{port}/kernels")


@contextmanager
def redis(folder: Path) -> Iterator[Served]:
    """Redis itself."""
    port = free_port()
    command = [program("redis-server"), "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    with started([*command, "--requirepass", "hunter2"], port, folder / "redis.log"):
        yield Served(f"redis://:hunter2@127.0.0.1:{port}/0")


FAKE_REDIS = """
import sys
from fakeredis import TcpFakeServer
TcpFakeServer(("127.0.0.1", int(sys.argv[1])), server_type="redis").serve_forever()
"""


@contextmanager
def fake_redis(folder: Path) -> Iterator[Served]:
    """A server in Python that speaks Redis' protocol, where Redis itself is missing."""
    pytest.importorskip("fakeredis", reason="fakeredis is not installed (pip install --group servers)")
    port = free_port()
    with started([sys.executable, "-c", FAKE_REDIS, str(port)], port, folder / "redis.log"):
        yield Served(f"redis://127.0.0.1:{port}/0")


SERVERS: Mapping[str, Callable[[Path], Any]] = {
    "s3": s3,
    "gcs": gcs,
    "azure": azure,
    "nginx": nginx,
    "wsgidav": wsgidav,
    "redis": redis,
    "fake-redis": fake_redis,
}
"""By name; each skips where its program is missing."""


@contextmanager
def odd_server(folder: Path, **variables: str) -> Iterator[tuple[str, Callable[[str], None], Callable[[], list[str]]]]:
    """A WebDAV server whose behaviour changes on demand: (its URL, how to change it, the requests so far)."""
    port = free_port()
    command = [sys.executable, str(Path(__file__).parent / "odd_server.py"), str(port), str(folder / "requests")]
    with started(command, port, folder / "odd.log", **variables):
        url = f"http://127.0.0.1:{port}"

        def behave(how: str) -> None:
            request("POST", f"{url}/{how}")

        def requests() -> list[str]:
            return (folder / "requests").read_text().splitlines()

        yield url, behave, requests
