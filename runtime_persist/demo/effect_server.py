"""The outside world: a small card processor on loopback that records every request.

Like a real one it recognises idempotency keys: a second request with the same key charges nothing and gets the
first answer. Run as a process of its own; it ends when its standard input is closed.
"""

from __future__ import annotations

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Ledger:
    """What was asked for, and what was really charged."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._lock = threading.Lock()
        self.requests: list[dict[str, Any]] = []
        self.charges: dict[str, dict[str, Any]] = {}

    def charge(self, key: str, body: dict[str, Any]) -> dict[str, Any]:
        """Record a request and charge unless its key was seen before."""
        with self._lock:
            self.requests.append({"key": key, **body})
            if key not in self.charges:
                self.charges[key] = {"charge_id": f"ch_{len(self.charges) + 1}", **body}
            return self.charges[key]

    def log(self) -> dict[str, Any]:
        """Return everything recorded."""
        with self._lock:
            return {"requests": list(self.requests), "charges": dict(self.charges)}


def handler(ledger: Ledger) -> type[BaseHTTPRequestHandler]:
    """Return what answers requests: POST charges, GET tells what was recorded."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self._answer(ledger.charge(self.headers["Idempotency-Key"], body))

        def do_GET(self) -> None:
            self._answer(ledger.log())

        def _answer(self, value: dict[str, Any]) -> None:
            data = json.dumps(value).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the library's name)
            """Keep quiet."""

    return Handler


def main() -> None:
    """Serve until standard input is closed; print the port first."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(Ledger()))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdout.write(f"{server.server_address[1]}\n")
    sys.stdout.flush()
    sys.stdin.read()
    server.shutdown()


if __name__ == "__main__":
    main()
