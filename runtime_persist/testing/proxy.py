"""A proxy before PostgreSQL that counts, watches, holds and cuts what passes through it.

    with PostgresProxy("127.0.0.1", server.port) as proxy:
        dsn = proxy.dsn(server.dsn(database))
        hold = proxy.hold("after_reply", lambda statement: "INSERT" in statement.sql)
        ...                         # another thread or task sends the statement
        hold.wait_reached()         # the server has committed, the client does not know
        hold.drop()                 # and will never hear it: its connection is lost

It relays message by message on a thread and event loop of its own, so it works under any test, sync or async.
Calls that wait (`wait_reached`, `kill_all`, `close`) block the calling thread: hand them to
`asyncio.to_thread` where the client lives on the same loop.
"""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from types import TracebackType
from typing import Literal, Self, get_args
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from runtime_persist.testing._pg_link import Link
from runtime_persist.testing._pg_wire import ROUND_TRIPS, Message, Statement

__all__ = ["Hold", "PostgresProxy", "Statement", "When"]

When = Literal["before_send", "after_reply"]
Match = Callable[[Statement], bool]
_Started = tuple[asyncio.AbstractEventLoop, asyncio.Event, int]


class Hold:
    """A place where one exchange of one connection is stopped. Made by `PostgresProxy.hold`.

    As a context manager it lets the exchange go on at the end of the block, if nobody decided before.
    """

    def __init__(self, when: When, match: Match, loop: asyncio.AbstractEventLoop) -> None:
        self.when = when
        self._match = match
        self._loop = loop
        self._reached = threading.Event()
        self._decided = asyncio.Event()
        self._lock = threading.Lock()
        self._verdict: Literal["release", "drop"] | None = None
        self._statement: Statement | None = None
        self._error: Exception | None = None

    def wait_reached(self, timeout: float = 10.0) -> Statement:
        """Wait until a matching exchange stands here, and return its statement.

        Args:
            timeout: seconds.

        Raises:
            TimeoutError: it was not reached; a test that wanted to cut there has not tested that cut.
        """
        if not self._reached.wait(timeout):
            raise TimeoutError(f"no exchange reached the hold `{self.when}` within {timeout} s")
        if self._error is not None:
            raise self._error
        assert self._statement is not None  # noqa: S101 - set before the event
        return self._statement

    @property
    def reached(self) -> bool:
        """Whether an exchange stands, or stood, here."""
        return self._reached.is_set()

    def release(self) -> None:
        """Let the exchange go on; before anything has come here: let everything pass.

        What was held `before_send` then reaches the server even if the client has gone meanwhile, as it
        would from a network.
        """
        self._decide("release")

    def drop(self) -> None:
        """Cut the connection on both sides, once the exchange stands here.

        Held `before_send`, the server never sees the statement; held `after_reply`, it has executed it and
        the client does not know.
        """
        self._decide("drop")

    def _decide(self, verdict: Literal["release", "drop"]) -> None:
        with self._lock:
            if self._verdict is not None:
                return
            self._verdict = verdict
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._decided.set)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    def wants(self, statement: Statement) -> bool:
        """Whether this exchange is the one (called on the proxy's thread)."""
        if self._verdict == "release":
            return False
        try:
            wanted = self._match(statement)
        except Exception as error:  # noqa: BLE001 - the test's own code: shown where the test waits
            self._error = error
            self._reached.set()
            return False
        if wanted:
            self._statement = statement
        return wanted

    async def stand(self) -> bool:
        """Report that the exchange stands here and wait; whether it may go on (on the proxy's thread)."""
        self._reached.set()
        await self._decided.wait()
        return self._verdict == "release"


