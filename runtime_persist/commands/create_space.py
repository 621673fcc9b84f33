"""create_space: a tenant and the random key its hashes are made with."""

from __future__ import annotations

from dataclasses import dataclass, field

from runtime_persist.commands.parts.spec import ColdCommand, Command, Decision, Locked
from runtime_persist.dialects.sql import bind, insert
from runtime_persist.model.guards import CONTROL
from runtime_persist.plan import Call, Plan, Query, done
from runtime_persist.schema import spaces


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSpace(Command):
    """Make the space unless it exists; the first secret stays."""

    secret: bytes = field(repr=False)


CREATE = Query(
    "create_space",
    insert(spaces)
    .values(**{name: bind(spaces.c[name]) for name in ("space", "secret", "created_us")})
    .on_conflict_do_nothing(),
)


def decide(command: CreateSpace, locked: Locked) -> Plan[Decision]:
    """Return the insert."""
    row = {"space": command.space, "secret": command.secret, "created_us": locked.now_us}
    return done(Decision({}, effects=[Call(CREATE, row)]))


SPEC = ColdCommand(
    name="create_space",
    dto=CreateSpace,
    guard=CONTROL,
    decide=decide,
    statements=(CREATE,),
    locks_run=False,
    fingerprint=lambda _: b"space",  # the secret of whoever came first counts
)
