"""Live streams: what a reader gets, and the frames it comes in from the process that executes the run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Self

import ormsgpack

BASE_MODES: Final = ("values", "updates", "custom")
"""Stream modes of LangGraph that every attempt has: they cost next to nothing, so whoever comes later has them too."""

EXTRA_MODES: Final = ("messages", "tasks", "checkpoints", "debug")
"""Those that change how a graph runs, or cost something: an attempt has them when somebody wanted them as it began."""

STREAM_MODES: Final = (*BASE_MODES, *EXTRA_MODES)

SUBGRAPHS: Final = "subgraphs"
"""Beside the modes: chunks of subgraphs, under the same condition as those of EXTRA_MODES."""

ATTEMPT, DROPPED, END = "attempt", "dropped", "end"
"""Modes of the chunks that speak of the stream itself."""


@dataclass(frozen=True, slots=True)
class StreamChunk:
    """One chunk of a run's live stream.

    Attributes:
        mode: a stream mode of LangGraph; or ``attempt`` (another attempt executes the run from here on: what its last
            one had streamed since its last checkpoint comes again), ``dropped`` (chunks are missing here), ``end`` (the
            run is final, nothing follows).
        data: the chunk as LangGraph gave it. ``attempt``: its ``cause`` (``initial``, ``takeover``, ``resume``,
            ``retry``), ``attempt_no``, and which of the wanted modes (or ``subgraphs``) are ``missing``;
            ``dropped``: how many ``chunks``; ``end``: ``status``, and ``result``, or ``error_code`` and
            ``error_summary``.
        ns: the subgraph it comes from, as LangGraph writes it (empty: the graph itself).
        attempt_id: the attempt it comes from.
        epoch: the fencing token of its lease.

    """

    mode: str
    data: Any
    ns: tuple[str, ...] = ()
    attempt_id: str | None = None
    epoch: int | None = None


BEGIN, CHUNK, OVER = "begin", "chunk", "over"


@dataclass(frozen=True, slots=True)
class Frame:
    """What one process sends to another about an attempt.

    Attributes:
        kind: ``begin`` (it executes the run now), ``chunk``, or ``over`` (nothing of this attempt follows).
        attempt_id: of which attempt.
        epoch: the fencing token of its lease.
        number: chunks that came before in this attempt, sent or not.
        mode: of the chunk; of ``begin``: all modes it has, with commas.
        ns: the subgraph.
        form: how the serializer wrote the data.
        data: its bytes.

    """

    kind: str
    attempt_id: str
    epoch: int
    number: int
    mode: str = ""
    ns: tuple[str, ...] = ()
    form: str = ""
    data: bytes = b""

    def encoded(self) -> bytes:
        """Return it as bytes."""
        return ormsgpack.packb(
            [self.kind, self.attempt_id, self.epoch, self.number, self.mode, list(self.ns), self.form, self.data]
        )

    @classmethod
    def decoded(cls, data: bytes) -> Self:
        """Return what bytes say."""
        kind, attempt_id, epoch, number, mode, ns, form, body = ormsgpack.unpackb(data)
        return cls(kind, attempt_id, epoch, number, mode, tuple(ns), form, body)


@dataclass(frozen=True, slots=True)
class Wish:
    """That somebody reads the stream of a run.

    Attributes:
        run_id: the run.
        modes: what he wants.
        subgraphs: of its subgraphs too.
        first: he has not said so before.

    """

    run_id: str
    modes: tuple[str, ...]
    subgraphs: bool
    first: bool = True

    def encoded(self) -> bytes:
        """Return it as bytes."""
        return ormsgpack.packb([self.run_id, list(self.modes), self.subgraphs, self.first])

    @classmethod
    def decoded(cls, data: bytes) -> Self:
        """Return what bytes say."""
        run_id, modes, subgraphs, first = ormsgpack.unpackb(data)
        return cls(run_id, tuple(modes), subgraphs, first)
