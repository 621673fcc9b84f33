"""docs/observability.md: its code prints what its comments say, and its table is that of the code."""

import re
from pathlib import Path

from runtime_persist.model import limits
from runtime_persist.telemetry.metrics import METRICS
from tests.support.pages import check_prints

PAGE = (Path(__file__).parents[2] / "docs" / "observability.md").read_text()


def test_its_code_prints_what_it_promises(tmp_path):
    check_prints(PAGE, tmp_path)


def test_every_metric_is_in_its_table_as_the_code_makes_it():
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| ([^|]+) \| (.+) \|$", PAGE, re.MULTILINE)
    wanted = [
        (metric.name, metric.kind, " ".join(f"`{label}`" for label in metric.labels), metric.meaning)
        for metric in METRICS
    ]
    assert rows == wanted


def test_how_often_a_worker_looks_is_what_it_says():
    assert f"every {limits.OBSERVE_SECONDS:.0f} s" in PAGE
