"""Alembic's entry: runs on the connection that `schema.migrate` hands over, or writes SQL without one."""

from __future__ import annotations

from typing import Any

from alembic import context

from runtime_persist.schema import metadata
from runtime_persist.schema.migrate import VERSION_TABLE

attributes: dict[str, Any] = context.config.attributes
schema: str | None = attributes.get("schema")
options: dict[str, Any] = {
    "target_metadata": metadata,
    "version_table": VERSION_TABLE,
    "version_table_schema": schema,
}
if context.is_offline_mode():
    # No BEGIN and COMMIT in the text: whoever runs it decides on the transaction.
    url = context.config.get_main_option("sqlalchemy.url")
    context.configure(url=url, literal_binds=True, transactional_ddl=False, **options)
else:
    context.configure(connection=attributes["connection"], transactional_ddl=True, **options)
with context.begin_transaction():
    context.run_migrations()
