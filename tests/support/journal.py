"""An outside world that counts, for tests of the journal."""

import threading
from collections.abc import Callable
from typing import Any

from runtime_persist import operation, step
from tests.fixtures.raw import Raw
from tests.support.way import Way


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


class Losing(Outside):
    """An outside world in whose first call the caller's lease runs out and is taken away."""

    def __init__(self, raw: Raw) -> None:
        super().__init__()
        self.raw = raw

    def call(self, what: Any, idempotency_key: str) -> dict[str, Any]:
        receipt = super().call(what, idempotency_key)
        if len(self.calls) == 1:
            self.raw.rows("UPDATE rp_runs SET epoch = epoch + 1, expires_us = 1")
        return receipt


class StepCharger:
    """A node that charges in a step, in the way of a test."""

    def __init__(self, way: Way, outside: Outside, what: str = "a", **options: Any) -> None:
        self.outside, self.what, self.options = outside, what, options
        self.node = self.anode if way.asynchronous else self.snode

    def snode(self, state: Any) -> dict[str, Any]:
        with step("charge", {"what": self.of(state)}, **self.options) as s:
            if not s.replayed:
                s.complete(self.outside.call(self.of(state), s.idempotency_key))
        return {"log": [s.result["receipt"]]}

    async def anode(self, state: Any) -> dict[str, Any]:
        async with step("charge", {"what": self.of(state)}, **self.options) as s:
            if not s.replayed:
                await s.acomplete(self.outside.call(self.of(state), s.idempotency_key))
        return {"log": [s.result["receipt"]]}

    def of(self, state: Any) -> Any:
        return state.get("item", self.what) if isinstance(state, dict) else state
