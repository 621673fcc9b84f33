"""Workers on many machines: instances, domains, outbox cursors, and what runs and attempts know of them."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import context, op

from runtime_persist.dialects.transactions import followed_by_trigger, numbered_by_trigger
from runtime_persist.schema.metadata import data, key, number, transaction, words

revision = "1.1"
down_revision = "1.0"
branch_labels = None
depends_on = None

# Code of 1.0 may go on writing while a deployment rolls: every new column has a default, or may be NULL.


def upgrade() -> None:
    """Add what 1.0 has not."""
    schema = context.config.attributes.get("schema")
    _runs(schema)
    _attempts(schema)
    _events(schema)
    _graphs(schema)
    _instances(schema)
    _domains(schema)
    _cursors(schema)
    _operations(schema)
    _budgets(schema)
    _spaces(schema)


def _add(table: str, schema: str | None, *columns: sa.Column[Any]) -> None:
    for column in columns:
        op.add_column(table, column, schema=schema)


def _runs(schema: str | None) -> None:
    _add("rp_runs", schema, number("event_position", default=0))
    _add("rp_runs", schema, number("priority", default=0), key("scope", null=True), key("traceparent", null=True))
    _add("rp_runs", schema, key("instance_id", null=True))
    _claiming(schema)
    _add("rp_runs", schema, number("rolls_back", default=0))
    _add("rp_runs", schema, number("domains_opened", default=0), number("domains_open", default=0))


def _claiming(schema: str | None) -> None:
    op.drop_index("ix_rp_runs_claim", "rp_runs", schema=schema)
    active = "status IN ('dispatching', 'lost', 'running')"
    found: dict[str, tuple[list[Any], str]] = {
        "ix_rp_runs_queue": (
            ["space", "graph", sa.text("priority DESC"), "queued_us", "run_id", "graph_version"],
            "status = 'queued'",
        ),
        "ix_rp_runs_retry": (["space", "graph", "next_attempt_us"], "status = 'retry_wait'"),
        "ix_rp_runs_active": (["space", "graph", "queued_us"], active),
        "ix_rp_runs_instance": (["space", "instance_id"], active),
        "ix_rp_runs_scope": (["space", "scope"], f"{active} AND scope IS NOT NULL"),
        "ix_rp_runs_stopping": (["space", "run_id"], f"control = 'stopping' AND {active}"),
        "ix_rp_runs_open": (["space", "thread_id", "thread_run_no"], "finished_us IS NULL"),
    }
    for name, (columns, condition) in found.items():
        where = sa.text(condition)
        op.create_index(name, "rp_runs", columns, postgresql_where=where, sqlite_where=where, schema=schema)
    op.create_index("ix_rp_threads_thread_id", "rp_threads", ["space", "thread_id"], schema=schema)


def _attempts(schema: str | None) -> None:
    _add(
        "rp_attempts",
        schema,
        key("instance_id", null=True),
        key("runtime", null=True),
        words("handle", null=True),
        key("sync_state", default="pending"),
        number("last_event_seq", default=0),
        number("heartbeat_us", null=True),
        data("callback_hash", null=True),
        number("callback_expires_us", null=True),
    )


def _events(schema: str | None) -> None:
    _add("rp_events", schema, transaction("position", null=True), key("dedupe_key", null=True))
    dialect = op.get_context().dialect
    for statement in (*numbered_by_trigger(dialect, "rp_events", "position"), *followed_by_trigger(dialect, schema)):
        op.execute(statement)
    op.create_index("ix_rp_events_position", "rp_events", ["space", "position"], schema=schema)
    once = sa.text("dedupe_key IS NOT NULL")
    op.create_index(
        "uq_rp_events_dedupe_key",
        "rp_events",
        ["space", "run_id", "dedupe_key"],
        unique=True,
        postgresql_where=once,
        sqlite_where=once,
        schema=schema,
    )


def _graphs(schema: str | None) -> None:
    _add(
        "rp_graphs",
        schema,
        number("max_concurrency", null=True),
        words("workspace", null=True),
        number("served_no", default=0),
    )


def _instances(schema: str | None) -> None:
    op.create_table(
        "rp_instances",
        key("space"),
        key("instance_id"),
        key("worker_id"),
        number("report_no"),
        data("fingerprint"),
        words("host"),
        words("graphs"),
        number("slots"),
        words("active_task_ids"),
        number("queued"),
        number("draining"),
        number("reported_us"),
        number("expires_us"),
        sa.PrimaryKeyConstraint("space", "instance_id", name=op.f("pk_rp_instances")),
        schema=schema,
    )


def _domains(schema: str | None) -> None:
    op.create_table(
        "rp_domains",
        key("space"),
        key("run_id"),
        key("domain_id"),
        number("epoch"),
        key("attempt_id", null=True),
        key("kind"),
        words("handle"),
        key("state"),
        words("proof", null=True),
        number("opened_us"),
        number("revoked_us", null=True),
        sa.CheckConstraint("state IN ('open', 'revoked')", name=op.f("ck_rp_domains_state")),
        sa.PrimaryKeyConstraint("space", "run_id", "domain_id", name=op.f("pk_rp_domains")),
        schema=schema,
    )


def _cursors(schema: str | None) -> None:
    op.create_table(
        "rp_cursors",
        key("space"),
        key("consumer"),
        number("position"),
        key("run_id"),
        number("seq"),
        number("acked_us"),
        key("command_id"),
        sa.PrimaryKeyConstraint("space", "consumer", name=op.f("pk_rp_cursors")),
        schema=schema,
    )


def _operations(schema: str | None) -> None:
    _add(
        "rp_operations",
        schema,
        key("phase", default="executing"),
        number("hooked", default=0),
        data("raw", null=True),
        data("raw_fingerprint", null=True),
        number("next_attempt_us", null=True),
        key("error_code", null=True),
    )
    _add(
        "rp_operation_tries",
        schema,
        key("error_code", null=True),
        key("provider_request_id", null=True),
        number("first_output_us", null=True),
        key("first_output_kind", null=True),
    )
    op.drop_index("ix_rp_operations_run", "rp_operations", schema=schema)
    op.create_index("ix_rp_operations_run", "rp_operations", ["space", "run_id", "operation_id"], schema=schema)
    again = sa.text("try_no > 1")
    op.create_index(
        "ix_rp_operation_tries_again",
        "rp_operation_tries",
        ["space", "run_id"],
        postgresql_where=again,
        sqlite_where=again,
        schema=schema,
    )


def _budgets(schema: str | None) -> None:
    for kind in ("loops", "tool_calls", "tokens", "cost_micros"):
        _add("rp_runs", schema, number(f"{kind}_limit", null=True))
        _add("rp_runs", schema, number(f"{kind}_reserved", default=0), number(f"{kind}_consumed", default=0))
        _add("rp_runs", schema, number(f"invocation_{kind}_limit", null=True))
    op.create_table(
        "rp_tickets",
        key("space"),
        key("run_id"),
        key("operation_id"),
        key("state"),
        number("epoch"),
        number("loops"),
        number("tool_calls"),
        number("tokens"),
        number("cost_micros"),
        number("reserved_us"),
        number("settled_us", null=True),
        key("invocation", null=True),
        sa.CheckConstraint("state IN ('consumed', 'released', 'reserved')", name=op.f("ck_rp_tickets_state")),
        sa.PrimaryKeyConstraint("space", "run_id", "operation_id", name=op.f("pk_rp_tickets")),
        schema=schema,
    )


def _spaces(schema: str | None) -> None:
    _add(
        "rp_spaces",
        schema,
        key("bundle", null=True),
        data("manifest", null=True),
        number("as_of_us", null=True),
        number("whole_us", null=True),
    )


def downgrade() -> None:
    """Refuse: what runs and attempts know of workers would be lost."""
    msg = "a schema is not taken back; restore a backup of the older one instead"
    raise NotImplementedError(msg)
