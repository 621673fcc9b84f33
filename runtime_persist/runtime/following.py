"""Following a run: its events, and its live stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime_persist.runtime.events import RunEvents
from runtime_persist.runtime.streaming import Stream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

    from langgraph.checkpoint.serde.base import SerializerProtocol

    from runtime_persist.engine import Engine
    from runtime_persist.model.records import EventRecord
    from runtime_persist.model.streams import StreamChunk


class Following:
    """Part of :class:`runtime_persist.runtime.runs.Runs`."""

    _engine: Engine
    _serde: SerializerProtocol

    def events(self, run_id: str, *, after: int = 0, wait: bool = False) -> Iterator[EventRecord]:
        """Yield the committed events of a run, in order.

        Args:
            run_id: the run.
            after: begin behind the event of this number (``seq`` of the last one that was seen).
            wait: go on as events come, until the run is final; without it end at the last one there is.

        Raises:
            RunNotFound: there is no such run (any more).

        """
        return iter(RunEvents(self._engine, run_id, after, wait=wait))

    def aevents(self, run_id: str, *, after: int = 0, wait: bool = False) -> AsyncIterator[EventRecord]:
        """Do :meth:`events` on an event loop."""
        return aiter(RunEvents(self._engine, run_id, after, wait=wait))

    def stream(
        self, run_id: str, stream_mode: str | Sequence[str] = "updates", *, subgraphs: bool = False
    ) -> Iterator[StreamChunk]:
        """Yield what the run streams while it is executed, in whatever process that is, until it is final.

        It can be called before the run begins, by as many readers as there are. Best effort, and never stored: what
        was streamed before nobody can read any more, a reader that is too slow misses chunks (and is told how many),
        and neither ever makes the run wait. The last chunk has the run's result.

        Args:
            run_id: the run.
            stream_mode: ``values``, ``updates``, ``custom``, ``messages``, ``tasks``, ``checkpoints``, ``debug``, or
                several of them. All but the first three only come from attempts that begin while somebody reads them;
                the chunk ``attempt`` says which are missing.
            subgraphs: also what subgraphs stream.

        Raises:
            InvalidInput: no such mode.
            RunNotFound: there is no such run.

        """
        return iter(Stream(self._engine, self._serde, run_id, stream_mode, subgraphs=subgraphs))

    def astream(
        self, run_id: str, stream_mode: str | Sequence[str] = "updates", *, subgraphs: bool = False
    ) -> AsyncIterator[StreamChunk]:
        """Do :meth:`stream` on an event loop."""
        return aiter(Stream(self._engine, self._serde, run_id, stream_mode, subgraphs=subgraphs))
