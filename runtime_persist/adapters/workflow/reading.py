"""How a saver reads: flows that wait for the coordinator and decode what it gives."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from runtime_persist.adapters.workflow import clock, encoding, sends
from runtime_persist.adapters.workflow.encoding import Place
from runtime_persist.adapters.workflow.filters import matches
from runtime_persist.engine.flow import in_thread
from runtime_persist.errors import InvalidInput, InvalidThreadId, ThreadMismatch
from runtime_persist.model import limits
from runtime_persist.model.ids import thread_id_of
from runtime_persist.queries import checkpoints as queries
from runtime_persist.queries.checkpoints import Page, Stored

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import CheckpointTuple

    from runtime_persist.adapters.workflow.core import SaverContext
    from runtime_persist.contentstore import ContentReader
    from runtime_persist.engine import Flow, OwnedRun


def place_of(config: RunnableConfig) -> Place:
    """Return what a config addresses; no ``checkpoint_ns`` is the root, an empty ``checkpoint_id`` is the latest.

    Raises:
        InvalidThreadId: no usable thread id.

    """
    configurable = config.get("configurable") or {}
    if "thread_id" not in configurable:
        msg = "config['configurable'] has no thread_id; pass config={'configurable': {'thread_id': …}}"
        raise InvalidThreadId(msg)
    return Place(
        thread_id_of(configurable["thread_id"]),
        configurable.get("checkpoint_ns") or "",
        configurable.get("checkpoint_id") or None,
    )


def check_thread(owned: OwnedRun | None, thread_id: str | None) -> None:
    """Refuse a session that is used for another thread than its lease is for (None: no thread was named).

    Raises:
        ThreadMismatch: it is; the run the session belongs to is well.

    """
    if owned is not None and thread_id is not None and owned.lease.thread_id != thread_id:
        msg = (
            f"this session owns thread {owned.lease.thread_id!r}, not {thread_id!r}; "
            "a graph with a thread id of its own needs a lease of its own: bind it (runtime.bind(graph, name=…)) and "
            "invoke that, its call is then a run of its own"
        )
        raise ThreadMismatch(msg, thread_id=thread_id)


def get_tuple(saver: SaverContext, config: RunnableConfig) -> Flow[CheckpointTuple | None]:
    """Read one checkpoint, and remember what this invocation loaded."""
    place = place_of(config)
    core, owned = saver.core, saver.owned
    check_thread(owned, place.thread_id)
    if owned is not None:
        owned.check()
    found, content = yield from _read(saver, place)
    result = None
    if found is not None:
        result, manifest = encoding.checkpoint_tuple(found, saver.serde, content)
        content.keep()
        manifest = replace(manifest, seen=content.seen())
        core.remember((place.thread_id, place.ns, found.row["checkpoint_id"]), manifest)
        yield from sends.attach(saver, [(found.row, result)])
        clock.raise_to(found.row["checkpoint_id"])
        if owned is not None:
            owned.durable(found.row["checkpoint_id"])
            if owned.answered:
                result = encoding.without_answer(result)
    if owned is None:
        head = None if found is None else found.row["checkpoint_id"]
        asked = place.checkpoint_id is not None
        invocation = core.invocations.of(config["configurable"])
        core.invocations.loaded(invocation, (place.thread_id, place.ns), head, asked=asked)
    return result


def _read(saver: SaverContext, place: Place) -> Flow[tuple[Stored | None, ContentReader]]:
    engine = saver.core.engine
    coordinator = engine.coordinator
    found: Stored | None = None
    for _ in range(2):
        content = engine.content.reader()
        found = yield coordinator.read(
            "get_tuple",
            partial(
                queries.one,
                engine.space,
                place.thread_id,
                place.ns,
                place.checkpoint_id,
                content,
                encoding.references,
            ),
            brief=True,
        )
        if found is None or content.complete:
            break
        # Content that is missing may only mean that the thread was deleted between two statements: look again.
    return found, content


class Listing:
    """A listing in pages: between two pages nothing is held, so a caller may stop, or call the saver, at any time."""

    def __init__(
        self,
        saver: SaverContext,
        config: RunnableConfig | None,
        filter: dict[str, Any] | None,  # noqa: A002 (LangGraph's name)
        before: RunnableConfig | None,
        limit: int | None,
    ) -> None:
        """Check the arguments; nothing is read before the first page is asked for."""
        given: Any = limit  # not everybody's code is type-checked
        if given is not None and (not isinstance(given, int) or given < 0):
            msg = f"limit must be a whole number that is not negative, not {limit!r}"
            raise InvalidInput(msg, limit=repr(limit))
        configurable = (config or {}).get("configurable") or {}
        self._saver = saver
        self._config = config
        self._thread = thread_id_of(configurable["thread_id"]) if "thread_id" in configurable else None
        check_thread(saver.owned, self._thread)
        self._ns: str | None = configurable.get("checkpoint_ns")
        self._only: str | None = configurable.get("checkpoint_id") or None
        self._filter = filter or {}
        self._left = limit
        before_id = ((before or {}).get("configurable") or {}).get("checkpoint_id")
        self._place: Page | None = Page(before_id) if before_id else Page()

    def next(self) -> Flow[list[CheckpointTuple] | None]:
        """Return the next page (it may be empty when its rows do not match), None at the end."""
        if self._place is None or self._left == 0:
            return None
        saver, core = self._saver, self._saver.core
        engine, coordinator = core.engine, core.engine.coordinator
        place = self._place
        rows = limits.PAGE_ROWS if self._left is None or self._filter else min(self._left, limits.PAGE_ROWS)
        stored: list[Stored] = yield coordinator.read(
            "list",
            lambda: queries.page(engine.space, self._thread, self._ns, place, rows),
            snapshot=True,
        )
        self._note()
        self._place = None
        if len(stored) == rows:
            last = stored[-1].row
            self._place = Page(last["checkpoint_id"], last["thread_id"], last["checkpoint_ns"])
        content = engine.content.reader()
        wanted = self._wanted(stored, content)
        # Content is immutable and outlives the rows that refer to it: it need not be of the same moment as they are.
        if content.missing():
            yield coordinator.read("list_content", lambda: queries.fill(engine.space, content))
        read = [(one.row, encoding.checkpoint_tuple(one, saver.serde, content)[0]) for one in wanted]
        content.keep()
        yield from sends.attach(saver, read)
        if self._left is not None:
            self._left -= len(read)
        return [loaded for _, loaded in read]

    def _wanted(self, stored: list[Stored], content: ContentReader) -> list[Stored]:
        """Return the checkpoints of a page that were asked for; only their content is wanted."""
        found: list[Stored] = []
        for one in stored:
            refs = encoding.references(one.row, one.writes)
            if self._left is not None and len(found) >= self._left:
                break
            if self._only is not None and one.row["checkpoint_id"] != self._only:
                continue
            if matches(encoding.decoded_metadata(one.row["metadata"], self._saver.serde), self._filter):
                content.want(refs)
                found.append(one)
        return found

    def _note(self) -> None:
        """A namespace that was loaded by listing it is a fork (LangGraph loads replayed subgraphs this way)."""
        core = self._saver.core
        if self._saver.owned is None and self._config is not None and self._thread is not None:
            invocation = core.invocations.of(self._config["configurable"])
            core.invocations.loaded(invocation, (self._thread, self._ns or ""), None, asked=True)


__all__ = ["Listing", "get_tuple", "in_thread", "place_of"]