class PostgresProxy:
    """A proxy on 127.0.0.1. Use it as a context manager, or `close` it.

    Args:
        upstream_host: the server's address, or the folder of its unix socket when it begins with a slash.
        upstream_port: its port.
    """

    def __init__(self, upstream_host: str, upstream_port: int) -> None:
        self._upstream = (upstream_host, upstream_port)
        self._lock = threading.Lock()
        self._messages: Counter[str] = Counter()
        self._statements: list[Statement] = []
        self._holds: list[Hold] = []
        self._links: set[Link] = set()
        self._refusing = False
        self._errors: list[Exception] = []
        started: Future[_Started] = Future()
        self._thread = threading.Thread(
            target=self._run_thread,
            args=(started,),
            name="postgres-proxy",
            daemon=True,
        )
        self._thread.start()
        self._loop, self._stop, self.port = started.result()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Drop every connection, held ones included, and end the proxy's thread.

        Raises:
            ExceptionGroup: the proxy itself went wrong, so what the client saw was no fault of the database.
        """
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()
        errors, self._errors = self._errors, []
        if errors:
            raise ExceptionGroup("the proxy could not follow the conversation", errors)

    def dsn(self, upstream_dsn: str) -> str:
        """The same database reached through the proxy (in plain text: it could not read TLS)."""
        parts = urlsplit(upstream_dsn)
        login = parts.netloc.rpartition("@")[0]
        netloc = f"{login}@127.0.0.1:{self.port}" if login else f"127.0.0.1:{self.port}"
        dropped = {"host", "port", "sslmode"}
        query = [(key, value) for key, value in parse_qsl(parts.query) if key not in dropped]
        query.append(("sslmode", "disable"))
        return urlunsplit(parts._replace(netloc=netloc, query=urlencode(query, quote_via=quote)))

    # -- counting -------------------------------------------------------------------------------------------

    def reset(self) -> None:
        """Begin to count and to list statements anew."""
        with self._lock:
            self._messages.clear()
            self._statements.clear()

    @property
    def round_trips(self) -> int:
        """How often a client asked for an answer since `reset`: Sync, Flush and simple queries."""
        return sum(count for kind, count in self.messages.items() if kind in ROUND_TRIPS)

    @property
    def messages(self) -> Mapping[str, int]:
        """The client messages since `reset` by type letter (P, B, D, E, S, H, Q, X …)."""
        with self._lock:
            return dict(self._messages)

    @property
    def statements(self) -> list[Statement]:
        """What clients had executed since `reset`, in order: every Bind and every simple query."""
        with self._lock:
            return list(self._statements)

    # -- interference ---------------------------------------------------------------------------------------

    def hold(self, when: When, match: Match) -> Hold:
        """Stop the next exchange with a matching statement, once, on whichever connection it comes.

        Args:
            when: `before_send`: nothing of the exchange reaches the server; `after_reply`: the server has
                executed it (and committed, if that was its end) but nothing of its answer reaches the client.
            match: asked for each statement, on the proxy's thread; must not block.
        """
        if when not in get_args(When):
            raise ValueError(f"when is {when!r}; it can be one of {', '.join(get_args(When))}")
        hold = Hold(when, match, self._loop)
        with self._lock:
            self._holds.append(hold)
        return hold

    def kill_all(self) -> int:
        """Drop all connections on both sides, held ones included; how many there were."""
        return asyncio.run_coroutine_threadsafe(self._drop_links(), self._loop).result()

    def refuse_new(self, refusing: bool = True) -> None:  # noqa: FBT001, FBT002 - reads well at its calls
        """Close new connections at once, as if the server were gone, or accept them again."""
        self._refusing = refusing

    # -- for the links, on the proxy's thread ---------------------------------------------------------------

    def note(self, message: Message, statement: Statement | None) -> None:
        """Count a client message."""
        with self._lock:
            self._messages[message.kind] += 1
            if statement is not None:
                self._statements.append(statement)

    def take_hold(self, when: When, statements: Iterable[Statement]) -> Hold | None:
        """The first hold that wants one of these statements; it is taken and applies to no other exchange."""
        with self._lock:
            candidates = [hold for hold in self._holds if hold.when == when]
        for hold in candidates:
            if any(hold.wants(statement) for statement in statements):
                with self._lock:
                    self._holds.remove(hold)
                return hold
        return None

    # -- the thread -----------------------------------------------------------------------------------------

    def _run_thread(self, started: Future[_Started]) -> None:
        try:
            asyncio.run(self._run(started))
        except OSError as error:  # no port to listen on: shown where the proxy was made
            started.set_exception(error)

    async def _run(self, started: Future[_Started]) -> None:
        stop = asyncio.Event()
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        started.set_result((asyncio.get_running_loop(), stop, server.sockets[0].getsockname()[1]))
        await stop.wait()
        server.close()
        await self._drop_links()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refusing:
            writer.transport.abort()
            return
        link = Link(self, reader, writer)
        self._links.add(link)
        try:
            await link.run(*self._upstream)
        except Exception as error:  # noqa: BLE001 - raised where the test closes the proxy
            self._errors.append(error)
        finally:
            self._links.discard(link)

    async def _drop_links(self) -> int:
        links = list(self._links)
        for link in links:
            link.drop()
        await asyncio.gather(*(link.ended.wait() for link in links))
        return len(links)
