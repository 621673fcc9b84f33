"""The outside world of the kill matrix: an HTTP server in the test's process that counts what it does for each key."""

import json
import socket
import threading
import urllib.error
import urllib.request
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

DEADLINE_SECONDS = 30.0


class Busy(ConnectionError):
    """The outside refused, and did nothing."""


class Outside:
    """A shop that sells each order as often as it is asked: it does not recognise keys, so a repetition is counted.

    Attributes:
        sold: keys under which each order was sold, one for each time.
        busy: refuse the first request of each key.

    """

    def __init__(self) -> None:
        """Serve until the end of the block."""
        self.sold: dict[str, list[str]] = defaultdict(list)
        self.busy = False
        self._seen: set[str] = set()
        self._condition = threading.Condition()
        self._open = 0
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self._server.outside = self
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def begin(self, *, busy: bool) -> None:
        """Forget everything."""
        self.settle()
        self.sold.clear()
        self._seen.clear()
        self.busy = busy

    def sell(self, order: str, key: str) -> str | None:
        """Sell; None: it was busy."""
        with self._condition:
            first = key not in self._seen
            self._seen.add(key)
            if self.busy and first:
                return None
            self.sold[order].append(key)
            return receipt(order)

    def settle(self) -> None:
        """Wait until everything that was ever sent here, by processes that are dead now too, is answered.

        Connections are accepted in their order, so those that came before this one have been.
        """
        with socket.create_connection(("127.0.0.1", self.port)) as last:
            last.sendall(b"GET / HTTP/1.0\r\n\r\n")
            while last.recv(4096):
                pass
        with self._condition:
            assert self._condition.wait_for(lambda: self._open == 0, DEADLINE_SECONDS)

    def counted(self, change: int) -> None:
        with self._condition:
            self._open += change
            self._condition.notify_all()


class _Server(ThreadingHTTPServer):
    outside: Outside
    request_queue_size = 64

    def process_request(self, request: Any, client_address: Any) -> None:
        self.outside.counted(1)
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.outside.counted(-1)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Who is killed does not wait for the answer."""


def _handler(outside: Outside) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            sold = outside.sell(body["order"], self.headers["Idempotency-Key"])
            self._answer(503 if sold is None else 200, json.dumps(sold).encode())

        def do_GET(self) -> None:
            self._answer(200, b"")

        def _answer(self, status: int, data: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the library's name)
            """Keep quiet."""

    return Handler


def receipt(order: str) -> str:
    """What the shop answers."""
    return f"receipt of {order}"


def buy(port: int, order: str, key: str) -> str:
    """Buy at a shop.

    Raises:
        Busy: it refused.

    """
    headers = {"Idempotency-Key": key, "Content-Type": "application/json"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}", json.dumps({"order": order}).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=DEADLINE_SECONDS) as answer:  # noqa: S310 (loopback)
            bought: str = json.load(answer)
            return bought
    except urllib.error.HTTPError as error:
        raise Busy(str(error)) from None
