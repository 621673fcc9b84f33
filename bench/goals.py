"""The goals of the storage path, each a ratio to a peer in the same round, and what was reached."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench import graphs, growth, micro, queues
from bench.big_run_sides import QUESTIONS
from bench.loads import KB, MB
from bench.queue_contestants import CONTESTANTS, DBOS, PROCRASTINATE
from bench.report.tables import NOISY_MARK, Rows, Table, count
from bench.storage import CHAT, FILE, FILES, exponent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Results = dict[str, Rows]


@dataclass(frozen=True)
class Reached:
    """What was measured for a goal.

    Attributes:
        value: the ratio (or the number itself, where there is no peer).
        detail: what it was made of.
        others: share of the machine that others took then, None where no time is measured.
        turn: the round whose ratio this is, counted from 1.
        noisy: no round was quiet.

    """

    value: float
    detail: str
    others: float | None = None
    noisy: bool = False
    turn: int | None = None

    @property
    def noise(self) -> str:
        return "" if self.others is None else f"{self.others:.0%} in round {self.turn}"


@dataclass(frozen=True)
class Goal:
    """One line of the table.

    Attributes:
        work: what is done.
        peer: whom it is compared with.
        must: the least that has to be reached (what prototypes reached, less a tenth).
        goal: what shall be reached.
        most: goal and must are upper limits.
        measure: results -> what was reached, None where it was not measured.
        owned: the same for writes under a run's lease.
        unit: behind the numbers.

    """

    work: str
    peer: str
    must: float
    goal: float
    measure: Callable[[Results], Reached | None]
    owned: Callable[[Results], Reached | None] | None = None
    most: bool = False
    unit: str = "×"

    def verdict(self, reached: Reached) -> str:
        """Return whether the goal, or at least the must, is reached."""
        for limit, word in ((self.goal, "reached"), (self.must, "must reached")):
            if reached.value <= limit if self.most else reached.value >= limit:
                return word
        return "**missed**"


def _rounds(rows: Rows, *keys: str, **wanted: Any) -> list[tuple[dict[str, Any], ...]]:
    """Return the rows of several savers that belong to one round, quiet rounds if there are any."""
    by_round: dict[int, dict[str, dict[str, Any]]] = {}
    for row in rows:
        if all(row[name] == value for name, value in wanted.items()) and row["saver"] in keys:
            by_round.setdefault(row["round"], {})[row["saver"]] = row
    together = [tuple(found[key] for key in keys) for found in by_round.values() if len(found) == len(set(keys))]
    return [rows for rows in together if not any(row["noisy"] for row in rows)] or together


def _middle(
    rounds: list[tuple[dict[str, Any], ...]], ratio: Callable[..., float], detail: Callable[..., str]
) -> Reached | None:
    """Return the round whose ratio is the median."""
    if not rounds:
        return None
    ratios = [ratio(*rows) for rows in rounds]
    rows = rounds[ratios.index(statistics.median_low(ratios))]
    heard = [row["others"] for row in rows if row["others"] is not None]
    noisy = any(row["noisy"] for row in rows)
    return Reached(ratio(*rows), detail(*rows), max(heard, default=None), noisy, rows[0]["round"] + 1)


def _speed(ours: str, peer: str, operation: str, size: int, callers: int, part: str = "micro"):
    """One caller: by p50. Many: by throughput."""

    def ratio(mine, other) -> float:
        return other["p50"] / mine["p50"] if callers == 1 else mine["ops"] / other["ops"]

    def detail(mine, other) -> str:
        if callers == 1:
            return f"{count(mine['p50'])} / {count(other['p50'])} ms"
        return f"{count(mine['ops'])} / {count(other['ops'])} a second"

    def measure(results: Results) -> Reached | None:
        rounds = _rounds(results.get(part, []), ours, peer, operation=operation, size=size, callers=callers)
        return _middle(rounds, ratio, detail)

    return measure


def _overhead(ours: str, peer: str):
    """How much longer than without a saver a step takes, over the same of the peer."""

    def measure(results: Results) -> Reached | None:
        wanted = {"graph": graphs.LOOP, "durability": graphs.SYNC, "callers": 1}
        rounds = _rounds(results.get("graphs", []), ours, peer, "none", **wanted)
        return _middle(
            rounds,
            lambda mine, other, bare: (mine["ms"] - bare["ms"]) / (other["ms"] - bare["ms"]),
            lambda mine, other, bare: f"{count(mine['ms'])} / {count(other['ms'])} ms, bare {count(bare['ms'])}",
        )

    return measure


def _fan_out(ours: str, peer: str, callers: int):
    def measure(results: Results) -> Reached | None:
        wanted = {"graph": graphs.FAN_OUT, "durability": graphs.ASYNC, "callers": callers}
        rounds = _rounds(results.get("graphs", []), ours, peer, **wanted)
        return _middle(
            rounds,
            lambda mine, other: other["ms"] / mine["ms"],
            lambda mine, other: f"{count(mine['ms'])} / {count(other['ms'])} ms a task",
        )

    return measure


def _sizes(results: Results, saver: str, document: str) -> dict[int, int]:
    return {
        row["turns"]: row["bytes"]
        for row in results.get("storage", [])
        if row["case"] == CHAT and row["saver"] == saver and row["document"] == document
    }


def _smaller(ours: str, peer: str, document: str):
    def measure(results: Results) -> Reached | None:
        mine, other = _sizes(results, ours, document), _sizes(results, peer, document)
        if not mine or not other:
            return None
        last = max(mine)
        return Reached(other[last] / mine[last], f"{mine[last] / 1e6:.2f} / {other[last] / 1e6:.2f} MB, {last} turns")

    return measure


def _exponent(ours: str):
    def measure(results: Results) -> Reached | None:
        sizes = _sizes(results, ours, "dict")
        if len(sizes) < 2:
            return None
        *_, before, last = sorted(sizes)
        return Reached(exponent((before, last), (sizes[before], sizes[last])), f"from {before} to {last} turns")

    return measure


def _grows(ours: str, operation: str):
    def measure(results: Results) -> Reached | None:
        rows = [row for row in results.get("growth", []) if row["saver"] == ours and row["operation"] == operation]
        if not rows:
            return None
        lengths = sorted({row["length"] for row in rows})
        ends = [
            [row | {"saver": str(row["length"])} for row in rows if row["length"] == lengths[end]] for end in (0, -1)
        ]
        return _middle(
            _rounds([*ends[0], *ends[1]], str(lengths[-1]), str(lengths[0])),
            lambda long, short: long["p50"] / short["p50"],
            lambda long, short: f"{count(long['p50'])} / {count(short['p50'])} ms, {lengths[-1]:,} / {lengths[0]}",
        )

    return measure


def _line(name: str, words: str, database: str):
    """A number of the part rows."""

    def measure(results: Results) -> Reached | None:
        for row in results.get("rows", []):
            if row["row"] == name and words in row["what"] and row["database"] == database and "ours" in row["saver"]:
                return Reached(row["value"], row["what"])
        return None

    return measure


def _file_bytes(ours: str, *, more: bool):
    def measure(results: Results) -> Reached | None:
        sizes = {row["case"]: row["bytes"] / 1e6 for row in results.get("storage", []) if row["saver"] == ours}
        if FILES not in sizes:
            return None
        return Reached((sizes[FILES] - sizes[FILE]) / 9, "9 more threads") if more else Reached(sizes[FILE], FILE)

    return measure


def _queue(database: str, kind: str, what: str, concurrency: int):
    """Against the fastest of a peer's settings in the same round."""
    ours = next(one.key for one in CONTESTANTS if one.ours and one.database == database)
    theirs = [one.key for one in CONTESTANTS if one.kind == kind and one.database == database]

    def measure(results: Results) -> Reached | None:
        rows = [row for row in results.get("queues", []) if (row["what"], row["concurrency"]) == (what, concurrency)]
        there = [key for key in theirs if any(row["saver"] == key for row in rows)]
        if not there:
            return None
        if what == queues.CLAIMS:
            return _middle(
                _rounds(rows, ours, *there),
                lambda mine, *others: mine["ops"] / max(other["ops"] for other in others),
                lambda mine, *others: f"{count(mine['ops'])} / {count(max(other['ops'] for other in others))} a second",
            )
        return _middle(
            _rounds(rows, ours, *there),
            lambda mine, *others: min(other["p50"] for other in others) / mine["p50"],
            lambda mine, *others: f"{count(mine['p50'])} / {count(min(other['p50'] for other in others))} ms",
        )

    return measure


