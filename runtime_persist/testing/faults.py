"""What must hold whatever a process died of.

    assert check_invariants(read_rows(engine)) == []

`cuts` lists where it can die.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import ormsgpack
from sqlalchemy import Table, or_, select

from runtime_persist.adapters.workflow.encoding import references
from runtime_persist.commands import COMMANDS
from runtime_persist.contentstore import unpack
from runtime_persist.dialects.sql import bind
from runtime_persist.model.budgets import EMPTY, KINDS, TicketState
from runtime_persist.model.domains import DomainState
from runtime_persist.model.payload import SEGMENT, PayloadRef, Piece, pieces_of
from runtime_persist.model.states import ACTIVE_RUN, FINAL_ATTEMPT, FINAL_RUN, LeasePhase, RunStatus
from runtime_persist.plan import Plan, Query, Row, many
from runtime_persist.schema import metadata
from runtime_persist.schema import runs as runs_table

if TYPE_CHECKING:
    from runtime_persist.engine import Engine

__all__ = ["Rows", "check_invariants", "read_rows"]

Rows = Mapping[str, Sequence[Row]]


# --- the rows -------------------------------------------------------------------------------------------------------

_SHORT = len("rp_")
_TABLES: dict[str, Table] = {name[_SHORT:]: table for name, table in metadata.tables.items()}


def _of_thread(table: Table) -> Any:
    """Return the condition "belongs to the thread" (content and receipts without a run belong to the space)."""
    if "thread_id" in table.c:
        return table.c.thread_id == bind(runs_table.c.thread_id)
    of_operation = "operation_id" in table.c and table.name != "rp_tickets"  # those are the run's that took them
    if of_operation:  # not by its run: the tries of a copied operation name the source's
        operations = _TABLES["operations"]
        of_thread = operations.c.thread_id == bind(operations.c.thread_id)
        found = select(operations.c.operation_id).where(operations.c.space == bind(operations.c.space), of_thread)
        return table.c.operation_id.in_(found)
    if "run_id" in table.c:
        mine = select(runs_table.c.run_id).where(
            runs_table.c.space == bind(runs_table.c.space),
            runs_table.c.thread_id == bind(runs_table.c.thread_id),
        )
        condition = table.c.run_id.in_(mine)
        return or_(condition, table.c.run_id.is_(None)) if table.c.run_id.nullable else condition
    return table.c.space == bind(table.c.space)


_ALL = {
    name: Query(f"all_{name}", select(table).where(table.c.space == bind(table.c.space)))
    for name, table in _TABLES.items()
}
_THREAD = {
    name: Query(
        f"thread_{name}",
        select(table).where(table.c.space == bind(table.c.space), _of_thread(table)),
    )
    for name, table in _TABLES.items()
}


def read_rows(engine: Engine, thread_id: str | None = None) -> Rows:
    """Read all rows of the engine's space (or of one thread of it) in one snapshot, by table name without ``rp_``."""

    def plan() -> Plan[Rows]:
        found: dict[str, Sequence[Row]] = {}
        for name in _TABLES:
            if thread_id is None:
                found[name] = yield from many(_ALL[name], space=engine.space)
            else:
                found[name] = yield from many(_THREAD[name], space=engine.space, thread_id=thread_id)
        return found

    return engine.coordinator.read("read_rows", plan, snapshot=True).result()


# --- the invariants -------------------------------------------------------------------------------------------------


def check_invariants(rows: Rows) -> list[str]:
    """Return what is broken, one text each; nothing when the rows could be the work of complete commands only.

    Args:
        rows: all rows of a space, or of one thread with the content of its space (:func:`read_rows`).

    """
    rules = (
        _events,
        _epochs,
        _attempts,
        _story,
        _runs,
        _threads,
        _operations,
        _tries,
        _domains,
        _budgets,
        _limits,
        _checkpoints,
        _content,
        _receipts,
    )
    return [text for rule in rules for text in rule(rows)]


def _by(rows: Iterable[Row], column: str) -> dict[Any, list[Row]]:
    found: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        found[row[column]].append(row)
    return found


def _counts(numbers: Iterable[int], last: int) -> bool:
    return sorted(numbers) == list(range(1, last + 1))


def _payload(event: Row) -> Mapping[str, Any]:
    return ormsgpack.unpackb(event["payload"]) if event["payload"] else {}


