"""What recovery would do with a run: the row of the table for each open thing of it, and a hash of them all."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

import orjson
from pydantic import BaseModel, ConfigDict

from runtime_persist.model.shown import shown_status
from runtime_persist.model.states import FINAL_RUN, Control, OperationStatus, RunStatus, TryStatus
from runtime_persist.recovery import calls, others, runs
from runtime_persist.recovery.rules import Act, Subject

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from runtime_persist.recovery.found import Found
    from runtime_persist.recovery.rules import Rule

VERSION: Final = 1
"""Of the canonical rows that the hash covers."""
PARTS: Final = ("run", "domains", "tasks", "calls")
"""A plan's hash has a share of its own for each, so that a refusal can say which of them changed."""
HASH_COVERS: Final = (
    "For each open thing: what it is, its row of the table with action and effect outside, and what its situation "
    "rests on: of the run its epoch, its attempt, what stops it and the checkpoint it goes on from; of a call its try "
    "and its policy; of a task its checkpoint. Not covered: times, texts, renewals of a lease, and who holds it."
)
_SHARE_DIGITS = 12
_PART_OF = {
    Subject.RUN: "run",
    Subject.DOMAIN: "domains",
    Subject.TASK: "tasks",
    Subject.CALL: "calls",
    Subject.TICKET: "calls",
}
_NULL_TASK = "00000000-0000-0000-0000-000000000000"
_INTERRUPT, _ERROR = "__interrupt__", "__error__"
_GOES_ON = frozenset({Act.CLAIM, Act.TAKE_OVER, Act.ASK_RUNTIME, Act.WAIT})


class PlanItem(BaseModel):
    """One open thing of a run, and what is done about it.

    Attributes:
        kind: ``run``, ``domain``, ``task``, ``call`` or ``ticket``.
        subject: its id.
        name: what people call it.
        rule: the row of the table (docs/recovery.md).
        situation: what the rows say.
        happened: what may have happened outside before.
        act: what is done, for programs.
        action: what is done, in words.
        reason: why.
        outside: what doing it does outside: ``none``, ``at most once``, ``may be repeated``, ``asks``, ``ends``.
        evidence: what the situation rests on; it is part of the plan's hash.

    """

    model_config = ConfigDict(frozen=True)

    kind: str
    subject: str
    name: str
    rule: str
    situation: str
    happened: str
    act: str
    action: str
    reason: str
    outside: str
    evidence: dict[str, str | int | None]

    def canonical(self) -> list[Any]:
        """Return what the hash covers."""
        return [self.kind, self.subject, self.rule, self.act, self.outside, sorted(self.evidence.items())]


class RecoveryPlan(BaseModel):
    """What recovery would do with a run, as of one moment.

    Attributes:
        run_id, graph, thread_id: the run's.
        shown: its status for people at that moment.
        event_seq: how many events it had.
        read_us: the moment, in microseconds by the database's clock.
        items: the run itself first, then its domains, tasks, calls and tickets.

    """

    model_config = ConfigDict(frozen=True)

    run_id: str
    graph: str
    thread_id: str
    shown: str
    event_seq: int
    read_us: int
    items: list[PlanItem]

    @property
    def run(self) -> PlanItem:
        """Return the item of the run itself."""
        return self.items[0]

    @property
    def hash(self) -> str:
        """Return the plan's hash: of the same rows it is the same in every process.

        What stands before the dash counts the events of the run, so that a refusal can name what was committed since;
        what decides stands behind it.
        """
        return f"{self.event_seq}-{''.join(self.shares().values())}"

    def shares(self) -> dict[str, str]:
        """Return the hash of each part."""
        parts: dict[str, list[Any]] = {name: [VERSION, name, self.run_id] for name in PARTS}
        for item in sorted(self.items, key=lambda item: (item.kind, item.subject)):
            parts[_PART_OF[Subject(item.kind)]].append(item.canonical())
        return {
            name: hashlib.sha256(orjson.dumps(rows, option=orjson.OPT_SORT_KEYS)).hexdigest()[:_SHARE_DIGITS]
            for name, rows in parts.items()
        }

    def changed_from(self, known: str) -> list[str] | None:
        """Return which parts are not as a hash says (None: it is no hash of a plan).

        Args:
            known: from :attr:`hash`, maybe of an earlier moment.

        """
        seq, dash, shares = known.partition("-")
        digits = set(shares) <= set("0123456789abcdef")
        if not dash or not seq.isdecimal() or not digits or len(shares) != _SHARE_DIGITS * len(PARTS):
            return None
        theirs = [shares[at : at + _SHARE_DIGITS] for at in range(0, len(shares), _SHARE_DIGITS)]
        return [name for (name, ours), share in zip(self.shares().items(), theirs, strict=True) if ours != share]


