"""One picture of a run: attempts and operations over time, a band for each epoch, a mark for each takeover. Pure.

A run may wait for days between seconds of work. Time in which nothing of it was active is drawn as a short break that
says how long it was, so what happened stays readable.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from runtime_persist.inspector.spelling import spelled

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from runtime_persist.inspector.bundle import AttemptView, BundleView, OperationView

LABELS: Final = 190
"""Units at the left for the names of the rows."""
WIDTH: Final = 1_200
OPERATIONS_MAX: Final = 40
"""Rows of operations that are drawn: the newest."""
CHECKPOINTS_MAX: Final = 500

_RIGHT: Final = WIDTH - 16
_ROW: Final = 24
_BAR: Final = 14
_HEAD: Final = 40  # labels of epochs, and of takeovers below them
_FOOT: Final = 26  # the axis
_BREAK: Final = 44
_LEAST: Final = 3.0  # of a bar, so that an instant is seen
_IDLE_SHARE: Final = 0.12  # a wait is drawn as a break when it is longer than this share of the active time …
_IDLE_US: Final = 500_000  # … and than this
_NAME_CHARS: Final = 26
_TICKS: Final = 6
_SECOND: Final = 1_000_000
_STEPS_US: Final = (
    *(unit * number for unit in (1_000, 10_000, 100_000) for number in (1, 2, 5)),
    *(1_000_000 * number for number in (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 14_400)),
    *(86_400_000_000 * number for number in (1, 2, 7, 14, 30, 90, 365)),
)


@dataclass(frozen=True, slots=True)
class Bar:
    """Something that lasted. ``state`` is a class of the style sheet; ``said`` is its tooltip."""

    x: float
    width: float
    state: str
    said: str
    fence: float | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the picture: its name (cut), the whole name, and what lies on it."""

    name: str
    said: str
    y: float
    bars: list[Bar]


