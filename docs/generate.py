"""Write the pages that are drawn from data (a test fails when one is stale): see PAGES."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from runtime_persist import errors
from runtime_persist.cli.main import EXIT_CODES
from runtime_persist.commands import COMMANDS
from runtime_persist.commands.parts.spec import HotCommand
from runtime_persist.errors import RuntimePersistError
from runtime_persist.inspector.bundles.manifest import json_schema
from runtime_persist.model.event_types import EVENT_FIELDS, WAKES
from runtime_persist.model.states import ATTEMPT_TRANSITIONS, FINAL_ATTEMPT, FINAL_RUN, RUN_TRANSITIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))  # the lists of rows stand beside the tests, and are not installed


def states() -> str:
    """Return the page of the state machines."""
    text = "# States\n\nDrawn from `runtime_persist/model/states.py`; the database CHECKs come from the same enums.\n"
    text += _machine("Run", RUN_TRANSITIONS, FINAL_RUN) + _machine("Attempt", ATTEMPT_TRANSITIONS, FINAL_ATTEMPT)
    return text


def _machine(title: str, table: Mapping[str, frozenset[str]], final: frozenset[str]) -> str:
    lines = [f"\n## {title}\n", "```mermaid", "stateDiagram-v2"]
    lines += [f"    {old} --> {new}" for old, news in table.items() for new in sorted(news)]
    lines += [f"    {state} --> [*]" for state in sorted(final)]
    return "\n".join([*lines, "```", ""])


def error_page() -> str:
    """Return the page of the errors."""
    text = "# Errors\n\nEvery error has a stable code and a kind; the command line's exit code follows the kind.\n\n"
    text += "| code | kind | exit | class | meaning |\n|---|---|---|---|---|\n"
    found = [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, RuntimePersistError)]
    for kind in sorted(found, key=lambda c: (c.kind, c.code)):
        meaning = (kind.__doc__ or "").strip().split("\n", maxsplit=1)[0].replace("|", "\\|")
        text += f"| `{kind.code}` | {kind.kind} | {EXIT_CODES[kind.kind]} | `{kind.__name__}` | {meaning} |\n"
    return text


def commands() -> str:
    """Return the page of the commands and their guards."""
    text = "# Commands\n\nNothing else is ever written. Hot commands are one round trip on PostgreSQL.\n\n"
    text += "| command | guard | path | what it does |\n|---|---|---|---|\n"
    for spec in sorted(COMMANDS.values(), key=lambda spec: spec.name):
        path = "hot" if isinstance(spec, HotCommand) else "cold"
        meaning = (sys.modules[spec.dto.__module__].__doc__ or "").strip().split("\n\n", maxsplit=1)[0]
        meaning = meaning.replace("\n", " ").removeprefix(f"{spec.name}: ")
        text += f"| `{spec.name}` | {spec.guard} | {path} | {meaning} |\n"
    return text


_PAINS = """\
# What users suffered from

Faults of checkpointers and durable execution that users reported, what is promised here, and the tests that show it
with exactly that outcome, on SQLite and on PostgreSQL where the fault is not one database's own. Drawn from
`tests/user_pains/rows.py`. Time and throughput are measured in `bench/` under the row's id; tests check what can be
counted: statements, round trips, locks, bytes, memory.
"""


def user_pains() -> str:
    """Return the page of what users suffered from."""
    data = runpy.run_path(str(HERE.parent / "tests" / "user_pains" / "rows.py"))
    text = _PAINS
    for letter, title in data["GROUPS"].items():
        text += f"\n## {title}\n\n| row | what happened | what is promised | tests | bench |\n|---|---|---|---|---|\n"
        for name, row in data["ROWS"].items():
            if name.startswith(letter):
                tests = "<br>".join(_link(test) for test in row.tests)
                bench = f"`{name}`: {row.bench}" if row.bench else ""
                text += f"| {name} | {row.title} | {row.promise} | {tests} | {bench} |\n"
    return text


_ACCEPTANCE = """\
# Acceptance

What the specification requires of runs, row by row, and the tests that show it on SQLite and on PostgreSQL. Drawn from
`tests/acceptance/rows.py`. Beside the rows, everything at once: workers and savers that are killed and stopped all the
time ([tests/soak](../tests/soak)), clocks that are an hour wrong ([tests/skew](../tests/skew)).
"""


def acceptance() -> str:
    """Return the page of the acceptance matrices."""
    data = runpy.run_path(str(HERE.parent / "tests" / "acceptance" / "rows.py"))
    text = _ACCEPTANCE
    for letters, title in data["GROUPS"].items():
        text += (
            f"\n## {title}\n\n| row | scenario | required | not allowed | tests | here |\n|---|---|---|---|---|---|\n"
        )
        for name, row in data["ROWS"].items():
            if name.rstrip("0123456789-") == letters:
                tests = "<br>".join(_link(test) for test in row.tests)
                text += f"| {name} | {row.scenario} | {row.required} | {row.forbidden} | {tests} | {row.here} |\n"
    return text


def _link(test: str) -> str:
    """Return a test as a link to its file: the name is long enough without the path."""
    file, _, name = test.partition("::")
    return f"[{file}](../tests/{file})::`{name}`"


def command_line() -> str:
    """Return the page of the command line."""
    text: str = runpy.run_path(str(HERE / "cli_page.py"))["page"]()
    return text


def recovery() -> str:
    """Return the page of the recovery table."""
    text: str = runpy.run_path(str(HERE / "recovery_page.py"))["page"]()
    return text


def event_types() -> str:
    """Return the page of the events."""
    text = "# Types of events\n\nDrawn from `runtime_persist/model/event_types.py`: nothing else is ever written.\n"
    text += "What wakes other processes that wait is marked.\n\n"
    text += "| type | fields of its payload | wakes |\n|---|---|---|\n"
    for kind, fields in sorted(EVENT_FIELDS.items()):
        text += f"| `{kind}` | {', '.join(f'`{field}`' for field in fields)} | {'yes' if kind in WAKES else ''} |\n"
    return text


def bundle_schema() -> str:
    """Return the JSON Schema of the manifest and the rows of a recovery bundle."""
    return json.dumps(json_schema(), indent=1) + "\n"


PAGES = {
    "bundle.schema.json": bundle_schema,
    "event-types.md": event_types,
    "states.md": states,
    "errors.md": error_page,
    "commands.md": commands,
    "cli.md": command_line,
    "recovery.md": recovery,
    "user-pains.md": user_pains,
    "acceptance.md": acceptance,
}


def main() -> None:
    """Write all pages."""
    for name, page in PAGES.items():
        (HERE / name).write_text(page())


if __name__ == "__main__":
    main()
