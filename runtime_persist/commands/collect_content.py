"""collect_content: content that no row refers to is marked, and removed when it still is marked a while later."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import delete, null, select, update

from runtime_persist.commands.parts.spec import ColdCommand, Command, Decision, Locked
from runtime_persist.dialects.sql import among, bind, number
from runtime_persist.model.guards import CONTROL
from runtime_persist.plan import Call, Plan, Query, many
from runtime_persist.schema import blobs


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectContent(Command):
    """Mark, unmark and remove content. Answer: ``marked``, ``unmarked``, ``removed`` and ``removed_bytes``.

    What is found unused is removed if it was marked ``window_us`` before the moment ``seen_us``, else marked if it is
    not. Content that somebody else has locked at this moment is left alone: it is being sent, or collected.

    Attributes:
        owner: whose content it is.
        seen_us: the moment of which all rows of the space were read, by the database's clock.
        window_us: how long content has to be marked before that moment to be removed (microseconds).
        unused: addresses that no row referred to then.
        used: marked ones that a row did refer to.

    """

    owner: str
    seen_us: int
    window_us: int
    unused: tuple[bytes, ...] = ()
    used: tuple[bytes, ...] = ()


_B = blobs.c
_NAMED = (_B.space == bind(_B.space), _B.owner == bind(_B.owner), among(_B.address, "addresses"))
# In address order as all who send content; but nobody waits here.
LOCK_CONTENT = Query(
    "lock_content",
    select(_B.address, _B.size, _B.unused_us, _B.created_us)
    .where(*_NAMED)
    .order_by(_B.address)
    .with_for_update(skip_locked=True),
    each="addresses",
)
REMOVE = Query(
    "remove_content",
    delete(blobs).where(*_NAMED, _B.unused_us <= number("before_us")),
    each="addresses",
)
MARK = Query(
    "mark_content",
    update(blobs).values(unused_us=number("now_us")).where(*_NAMED, _B.unused_us.is_(None)),
    each="addresses",
)
UNMARK = Query(
    "unmark_content",
    update(blobs).values(unused_us=null()).where(*_NAMED),
    each="addresses",
)


def decide(command: CollectContent, locked: Locked) -> Plan[Decision]:
    """Return the removals and marks, of what the locked rows say now: content that was sent meanwhile is unmarked."""
    place = {"space": command.space, "owner": command.owner}
    named = sorted({*command.unused, *command.used})
    found = yield from many(LOCK_CONTENT, **place, addresses=named)
    unused, used = set(command.unused), set(command.used)
    before_us = command.seen_us - command.window_us
    remove: list[bytes] = []
    mark: list[bytes] = []
    unmark: list[bytes] = []
    removed_bytes = 0
    for row in found:
        address, marked_us = bytes(row["address"]), row["unused_us"]
        if address in used:
            unmark += [address] if marked_us is not None else []
        elif address in unused and marked_us is None:
            # What is younger than the look at the rows may belong to one that was not visible yet.
            mark += [address] if row["created_us"] <= command.seen_us else []
        elif marked_us is not None and marked_us <= before_us:
            remove.append(address)
            removed_bytes += row["size"]
    effects = [
        Call(REMOVE, place | {"addresses": remove, "before_us": before_us}),
        Call(MARK, place | {"addresses": mark, "now_us": locked.now_us}),
        Call(UNMARK, place | {"addresses": unmark}),
    ]
    counts = {"marked": len(mark), "unmarked": len(unmark), "removed": len(remove), "removed_bytes": removed_bytes}
    return Decision(counts, effects=effects)


SPEC = ColdCommand(
    name="collect_content",
    dto=CollectContent,
    guard=CONTROL,
    decide=decide,
    statements=(LOCK_CONTENT, REMOVE, MARK, UNMARK),
    locks_run=False,
)