def plan_of(found: Found, rule: Rule | None = None) -> RecoveryPlan:
    """Return what recovery would do with a run, whose rows are all of one moment.

    Args:
        found: the rows.
        rule: the run's row of the table (None: the one that its rows are in).

    """
    run, rule = found.run, rule or runs.rule_of(found)
    items = [_item(rule, run["run_id"], run["graph"], **_run_evidence(found, rule))]
    if RunStatus(run["status"]) not in FINAL_RUN:
        items += _domains(found)
    goes_on = rule.act in _GOES_ON
    done = set(_done(found))
    if goes_on:
        items += _tasks(found, done)
    items += _calls(found, done, goes_on=goes_on)
    if goes_on or rule is runs.HELD:
        items += [
            _item(others.ticket_rule(row), row["operation_id"], row["name"] or "", epoch=row["epoch"])
            for row in found.tickets
        ]
    return RecoveryPlan(
        run_id=run["run_id"],
        graph=run["graph"],
        thread_id=run["thread_id"],
        shown=shown_status(run, run["now_us"]),
        event_seq=run["event_seq"],
        read_us=run["now_us"],
        items=items,
    )


def _item(rule: Rule, subject: str, name: str, **evidence: str | int | None) -> PlanItem:
    return PlanItem(
        kind=rule.subject.value,
        subject=subject,
        name=name,
        rule=rule.name,
        situation=rule.situation,
        happened=rule.happened,
        act=rule.act.value,
        action=rule.action,
        reason=rule.reason,
        outside=rule.outside.value,
        evidence=evidence,
    )


def _run_evidence(found: Found, rule: Rule) -> dict[str, str | int | None]:
    run = found.run
    said = {"epoch": run["epoch"], "attempt_no": run["attempt_no"]}
    if rule is runs.FINAL:
        return {"status": run["status"], **said}
    if rule in {runs.TO_END, runs.STOPPING_HELD}:
        late = run["control"] == Control.OPEN
        return {**said, "stop_reason": "deadline" if late else run["stop_reason"]}
    if rule.act in _GOES_ON:
        return {**said, "checkpoint": None if found.head is None else found.head["checkpoint_id"]}
    return dict(said)


def _domains(found: Found) -> Iterator[PlanItem]:
    rule = others.domain_rule(live=runs.is_live(found.run))
    for row in found.domains:
        yield _item(rule, row["domain_id"], row["kind"], epoch=row["epoch"])


# --- tasks ----------------------------------------------------------------------------------------------------------


def _done(found: Found) -> Iterator[str]:
    """Give the ids of the tasks whose results are stored at the last checkpoints."""
    if found.head is None:
        return
    for row in found.writes:
        if row["idx"] >= 0 and row["task_id"] != _NULL_TASK:
            yield row["task_id"]


def _tasks(found: Found, done: set[str]) -> Iterator[PlanItem]:
    """Give the tasks of which something is stored; of those inside a task that is done nothing is left to be said."""
    if found.head is None:
        return
    about: dict[str, list[Mapping[str, Any]]] = {}
    for row in found.writes:
        said = row["idx"] >= 0 or row["channel"] in {_INTERRUPT, _ERROR}
        if said and row["task_id"] != _NULL_TASK and not _within(row["checkpoint_ns"], done):
            about.setdefault(row["task_id"], []).append(row)
    for task_id, rows in sorted(about.items()):
        asked = any(row["channel"] == _INTERRUPT for row in rows)
        rule = others.task_rule(done=task_id in done, asked=asked)
        yield _item(rule, task_id, _node_of(rows[0]["task_path"]), checkpoint=rows[0]["checkpoint_id"])


def _within(checkpoint_ns: str, done: set[str]) -> bool:
    """Return whether a namespace is inside of a task whose result is stored."""
    return not done.isdisjoint(_path_of(checkpoint_ns))


def _path_of(checkpoint_ns: str) -> list[str]:
    """Return the ids of the tasks that a namespace goes through (``node:task|node:task``, maybe ``@branch``)."""
    path = checkpoint_ns.partition("@")[0]
    return [segment.rpartition(":")[2] for segment in path.split("|") if ":" in segment]


def _node_of(task_path: str) -> str:
    """Return the node of a task's path, as LangGraph writes it (``~__pregel_pull, node``)."""
    words = [word.strip() for word in task_path.strip("~() ").split(",")]
    return next((word for word in reversed(words) if word and not word.isdecimal() and word != "False"), "")


# --- calls ----------------------------------------------------------------------------------------------------------


def _calls(found: Found, done: set[str], *, goes_on: bool) -> Iterator[PlanItem]:
    run, live = found.run, runs.is_live(found.run)
    since = 0 if found.head is None else found.head["created_us"]
    for row in found.operations:
        if _within(row["checkpoint_ns"], done):
            continue
        pending = row["status"] == OperationStatus.PENDING
        if live or not goes_on:
            if pending:
                yield _call(_standing(row, run, live=live), row)
        elif pending and row["created_us"] < since:
            yield _call(calls.PASSED, row)
        elif row["created_us"] >= since:
            yield _call(calls.rule_of(row, row["on_unknown"], run["run_id"]), row)


def _standing(row: Mapping[str, Any], run: Mapping[str, Any], *, live: bool) -> Rule:
    """Return the row of a pending call of a run that nobody takes over."""
    if not live:
        return calls.LEFT_OPEN
    flies = row["try_status"] == TryStatus.STARTED and row["try_epoch"] == run["epoch"]
    return calls.IN_FLIGHT if flies else calls.rule_of(row, row["on_unknown"], run["run_id"])


def _call(rule: Rule, row: Mapping[str, Any]) -> PlanItem:
    said = {"try_no": row["try_no"], "on_unknown": row["on_unknown"], "ordinal": row["ordinal"]}
    return _item(rule, row["operation_id"], row["name"], **said)
