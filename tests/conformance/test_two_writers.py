"""The two-writer checks: ours passes all of them, and the stock savers fail exactly the ones they are known to fail."""

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from runtime_persist.testing import two_writers
from runtime_persist.testing.two_writers import CHECKS, two_writers_test
from tests.conformance import savers

NAMES = [check.__name__ for check in CHECKS]
PAGE = Path(__file__).parents[2] / "docs" / "two-writers.md"
STOCK = {
    "stale_put": "failed",
    "stale_put_writes": "skipped",
    "late_write_after_delete": "failed",
    "stopped_process": "failed",
    "clock_behind": "failed",
}
SCORES = {
    "runtime_persist": dict.fromkeys(NAMES, "passed"),
    "InMemorySaver": STOCK | {"stopped_process": "skipped"},
    "AsyncSqliteSaver": STOCK,
    "AsyncPostgresSaver": STOCK,
}


def judged(monkeypatch, registered, url):
    monkeypatch.setenv("RP_TWO_WRITERS", url)
    report = asyncio.run(two_writers_test(registered))
    assert report.verdicts() == SCORES[registered.name], report.checks
    return report


def test_ours_passes_every_check_on_both_databases(monkeypatch, shared_url):
    report = judged(monkeypatch, savers.ours, shared_url)
    assert report.passed
    reasons = {check.name: check.reason for check in report.checks}
    assert reasons == {
        "stale_put": "refused with StaleWriter",
        "stale_put_writes": "refused with LeaseLost",
        "late_write_after_delete": "refused with ThreadDeleted and ThreadDeleted",
        "stopped_process": "refused with StaleWriter",
        "clock_behind": "the next load gives it",
    }


def test_the_saver_in_memory_fails_what_it_is_known_to_fail(monkeypatch):
    assert not judged(monkeypatch, savers.memory, "memory").passed


def test_the_stock_sqlite_saver_fails_what_it_is_known_to_fail(monkeypatch, tmp_path):
    judged(monkeypatch, savers.sqlite, f"sqlite:///{tmp_path / 'stock.db'}")


def test_the_stock_postgres_saver_fails_what_it_is_known_to_fail(monkeypatch, postgres_dsn):
    judged(monkeypatch, savers.postgres, postgres_dsn)


@pytest.mark.parametrize("name", NAMES)
def test_a_saver_that_does_nothing_fails_or_skips(name):
    """A check passes only when it saw the first writer's value stay."""

    class Nothing:
        async def aput(self, config, *_):
            return config

        async def aget_tuple(self, _):
            return None

        async def aput_writes(self, *_):
            pass

        async def adelete_thread(self, _):
            pass

    found = {one.name: one.passed for one in asyncio.run(two_writers.run_two_writers_tests(Nothing()))}
    assert found[name] in {False, None}


def test_the_command_line_prints_the_report_and_its_exit_code_says_whether_it_passed(monkeypatch, tmp_path):
    monkeypatch.setenv("RP_TWO_WRITERS", f"sqlite:///{tmp_path / 'a.db'}")
    command = [sys.executable, "-m", "runtime_persist.testing.two_writers"]
    passed = subprocess.run([*command, "tests.conformance.savers:ours"], capture_output=True, text=True, check=False)
    assert passed.returncode == 0, passed.stderr
    assert passed.stdout.splitlines()[1] == "  passed  stale_put: refused with StaleWriter"
    failed = CliRunner().invoke(two_writers.main, ["tests.conformance.savers:memory", "--json"])
    assert failed.exit_code == 1, failed.stderr
    result = json.loads(failed.stdout)["results"]["two_writers"]
    assert (result["tests_passed"], result["tests_failed"], result["tests_skipped"]) == (0, 3, 2)


def test_the_page_has_the_scores_of_these_tests():
    rows = re.findall(r"^\| `(\w+)` \|(.*)\|$", PAGE.read_text(), re.MULTILINE)
    table = {name: [cell.strip() for cell in cells.split("|")] for name, cells in rows}
    assert table == {name: [scores[name] for scores in SCORES.values()] for name in NAMES}
    assert "| | " + " | ".join(SCORES) + " |" in PAGE.read_text()