def _events(rows: Rows) -> Iterator[str]:
    events = _by(rows["events"], "run_id")
    for run in rows["runs"]:
        mine = events.pop(run["run_id"], [])
        found = [event["seq"] for event in mine]
        if not _counts(found, run["event_seq"]):
            yield f"run {run['run_id']}: events {sorted(found)}, but event_seq is {run['event_seq']}"
        places = [event["position"] for event in sorted(mine, key=lambda event: event["seq"])]
        if places != sorted(places) or places[-1:] != [run["event_position"]]:
            yield f"run {run['run_id']}: events at {places}, but event_position is {run['event_position']}"
    for run_id in events:
        yield f"events of run {run_id}, which does not exist"


def _epochs(rows: Rows) -> Iterator[str]:
    claimed = _by((event for event in rows["events"] if event["type"] == "lease.claimed"), "run_id")
    for run in rows["runs"]:
        epochs = [_payload(event)["epoch"] for event in claimed[run["run_id"]]]
        if not _counts(epochs, run["epoch"]):
            yield f"run {run['run_id']}: leases claimed under epochs {sorted(epochs)}, now {run['epoch']}"
    newest: dict[Any, int] = {run["run_id"]: run["epoch"] for run in rows["runs"]}
    for table in ("attempts", "operation_tries", "checkpoints", "writes", "events"):
        for row in rows[table]:
            epoch: int = row["epoch"] or 0
            if epoch > newest.get(row["run_id"], epoch):
                yield f"{table}: a row of run {row['run_id']} has epoch {row['epoch']}, the run {newest[row['run_id']]}"


def _attempts(rows: Rows) -> Iterator[str]:
    attempts = _by(rows["attempts"], "run_id")
    for run in rows["runs"]:
        mine = attempts.pop(run["run_id"], [])
        name = f"run {run['run_id']} ({run['status']})"
        if not _counts((attempt["attempt_no"] for attempt in mine), run["attempt_no"]):
            yield f"{name}: {len(mine)} attempts, but attempt_no is {run['attempt_no']}"
        last = [attempt["attempt_id"] for attempt in mine if attempt["attempt_no"] == run["attempt_no"]]
        if last != [run["attempt_id"]] and (last or run["attempt_id"]):
            yield f"{name}: its attempt is {run['attempt_id']}, its last one {last}"
        unfinished = [attempt for attempt in mine if attempt["status"] not in FINAL_ATTEMPT]
        if len(unfinished) > 1 or (unfinished and run["status"] in FINAL_RUN):
            yield f"{name}: open attempts {[attempt['attempt_id'] for attempt in unfinished]}"
        if run["status"] == "running" and [attempt["status"] for attempt in unfinished] != ["running"]:
            yield f"{name}: its attempts are {[attempt['status'] for attempt in mine]}"
        for attempt in mine:
            if (attempt["ended_us"] is None) != (attempt["status"] not in FINAL_ATTEMPT):
                yield f"attempt {attempt['attempt_id']} is {attempt['status']}, ended_us {attempt['ended_us']}"
    for run_id in attempts:
        yield f"attempts of run {run_id}, which does not exist"


_STATUSES = {f"run.{status.value}" for status in RunStatus}
# Events of an attempt of which one at least says what the column says, and none more than once.
_FACTS = {
    "start_requested_us": ("attempt.start_requested",),
    "observed_us": (
        "attempt.running",
        "attempt.accepted",
        *(f"attempt.{status.value}" for status in FINAL_ATTEMPT),
    ),
}
_ALSO_UNSEEN = {f"attempt.{status.value}" for status in FINAL_ATTEMPT}


def _story(rows: Rows) -> Iterator[str]:
    """The events and the rows tell the same."""
    events = _by(rows["events"], "run_id")
    for run in rows["runs"]:
        told = [event for event in events[run["run_id"]] if event["type"] in _STATUSES]
        last = max(told, key=lambda event: int(event["seq"]), default=None)
        if last is None or last["type"] != f"run.{run['status']}":
            yield f"run {run['run_id']} is {run['status']}, its last event {last and last['type']}"
        if sum(event["type"].removeprefix("run.") in FINAL_RUN for event in told) > 1:
            yield f"run {run['run_id']} ended more than once"
    counts = Counter((event["type"], event["attempt_id"]) for event in rows["events"])
    for attempt in rows["attempts"]:
        for column, kinds in _FACTS.items():
            times = {kind: counts[kind, attempt["attempt_id"]] for kind in kinds}
            sure = any(times[kind] for kind in kinds if kind not in _ALSO_UNSEEN)
            known = attempt[column] is not None
            if max(times.values()) > 1 or (sure and not known) or (known and not any(times.values())):
                yield f"attempt {attempt['attempt_id']}: {column} is {attempt[column]}, told {times} times"


