"""Tables of the results, as Markdown and for the terminal."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich import table as rich_table

from bench import graphs, growth, micro
from bench.queue_contestants import CONTESTANTS
from bench.queues import CLAIMS, CONCURRENCY, LATENCY
from bench.savers import BY_KEY, MEMORY, POSTGRESQL, SQLITE, TITLES
from bench.steps import STEPPERS
from bench.storage import CHAT, exponent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

NOISY_MARK = "~"
_MB = 1e6
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Table:
    """A title, a head and lines of text; bold is written as in Markdown."""

    title: str
    head: Sequence[str]
    lines: Sequence[Sequence[str]]

    def markdown(self) -> str:
        ruler = ["---", *["---:"] * (len(self.head) - 1)]
        return "\n".join(f"| {' | '.join(cells)} |" for cells in (self.head, ruler, *self.lines))

    def rich(self) -> rich_table.Table:
        shown = rich_table.Table(title=self.title, title_justify="left")
        for place, name in enumerate(self.head):
            shown.add_column(name, justify="right" if place else "left")
        for line in self.lines:
            shown.add_row(*(_bold(cell) for cell in line))
        return shown


def _bold(cell: str) -> str:
    return f"[bold]{cell.replace('**', '')}[/bold]" if cell.startswith("**") else cell


def quiet(rows: Rows) -> Rows:
    """Return the rounds that others did not disturb; all of them where there is none."""
    return [row for row in rows if not row["noisy"]] or rows


def median(rows: Rows, name: str) -> float:
    return statistics.median(row[name] for row in quiet(rows))


def marked(rows: Rows, text: str) -> str:
    """Return the text with a mark when no round was quiet."""
    return f"{text}{NOISY_MARK}" if all(row["noisy"] for row in rows) else text


def count(value: float) -> str:
    """Return three digits or so: 12,300 / 4.56 / 0.789."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def _savers(database: str, rows: Rows) -> list[str]:
    there = {row["saver"] for row in rows}
    return [key for key, saver in BY_KEY.items() if saver.database in {database, MEMORY} and key in there]


def _grid(
    title: str,
    keys: Iterable[str],
    columns: dict[str, Callable[[dict[str, Any]], bool]],
    rows: Rows,
    cell: Callable[[Rows], str],
) -> Table:
    lines = []
    for key in keys:
        cells = []
        for wanted in columns.values():
            found = [row for row in rows if row["saver"] == key and wanted(row)]
            cells.append(marked(found, cell(found)) if found else "")
        if any(cells):
            lines.append([TITLES[key], *cells])
    return Table(title, ["", *columns], lines)


def _ops(rows: Rows) -> str:
    return f"{count(median(rows, 'ops'))} ({count(median(rows, 'p50'))})"


def micro_tables(rows: Rows, of: str = "") -> list[Table]:
    """Return a table an operation and database: operations a second (p50 in ms)."""
    tables = []
    for operation in micro.OPERATIONS:
        for database in (SQLITE, POSTGRESQL):
            chosen = [row for row in rows if row["operation"] == operation]
            columns = {
                f"{micro.shown_size(size)}, {callers}": (
                    lambda row, size=size, callers=callers: row["size"] == size and row["callers"] == callers
                )
                for size in micro.SIZES
                for callers in micro.CALLERS
                if any(row["size"] == size and row["callers"] == callers for row in chosen)
            }
            title = f"{operation}, {database}{of}: operations a second (p50 in ms), by size and callers"
            savers = _savers(database, chosen)
            made = _grid(title, savers, columns, chosen, _ops)
            if made.lines and any(BY_KEY[key].database == database for key in savers):
                tables.append(made)
    return tables


def graph_tables(rows: Rows) -> list[Table]:
    """Return a table a graph: milliseconds a step, and what of it is more than without a saver."""
    tables = []
    for graph in graphs.KINDS:
        chosen = [row for row in rows if row["graph"] == graph]
        columns = {
            f"{case.durability}, {case.callers} at once": (
                lambda row, case=case: row["durability"] == case.durability and row["callers"] == case.callers
            )
            for case in graphs.CASES
            if case.graph == graph
        }
        unit = "a task" if graph == graphs.FAN_OUT else "a step"
        for database in (SQLITE, POSTGRESQL):
            savers = _savers(database, chosen)
            if all(BY_KEY[key].database == MEMORY for key in savers):
                continue
            keys = [*graphs.NONE, *savers]
            title = f"{graph}, {database}: milliseconds {unit} (over the graph without a saver), by durability"
            made = _grid(title, keys, columns, chosen, lambda found, chosen=chosen: _step(found, chosen))
            if made.lines:
                tables.append(made)
    return tables


def _step(found: Rows, of_graph: Rows) -> str:
    """Return a step's milliseconds, and how many of them are the saver's."""
    taken = median(found, "ms")
    saver = BY_KEY.get(found[0]["saver"])
    bare = "none-sync" if saver is not None and saver.sync else "none"
    # Without a saver durability means nothing: all of those rows are the same thing.
    without = [row for row in of_graph if row["saver"] == bare and row["callers"] == found[0]["callers"]]
    if saver is None or not without:
        return count(taken)
    return f"{count(taken)} ({count(max(0.0, taken - median(without, 'ms')))})"


