"""The first schema."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import context, op

from runtime_persist.dialects.sql import stored_as_given
from runtime_persist.schema.metadata import data, key, number, words

revision = "1.0"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create all tables."""
    schema = context.config.attributes.get("schema")
    op.create_table(
        "rp_attempts",
        key("space"),
        key("attempt_id"),
        key("run_id"),
        number("attempt_no"),
        key("status"),
        key("cause"),
        key("previous_attempt_id", null=True),
        number("epoch", null=True),
        key("worker_id", null=True),
        number("claimed_us", null=True),
        number("start_requested_us", null=True),
        key("observed_state"),
        number("observed_us", null=True),
        key("termination_reason", null=True),
        key("error_code", null=True),
        words("error_summary", null=True),
        number("created_us"),
        number("ended_us", null=True),
        sa.CheckConstraint(
            "cause IN ('initial', 'retry', 'takeover', 'resume')",
            name=op.f("ck_rp_attempts_cause"),
        ),
        sa.CheckConstraint(
            "status IN ('queued', 'claimed', 'starting', 'running', 'succeeded', 'failed', 'cancelled', 'timed_out', 'lost', 'yielded')",
            name=op.f("ck_rp_attempts_status"),
        ),
        sa.PrimaryKeyConstraint("space", "attempt_id", name=op.f("pk_rp_attempts")),
        schema=schema,
    )
    op.create_index(
        "uq_rp_attempts_attempt_no",
        "rp_attempts",
        ["space", "run_id", "attempt_no"],
        unique=True,
        schema=schema,
    )
    op.create_table(
        "rp_blobs",
        key("space"),
        key("owner"),
        data("address"),
        number("size"),
        number("created_us"),
        number("unused_us", null=True),
        data("content"),
        sa.PrimaryKeyConstraint("space", "owner", "address", name=op.f("pk_rp_blobs")),
        schema=schema,
    )
    op.create_table(
        "rp_checkpoints",
        key("space"),
        key("thread_id"),
        key("checkpoint_ns"),
        key("checkpoint_id"),
        key("parent_id", null=True),
        key("run_id", null=True),
        number("epoch", null=True),
        data("body"),
        data("metadata"),
        data("fingerprint"),
        key("run_ref", null=True),
        number("hidden"),
        number("orphan"),
        number("created_us"),
        sa.PrimaryKeyConstraint(
            "space",
            "thread_id",
            "checkpoint_ns",
            "checkpoint_id",
            name=op.f("pk_rp_checkpoints"),
        ),
        schema=schema,
    )
    referred = sa.text("run_ref IS NOT NULL")
    op.create_index(
        "ix_rp_checkpoints_run_ref",
        "rp_checkpoints",
        ["space", "run_ref"],
        postgresql_where=referred,
        sqlite_where=referred,
        schema=schema,
    )
    op.create_table(
        "rp_events",
        key("space"),
        key("run_id"),
        number("seq"),
        key("type"),
        key("actor"),
        key("attempt_id", null=True),
        number("epoch", null=True),
        data("payload", null=True),
        number("created_us"),
        sa.PrimaryKeyConstraint("space", "run_id", "seq", name=op.f("pk_rp_events")),
        schema=schema,
    )
    op.create_table(
        "rp_graphs",
        key("space"),
        key("graph"),
        key("version", null=True),
        words("retry_policy", null=True),
        number("registered_us"),
        sa.PrimaryKeyConstraint("space", "graph", name=op.f("pk_rp_graphs")),
        schema=schema,
    )
    op.create_table(
        "rp_heads",
        key("space"),
        key("thread_id"),
        key("checkpoint_ns"),
        key("checkpoint_id"),
        sa.PrimaryKeyConstraint("space", "thread_id", "checkpoint_ns", name=op.f("pk_rp_heads")),
        schema=schema,
    )
    op.create_table(
        "rp_operation_tries",
        key("space"),
        key("operation_id"),
        number("try_no"),
        key("status"),
        key("run_id"),
        key("attempt_id"),
        number("epoch"),
        key("error_type", null=True),
        words("error_text", null=True),
        number("started_us"),
        number("ended_us", null=True),
        sa.CheckConstraint(
            "status IN ('started', 'succeeded', 'failed', 'unknown', 'cancelled')",
            name=op.f("ck_rp_operation_tries_status"),
        ),
        sa.PrimaryKeyConstraint("space", "operation_id", "try_no", name=op.f("pk_rp_operation_tries")),
        schema=schema,
    )
    op.create_index(
        "ix_rp_operation_tries_run",
        "rp_operation_tries",
        ["space", "run_id", "status"],
        unique=False,
        schema=schema,
    )
    op.create_table(
        "rp_operations",
        key("space"),
        key("thread_id"),
        key("checkpoint_ns"),
        key("name"),
        key("ordinal"),
        key("operation_id"),
        key("status"),
        key("on_unknown"),
        data("request_fingerprint"),
        words("request"),
        key("idempotency_key"),
        key("run_id"),
        number("epoch"),
        number("node_attempt"),
        number("try_no"),
        data("result", null=True),
        data("result_fingerprint", null=True),
        key("error_type", null=True),
        words("error_text", null=True),
        key("copied_from", null=True),
        number("created_us"),
        number("ended_us", null=True),
        sa.CheckConstraint(
            "status IN ('pending', 'succeeded', 'failed')",
            name=op.f("ck_rp_operations_status"),
        ),
        sa.PrimaryKeyConstraint(
            "space",
            "thread_id",
            "checkpoint_ns",
            "name",
            "ordinal",
            name=op.f("pk_rp_operations"),
        ),
        schema=schema,
    )
    op.create_index("ix_rp_operations_run", "rp_operations", ["space", "run_id"], unique=False, schema=schema)
    op.create_index(
        "uq_rp_operations_operation_id",
        "rp_operations",
        ["space", "operation_id"],
        unique=True,
        schema=schema,
    )
    op.create_table(
        "rp_receipts",
        key("space"),
        key("command_id"),
        key("kind"),
        key("run_id", null=True),
        number("epoch", null=True),
        data("fingerprint"),
        data("result"),
        number("committed_us"),
        sa.PrimaryKeyConstraint("space", "command_id", name=op.f("pk_rp_receipts")),
        schema=schema,
    )
    op.create_table(
        "rp_runs",
        key("space"),
        key("run_id"),
        key("graph"),
        key("graph_version", null=True),
        key("thread_id"),
        number("thread_run_no"),
        key("status"),
        number("version"),
        number("event_seq"),
        key("control"),
        key("stop_reason", null=True),
        number("epoch"),
        key("phase"),
        key("worker_id", null=True),
        number("expires_us"),
        key("revocation", null=True),
        key("idempotency_key", null=True),
        data("request_fingerprint"),
        data("input"),
        key("start_checkpoint_id", null=True),
        key("retry_of_run_id", null=True),
        number("deadline_us", null=True),
        words("retry_policy", null=True),
        key("attempt_id", null=True),
        number("attempt_no"),
        number("takeovers"),
        number("failures"),
        number("next_attempt_us", null=True),
        data("question", null=True),
        data("answer", null=True),
        data("result", null=True),
        key("error_code", null=True),
        words("error_summary", null=True),
        key("observed_state", null=True),
        number("created_us"),
        number("queued_us", null=True),
        number("finished_us", null=True),
        number("updated_us"),
        sa.CheckConstraint("control IN ('open', 'stopping')", name=op.f("ck_rp_runs_control")),
        sa.CheckConstraint("phase IN ('recovering', 'active', 'released')", name=op.f("ck_rp_runs_phase")),
        sa.CheckConstraint(
            "status IN ('created', 'queued', 'dispatching', 'running', 'waiting_approval', 'retry_wait', 'lost', 'succeeded', 'failed', 'cancelled', 'timed_out')",
            name=op.f("ck_rp_runs_status"),
        ),
        sa.PrimaryKeyConstraint("space", "run_id", name=op.f("pk_rp_runs")),
        schema=schema,
    )
    op.create_index(
        "ix_rp_runs_claim",
        "rp_runs",
        ["space", "status", "queued_us"],
        unique=False,
        schema=schema,
    )
    due = sa.text("deadline_us IS NOT NULL AND finished_us IS NULL")
    op.create_index(
        "ix_rp_runs_deadline",
        "rp_runs",
        ["space", "deadline_us"],
        postgresql_where=due,
        sqlite_where=due,
        schema=schema,
    )
    op.create_index(
        "uq_rp_runs_idempotency_key",
        "rp_runs",
        ["space", "idempotency_key"],
        unique=True,
        schema=schema,
    )
    op.create_index(
        "uq_rp_runs_thread_run_no",
        "rp_runs",
        ["space", "thread_id", "thread_run_no"],
        unique=True,
        schema=schema,
    )
    op.create_table(
        "rp_spaces",
        key("space"),
        data("secret"),
        number("created_us"),
        sa.PrimaryKeyConstraint("space", name=op.f("pk_rp_spaces")),
        schema=schema,
    )
    op.create_table(
        "rp_threads",
        key("space"),
        data("thread_hash"),
        key("thread_id", null=True),
        number("generation"),
        key("owner_run_id", null=True),
        number("run_no"),
        number("deleted_us", null=True),
        key("deleted_checkpoint_id", null=True),
        number("created_us"),
        sa.PrimaryKeyConstraint("space", "thread_hash", name=op.f("pk_rp_threads")),
        schema=schema,
    )
    op.create_table(
        "rp_writes",
        key("space"),
        key("thread_id"),
        key("checkpoint_ns"),
        key("checkpoint_id"),
        key("task_id"),
        number("idx"),
        key("task_path"),
        key("channel"),
        data("value"),
        data("fingerprint"),
        key("run_id", null=True),
        number("epoch", null=True),
        sa.PrimaryKeyConstraint(
            "space",
            "thread_id",
            "checkpoint_ns",
            "checkpoint_id",
            "task_id",
            "idx",
            name=op.f("pk_rp_writes"),
        ),
        schema=schema,
    )
    for name, column in (("rp_blobs", "content"), ("rp_checkpoints", "body")):
        for statement in stored_as_given(op.get_context().dialect, sa.table(name, schema=schema), column):
            op.execute(statement)


def downgrade() -> None:
    """Refuse: there is nothing before the first schema."""
    msg = "there is no schema before 1.0; drop the rp_ tables instead"
    raise NotImplementedError(msg)
