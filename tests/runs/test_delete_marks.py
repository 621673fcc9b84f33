"""Delete marks are kept for a month, and go when somebody asks for it (saver and command line)."""

import pytest
from click.testing import CliRunner

from runtime_persist.adapters.workflow import upkeep
from runtime_persist.cli.main import main
from runtime_persist.errors import InvalidInput, ThreadDeleted
from tests.support.checkpoints import at, new_checkpoint

DAY = 86_400_000_000


async def deleted(runtime, way, raw, days_ago, names):
    """Threads that were deleted, and what a late writer of each would still put."""
    late = {}
    for name in names:
        late[name] = new_checkpoint({"a": "late"})
        await way(runtime.checkpointer, "put", at(name), new_checkpoint({"a": 1}), {}, {"a": "1"})
        await way(runtime.checkpointer, "delete_thread", name)
    raw.rows("UPDATE rp_threads SET deleted_us = deleted_us - ? WHERE thread_id IS NULL", days_ago * DAY)
    return late


async def test_they_are_kept_for_thirty_days_unless_told_otherwise(runtime, way, raw):
    saver = runtime.checkpointer
    late = await deleted(runtime, way, raw, 29, ["t"])
    assert await way(saver, "expire_delete_marks") == 0
    with pytest.raises(ThreadDeleted):
        await way(saver, "put", at(), late["t"], {}, {"a": "1"})
    assert await way(saver, "expire_delete_marks", days=28.5) == 1
    assert raw.rows("SELECT * FROM rp_threads") == []
    await way(saver, "put", at(), late["t"], {}, {"a": "1"})


async def test_many_go_in_several_transactions(runtime, way, raw, monkeypatch):
    monkeypatch.setattr(upkeep.limits, "DELETE_MARKS_ROWS_MAX", 2)
    await deleted(runtime, way, raw, 31, [f"t{n}" for n in range(5)])
    assert await way(runtime.checkpointer, "expire_delete_marks") == 5
    kinds = [row["kind"] for row in raw.rows("SELECT kind FROM rp_receipts")]
    assert kinds.count("expire_delete_marks") == 3


@pytest.mark.parametrize("days", [-1, float("nan"), float("inf"), "30", 36_501])
async def test_days_that_cannot_be_are_refused(runtime, way, days):
    with pytest.raises(InvalidInput, match="from 0 to 36500"):
        await way(runtime.checkpointer, "expire_delete_marks", days=days)


def run_command(url, *arguments):
    return CliRunner().invoke(main, ["db", "expire-delete-marks", "--url", url, *arguments], catch_exceptions=False)


async def test_the_command_line_prints_how_many_went(runtime, way, raw, shared_url):
    await deleted(runtime, way, raw, 10, ["t", "u"])
    assert run_command(shared_url).stdout == "0\n"
    assert run_command(shared_url, "--days", "9").stdout == "2\n"
    assert run_command(shared_url, "--days", "-1").exit_code == 2