def storage_tables(rows: Rows) -> list[Table]:
    """Return megabytes by turns, and row E1."""
    chats = [row for row in rows if row["case"] == CHAT]
    turns = sorted({row["turns"] for row in chats})
    lines = []
    for key in BY_KEY:
        for document in sorted({row["document"] for row in chats}):
            sizes = {row["turns"]: row["bytes"] for row in chats if (row["saver"], row["document"]) == (key, document)}
            if len(sizes) == len(turns) > 1:
                last = (turns[-2], turns[-1])
                grown = exponent(last, (sizes[last[0]], sizes[last[1]]))
                cells = [f"{sizes[turn] / _MB:.2f}" for turn in turns]
                lines.append([f"{_named(key)}, document a {document}", *cells, f"{grown:.2f}"])
    tables = [Table("chat: MB by turns; exponent of the last doubling", ["", *map(str, turns), "exponent"], lines)]
    others = [row for row in rows if row["case"] != CHAT]
    lines = [[_named(row["saver"]), row["case"], f"{row['bytes'] / _MB:.2f}"] for row in others]
    tables.append(Table("row E1 (a file of 0.5 MB in the state, 50 turns): MB", ["", "case", "MB"], lines))
    return [table for table in tables if table.lines]


def _named(key: str) -> str:
    saver = BY_KEY[key]
    return f"**ours, {saver.database}**" if saver.ours else saver.title


def growth_tables(rows: Rows) -> list[Table]:
    """Return p50 by the length of the thread."""
    lengths = sorted({row["length"] for row in rows})
    tables = []
    for operation in growth.OPERATIONS:
        lines = []
        for key in BY_KEY:
            chosen = [row for row in rows if row["operation"] == operation and row["saver"] == key]
            if chosen:
                by = [[row for row in chosen if row["length"] == length] for length in lengths]
                cells = [marked(found, count(median(found, "p50"))) for found in by]
                lines.append([_named(key), f"{chosen[0]['database']:,}", *cells])
        if lines:
            head = ["", "checkpoints in the database", *(f"{length:,}" for length in lengths)]
            tables.append(Table(f"{operation}: p50 in ms, by checkpoints in the thread", head, lines))
    return tables


def row_tables(rows: Rows) -> list[Table]:
    """Return the rows of what users suffer from."""
    lines = [
        [
            f"{row['row']}: {row['what']}",
            _shown(row),
            f"{count(row['value'])} {row['unit']}".strip(),
            row["right"],
            {None: "", True: "yes", False: "**no**"}[row["holds"]],
        ]
        for row in rows
    ]
    return [Table("Rows of what users suffer from", ["", "saver", "measured", "right", "holds"], lines)]


def _shown(row: dict[str, Any]) -> str:
    title = row["saver"].replace("**", "").removesuffix(", async")
    return f"**{title}, {row['database']}**" if title == "ours" else title


def slow_tables(rows: Rows) -> list[Table]:
    return micro_tables(rows, ", slow disk") if rows else []


def queue_tables(rows: Rows) -> list[Table]:
    """Return a table a measure and database: by the worker's concurrency."""
    columns = [f"{concurrency} at once" for concurrency in CONCURRENCY]
    shown = {
        CLAIMS: ("items begun a second", lambda found: count(median(found, "ops"))),
        LATENCY: (
            "ms from starting an item till its function begins, an idle worker: median (p95)",
            lambda found: f"{count(median(found, 'p50'))} ({count(median(found, 'p95'))})",
        ),
    }
    tables = []
    for what, (title, cell) in shown.items():
        for database in (SQLITE, POSTGRESQL):
            lines = []
            for one in CONTESTANTS:
                chosen = [row for row in rows if (row["saver"], row["what"]) == (one.key, what)]
                by = [[row for row in chosen if row["concurrency"] == concurrency] for concurrency in CONCURRENCY]
                if chosen and one.database == database:
                    lines.append([one.title, *(marked(found, cell(found)) if found else "" for found in by)])
            if lines:
                tables.append(Table(f"{what}, {database}: {title}", ["", *columns], lines))
    return tables


def step_tables(rows: Rows) -> list[Table]:
    """Return milliseconds a step."""
    by = {one: [row for row in rows if row["saver"] == one.key] for one in STEPPERS}
    lines = [[one.title, marked(found, count(median(found, "ms")))] for one, found in by.items() if found]
    return [Table("a journalled call beside a step and a task: ms each", ["", "ms"], lines)] if lines else []


def big_run_tables(rows: Rows) -> list[Table]:
    """Return a table a database: a line a question, a column a length of the run."""
    tables = []
    for database in dict.fromkeys(row["database"] for row in rows):
        here = [row for row in rows if row["database"] == database]
        sizes = sorted({row["size"] for row in here})
        lines = []
        for asked in dict.fromkeys(row["asked"] for row in here):
            cells = [[row for row in here if (row["asked"], row["size"]) == (asked, size)] for size in sizes]
            lines.append([asked, *(marked(cell, count(median(cell, "ms"))) for cell in cells)])
        peaks = [count(max(row["peak"] for row in here if row["size"] == size) / 1e6) for size in sizes]
        lines.append(["peak memory of the process, MB", *peaks])
        columns = ["ms", *(f"{size:,} operations, checkpoints, events" for size in sizes)]
        tables.append(Table(f"looking into a run, {database}", columns, lines))
    return tables


TABLES: dict[str, Callable[[Rows], list[Table]]] = {
    "micro": micro_tables,
    "graphs": graph_tables,
    "storage": storage_tables,
    "growth": growth_tables,
    "slow_disk": slow_tables,
    "rows": row_tables,
    "queues": queue_tables,
    "steps": step_tables,
    "big_run": big_run_tables,
}
