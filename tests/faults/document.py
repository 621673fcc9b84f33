"""Writes docs/cut-points.md from the commands and the kill matrix: ``python -m tests.faults.document``."""

from collections import defaultdict
from pathlib import Path

from runtime_persist.commands import COMMANDS, Spec
from runtime_persist.commands.parts.spec import HotCommand
from runtime_persist.testing.cuts import cuts
from tests.faults.matrix import NOT_KILLED, SCENARIOS
from tests.faults.scenarios import Scenario

PATH = Path(__file__).parents[2] / "docs" / "cut-points.md"

HEADER = """\
# Cut points

Generated from the commands and from the kill matrix by `python -m tests.faults.document`; a test fails when this
page is stale. At each cut a real process is killed with SIGKILL (at each of its occurrences, where a statement runs
several times), another process finishes, and the invariants of `runtime_persist/testing/faults.py` are checked
before and after.

- `before:X`: the process dies just before fragment or statement X; `after:commit`: just behind COMMIT, before anybody
  was told.
- `after:X` (PostgreSQL): the server has executed X, its reply is lost with the process.
- `sent:X`: the request is on its way when the process dies, and arrives all the same.
- `waiting:X`: the process dies while its statement waits for a lock that somebody else holds.
- `reply_lost:X`: the server has committed, the reply is lost with the process.

Besides, every scenario is killed right after its acknowledgement, and what was acknowledged must be there.
"""


def document() -> str:
    """The page."""
    by_command: dict[str, list[Scenario]] = defaultdict(list)
    for scenario in SCENARIOS:
        by_command[scenario.spec.name].append(scenario)
    specs = sorted(COMMANDS.values(), key=lambda spec: spec.name)
    return "\n".join([HEADER, *(_section(spec, by_command[spec.name]) for spec in specs)])


def _section(spec: Spec, scenarios: list[Scenario]) -> str:
    kind = "hot: one bundle" if isinstance(spec, HotCommand) else "cold: one transaction"
    lines = [f"## {spec.name}", "", f"{kind}, guard `{spec.guard}`.", ""]
    if spec.name in NOT_KILLED:
        return "\n".join([*lines, f"Not killed: {NOT_KILLED[spec.name]}.", ""])
    for dialect in ("sqlite", "postgresql"):
        found = cuts(spec, dialect)
        lines += [f"{dialect}: {len(found)} cuts.", "", "| cut | killed in | not reached in |", "|---|---|---|"]
        for cut in found:
            killed = [_short(scenario) for scenario in scenarios if cut.statement not in scenario.never]
            spared = [
                f"{_short(scenario)}: {scenario.never[cut.statement]}"
                for scenario in scenarios
                if cut.statement in scenario.never
            ]
            name = cut.name.removeprefix(f"{spec.name}:")
            lines.append(f"| `{name}` | {', '.join(killed) or '-'} | {'; '.join(spared) or '-'} |")
        lines.append("")
    return "\n".join(lines)


def _short(scenario: Scenario) -> str:
    return scenario.name.partition(":")[2] or "yes"


if __name__ == "__main__":
    PATH.parent.mkdir(exist_ok=True)
    PATH.write_text(document(), encoding="utf-8")