def _runs(rows: Rows) -> Iterator[str]:
    for run in rows["runs"]:
        final = run["status"] in FINAL_RUN
        if final and (run["phase"] != LeasePhase.RELEASED or run["expires_us"]):
            yield f"run {run['run_id']} is {run['status']} and its lease {run['phase']}"
        if final != (run["finished_us"] is not None):
            yield f"run {run['run_id']} is {run['status']}, finished_us {run['finished_us']}"
        if run["phase"] != LeasePhase.RELEASED and not run["worker_id"]:
            yield f"run {run['run_id']}: a lease without a worker"
        waits = run["status"] == RunStatus.RETRY_WAIT
        if waits != (run["next_attempt_us"] is not None) or (waits and run["phase"] != LeasePhase.RELEASED):
            yield f"run {run['run_id']} is {run['status']}, due at {run['next_attempt_us']}, its lease {run['phase']}"


def _threads(rows: Rows) -> Iterator[str]:
    owners = {run["run_id"]: run["thread_id"] for run in rows["runs"]}
    runs = _by(rows["runs"], "thread_id")
    for thread in rows["threads"]:
        owner = thread["owner_run_id"]
        if owner is not None and owners.get(owner) != thread["thread_id"]:
            yield f"thread {thread['thread_id']!r} is owned by run {owner}, which is none of its runs"
        if thread["thread_id"] is None:
            continue
        numbers = [run["thread_run_no"] for run in runs.pop(thread["thread_id"], [])]
        if numbers and not _counts(numbers, thread["run_no"]):
            yield f"thread {thread['thread_id']!r}: runs numbered {sorted(numbers)}, run_no {thread['run_no']}"
    for thread_id in runs:
        yield f"runs of thread {thread_id!r}, which does not exist"
    for run in rows["runs"]:
        live = run["phase"] != LeasePhase.RELEASED
        if live and not any(thread["owner_run_id"] == run["run_id"] for thread in rows["threads"]):
            yield f"run {run['run_id']} has a lease and does not own its thread"


# Status of an operation -> what its last try may be. A failed one may have been given up as unknown; a pending one
# whose try failed has another try due, one whose try succeeded has a raw result that is not accepted yet.
_LAST_TRY = {
    "pending": {"started", "unknown", "failed", "succeeded"},
    "succeeded": {"succeeded"},
    "failed": {"failed", "unknown", "cancelled"},
}


def _operations(rows: Rows) -> Iterator[str]:
    tries = _by(rows["operation_tries"], "operation_id")
    for operation in rows["operations"]:
        name = f"operation {operation['operation_id']} ({operation['status']})"
        mine = {row["try_no"]: row["status"] for row in tries.pop(operation["operation_id"], [])}
        if not _counts(mine, operation["try_no"]):
            yield f"{name}: tries {sorted(mine)}, but try_no is {operation['try_no']}"
        elif mine[operation["try_no"]] not in _LAST_TRY[operation["status"]]:
            yield f"{name}: its last try is {mine[operation['try_no']]}"
        if any(status == "started" for number, status in mine.items() if number != operation["try_no"]):
            yield f"{name}: an earlier try is still started: {mine}"
        if operation["status"] == "pending":
            last = mine.get(operation["try_no"])
            if (last == "succeeded") != (operation["raw"] is not None):
                yield f"{name}: its last try is {last}, its raw result {operation['raw'] is not None}"
            if operation["next_attempt_us"] is not None and last not in {"failed", "unknown"}:
                yield f"{name}: a next try is due, its last one is {last}"
        if (operation["ended_us"] is None) != (operation["status"] == "pending"):
            yield f"{name}: ended_us is {operation['ended_us']}"
    for operation_id in tries:
        yield f"tries of operation {operation_id}, which does not exist"


def _tries(rows: Rows) -> Iterator[str]:
    told: dict[str, Counter[tuple[str, int]]] = defaultdict(Counter)
    for event in rows["events"]:
        facts = _payload(event)
        if event["type"] in {"operation.started", "operation.completed"} and "operation_id" in facts:
            told[event["type"]][facts["operation_id"], facts["try_no"]] += 1
    copied = {row["operation_id"] for row in rows["operations"] if row["copied_from"] is not None}  # events stay behind
    own = (row for row in rows["operation_tries"] if row["operation_id"] not in copied)
    tries = Counter((row["operation_id"], row["try_no"]) for row in own)
    if tries != told["operation.started"]:
        yield f"tries {dict(tries)}, but events say {dict(told['operation.started'])} were started"
    for key, times in told["operation.completed"].items():
        if times > 1 or key not in tries:
            yield f"try {key} was completed {times} times"