_PG, _LITE, _PG_SYNC, _LITE_SYNC = "postgres-async", "sqlite-async", "postgres-sync", "sqlite-sync"
_PEERS = {
    _PG: "AsyncPostgresSaver",
    _LITE: "AsyncSqliteSaver",
    _PG_SYNC: "PostgresSaver",
    _LITE_SYNC: "SqliteSaver",
}
_OWNED = {_PG: "postgres-owned", _LITE: "sqlite-owned"}
_PLACES = {_PG: "PostgreSQL", _LITE: "SQLite", _PG_SYNC: "PostgreSQL, sync", _LITE_SYNC: "SQLite, sync"}


def _fast(ours: str, operation: str, size: int, callers: int, must: float, goal: float, part: str = "micro") -> Goal:
    disk = "" if part == "micro" else ", 2 ms disk"
    name = f"{operation}, {micro.shown_size(size)}, {callers} caller{'s' * (callers > 1)}, {_PLACES[ours]}{disk}"
    owned = None
    if ours in _OWNED and operation != micro.GET:
        owned = _speed(_OWNED[ours], _PEERS[ours], operation, size, callers, part)
    return Goal(name, _PEERS[ours], must, goal, _speed(ours, _PEERS[ours], operation, size, callers, part), owned)


def _all() -> Iterator[Goal]:
    put, writes, get = micro.PUT, micro.WRITES_1, micro.GET
    yield _fast(_PG, put, KB, 1, 1.0, 1.2)
    yield _fast(_PG, put, 32 * KB, 1, 1.7, 2.0)
    yield _fast(_PG, put, MB, 1, 6.9, 7.0)
    yield _fast(_PG, put, KB, 64, 6.9, 8.0)
    yield _fast(_PG, writes, KB, 64, 8.4, 9.0)
    yield _fast(_PG, put, 32 * KB, 64, 4.0, 4.0)
    yield _fast(_PG, writes, 32 * KB, 64, 4.0, 4.0)
    yield _fast(_PG_SYNC, put, KB, 1, 0.73, 0.9)
    yield _fast(_PG_SYNC, put, KB, 64, 2.8, 3.0)
    yield _fast(_LITE, put, KB, 1, 1.08, 1.25)
    yield _fast(_LITE, put, KB, 64, 3.4, 4.0)
    yield _fast(_LITE_SYNC, put, KB, 1, 0.59, 0.8)
    yield _fast(_LITE_SYNC, put, KB, 64, 1.35, 1.5)
    yield _fast(_PG, put, KB, 64, 15, 15, "slow_disk")
    yield _fast(_LITE, put, KB, 64, 12, 12, "slow_disk")
    yield _fast(_PG, get, KB, 1, 1.18, 1.3)
    yield _fast(_PG, get, 32 * KB, 1, 1.23, 1.3)
    yield _fast(_PG, get, MB, 1, 1.29, 1.4)
    yield _fast(_LITE, get, KB, 1, 2.0, 2.0)
    for ours, must, goal in ((_PG, 0.44, 0.35), (_LITE, 0.85, 0.75)):
        owned = _overhead(_OWNED[ours], _PEERS[ours])
        name = f"loop: overhead a step, durability sync, {_PLACES[ours]}"
        yield Goal(name, _PEERS[ours], must, goal, _overhead(ours, _PEERS[ours]), owned, most=True)
    for ours, must in ((_PG, 2.2), (_LITE, 2.5)):
        for callers in (1, 8):
            name = f"fan-out of {graphs.SENDS} Sends, durability async, {callers} at once, {_PLACES[ours]}"
            owned = _fan_out(_OWNED[ours], _PEERS[ours], callers)
            yield Goal(name, _PEERS[ours], must, 2.7, _fan_out(ours, _PEERS[ours], callers), owned)
    for ours, document, must, goal in ((_PG, "dict", 5.6, 14), (_PG, "str", 11.2, 28), (_LITE, "dict", 25, 60)):
        name = f"bytes of the chat, document a {document}, {_PLACES[ours]}"
        yield Goal(name, _PEERS[ours], must, goal, _smaller(ours, _PEERS[ours], document), unit="× smaller")
    for ours in (_PG, _LITE):
        name = f"growth of bytes with turns, {_PLACES[ours]}"
        yield Goal(name, "–", 1.1, 1.1, _exponent(ours), most=True, unit="(exponent)")
    for ours in (_PG, _LITE):
        for operation in (growth.PUT, growth.GET):
            name = f"{operation} in the longest thread against the shortest, {_PLACES[ours]}"
            yield Goal(name, "–", 1.2, 1.2, _grows(ours, operation), most=True)
    yield Goal(
        "a row locked for 1 s: others' p95", "–", 200, 200, _line("F3", "p95", "PostgreSQL"), most=True, unit="ms"
    )
    for ours in (_PG, _LITE):
        place = _PLACES[ours]
        yield Goal(f"E1: one thread, {place}", "–", 10, 10, _file_bytes(ours, more=False), most=True, unit="MB")
        yield Goal(f"E1: a further thread, {place}", "–", 1, 1, _file_bytes(ours, more=True), most=True, unit="MB")
        yield Goal(
            f"F10: list of 200, {place}", "–", 5, 5, _line("F10", "statements", place), most=True, unit="statements"
        )
        peak = _line("L1", "value of 300 MB", place)
        yield Goal(f"L1: peak memory of 300 MB, {place}", "–", 4, 4, peak, most=True, unit="× its size")


