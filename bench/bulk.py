"""Many checkpoints by a few statements: a thread that a saver wrote is copied inside its own tables.

The loader knows no layout. It copies the rows of a template thread and gives those columns that must differ a new
value, whichever saver's tables they stand in: thread, checkpoint, version, content address.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.databases import columns_of, is_postgresql, keys_of, run

if TYPE_CHECKING:
    from collections.abc import Iterable

TEMPLATE = "template"
_PER_CHECKPOINT = {"checkpoint_id", "version", "address"}
_ID = "1e000000-0000-6000-8000-"  # smaller than every id that is made today
_THREADS_AT_ONCE = 1_000
_TIMES = ("created_us", "started_us", "ended_us")
_SECOND_US = 1_000_000


def checkpoint_id(number: int) -> str:
    """Return the id of a thread's copied checkpoint."""
    return f"{_ID}{number:012d}"


def version(number: int) -> str:
    """Return the version of the channels in it."""
    return f"{number:032d}.0"


async def fill(where: str, names: str, threads: int, checkpoints: int, *, heads: bool) -> None:
    """Copy the template thread's newest checkpoint.

    Args:
        where: the database.
        names: of the threads: a number is put behind it when there are several.
        threads: how many.
        checkpoints: in each.
        heads: also copy what each thread has once; otherwise a put has to make it.

    """
    keys = await keys_of(where)
    for table, columns in (await columns_of(where)).items():
        each = keys.get(table, set()) & _PER_CHECKPOINT
        if not each and not (heads and columns.keys() & {"thread_id"}):
            continue
        dialect = _Postgres if is_postgresql(where) else _Sqlite
        source = f'(SELECT * FROM "{table}" AS s{_of_template(columns)} LIMIT 1) AS s'  # noqa: S608 (our own words)
        if not await run(where, f"SELECT 1 FROM {source}"):  # noqa: S608
            continue  # runs, operations: this thread has none
        values = {
            "thread_id": dialect.joined(names, "t") if threads > 1 else f"'{names}'",
            "thread_hash": dialect.random,
            "checkpoint_id": dialect.padded(_ID, "c", 12, ""),
            "parent_id": dialect.padded(_ID, "c - 1", 12, ""),
            "parent_checkpoint_id": dialect.padded(_ID, "c - 1", 12, ""),
            "version": dialect.padded("", "c", 32, ".0"),
            "address": dialect.random,
        }
        chosen = ", ".join(values.get(column, f's."{column}"') for column in columns)
        listed = ", ".join(f'"{column}"' for column in columns)
        for first in range(0, threads, _THREADS_AT_ONCE):
            last = min(first + _THREADS_AT_ONCE, threads) - 1
            series = dialect.series(first, last, checkpoints if each else 1)
            sql = f'INSERT INTO "{table}" ({listed}) {series.format(chosen=chosen, source=source)}'
            await run(where, *dialect.before, sql)
    await run(where, *dialect.after)


async def lengthen(where: str, times: int) -> None:
    """Copy the newest checkpoint, operation, try and event of the only run in a database, so many times each.

    Each copy is a second older than the next, but events: they follow the last one. Each operation is of a task of
    its own, as those of a long loop are. (Fingerprints are the original's: what verifies them finds them wrong.)
    """
    dialect = _Postgres if is_postgresql(where) else _Sqlite
    await run(where, *dialect.before)
    tables = await columns_of(where)
    (seq, position) = (await run(where, "SELECT max(seq), max(position) FROM rp_events"))[0]
    operation = dialect.padded("00000000-0000-7000-8000-", "c", 12, "")
    at = {
        "checkpoint_id": dialect.padded(_ID, "c", 12, ""),
        "parent_id": dialect.padded(_ID, "c - 1", 12, ""),
    }
    copies = {
        "rp_checkpoints": ("checkpoint_id", at),
        "rp_writes": ("checkpoint_id", at),
        "rp_operations": (
            "operation_id",
            {
                "operation_id": operation,
                "checkpoint_ns": dialect.padded("node:00000000-0000-5000-8000-", "c", 12, ""),
                "idempotency_key": operation,
            },
        ),
        "rp_operation_tries": ("operation_id", {"operation_id": operation}),
        "rp_events": (
            "seq",
            {"created_us": "s.created_us", "seq": f"{seq} + c", "position": f"{position} + c", "dedupe_key": "NULL"},
        ),
    }
    for table, (newest, values) in copies.items():
        source = f"(SELECT * FROM {table} ORDER BY {newest} DESC LIMIT 1) AS s"  # noqa: S608 (our own words)
        earlier = {name: f"s.{name} - CAST({_SECOND_US} AS bigint) * ({times} + 1 - c)" for name in _TIMES}
        chosen = ", ".join((earlier | values).get(column, f's."{column}"') for column in tables[table])
        listed = ", ".join(f'"{column}"' for column in tables[table])
        series = dialect.series(1, 1, times).format(chosen=chosen, source=source)
        await run(where, *dialect.before, f"INSERT INTO {table} ({listed}) {series}")
    told = f"event_seq = {seq + times}, event_position = {position + times}"
    await run(where, f"UPDATE rp_runs SET {told}", *dialect.after)  # noqa: S608


def _of_template(columns: Iterable[str]) -> str:
    return f" WHERE s.thread_id = '{TEMPLATE}'" if "thread_id" in columns else ""


class _Postgres:
    before = ("SET synchronous_commit = off",)
    after = ("VACUUM ANALYZE", "CHECKPOINT")
    random = "decode(md5(random()::text || t || c), 'hex')"

    @staticmethod
    def joined(text: str, number: str) -> str:
        return f"'{text}' || {number}"

    @staticmethod
    def padded(before: str, number: str, width: int, after: str) -> str:
        return f"'{before}' || lpad(({number})::text, {width}, '0') || '{after}'"

    @staticmethod
    def series(first: int, last: int, each: int) -> str:
        numbers = f"generate_series({first}, {last}) AS t, generate_series(1, {each}) AS c"
        return f"SELECT {{chosen}} FROM {{source}}, {numbers}"  # noqa: S608 (numbers)


class _Sqlite:
    before = ("PRAGMA synchronous = OFF", "PRAGMA cache_size = -200000")
    after = ("PRAGMA wal_checkpoint(TRUNCATE)",)
    random = "randomblob(16)"

    @staticmethod
    def joined(text: str, number: str) -> str:
        return f"'{text}' || {number}"

    @staticmethod
    def padded(before: str, number: str, width: int, after: str) -> str:
        return f"printf('{before}%0{width}d{after}', {number})"

    @staticmethod
    def series(first: int, last: int, each: int) -> str:
        return (
            f"WITH RECURSIVE threads(t) AS (SELECT {first} UNION ALL SELECT t + 1 FROM threads WHERE t < {last}), "  # noqa: S608
            f"numbers(c) AS (SELECT 1 UNION ALL SELECT c + 1 FROM numbers WHERE c < {each}) "
            "SELECT {chosen} FROM {source}, threads, numbers"
        )
