"""Long queues: rows as ``start_run`` would leave them, put there at once."""

from tests.fixtures.raw import PostgresRaw, Raw

_NUMBERS = {
    True: "SELECT n FROM generate_series(1, {rows}) AS numbers(n)",
    False: "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {rows}) "
    "SELECT n FROM numbers",
}
_HASH = {True: "decode(md5('{graph}' || n), 'hex')", False: "CAST('{graph}' || n AS BLOB)"}
_BYTES = {True: "'\\x00'::bytea", False: "x'00'"}


def fill(raw: Raw, graph: str, rows: int, *, space: str = "default") -> None:
    """Queue runs of a graph, each in a thread of its own; they are named ``graph-1``, ``graph-2`` … in their order."""
    postgres = getattr(raw, "database", type(raw)) is PostgresRaw
    numbers = _NUMBERS[postgres].format(rows=rows)
    name = f"'{graph}-' || n"
    raw.rows(
        "INSERT INTO rp_threads (space, thread_hash, thread_id, generation, run_no, created_us) "
        f"SELECT '{space}', {_HASH[postgres].format(graph=graph)}, {name}, 1, 1, 1 FROM ({numbers}) AS numbers"
    )
    raw.rows(
        "INSERT INTO rp_runs (space, run_id, graph, thread_id, thread_run_no, status, version, event_seq, control, "
        "epoch, phase, expires_us, request_fingerprint, input, attempt_no, takeovers, failures, created_us, queued_us, "
        f"updated_us) SELECT '{space}', {name}, '{graph}', {name}, 1, 'queued', 1, 0, 'open', 0, 'released', 0, "
        f"{_BYTES[postgres]}, {_BYTES[postgres]}, 0, 0, 0, 1, n, 1 FROM ({numbers}) AS numbers"
    )