def _of_queues() -> Iterator[Goal]:
    for place, kind in ((_PLACES[_LITE], DBOS), (_PLACES[_PG], DBOS), (_PLACES[_PG], PROCRASTINATE)):
        for what in queues.MEASURES:
            for concurrency in queues.CONCURRENCY:
                name = f"worker: {what}, {concurrency} at once, {place}"
                yield Goal(name, kind, 1.0, 1.0, _queue(place, kind, what, concurrency))


def _step(prefix: str):
    def measure(results: Results) -> Reached | None:
        return _middle(
            _rounds(results.get("steps", []), f"{prefix}-ours", f"{prefix}-dbos"),
            lambda mine, other: mine["ms"] / other["ms"],
            lambda mine, other: f"{count(mine['ms'])} / {count(other['ms'])} ms",
        )

    return measure


def _of_steps() -> Iterator[Goal]:
    for ours in (_LITE, _PG):
        measure = _step(ours.partition("-")[0])
        yield Goal(f"a journalled call, {_PLACES[ours]}", f"{DBOS} step", 0.5, 0.5, measure, most=True)


def _looked(database: str, asked: str):
    """Milliseconds of a question about the longest run."""

    def measure(results: Results) -> Reached | None:
        rows = [row for row in results.get("big_run", []) if (row["database"], row["asked"]) == (database, asked)]
        longest = max((row["size"] for row in rows), default=0)
        rounds = [(row,) for row in rows if row["size"] == longest]
        return _middle(rounds, lambda row: row["ms"], lambda row: f"{row['size']:,} of each kind")

    return measure


