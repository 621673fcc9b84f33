"""One row a tenant, with the random key that its hashes are made with."""

from __future__ import annotations

from sqlalchemy import Table

from runtime_persist.schema.metadata import data, key, metadata, number

spaces = Table(
    "rp_spaces",
    metadata,
    key("space", primary=True),
    data(
        "secret",
    ),  # 32 random bytes: content addresses, thread hashes and redacted arguments are keyed with it
    number("created_us"),
    # of a space that a bundle was imported into: nothing else is ever written there
    key("bundle", null=True),  # SHA-256 of its manifest
    data("manifest", null=True),  # that manifest, without its entries: what was redacted, where it came from
    number("as_of_us", null=True),  # the moment that its rows are of: no time goes by there
    number("whole_us", null=True),  # when the last of it was imported
)
