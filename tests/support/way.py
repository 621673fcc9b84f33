"""One test body for sync and async: a test is a coroutine, and its ``way`` says how it is run.

The sync way drives the coroutine without any event loop: nothing in it ever waits, because every call is the sync
one. So the very same body is a plain sync program in one case and one task on an event loop in the other.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any


class Way:
    """Sync or async: calls a method, or its ``a``-prefixed twin."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.asynchronous = name == "async"

    async def __call__(self, target: Any, method: str, *args: Any, **options: Any) -> Any:
        """Call ``target.method``, or wait for ``target.amethod``."""
        if self.asynchronous:
            return await getattr(target, f"a{method}")(*args, **options)
        return getattr(target, method)(*args, **options)

    async def all(self, target: Any, method: str, *args: Any, **options: Any) -> list[Any]:
        """Collect what an iterating method (``list``, ``stream``, ``get_state_history``) yields."""
        if self.asynchronous:
            return [item async for item in getattr(target, f"a{method}")(*args, **options)]
        return list(getattr(target, method)(*args, **options))

    async def first(self, target: Any, method: str, *args: Any, **options: Any) -> Any:
        """Take one item of an iterating method and close it early."""
        if self.asynchronous:
            items = getattr(target, f"a{method}")(*args, **options)
            try:
                return await anext(items)
            finally:
                await items.aclose()
        items = iter(getattr(target, method)(*args, **options))
        try:
            return next(items)
        finally:
            items.close()

    @asynccontextmanager
    async def within(self, manager: Any) -> AsyncIterator[Any]:
        """Enter and leave a context manager that is both sync and async."""
        if self.asynchronous:
            async with manager as entered:
                yield entered
        else:
            with manager as entered:
                yield entered

    def run(self, body: Coroutine[Any, Any, Any]) -> Any:
        """Run a whole test body."""
        if self.asynchronous:
            return asyncio.run(body)
        try:
            body.send(None)
        except StopIteration as done:
            return done.value
        body.close()
        msg = "a sync body waited for something"
        raise AssertionError(msg)


SYNC, ASYNC = Way("sync"), Way("async")
WAYS = (SYNC, ASYNC)