def _memory(database: str):
    """The peak memory of whoever looks into the longest run, in that for the shortest one."""

    def measure(results: Results) -> Reached | None:
        peaks: dict[int, float] = {}
        for row in results.get("big_run", []):
            if row["database"] == database:
                peaks[row["size"]] = max(row["peak"] / 1e6, peaks.get(row["size"], 0))
        if not peaks:
            return None
        long, short = peaks[max(peaks)], peaks[min(peaks)]
        return Reached(long / short, f"{count(long)} / {count(short)} MB")

    return measure


def _of_big_runs() -> Iterator[Goal]:
    for ours in (_LITE, _PG):
        place = _PLACES[ours]
        for asked in QUESTIONS:
            yield Goal(f"long run: {asked}, {place}", "–", 300, 300, _looked(place, asked), most=True, unit="ms")
        yield Goal(f"long run: peak memory, {place}", "a short one", 1.2, 1.2, _memory(place), most=True)


GOALS = (*_all(), *_of_queues(), *_of_steps(), *_of_big_runs())


def table(results: Results) -> Table:
    """Return every goal that was measured."""
    lines = []
    for goal in GOALS:
        reached = goal.measure(results)
        if reached is None:
            continue
        owned = goal.owned(results) if goal.owned else None
        sign = "≤" if goal.most else "≥"
        lines.append(
            [
                goal.work,
                goal.peer,
                f"{sign} {goal.must:g}",
                f"{sign} {goal.goal:g} {goal.unit}",
                f"{count(reached.value)}{NOISY_MARK * reached.noisy}",
                "" if owned is None else f"{count(owned.value)}{NOISY_MARK * owned.noisy}",
                goal.verdict(reached),
                reached.detail,
                reached.noise,
            ]
        )
    head = ["work", "peer", "must", "goal", "measured", "owned run", "", "ours / peer", "others' CPU"]
    return Table("Goals: ratios within one round (the median round is shown)", head, lines)
