"""What is wrong with a space of a database: each finding has a code, what it is, where, and what to do about it.

Everything is only read. ``damage`` is what no program of this package writes; ``attention`` is what works as it
should and waits for somebody.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import BaseModel, ConfigDict

from runtime_persist.adapters.workflow import collecting
from runtime_persist.errors import RuntimePersistError
from runtime_persist.inspector.database import DatabaseView, load_database
from runtime_persist.model import limits
from runtime_persist.plan import Plan, Query, Row, many, one_or_none
from runtime_persist.queries import dangling, invariants, references
from runtime_persist.schema.migrate import VERSION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runtime_persist.engine import Flow
    from runtime_persist.runtime import Runtime

FOUND_MAX: Final = 20
"""Findings of one kind that are listed."""
CLOCK_DIFFERENCE_US: Final = 5_000_000
"""Microseconds by which this host's clock may differ from the database's before it is told."""
_RESTORE = "restore a backup, or export what is left with `bundle export` and report it"


class Finding(BaseModel):
    """One thing that is wrong, or wants attention.

    Attributes:
        code: stable, for programs.
        severity: ``damage`` or ``attention``.
        what: is the matter.
        where: the row.
        do: what to do about it.

    """

    model_config = ConfigDict(frozen=True)

    code: str
    severity: Literal["damage", "attention"]
    what: str
    where: str
    do: str


class Report(BaseModel):
    """What a look at a space found.

    Attributes:
        schema_version: of the tables, which is the one that this code writes.
        clock_difference_us: by how much this host's clock is ahead of the database's, as far as the look can tell.
        looked_at: what was compared, by code; each gives findings or none.
        findings: what is wrong; of one code at most 20.

    """

    model_config = ConfigDict(frozen=True)

    space: str
    database: DatabaseView
    schema_version: str
    clock_difference_us: int
    looked_at: list[str]
    findings: list[Finding]

    @property
    def damaged(self) -> bool:
        """Return whether something is there that nothing of this package writes."""
        return any(one.severity == "damage" for one in self.findings)


@dataclass(frozen=True, slots=True)
class _Check:
    """A statement whose rows are findings (``what`` and ``missing``, or the columns of a rule)."""

    code: str
    query: Query
    what: str
    do: str = _RESTORE
    severity: Literal["damage", "attention"] = "damage"


_D = dangling
_CHECKS: Final = (
    _Check("ATTEMPT_WITHOUT_RUN", _D.ATTEMPT_WITHOUT_RUN, "attempt {what} is of run {missing}, which is not there"),
    _Check("EVENT_WITHOUT_RUN", _D.EVENT_WITHOUT_RUN, "event {what} is of run {missing}, which is not there"),
    _Check("DOMAIN_WITHOUT_RUN", _D.DOMAIN_WITHOUT_RUN, "domain {what} is of run {missing}, which is not there"),
    _Check("TICKET_WITHOUT_RUN", _D.TICKET_WITHOUT_RUN, "the ticket of {what} is of run {missing}, which is not there"),
    _Check(
        "TRY_WITHOUT_OPERATION", _D.TRY_WITHOUT_OPERATION, "a try of run {what} is of {missing}, which is not there"
    ),
    _Check("RUN_WITHOUT_ATTEMPT", _D.RUN_WITHOUT_ATTEMPT, "run {what} is at attempt {missing}, which is not there"),
    _Check(
        "HEAD_WITHOUT_CHECKPOINT", _D.HEAD_WITHOUT_CHECKPOINT, "thread {what} stands at {missing}, which is not there"
    ),
    _Check(
        "CHECKPOINT_WITHOUT_PARENT",
        _D.CHECKPOINT_WITHOUT_PARENT,
        "checkpoint {what} follows {missing}, which is not there and was not pruned",
    ),
    _Check("OWNER_WITHOUT_RUN", _D.OWNER_WITHOUT_RUN, "thread {what} is owned by run {missing}, which is not there"),
    _Check(
        "ATTEMPTS_MISCOUNTED", _D.ATTEMPTS_MISCOUNTED, "run {what} counts other attempts than the {missing} there are"
    ),
    _Check("DOMAINS_MISCOUNTED", _D.DOMAINS_MISCOUNTED, "run {what} counts other domains than the {missing} there are"),
    _Check("TRIES_MISCOUNTED", _D.TRIES_MISCOUNTED, "operation {what} counts other tries than the {missing} there are"),
    _Check(
        "RUN_BLOCKED",
        _D.BLOCKED_RUN,
        "run {what} ({missing}) was left, and nothing proves that what it opened can no longer be written to",
        "run why {what}, then domain revoke when you know that it is gone",
        "attention",
    ),
    _Check(
        "RUN_LEFT",
        _D.LEFT_RUN,
        "run {what} ({missing}) has a lease that ran out, and no worker took it over yet",
        "run why {what}; start a worker that has its graph",
        "attention",
    ),
)
_RULES: Final = {
    invariants.UNLEASED: "LEASE_WRONG",
    invariants.GAPS: "EVENTS_MISCOUNTED",
    invariants.ATTEMPTS: "ATTEMPT_LEFT_OPEN",
    invariants.SCOPES: "SCOPE_TAKEN_TWICE",
    invariants.LIMITS: "GRAPH_OVER_LIMIT",
    invariants.SLOTS: "SLOTS_TAKEN_TWICE",
    invariants.DOMAINS: "DOMAINS_WRONG",
    invariants.BUDGETS: "BUDGET_MISCOUNTED",
}
_OF_PARTS: Final = frozenset({"CHECKPOINT_WITHOUT_PARENT", "OWNER_WITHOUT_RUN", "GRAPH_OVER_LIMIT"})
"""True of every imported bundle: it has one run of its thread, and not the whole history."""


def examine(runtime: Runtime) -> Flow[Report]:
    """Look at a runtime's space (raises what opening it raises: a schema of another version is not looked at)."""
    engine = runtime.engine
    database = yield from load_database(engine)
    before = time.time_ns() // 1_000
    clock: Row = yield engine.coordinator.read("doctor_clock", _clock)
    difference = (before + time.time_ns() // 1_000) // 2 - int(clock["now_us"])
    imported = engine.coordinator.as_of_us is not None
    findings = _of_database(database, 0 if imported else difference)
    findings += yield engine.coordinator.read("doctor", lambda: _rows(engine.space, imported=imported), snapshot=True)
    findings += yield from _content(runtime)
    checked = [one.code for one in _CHECKS] + list(_RULES.values())
    return Report(
        space=engine.space,
        database=database,
        schema_version=VERSION,
        clock_difference_us=0 if imported else difference,
        looked_at=[
            "SQLITE_FAULT",
            "CLOCK_DIFFERS",
            *(c for c in checked if not (imported and c in _OF_PARTS)),
            *_CONTENT,
        ],
        findings=findings,
    )


def _clock() -> Plan[Row]:
    row = yield from one_or_none(dangling.CLOCK)
    return row or {"now_us": 0}


def _of_database(database: DatabaseView, difference_us: int) -> list[Finding]:
    found = []
    if database.warning is not None:
        do = "use a version without it; until then open the file from one process at a time"
        found.append(_finding("SQLITE_FAULT", database.warning, database.version, do, "attention"))
    if abs(difference_us) > CLOCK_DIFFERENCE_US:
        what = f"this host's clock is {difference_us / 1e6:+.1f} s from the database's; leases go by the database's"
        found.append(_finding("CLOCK_DIFFERS", what, database.url, "synchronise the clocks (chrony, ntp)", "attention"))
    return found


def _finding(code: str, what: str, where: str, do: str, severity: Any = "damage") -> Finding:
    return Finding(code=code, severity=severity, what=what, where=where, do=do)


def _rows(space: str, *, imported: bool) -> Plan[list[Finding]]:
    found: list[Finding] = []
    for check in _CHECKS:
        if imported and check.code in _OF_PARTS:
            continue
        for row in (yield from many(check.query, space=space, page_rows=FOUND_MAX)):
            said = {name: str(row[name]) for name in ("what", "missing")}
            found.append(
                _finding(check.code, check.what.format(**said), said["what"], check.do.format(**said), check.severity)
            )
    for query, code in _RULES.items():
        if imported and code in _OF_PARTS:
            continue
        for row in list((yield from many(query, space=space)))[:FOUND_MAX]:
            where = ", ".join(f"{name} {value}" for name, value in row.items())
            found.append(_finding(code, invariants.RULES[query], where, _RESTORE))
    return found


_CONTENT: Final = ("CONTENT_UNREADABLE", "CONTENT_MISSING", "CONTENT_WITHOUT_OWNER")


def _content(runtime: Runtime) -> Flow[list[Finding]]:
    """Compare what rows refer to with the content that there is."""
    engine = runtime.engine
    try:
        looked = yield from collecting.look(runtime.checkpointer.context, lambda _: None)
    except RuntimePersistError as error:
        where = ", ".join(f"{name} {value}" for name, value in error.details.items())
        return [_finding("CONTENT_UNREADABLE", error.message, where or "content", _RESTORE)]
    there: set[bytes] = set()
    unowned = 0
    walk, after, full = references.BLOBS, references.BLOBS.start, True
    while full:
        rows: Sequence[Row] = yield engine.coordinator.read(
            "page_of_blobs", partial(walk.page, engine.space, after, limits.COLLECT_ROWS)
        )
        for row in rows:
            address = bytes(row["address"])
            there.add(address)
            old = row["created_us"] <= looked.size.now_us
            unowned += old and address not in looked.addresses and row["unused_us"] is None
        full = len(rows) == limits.COLLECT_ROWS
        after = walk.place(rows[-1]) if full else after
    found = [
        _finding("CONTENT_MISSING", "a row refers to content that is not there", f"address {address.hex()}", _RESTORE)
        for address in sorted(looked.addresses - there)[:FOUND_MAX]
    ]
    if unowned:
        what = f"no row refers to {unowned:,} pieces of content: of what was deleted, or of a command that died"
        found.append(_finding("CONTENT_WITHOUT_OWNER", what, f"space {engine.space}", "db collect", "attention"))
    return found
