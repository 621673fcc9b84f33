"""import_bundle: a page of a recovery bundle's rows and content, into a space that is read-only from its first row on.

The first page makes the space, marked as not whole; the last one takes that mark off. A page that is there already is
answered by its receipt, so an import that died is simply run again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, null, update

from runtime_persist.commands.parts import content
from runtime_persist.commands.parts.spec import ColdCommand, Command, Decision, Locked
from runtime_persist.dialects.sql import bind, insert
from runtime_persist.errors import SpaceTaken
from runtime_persist.model.guards import CONTROL
from runtime_persist.model.keys import fingerprint
from runtime_persist.plan import Call, Plan, Query, one_or_none
from runtime_persist.queries.bundles import PART_OF, PARTS, Part
from runtime_persist.queries.spaces import READ_SPACE
from runtime_persist.schema import spaces

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from runtime_persist.model.payload import Blob

_S = spaces.c


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportBundle(Command):
    """Store a page of a bundle.

    Attributes:
        bundle: SHA-256 of its manifest.
        manifest: that manifest, without its entries.
        as_of_us: the moment of its rows.
        secret: of the space, which the page's addresses and hashes were made with.
        page: number of this page; 0 makes the space.
        last: it is the last one.
        rows: by part; of a thread with its hash under this space's secret.
        owner: of the content.
        blobs: content under this space's addresses.

    Refused: the space is another bundle's, or is none of a bundle, or another import made it (SpaceTaken).

    """

    bundle: str
    manifest: bytes = field(repr=False)
    as_of_us: int
    secret: bytes = field(repr=False)
    page: int
    last: bool = False
    rows: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict, repr=False)
    owner: str = "space"
    blobs: tuple[Blob, ...] = field(default=(), repr=False)


CREATE = Query(
    "create_bundle_space",
    insert(spaces)
    .values(**{column.name: bind(column) for column in spaces.c if column is not _S.whole_us}, whole_us=null())
    .on_conflict_do_nothing(),
)
END = Query(
    "end_bundle_import",
    update(spaces)
    .values(whole_us=bindparam("ended_us", type_=_S.whole_us.type))
    .where(_S.space == bind(_S.space), _S.whole_us.is_(None)),
)


def _store(part: Part) -> Query:
    given = {column.name: bind(column) for column in part.table.c if column.name not in part.without}
    if part.name == "threads":
        given["thread_hash"] = bind(part.table.c.thread_hash)
    missing = {name: null() for name in part.without if name not in given}
    return Query(f"import_{part.name}", insert(part.table).values(**given, **missing).on_conflict_do_nothing())


STORE = {part.name: _store(part) for part in PARTS}


def decide(command: ImportBundle, locked: Locked) -> Plan[Decision]:
    """Return the page's rows."""
    said = {"bundle": command.bundle, "secret": command.secret}
    found = yield from one_or_none(READ_SPACE, space=command.space)
    if found is not None and (found["bundle"], bytes(found["secret"])) != (command.bundle, command.secret):
        msg = f"space {command.space!r} is there already, and is not of this bundle; import it into another one"
        raise SpaceTaken(msg, space=command.space, bundle=command.bundle)
    if found is None and command.page:
        msg = f"space {command.space!r} was not made by this import"
        raise SpaceTaken(msg, space=command.space, bundle=command.bundle)
    effects: list[Call] = []
    if found is None:
        made = {"space": command.space, "created_us": locked.now_us, "as_of_us": command.as_of_us}
        effects.append(Call(CREATE, made | said | {"manifest": command.manifest}))
    effects += content.store(command.space, command.owner, command.blobs)
    for name in PART_OF:
        rows = command.rows.get(name, ())
        effects += [Call(STORE[name], {**row, "space": command.space}) for row in rows]
    if command.last:
        effects.append(Call(END, {"space": command.space, "ended_us": locked.now_us}))
    return Decision({"page": command.page}, effects=effects)


SPEC = ColdCommand(
    name="import_bundle",
    dto=ImportBundle,
    guard=CONTROL,
    decide=decide,
    statements=(READ_SPACE, CREATE, content.STORE_BLOB, *STORE.values(), END),
    locks_run=False,
    fingerprint=lambda command: fingerprint(command.bundle.encode(), command.secret, str(command.page).encode()),
)
