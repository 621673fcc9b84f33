"""Runs. Run, lease and control are one row, so one lock covers everything the fence decides on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import ColumnElement, Index, Table, and_

from runtime_persist.dialects.sql import constant, partial_index
from runtime_persist.model.states import ACTIVE_RUN, Control, LeasePhase, RunStatus
from runtime_persist.schema.metadata import data, key, metadata, number, one_of, words

if TYPE_CHECKING:
    from sqlalchemy import FromClause

runs = Table(
    "rp_runs",
    metadata,
    key("space", primary=True),
    key("run_id", primary=True),
    key("graph"),
    key("graph_version", null=True),  # of the definition it was started with (None: any may execute it)
    key("thread_id"),
    number("thread_run_no"),  # order of the thread's runs
    key("status"),
    number("version"),  # +1 with every transition: what compare-and-set expects
    number("event_seq"),
    number("event_position", default=0),  # of its last event, see rp_events: positions of a run never go back
    key("control"),
    key("stop_reason", null=True),
    number("rolls_back", default=0),  # 1: its end takes the thread back to where it began
    # lease
    number("epoch"),
    key("phase"),
    key("worker_id", null=True),
    number("expires_us"),
    key("revocation", null=True),  # why the lease may be active, or that this could not be proved
    # the request
    key("idempotency_key", null=True),
    data("request_fingerprint"),
    data("input"),  # payload reference
    key("start_checkpoint_id", null=True),  # a fork: where the first attempt begins (or JSON: see starting.py)
    key("retry_of_run_id", null=True),
    number("deadline_us", null=True),
    words("retry_policy", null=True),  # JSON (None: a failure is final)
    # where it stands
    key("attempt_id", null=True),
    number("attempt_no"),
    number("takeovers"),  # in a row without progress
    number("failures"),  # proved ones: each consumed an attempt of the policy
    number("next_attempt_us", null=True),  # retry_wait: when it is due
    data("question", null=True),  # payload reference: why it waits
    data("answer", null=True),  # payload reference: what the next attempt resumes with
    data("result", null=True),
    key("error_code", null=True),
    words("error_summary", null=True),
    key("observed_state", null=True),
    number("created_us"),
    number("queued_us", null=True),  # its place in the queue (negative: moved to the front then)
    number("finished_us", null=True),
    number("updated_us"),
    # capacity and order
    number("priority", default=0),  # the higher goes first
    key("scope", null=True),  # of which at most one run is active at a time (None: its thread)
    key("instance_id", null=True),  # whose slot it holds while it is active (None: an owned call, which holds none)
    key("traceparent", null=True),  # W3C trace context it was started in: every attempt's span goes on from there
    # execution domains, counted here so that the run's lock covers them
    number("domains_opened", default=0),  # by any epoch of it
    number("domains_open", default=0),  # of them: not revoked yet
    # budget: what its calls may take (None: any), and projections of its tickets; costs in millionths
    number("loops_limit", null=True),
    number("loops_reserved", default=0),
    number("loops_consumed", default=0),
    number("tool_calls_limit", null=True),
    number("tool_calls_reserved", default=0),
    number("tool_calls_consumed", default=0),
    number("tokens_limit", null=True),
    number("tokens_reserved", default=0),
    number("tokens_consumed", default=0),
    number("cost_micros_limit", null=True),
    number("cost_micros_reserved", default=0),
    number("cost_micros_consumed", default=0),
    number("invocation_loops_limit", null=True),  # of each invocation in it; what one took, its tickets say
    number("invocation_tool_calls_limit", null=True),
    number("invocation_tokens_limit", null=True),
    number("invocation_cost_micros_limit", null=True),
    one_of("status", RunStatus),
    one_of("control", Control),
    one_of("phase", LeasePhase),
)
Index("uq_rp_runs_idempotency_key", runs.c.space, runs.c.idempotency_key, unique=True)
Index("uq_rp_runs_thread_run_no", runs.c.space, runs.c.thread_id, runs.c.thread_run_no, unique=True)
partial_index(
    "ix_rp_runs_deadline",
    runs.c.space,
    runs.c.deadline_us,
    where=and_(runs.c.deadline_us.is_not(None), runs.c.finished_us.is_(None)),
)


def is_active(run: FromClause) -> ColumnElement[bool]:
    """Return the condition that a run holds a slot of its instance, one of its graph's places, and its scope."""
    return run.c.status.in_([constant(status.value) for status in sorted(ACTIVE_RUN)])


# What a claim looks for, one index a question. None has a column that a renewal of the lease changes.
partial_index(
    "ix_rp_runs_queue",
    runs.c.space,
    runs.c.graph,
    runs.c.priority.desc(),
    runs.c.queued_us,
    runs.c.run_id,
    runs.c.graph_version,
    where=runs.c.status == constant(RunStatus.QUEUED.value),
)
partial_index(
    "ix_rp_runs_retry",
    runs.c.space,
    runs.c.graph,
    runs.c.next_attempt_us,
    where=runs.c.status == constant(RunStatus.RETRY_WAIT.value),
)
partial_index("ix_rp_runs_active", runs.c.space, runs.c.graph, runs.c.queued_us, where=is_active(runs))
partial_index("ix_rp_runs_instance", runs.c.space, runs.c.instance_id, where=is_active(runs))
partial_index("ix_rp_runs_scope", runs.c.space, runs.c.scope, where=and_(is_active(runs), runs.c.scope.is_not(None)))
partial_index(
    "ix_rp_runs_stopping",
    runs.c.space,
    runs.c.run_id,
    where=and_(runs.c.control == constant(Control.STOPPING.value), is_active(runs)),
)
partial_index(
    "ix_rp_runs_open", runs.c.space, runs.c.thread_id, runs.c.thread_run_no, where=runs.c.finished_us.is_(None)
)
