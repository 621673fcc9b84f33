"""The page of the command line, drawn from its commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from runtime_persist.cli.main import EXIT_CODES, main

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEAD = """\
# The command line

`runtime-persist`, drawn from its commands (`runtime_persist/cli/`).

The database: `--url` or `RUNTIME_PERSIST_URL`; `--space` is the tenant, `--schema` a PostgreSQL schema, `--serde` (or
`RUNTIME_PERSIST_SERDE`) the serializer of an encrypted database.

Answers go to stdout, everything else (progress, what a worker does, log records) to stderr. `--json` prints the answer
as JSON: an array for a list, an object for one thing, an object a line for `run events`. Without it the answer is for
people: as wide as the terminal, with colours on a terminal only (`NO_COLOR` is heeded); ids and commands are never
broken, so that they can be copied.

An error is one line on stderr, `CODE: what is wrong and what to do`; the codes are those of [errors.md](errors.md),
`USAGE` for a command line that cannot be meant, and `UNEXPECTED` for what nobody expected (`RUNTIME_PERSIST_DEBUG=1`
shows its traceback).

| exit code | kind of error |
|---|---|
| 0 | none |
| 1 | `UNEXPECTED`, or interrupted |
"""
_SHARED = {"url", "space", "schema", "as_json"}


def page() -> str:
    """Return the page."""
    text = _HEAD + "".join(
        f"| {code} | {kind} |\n" for kind, code in sorted(EXIT_CODES.items(), key=lambda one: one[1])
    )
    for path, command in _leaves(main, "runtime-persist"):
        text += _section(path, command)
    return text


def _leaves(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    for name, command in sorted(group.commands.items()):
        if isinstance(command, click.Group):
            yield from _leaves(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def _section(path: str, command: click.Command) -> str:
    context = click.Context(command, info_name=path)
    usage = " ".join(command.collect_usage_pieces(context))
    text = f"\n## {path.removeprefix('runtime-persist ')}\n\n```text\n{path} {usage}\n```\n\n"
    text += " ".join((command.help or "").split("\f")[0].split()) + "\n"
    own = [option for option in command.params if isinstance(option, click.Option) and option.name not in _SHARED]
    records = [record for record in (option.get_help_record(context) for option in own) if record is not None]
    shown = [(name, said) for name, said in records if not name.startswith("--serde")]
    if shown:
        text += "\n| option | |\n|---|---|\n"
        text += "".join(f"| `{_cell(name)}` | {_cell(said)} |\n" for name, said in shown)
    return text


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
