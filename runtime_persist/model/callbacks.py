"""Callback tokens: the right to report about one attempt, without its lease. Only a keyed hash of one is stored."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import Final

from runtime_persist.errors import CallbackRefused

_PREFIX: Final = "rpcb1"
_SECRET_BYTES: Final = 32
_PARTS: Final = 4


@dataclass(frozen=True, slots=True)
class CallbackToken:
    """A token as it is handed to a runtime.

    Attributes:
        run_id: the run.
        attempt_id: the one attempt it may report about.
        text: what is handed out; a secret of 256 random bits behind the ids.

    """

    run_id: str
    attempt_id: str
    text: str = field(repr=False)

    @classmethod
    def new(cls, run_id: str, attempt_id: str) -> CallbackToken:
        """Return a token that nobody can guess."""
        text = ".".join((_PREFIX, run_id, attempt_id, secrets.token_urlsafe(_SECRET_BYTES)))
        return cls(run_id, attempt_id, text)

    @classmethod
    def parsed(cls, text: object) -> CallbackToken:
        """Return a token that somebody sent (raises CallbackRefused: it is none)."""
        parts = text.split(".") if isinstance(text, str) else []
        if len(parts) != _PARTS or parts[0] != _PREFIX or not all(parts):
            msg = "this is no callback token; a runtime gets it with the attempt it is to execute"
            raise CallbackRefused(msg)
        return cls(parts[1], parts[2], ".".join(parts))