def _budgets(rows: Rows) -> Iterator[str]:
    counted: Counter[tuple[str, str]] = Counter()
    for ticket in rows["tickets"]:
        for kind in KINDS:
            counted[ticket["run_id"], f"{kind}_{ticket['state']}"] += ticket[kind]
    for run in rows["runs"]:
        for name in EMPTY:
            if run[name] != counted[run["run_id"], name]:
                yield f"run {run['run_id']} counts {run[name]} as {name}, its tickets {counted[run['run_id'], name]}"


def _limits(rows: Rows) -> Iterator[str]:
    """No more calls were begun than a run, or an invocation in it, may make (of tokens a call may take more)."""
    tickets = _by(rows["tickets"], "run_id")
    for run in rows["runs"]:
        taken: Counter[tuple[str, str]] = Counter()
        for ticket in tickets[run["run_id"]]:
            for kind in ("loops", "tool_calls"):
                amount = ticket[kind] if ticket["state"] != TicketState.RELEASED else 0
                taken[f"{kind}_limit", ""] += amount
                if ticket["invocation"] is not None:
                    taken[f"invocation_{kind}_limit", ticket["invocation"]] += amount
        for (limit, invocation), amount in taken.items():
            if run[limit] is not None and amount > run[limit]:
                yield f"run {run['run_id']} {invocation} began {amount} calls, its {limit} is {run[limit]}"


def _domains(rows: Rows) -> Iterator[str]:
    """The run counts its execution domains; only an active run has open ones, and the revoked have their proof."""
    domains = _by(rows["domains"], "run_id")
    for run in rows["runs"]:
        mine = domains[run["run_id"]]
        still_open = [domain for domain in mine if domain["state"] == DomainState.OPEN]
        if (run["domains_opened"], run["domains_open"]) != (len(mine), len(still_open)):
            yield f"run {run['run_id']} counts {run['domains_open']} open of {run['domains_opened']} domains"
        if still_open and RunStatus(run["status"]) not in ACTIVE_RUN:
            yield f"run {run['run_id']} is {run['status']} with an open domain"
        older = [domain for domain in still_open if domain["epoch"] < run["epoch"]]
        if older and run["phase"] == LeasePhase.ACTIVE:
            yield f"run {run['run_id']} is active while a domain of an older epoch is open"
    for domain in rows["domains"]:
        if (domain["state"] == DomainState.REVOKED) is not (domain["proof"] is not None):
            yield f"domain {domain['domain_id']} is {domain['state']} with the proof {domain['proof']}"


def _checkpoints(rows: Rows) -> Iterator[str]:
    place = ("thread_id", "checkpoint_ns")
    stored = {(*(row[name] for name in place), row["checkpoint_id"]) for row in rows["checkpoints"]}
    heads = {tuple(row[name] for name in place): row["checkpoint_id"] for row in rows["heads"]}
    for where, checkpoint_id in heads.items():
        if (*where, checkpoint_id) not in stored:
            yield f"the head of {where} is {checkpoint_id}, which is not stored"
    for where in {key[:2] for key in stored} - set(heads):
        yield f"checkpoints of {where} without a head"


def _references(rows: Rows) -> Iterator[tuple[str, Piece]]:
    """Give what refers to content, and where that is."""
    for checkpoint in rows["checkpoints"]:
        for ref in references(checkpoint, []):
            for piece in ref.stored():
                yield f"checkpoint {checkpoint['checkpoint_id']}", piece
    columns = {
        "runs": ("input", "question", "answer", "result"),
        "operations": ("result",),
        "writes": ("value",),
    }
    for table, names in columns.items():
        for row in rows[table]:
            for name in names:
                if row[name] is not None:
                    for piece in PayloadRef.decoded(row[name]).stored():
                        yield f"{table}.{name}", piece


def _content(rows: Rows) -> Iterator[str]:
    stored = {bytes(blob["address"]): bytes(blob["content"]) for blob in rows["blobs"]}
    looking = list(_references(rows))
    pages: set[bytes] = set()
    while looking:
        what, (address, depth) = looking.pop()
        if address not in stored:
            yield f"{what} refers to content {address.hex()}, which is not stored"
        elif depth > SEGMENT and address not in pages:
            pages.add(address)
            looking += [
                (f"a page of {what}", piece) for piece in pieces_of(unpack(stored[address])) if piece.depth >= SEGMENT
            ]


def _receipts(rows: Rows) -> Iterator[str]:
    kinds = {spec.name for spec in COMMANDS.values()}
    known = {run["run_id"] for run in rows["runs"]}
    for receipt in rows["receipts"]:
        if receipt["kind"] not in kinds:
            yield f"receipt {receipt['command_id']} is of {receipt['kind']}, which is no command"
        if receipt["run_id"] is not None and receipt["run_id"] not in known:
            yield f"receipt {receipt['command_id']} is of run {receipt['run_id']}, which does not exist"
