"""Instances that have reported their capacity, for tests that claim without a worker."""

from typing import Any

from runtime_persist.commands.report_instance import ReportInstance
from runtime_persist.engine import Engine
from runtime_persist.model.ids import new_id
from tests.fixtures.raw import Dump, Raw

TTL_US = 3_600_000_000


def reported(engine: Engine, worker_id: str | None = None, slots: int = 1_000, **fields: Any) -> str:
    """A new instance of a worker (None: the engine's own) that reported its slots; its id."""
    instance_id = new_id()
    made = {"active_task_ids": (), "graphs": {}, "ttl_us": TTL_US, "report_no": 1}
    command = ReportInstance(
        space=engine.space,
        command_id=new_id(),
        instance_id=instance_id,
        worker_id=worker_id or engine.worker_id,
        slots=slots,
        **(made | fields),
    )
    engine.coordinator.commit(command).result()
    return instance_id


def written(raw: Raw) -> Dump:
    """Every row, but not what workers report of themselves: they do that all the time."""
    return {table: rows for table, rows in raw.dump().items() if table != "rp_instances"}