@dataclass(frozen=True, slots=True)
class Band:
    """The time of one epoch; every other one is tinted."""

    x: float
    width: float
    label: str
    tinted: bool


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment with a word: a takeover, a time on the axis, a break in it."""

    x: float
    label: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """The picture, in units of an SVG view box of :data:`WIDTH` × ``height``.

    Attributes:
        height: of it.
        said: the same in a sentence, for those who do not see it.
        bands: epochs.
        attempts: the line of attempts.
        operations: a line an operation.
        checkpoints: where they were stored, on the line at ``checkpoints_y``.
        takeovers: marks.
        axis: times, as they are since the run was created.
        breaks: time that is not drawn.
        left_out: older operations that are not drawn.

    """

    height: int
    said: str
    bands: list[Band]
    attempts: Row
    operations: list[Row]
    checkpoints: list[float]
    checkpoints_y: float
    takeovers: list[Mark]
    axis: list[Mark]
    breaks: list[Mark]
    left_out: int


@dataclass(frozen=True, slots=True)
class _Piece:
    """A stretch of time and where it is drawn."""

    begin: int
    end: int
    x: float
    width: float
    idle: bool


class _Scale:
    """Moments (microseconds) to places."""

    def __init__(self, busy: list[tuple[int, int]]) -> None:
        merged = _merged(busy)
        active = sum(end - begin for begin, end in merged) or 1
        least = max(_IDLE_US, int(active * _IDLE_SHARE))
        spans: list[tuple[int, int, bool]] = []
        for begin, end in merged:
            if spans and begin - spans[-1][1] > least:
                spans.append((spans[-1][1], begin, True))
            elif spans:
                begin = spans.pop()[0]  # noqa: PLW2901 (a short wait is part of what it lies between)
            spans.append((begin, end, False))
        breaks = sum(idle for _, _, idle in spans)
        drawn = sum(end - begin for begin, end, idle in spans if not idle) or 1
        room = max(_RIGHT - LABELS - breaks * _BREAK, 200)
        self.pieces: list[_Piece] = []
        x = float(LABELS)
        for begin, end, idle in spans:
            width = float(_BREAK) if idle else room * (end - begin) / drawn
            self.pieces.append(_Piece(begin, end, x, width, idle))
            x += width

    def at(self, us: int) -> float:
        """Return the place of a moment."""
        for piece in self.pieces:
            if us <= piece.end:
                share = max(us - piece.begin, 0) / max(piece.end - piece.begin, 1)
                return round(piece.x + share * piece.width, 1)
        last = self.pieces[-1]
        return round(last.x + last.width, 1)

    def bar(self, begin: int, end: int, state: str, said: str, fence: int | None = None) -> Bar:
        """Return the bar from one moment to another."""
        x = self.at(begin)
        width = max(self.at(end) - x, _LEAST)
        return Bar(min(x, _RIGHT - _LEAST), round(width, 1), state, said, None if fence is None else self.at(fence))


def _merged(busy: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for begin, end in sorted(busy):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, max(begin, end)))
    return merged


def timeline(view: BundleView, now_us: int) -> Timeline:
    """Return the picture of a run as it was read at a moment of the database clock."""
    run, attempts = view.run, [one for one in view.attempts if one.claimed_us is not None]
    operations = [one for one in view.operations if one.tries]
    left_out = max(len(operations) - OPERATIONS_MAX, 0)
    operations = operations[left_out:]
    checkpoints = [one.created_us for one in view.checkpoints][-CHECKPOINTS_MAX:]
    stop = _stop(view, now_us)
    busy = [(run.created_us, run.created_us), *((us, us) for us in checkpoints)]
    busy += [(one.claimed_us or 0, _ended(one, stop)) for one in attempts]
    busy += [(tried.started_us, tried.ended_us or stop) for one in operations for tried in one.tries]
    scale = _Scale(busy)
    lines = [
        _operation(scale, operation, stop, _HEAD + _ROW * (number + 1)) for number, operation in enumerate(operations)
    ]
    below = _HEAD + _ROW * (len(lines) + 1)
    bars = [scale.bar(*_attempt(one, stop, view)) for one in attempts]
    takeovers = [one for one in attempts if one.cause == "takeover"]
    return Timeline(
        height=below + _ROW + _FOOT,
        said=_said(view, len(takeovers)),
        bands=_bands(scale, attempts, stop),
        attempts=Row("attempts", "attempts", _HEAD, bars),
        operations=lines,
        checkpoints=sorted({scale.at(us) for us in checkpoints}),
        checkpoints_y=below,
        takeovers=[Mark(scale.at(one.claimed_us or 0), f"takeover → epoch {one.epoch}") for one in takeovers],
        axis=_axis(scale, run.created_us),
        breaks=[Mark(one.x + one.width / 2, spelled(one.end - one.begin)) for one in scale.pieces if one.idle],
        left_out=left_out,
    )


def _stop(view: BundleView, now_us: int) -> int:
    """Return until when something of the run that has no end yet is drawn."""
    if view.run.finished_us is not None:
        return view.run.finished_us
    return min(now_us, view.run.expires_us) if view.run.shown == "unknown" else now_us


def _ended(attempt: AttemptView, stop: int) -> int:
    return attempt.ended_us or max(stop, attempt.claimed_us or 0)


def _attempt(attempt: AttemptView, stop: int, view: BundleView) -> tuple[int, int, str, str, int | None]:
    end = _ended(attempt, stop)
    begin = attempt.claimed_us or 0
    state = attempt.status
    if attempt.ended_us is None and view.run.shown == "unknown":
        state = "unknown"
    said = f"attempt {attempt.attempt_no}, epoch {attempt.epoch}, {attempt.cause}: {state}, {spelled(end - begin)}"
    return begin, end, state, f"{said}, worker {attempt.worker_id or '–'}", attempt.start_requested_us


def _operation(scale: _Scale, operation: OperationView, stop: int, y: int) -> Row:
    bars = []
    for tried in operation.tries:
        end = tried.ended_us or max(stop, tried.started_us)
        said = f"{operation.name}, try {tried.try_no}, epoch {tried.epoch}: {tried.shown}"
        state = "running" if tried.shown == "started" else tried.shown
        bars.append(scale.bar(tried.started_us, end, state, f"{said}, {spelled(end - tried.started_us)}"))
    said = f"{operation.name}({operation.request})"
    return Row(_cut(operation.name), said, y, bars)


def _bands(scale: _Scale, attempts: Sequence[AttemptView], stop: int) -> list[Band]:
    """Return a band for each epoch: from its claim to the next one's."""
    first: dict[int, AttemptView] = {}
    for one in attempts:
        if one.epoch is not None:
            first.setdefault(one.epoch, one)
    epochs = sorted(first)
    bands = []
    for number, epoch in enumerate(epochs):
        last = max(_ended(one, stop) for one in attempts if one.epoch == epoch)
        after = first[epochs[number + 1]].claimed_us if number + 1 < len(epochs) else None
        x = scale.at(first[epoch].claimed_us or 0)
        width = max(scale.at(last if after is None else min(after, max(last, after))) - x, _LEAST)
        bands.append(Band(x, round(width, 1), f"epoch {epoch}", tinted=number % 2 == 0))
    return bands


def _axis(scale: _Scale, zero: int) -> list[Mark]:
    """Return times since the run was created, at even steps of what is drawn."""
    drawn = sum(one.end - one.begin for one in scale.pieces if not one.idle)
    step = next((one for one in _STEPS_US if one * _TICKS >= drawn), _STEPS_US[-1])
    marks: list[Mark] = []
    for piece in scale.pieces:
        if piece.idle:
            continue
        at = zero + -(-(piece.begin - zero) // step) * step
        while at <= piece.end:
            x = scale.at(at)
            if not marks or x - marks[-1].x > _BREAK:
                marks.append(Mark(x, _since(at - zero, step)))
            at += step
    return marks


def _since(us: int, step: int) -> str:
    """Return a time since the beginning, as exact as the step of the axis needs it."""
    if us == 0:
        return "0"
    if step >= _SECOND:
        return f"+{spelled(us)}"
    return f"+{us // 1_000} ms" if us < _SECOND else f"+{us / _SECOND:.3f}".rstrip("0").rstrip(".") + " s"


def _said(view: BundleView, takeovers: int) -> str:
    run = view.run
    unknown = sum(tried.shown == "unknown" for one in view.operations for tried in one.tries)
    parts = [
        f"{len(view.attempts)} attempts",
        f"{takeovers} takeovers",
        f"{len(view.operations)} operations",
        f"{unknown} tries of unknown outcome",
        f"{len(view.checkpoints)} checkpoints",
    ]
    return f"Run {run.shown}: {', '.join(parts)}. The tables below have the same."


def _cut(text: str) -> str:
    return text if len(text) <= _NAME_CHARS else text[: _NAME_CHARS - 1] + "…"
