# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""A small WebDAV server that stalls, trickles, lies, truncates, floods or fails: `POST /HOW` says which from now on.

python odd_server.py PORT LOG
"""

from __future__ import annotations

import contextlib
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

STALL = 60
entries: dict[str, bytes] = {}
how = "well"
log = open(sys.argv[2], "w", buffering=1)  # noqa: SIM115 - as long as the process


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments: object) -> None:
        """Log nothing of its own."""

    def answer(self, status: int, body: bytes = b"", *, length: int | None = None) -> None:
        """Send a whole answer, or one that claims another length."""
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)

    def handle_one_request(self) -> None:
        """Serve one request; a client that went away is none of our business."""
        with contextlib.suppress(OSError):
            super().handle_one_request()

    def do_POST(self) -> None:
        """Change the behaviour."""
        global how
        how = self.path[1:]
        self.answer(200)

    def serve(self) -> None:
        """Answer, as the behaviour of the moment has it."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        log.write(f"{how} {self.command} {self.path}\n")
        if how == "stall":
            time.sleep(STALL)
        elif how == "fail":
            self.answer(500, b"no")
        elif how == "deny":
            self.answer(403, b"no")
        elif how == "hang-up":
            self.close_connection = True
            self.connection.close()
        elif how == "slow":
            time.sleep(0.05)
            self.serve_well(body)
        elif how.startswith("write-") and self.command == "PUT":
            self.answer(500 if how == "write-fail" else 507)
        else:
            self.serve_well(body)

    def serve_well(self, body: bytes) -> None:
        """Store, give, list."""
        if self.command == "PUT":
            entries[self.path] = body
            self.answer(201)
        elif self.command == "PROPFIND":
            self.list()
        elif self.command in ("GET", "HEAD"):
            data = entries.get(self.path)
            if data is None:
                self.answer(404)
            elif self.command == "HEAD":
                self.answer(200, length=len(data))
            else:
                self.give(data)
        else:
            self.answer(201 if self.command == "MKCOL" else 204)

    def give(self, data: bytes) -> None:
        """Give an entry, or something else in its place."""
        if how == "lie":
            data = data[:-1] + bytes([data[-1] ^ 1])
        elif how == "swap":
            data = next(other for other in entries.values() if other != data)
        elif how == "cut":
            data = data[: len(data) // 2]
        elif how == "empty":
            data = b""
        elif how == "truncate":
            self.answer(200, data[: len(data) // 2], length=len(data))
            self.close_connection = True
            self.connection.close()
            return
        elif how == "stall-inside":
            self.answer(200, data[: len(data) // 2], length=len(data))
            self.wfile.flush()
            time.sleep(STALL)
            return
        elif how == "trickle":
            self.answer(200, b"", length=len(data))
            for offset in range(len(data)):
                self.wfile.write(data[offset : offset + 1])
                time.sleep(0.5)
            return
        elif how == "flood":
            self.send_response(200)
            self.send_header("Content-Length", str(1 << 40))
            self.end_headers()
            while True:
                self.wfile.write(bytes(1 << 20))
        self.answer(200, data)

    def list(self) -> None:
        """Say that a folder is there."""
        found = f"<D:response><D:href>{self.path}</D:href><D:propstat><D:prop><D:resourcetype><D:collection/>"
        found += "</D:resourcetype><D:getlastmodified>Mon, 01 Jan 2024 00:00:00 GMT</D:getlastmodified></D:prop>"
        found += "<D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>"
        text = f'<?xml version="1.0"?><D:multistatus xmlns:D="DAV:">{found}</D:multistatus>'
        self.answer(207, text.encode())


for method in ("GET", "PUT", "DELETE", "MKCOL", "PROPFIND", "HEAD"):
    setattr(Handler, f"do_{method}", Handler.serve)

if __name__ == "__main__":
    ThreadingHTTPServer.daemon_threads = True
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
