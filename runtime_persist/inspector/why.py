"""Why a run is where it is: from its rows alone, as pure code; and the reading of those rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from runtime_persist.engine import Engine, Flow, payloads
from runtime_persist.errors import RunNotFound
from runtime_persist.inspector.bundle import question_of
from runtime_persist.inspector.plain import plain
from runtime_persist.inspector.situations import SITUATIONS, Facts
from runtime_persist.inspector.spelling import ago
from runtime_persist.inspector.unknowns import Unknown, evidence, unknowns
from runtime_persist.inspector.workers import Verdict, verdict, worker_views
from runtime_persist.model.domains import DomainState
from runtime_persist.model.payload import PayloadRef
from runtime_persist.model.shown import shown_status
from runtime_persist.model.states import FINAL_RUN, OperationStatus, RunStatus
from runtime_persist.queries import why as queries
from runtime_persist.queries.why import Standing

if TYPE_CHECKING:
    from langgraph.checkpoint.serde.base import SerializerProtocol

    from runtime_persist.inspector.bundles import RecoveryBundle

_QUESTION_BYTES_MAX = 65_536
_SAID_CHARS_MAX = 300
_GONE_SHOWN_MAX = 3


class Advice(BaseModel):
    """A command that helps.

    Attributes:
        command: without ``runtime-persist``.
        purpose: what it is for.

    """

    model_config = ConfigDict(frozen=True)

    command: str
    purpose: str


class Why(BaseModel):
    """Why a run is where it is.

    Attributes:
        run_id, graph, thread_id, status: the run's.
        shown: its status for people.
        situation: stable name, for programs.
        because: what is the matter, in a sentence.
        proof: what shows it.
        lease: who may commit for it, until when.
        awaits: what has to happen before it goes on ("": nothing).
        workers: which worker could take it, and why the others could not; empty when it needs none.
        pending: its operations without an outcome.
        evidence: the rows behind the proof, fact by fact: claim, start fence, last evidence, lease.
        unknown: what no row proves, and the question that answers it.
        as_of_us: the moment that this is of, by the database's clock.
        do: what helps.

    """

    model_config = ConfigDict(frozen=True)

    run_id: str
    graph: str
    thread_id: str
    status: str
    shown: str
    situation: str
    because: str
    proof: str
    lease: str
    awaits: str
    workers: list[Verdict]
    pending: list[str]
    evidence: list[str]
    unknown: list[Unknown]
    as_of_us: int
    do: list[Advice]


def explain(standing: Standing, question: Any = None) -> Why:
    """Return why a run is where it is.

    Args:
        standing: its rows.
        question: what it asks, decoded.

    """
    run = standing.run
    workers = worker_views(standing.instances, standing.held, run["now_us"])
    facts = Facts(standing, workers, question)
    situation = next(row for row in SITUATIONS if row.holds(facts))
    words = _words(facts)
    needs_worker = (
        not standing.partial
        and not facts.live
        and RunStatus(run["status"]) not in FINAL_RUN | {RunStatus.WAITING_APPROVAL}
    )
    return Why(
        run_id=run["run_id"],
        graph=run["graph"],
        thread_id=run["thread_id"],
        status=run["status"],
        shown=shown_status(run, run["now_us"]),
        situation=situation.name,
        because=situation.because.format(**words),
        proof=situation.proof.format(**words),
        lease=_lease(facts),
        awaits=situation.awaits.format(**words),
        workers=_verdicts(facts) if needs_worker else [],
        pending=[f"{row['name']} (try {row['try_no']}, {row['operation_id']})" for row in standing.pending],
        evidence=evidence(facts),
        unknown=unknowns(facts),
        as_of_us=run["now_us"],
        do=[
            Advice(command=command.format(**words), purpose=purpose.format(**words))
            for command, purpose in situation.do
        ],
    )


def _verdicts(facts: Facts) -> list[Verdict]:
    """Return which worker could take the run; of those that are gone only the last few are of interest."""
    gone = [worker for worker in facts.workers if worker.state == "gone"]
    last = sorted(gone, key=lambda worker: worker.reported_us)[-_GONE_SHOWN_MAX:]
    named = [worker for worker in facts.workers if worker.state != "gone"] + last
    return [verdict(worker, facts.run["graph"], facts.run["graph_version"], facts.now_us) for worker in named]


def _lease(facts: Facts) -> str:
    run = facts.run
    if not facts.held:
        return f"released; the last epoch was {run['epoch']}" if run["epoch"] else "none yet"
    until = "runs out" if facts.live else "ran out"
    when = ago(run["expires_us"], facts.now_us)
    return f"epoch {run['epoch']}, {run['phase']}, worker {run['worker_id']}, {until} {when}"


def _words(facts: Facts) -> dict[str, Any]:
    """Return the words that the texts of situations are formatted with."""
    run, standing, now = facts.run, facts.standing, facts.now_us
    attempt = standing.attempt or {}
    older = standing.older[0] if standing.older else {}
    holder = standing.scope_holder or {}
    graph = standing.graph or {}
    others = f"; other graphs with queued runs take turns with it: {', '.join(standing.others)}"
    return {
        "run_id": run["run_id"],
        "graph": run["graph"],
        "status": run["status"],
        "priority": run["priority"],
        "queued_ago": ago(run["queued_us"], now),
        "version": run["graph_version"] or "any",
        "epoch": run["epoch"],
        "phase": run["phase"],
        "worker": run["worker_id"] or "–",
        "last_worker": attempt.get("worker_id") or run["worker_id"] or "–",
        "lease_in": ago(run["expires_us"], now),
        "attempt_no": run["attempt_no"],
        "takeovers": run["takeovers"],
        "failures": run["failures"],
        "error": _error(facts),
        "stop_reason": run["stop_reason"] or "by its caller",
        "observed": "; its code returned a result all the same" if run["observed_state"] == "succeeded" else "",
        "finished_ago": ago(run["finished_us"], now),
        "updated_ago": ago(run["updated_us"], now),
        "deadline_ago": ago(run["deadline_us"], now),
        "due_in": ago(run["next_attempt_us"], now),
        "fence_ago": ago(attempt.get("start_requested_us"), now),
        "observed_ago": ago(attempt.get("observed_us"), now),
        "domains": _domains(facts),
        "domain_id": next((row["domain_id"] for row in standing.domains), "DOMAIN"),
        "question": _question(facts.question),
        "operation_id": facts.question.get("operation_id") if isinstance(facts.question, dict) else None,
        "older": older.get("run_id"),
        "older_status": older.get("status"),
        "older_count": len(standing.older),
        "scope": run["scope"],
        "holder": holder.get("run_id"),
        "holder_status": holder.get("status"),
        "limit": graph.get("max_concurrency"),
        "active": standing.active,
        "ahead": standing.ahead,
        "first_ahead": standing.first_ahead,
        "others": others if standing.others else "",
    }


def _error(facts: Facts) -> str:
    code, summary = facts.run["error_code"], facts.run["error_summary"]
    if code is None:
        return "an error that is not recorded"
    return str(code) if not summary else f"{code}: {_cut(summary)}"


def _domains(facts: Facts) -> str:
    found = [f"{row['kind']} domain {row['domain_id']}" for row in facts.standing.domains]
    return ", ".join(found) or f"execution domains ({facts.run['domains_open']})"


def _question(question: Any) -> str:
    """Return what is asked, in a line."""
    if not isinstance(question, dict):
        return "–"
    if question.get("kind") == "interrupt":
        return _cut("; ".join(str(plain(one["value"])) for one in question.get("interrupts", ())))
    if question.get("kind") == "unknown_operation":
        return _cut(f"{question.get('name')}({question.get('request')})")
    if question.get("kind") == "budget":
        spent = {name: question.get(name) for name in ("budget", "limit", "reserved", "consumed")}
        within = f" in {question['invocation']} (raise --per-invocation)" if question.get("invocation") else ""
        return _cut("{consumed} of {limit} {budget} are consumed, {reserved} reserved".format(**spent) + within)
    return _cut(", ".join(question.get("next", ())))


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SAID_CHARS_MAX else line[: _SAID_CHARS_MAX - 1] + "…"


def load_why(engine: Engine, serde: SerializerProtocol, run_id: str) -> Flow[Why]:
    """Read a run's rows in one snapshot, and explain it (raises RunNotFound)."""
    standing: Standing | None = yield engine.coordinator.read(
        "read_why", lambda: queries.standing(engine.space, run_id), snapshot=True
    )
    if standing is None:
        msg = f"there is no run {run_id!r} in space {engine.space!r}"
        raise RunNotFound(msg, run_id=run_id)
    data = standing.run["question"]
    question = None
    if data is not None and PayloadRef.decoded(data).size <= _QUESTION_BYTES_MAX:
        question = yield from payloads.decode(engine, serde, data, f"the question of run {run_id}")
    return explain(standing, question)


def why_of(bundle: RecoveryBundle) -> Why:
    """Explain the run of a bundle that came out of a file, as of the moment that it was read."""
    return explain(standing_of(bundle), question_of(bundle))


def standing_of(bundle: RecoveryBundle) -> Standing:
    """Return where the run of a bundle stands, as far as its own rows say."""
    rows, run = bundle.rows, bundle.run
    tries = {(row["operation_id"], row["try_no"]): row for row in rows["operation_tries"]}
    pending = []
    for row in rows["operations"]:
        last = tries.get((row["operation_id"], row["try_no"]))
        if row["status"] == OperationStatus.PENDING and last is not None and last["run_id"] == run["run_id"]:
            said = {f"try_{name}": last[name] for name in ("status", "started_us", "epoch")}
            pending.append({**row, **said, "provider_request_id": last["provider_request_id"]})
    return Standing(
        run,
        next((row for row in rows["attempts"] if row["attempt_id"] == run["attempt_id"]), None),
        graph=next(iter(rows["graphs"]), None),
        domains=[row for row in rows["domains"] if row["state"] == DomainState.OPEN],
        pending=sorted(pending, key=lambda row: row["operation_id"]),
        partial=True,
    )
