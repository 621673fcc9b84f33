"""Names of graphs that some process of this space can run."""

from __future__ import annotations

from sqlalchemy import Table

from runtime_persist.schema.metadata import key, metadata, number

graphs = Table(
    "rp_graphs",
    metadata,
    key("space", primary=True),
    key("graph", primary=True),
    number("registered_us"),
)
