"""Execution domains: what outside the database an attempt can still write to, and what proves that it cannot."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    from collections.abc import Mapping

PROCESS = "process"
WORKSPACE = "workspace"


class DomainState(StrEnum):
    """``open``: somebody may still write to it. ``revoked``: proved unable to."""

    OPEN = "open"
    REVOKED = "revoked"


class Proof(StrEnum):
    """How it is known that a domain cannot be written to any more.

    ``closed``: whoever opened it closed it. ``ended``: its own process committed the end of its attempt. ``gone``: it
    does not exist any more. ``killed``: the revoker ended it, and then saw it gone. ``rebooted``: its machine has
    started anew since. ``stated``: a person says so.
    """

    CLOSED = "closed"
    ENDED = "ended"
    GONE = "gone"
    KILLED = "killed"
    REBOOTED = "rebooted"
    STATED = "stated"


class RevocationReceipt(BaseModel):
    """The proof that a domain can no longer write, as it is stored.

    Attributes:
        how: the kind of proof.
        saw: what was seen, in a few words.
        by: who recorded it (``worker:…``, ``user:…``).
        epoch: epoch of the run when it was recorded.
        at_us: microseconds since 1970 by the database clock.

    """

    model_config = ConfigDict(frozen=True)

    how: Proof
    saw: str
    by: str
    epoch: int
    at_us: int


class Domain(BaseModel):
    """An execution domain as it was read.

    Attributes:
        domain_id: its id.
        run_id: the run whose attempt opened it.
        attempt_id: the attempt that opened it.
        epoch: under which it was opened.
        kind: names the revoker: ``process``, ``workspace``, or one of your own.
        handle: how the revoker finds it.
        state: ``open`` or ``revoked``.
        opened_us: microseconds since 1970 by the database clock.
        receipt: the proof that it is revoked (None: it is open).

    """

    model_config = ConfigDict(frozen=True)

    domain_id: str
    run_id: str
    attempt_id: str | None
    epoch: int
    kind: str
    handle: dict[str, Any]
    state: DomainState
    opened_us: int
    receipt: RevocationReceipt | None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        """Return the domain of its row."""
        proof = row["proof"]
        receipt = None if proof is None else RevocationReceipt.model_validate_json(proof)
        return cls.model_validate({**row, "handle": json.loads(row["handle"]), "receipt": receipt})


@dataclass(frozen=True, slots=True)
class Revoked:
    """A revoker's answer: the domain cannot be written to any more, and this is how it is known."""

    how: Proof
    saw: str


@dataclass(frozen=True, slots=True)
class Unproved:
    """A revoker's answer: nothing proves that the domain cannot be written to any more, and this is why."""

    why: str
