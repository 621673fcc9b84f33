"""Runs. Run, lease and control are one row, so one lock covers everything the fence decides on."""

from __future__ import annotations

from sqlalchemy import Index, Table, and_

from runtime_persist.dialects.sql import partial_index
from runtime_persist.model.states import Control, LeasePhase, RunStatus
from runtime_persist.schema.metadata import data, key, metadata, number, one_of, words

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
    key("control"),
    key("stop_reason", null=True),
    # lease
    number("epoch"),
    key("phase"),
    key("worker_id", null=True),
    number("expires_us"),
    key("revocation", null=True),
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
Index("ix_rp_runs_claim", runs.c.space, runs.c.status, runs.c.queued_us)
