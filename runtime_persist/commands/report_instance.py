"""report_instance: a worker process says what it can take and what occupies it, valid for a while. Hot: one bundle.

The instance's row is the receipt: it holds the number and the fingerprint of the last report.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson
from sqlalchemy import Executable, and_, delete, select

from runtime_persist.commands.parts.guards import FENCE
from runtime_persist.commands.parts.spec import Command, HotCommand, Receipt, semantic_fingerprint
from runtime_persist.dialects.sql import bind, excluded, insert, now_us, number
from runtime_persist.errors import IllegalTransition
from runtime_persist.model import limits
from runtime_persist.model.capacity import Report
from runtime_persist.model.guards import CONTROL
from runtime_persist.plan import Fragment, Inputs, Outcome, Plan, Query, one_or_none
from runtime_persist.schema import instances

if TYPE_CHECKING:
    from collections.abc import Mapping


_GIVEN = (
    "space", "instance_id", "worker_id", "report_no", "fingerprint", "host", "graphs", "slots", "active_task_ids",
    "queued", "draining",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportInstance(Command):
    """Say what an instance can take. Answer: ``expires_us``.

    Attributes:
        instance_id: id of the instance.
        worker_id: whose it is; no other worker may claim with it, or report for it.
        report_no: greater than that of its last report.
        slots: tasks it executes at the same time.
        active_task_ids: what occupies a slot now, each once (see :class:`runtime_persist.model.capacity.Report`).
        queued: tasks that wait inside the instance.
        draining: it takes nothing more.
        host: where it runs; shown.
        graphs: name -> versions that it serves; shown.
        ttl_us: microseconds for which the report counts (0: no longer).

    Refused: a later report is there, or the instance is another worker's (IllegalTransition).

    """

    instance_id: str
    worker_id: str
    report_no: int
    slots: int
    active_task_ids: tuple[str, ...]
    queued: int = 0
    draining: bool = False
    host: str = ""
    graphs: Mapping[str, tuple[str, ...]]
    ttl_us: int

    @property
    def report(self) -> Report:
        """Return what counts for claims (raises InvalidInput)."""
        return Report.checked(self.slots, self.active_task_ids)


def _store(inputs: Inputs) -> Executable:
    values = inputs.select(*(bind(instances.c[name]) for name in _GIVEN), now_us(), now_us() + number("ttl_us"))
    names = [*_GIVEN, "reported_us", "expires_us"]
    return (
        insert(instances)
        .from_select(names, values)
        .on_conflict_do_update(
            index_elements=[instances.c.space, instances.c.instance_id],
            set_={name: excluded(name) for name in names},
            where=and_(
                instances.c.report_no < bind(instances.c.report_no),
                instances.c.worker_id == bind(instances.c.worker_id),
            ),
        )
    )


def _forget(inputs: Inputs) -> Executable:
    return delete(instances).where(
        instances.c.space == bind(instances.c.space),
        instances.c.instance_id != bind(instances.c.instance_id),
        instances.c.expires_us < now_us() - number("kept_us"),
        inputs.gate(),
    )


READ_REPORT = Query(
    "read_report",
    select(instances.c.report_no, instances.c.worker_id, instances.c.fingerprint, instances.c.expires_us).where(
        instances.c.space == bind(instances.c.space), instances.c.instance_id == bind(instances.c.instance_id)
    ),
)


def _lookup(command: ReportInstance) -> Plan[Receipt | None]:
    row = yield from one_or_none(READ_REPORT, space=command.space, instance_id=command.instance_id)
    if row is None or row["report_no"] != command.report_no or row["worker_id"] != command.worker_id:
        return None
    return Receipt(row["fingerprint"], {"expires_us": row["expires_us"]})


def _params(command: ReportInstance) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    report = command.report
    return {
        "space": command.space,
        "instance_id": command.instance_id,
        "worker_id": command.worker_id,
        "report_no": command.report_no,
        "fingerprint": semantic_fingerprint(command),
        "host": command.host,
        "graphs": orjson.dumps(command.graphs).decode(),
        "slots": report.slots,
        "active_task_ids": report.encoded(),
        "queued": command.queued,
        "draining": int(command.draining),
        "ttl_us": command.ttl_us,
        "kept_us": round(limits.INSTANCES_KEPT_HOURS * 3_600_000_000),
    }, {}


def _refuse(command: ReportInstance, _: Outcome) -> IllegalTransition:
    return IllegalTransition(
        f"report {command.report_no} of instance {command.instance_id} by {command.worker_id} is not its next one: "
        "a later report is there, or the instance is another worker's",
        instance_id=command.instance_id,
        report_no=command.report_no,
    )


SPEC = HotCommand(
    name="report_instance",
    dto=ReportInstance,
    guard=CONTROL,
    receipt=Fragment("reported", _store, source=FENCE, returns=("expires_us",)),
    effects=(Fragment("forgotten", _forget, source="reported"),),
    params=_params,
    lookup=_lookup,
    fingerprint=semantic_fingerprint,
    refuse=_refuse,
    answer=lambda _command, outcome: {"expires_us": outcome.values["reported"]["expires_us"]},
    urgent=True,
)
