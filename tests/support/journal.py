"""An outside world that counts, for tests of the journal."""

import threading
from collections.abc import Callable
from typing import Any

from runtime_persist import operation


class Outside:
    """Counts what it is asked for, with the idempotency keys it was given; it may be told to fail."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.keys: list[str] = []
        self.fails: list[BaseException] = []
        self._lock = threading.Lock()

    def call(self, what: Any, idempotency_key: str) -> dict[str, Any]:
        with self._lock:
            self.calls.append(what)
            self.keys.append(idempotency_key)
            if self.fails:
                raise self.fails.pop(0)
            return {"receipt": len(self.calls), "what": what}

    def charge(self, name: str = "charge", **options: Any) -> Callable[..., Any]:
        """A journalled call."""

        @operation(name=name, **options)
        def charge(what: Any, *, idempotency_key: str) -> dict[str, Any]:
            return self.call(what, idempotency_key)

        return charge

    def acharge(self, name: str = "charge", **options: Any) -> Callable[..., Any]:
        """The same as an async function."""

        @operation(name=name, **options)
        async def charge(what: Any, *, idempotency_key: str) -> dict[str, Any]:
            return self.call(what, idempotency_key)

        return charge
