"""Where a process can die inside a command.

    for cut in cuts(COMMANDS[ClaimRun], "sqlite"):
        ...                                    # kill a process there, let another one finish
        assert check_invariants(read_rows(engine)) == []    # of `faults`

The cuts are generated from the commands themselves: from the fragments of a hot command's bundle, from the locks,
receipt and declared statements of a cold one. A statement that is not declared is therefore not cut; tests compare
what a command really reached with this list.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from sqlalchemy.sql.selectable import SelectBase

from runtime_persist.commands.parts import admission, guards, receipts, run_rows
from runtime_persist.commands.parts import events as event_parts
from runtime_persist.commands.parts.spec import HotCommand
from runtime_persist.coordinator.transaction import bundle_of

if TYPE_CHECKING:
    from runtime_persist.commands import Spec
    from runtime_persist.commands.parts.spec import ColdCommand
    from runtime_persist.plan import Bundle, Query

__all__ = ["Cut", "How", "cuts", "queries_of"]

How = Literal["hook", "sent", "waiting", "reply_lost"]


@dataclass(frozen=True, slots=True)
class Cut:
    """A place inside a command where its process may die.

    Attributes:
        name: ``command:where:statement``, unique; for ``hook`` the name the driver's hook is called with.
        statement: the fragment or statement it belongs to; ``begin`` and ``commit`` are statements too.
        how: what stands between client and database there. ``hook``: the client, just before (or, after COMMIT,
            just behind) it; ``sent``: the request is on its way; ``waiting``: the server waits for a lock;
            ``reply_lost``: the server is done and the client has not heard of it.

    """

    name: str
    statement: str
    how: How = "hook"


def cuts(spec: Spec, dialect_name: str) -> tuple[Cut, ...]:
    """Return every cut of a command on a database, in the order in which it can be reached."""
    if isinstance(spec, HotCommand) and dialect_name == "postgresql":
        return (
            Cut(f"{spec.name}:before:{spec.name}", spec.name),
            Cut(f"{spec.name}:sent:{spec.name}", spec.name, "sent"),
            Cut(f"{spec.name}:waiting:{spec.name}", spec.name, "waiting"),
            Cut(f"{spec.name}:reply_lost:{spec.name}", spec.name, "reply_lost"),
        )
    if isinstance(spec, HotCommand):
        inside = [fragment.name for fragment in bundle_of(spec).fragments]
    else:
        inside = [query.name for query in queries_of(spec)]
    found: list[Cut] = []
    for statement in ("begin", *inside):
        found.append(Cut(f"{spec.name}:before:{statement}", statement))
        if dialect_name == "postgresql":
            found.append(Cut(f"{spec.name}:after:{statement}", statement, "reply_lost"))
    found.append(Cut(f"{spec.name}:before:commit", "commit"))
    if dialect_name == "postgresql":
        found.append(Cut(f"{spec.name}:sent:commit", "commit", "sent"))
        found.append(Cut(f"{spec.name}:reply_lost:commit", "commit", "reply_lost"))
    found.append(Cut(f"{spec.name}:after:commit", "commit"))
    return tuple(found)


def queries_of(spec: ColdCommand[Any]) -> tuple[Query | Bundle, ...]:
    """Return every statement a cold command may run: locks, receipt, its reads, then its writes and events.

    The events are a bundle of one fragment of the same name.
    """
    locks = [admission.LOCK_INSTANCE] if spec.locks_instance else []
    if spec.locks_thread:
        locks.append(guards.LOCK_THREAD)
    if spec.locks_run or spec.locks_thread:  # the thread's owner is a run, too
        locks.append(guards.LOCK_RUN)
    reads = [query for query in spec.statements if isinstance(query.statement, SelectBase)]
    writes = [query for query in spec.statements if query not in reads]
    facts = [event_parts.APPEND_EVENTS] if {run_rows.SAVE_RUN, run_rows.INSERT_RUN} & set(writes) else []
    found: tuple[Query | Bundle, ...] = (
        *(locks or [guards.READ_CLOCK]),
        *reads,
        receipts.WRITE_RECEIPT,
        *writes,
        *facts,
    )
    return tuple(dict.fromkeys(found))  # a command may lock a second thread itself
