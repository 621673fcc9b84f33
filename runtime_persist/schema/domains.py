"""Execution domains: what outside the database an attempt can still write to, until that is proved revoked."""

from __future__ import annotations

from sqlalchemy import Table

from runtime_persist.model.domains import DomainState
from runtime_persist.schema.metadata import key, metadata, number, one_of, words

domains = Table(
    "rp_domains",
    metadata,
    key("space", primary=True),
    key("run_id", primary=True),
    key("domain_id", primary=True),
    number("epoch"),  # that opened it
    key("attempt_id", null=True),
    key("kind"),  # process, workspace …: names the revoker
    words("handle"),  # JSON: how the revoker finds it
    key("state"),
    words("proof", null=True),  # JSON: the revocation receipt
    number("opened_us"),
    number("revoked_us", null=True),
    one_of("state", DomainState),
)
