"""Names of graphs that some process of this space can run."""

from __future__ import annotations

from sqlalchemy import Table

from runtime_persist.schema.metadata import key, metadata, number, words

graphs = Table(
    "rp_graphs",
    metadata,
    key("space", primary=True),
    key("graph", primary=True),
    key("version", null=True),  # of the definition that was registered last
    words("retry_policy", null=True),  # JSON: for runs that are started without one
    number("registered_us"),
)
