"""docs/performance.md: the part of it that is drawn from the results of the last documented run."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

from bench import goals
from bench.noise import NOISY
from bench.options import ROUNDS
from bench.report import plots, tables

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "performance.md"
PLOTS = ROOT / "docs" / "performance"
RESULTS = ROOT / "bench" / "results"
BEGIN = "<!-- from here on `make bench` writes; what is changed by hand is lost -->"
END = "<!-- to here -->"
_DIGITS = 4
_HEADINGS = {
    "micro": "Single operations",
    "graphs": "Whole graphs",
    "storage": "Bytes",
    "growth": "Long threads, big databases",
    "slow_disk": "A disk with 2 ms more for every fsync",
    "rows": "Many users, long histories, big values",
    "queues": "Workers beside job queues",
    "steps": "A journalled call",
    "big_run": "Looking into a long run",
}


def keep(found: dict[str, Any]) -> None:
    """Keep the results of one part."""
    RESULTS.mkdir(exist_ok=True)
    kept = found | {"rows": [_rounded(row) for row in found["rows"]]}
    lines = ",\n".join(f"  {json.dumps(row)}" for row in kept.pop("rows"))
    head = json.dumps(kept, indent=1).removesuffix("\n}")
    text = f'{head},\n "rows": [\n{lines}\n ]\n}}\n'
    (RESULTS / f"{found['part']}.json").write_text(text)


def _rounded(row: dict[str, Any]) -> dict[str, Any]:
    return {name: float(f"{value:.{_DIGITS}g}") if type(value) is float else value for name, value in row.items()}


def kept() -> dict[str, dict[str, Any]]:
    """Return the kept results by part."""
    return {part: json.loads(path.read_text()) for part in ROUNDS if (path := RESULTS / f"{part}.json").exists()}


def write() -> None:
    """Draw the plots and the generated part of the page anew; what was written by hand stays."""
    results = kept()
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    plots.draw({part: found["rows"] for part, found in results.items()}, PLOTS)
    PAGE.write_text(f"{before}{BEGIN}\n\n{generated(results)}\n{END}{after}")


def generated(results: dict[str, dict[str, Any]]) -> str:
    """Return the text between the marks: of the results by part, and of the plots there are."""
    if not results:
        return "Nothing was measured yet: run `make bench`.\n"
    drawn = sorted(path.name for path in PLOTS.glob("*.svg"))
    rows = {part: found["rows"] for part, found in results.items()}
    pieces = ["## Goals", goals.table(rows).markdown(), _legend()]
    for part, found in results.items():
        pieces.append(f"## {_HEADINGS[part]}")
        pieces += [f"![{_HEADINGS[part]}](performance/{name})" for name in drawn if name.startswith(f"{part}-")]
        for table in tables.TABLES[part](found["rows"]):
            pieces += [f"**{table.title}**", table.markdown()]
        pieces += [f"{name} left out: {reason}" for name, reason in found["left_out"].items()]
        pieces.append(f"`{found['command']}`, {found['when']}, {found['seconds']} s. {noise(found['rows'])}")
    pieces += ["## Machine", _machines(results)]
    return "\n\n".join(pieces) + "\n"


def noise(rows: list[dict[str, Any]]) -> str:
    """Return how loud others were, in a sentence."""
    heard = [row["others"] for row in rows if row.get("others") is not None]
    if not heard:
        return "No time was measured against others' noise here."
    loud = sum(row["noisy"] for row in rows if "noisy" in row)
    return (
        f"Others took {statistics.median(heard):.0%} of the machine (median of {len(heard)} slices); "
        f"{loud} slices stayed above {NOISY:.0%}."
    )


def _legend() -> str:
    return (
        "*must*: what prototypes of the same idea reached, less a tenth. *measured*: the median of the rounds' ratios; "
        "one caller by p50, many by throughput; *owned run*: the same under a run's lease. "
        "*others' CPU*: share of the machine that other processes took in that very round. "
        f"`{tables.NOISY_MARK}`: no round was quiet, so the number says little."
    )


def _machines(results: dict[str, dict[str, Any]]) -> str:
    """Return one table a machine (parts may have been measured at different times)."""
    texts: dict[str, list[str]] = {}
    for part, found in results.items():
        lines = "\n".join(f"| {name} | {value} |" for name, value in found["machine"].items() if name != "disk")
        texts.setdefault(f"| | |\n|---|---|\n{lines}", []).append(f"{_HEADINGS[part]} ({found['machine']['disk']})")
    return "\n\n".join(f"{text}\n\nMeasured there: {'; '.join(parts)}." for text, parts in texts.items())
