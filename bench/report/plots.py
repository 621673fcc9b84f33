"""Plots of the results as SVG files; without matplotlib there are none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bench import graphs, growth, micro
from bench.loads import KB
from bench.queue_contestants import CONTESTANTS
from bench.queues import CLAIMS
from bench.report.tables import Rows, median
from bench.savers import BY_KEY, POSTGRESQL, SQLITE
from bench.storage import CHAT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_COLOURS = {SQLITE: ("#1b7f4d", "#8fb8a4"), POSTGRESQL: ("#1f5fa8", "#93aecb"), "memory": ("#888888", "#888888")}
_SIZE = (10.0, 4.0)


def draw(rows: dict[str, Rows], folder: Path) -> None:
    """Draw what there are rows for, in place of older plots (which stay where matplotlib is missing)."""
    try:
        import matplotlib as mpl
    except ModuleNotFoundError:
        return
    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "runtime_persist"  # the same numbers give the same file
    mpl.rcParams["svg.fonttype"] = "none"  # text, not outlines
    mpl.rcParams["font.size"] = 9
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.svg"):
        old.unlink()
    for name, make in _PLOTS.items():
        part = name.split("-")[0]
        if rows.get(part):
            figure = make(rows[part])
            figure.savefig(folder / f"{name}.svg", bbox_inches="tight", metadata={"Date": None})


def _panels(titles: list[str]) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=_SIZE, layout="constrained")
    axes = figure.subplots(1, len(titles), squeeze=False)[0]
    for axis, title in zip(axes, titles, strict=True):
        axis.set_title(title)
        axis.grid(visible=True, alpha=0.25, which="both")
        axis.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _line(axis, key: str, points: dict[float, float]) -> None:
    saver = BY_KEY[key]
    ours = saver.ours
    axis.plot(
        list(points),
        list(points.values()),
        label=f"ours, {key}" if ours else key,
        color=_COLOURS[saver.database][not ours],
        linestyle="--" if saver.sync else "-",
        marker="o" if ours else "s",
        linewidth=2 if ours else 1.3,
        markersize=4,
    )


def _lines(
    titles: list[str], rows: Rows, x: str, value: str, panel: Callable[[dict[str, Any]], str], labels: tuple[str, str]
):
    """Draw a line a saver: the median of ``value`` by ``x``, in the panel a row belongs to."""
    figure, axes = _panels(titles)
    for axis, title in zip(axes, titles, strict=True):
        for key, saver in BY_KEY.items():
            chosen = [row for row in rows if row["saver"] == key and panel(row) == title]
            if chosen and not saver.owned:
                at = sorted({row[x] for row in chosen})
                _line(axis, key, {place: median([row for row in chosen if row[x] == place], value) for place in at})
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xlabel(labels[0])
        axis.legend(frameon=False, fontsize=8)
    axes[0].set_ylabel(labels[1])
    return figure


def _database(row: dict[str, Any]) -> str:
    return BY_KEY[row["saver"]].database


def _throughput(rows: Rows):
    chosen = [row for row in rows if row["operation"] == micro.PUT and row["size"] == KB]
    titles = [f"put of 1 KB, {database}" for database in (SQLITE, POSTGRESQL)]
    return _lines(
        titles, chosen, "callers", "ops", lambda row: f"put of 1 KB, {_database(row)}", ("callers", "a second")
    )


def _latency(operation: str):
    def make(rows: Rows):
        chosen = [row for row in rows if row["operation"] == operation and row["callers"] == 1]
        titles = [f"{operation}, one caller, {database}" for database in (SQLITE, POSTGRESQL)]
        labels = ("bytes of the state", "p50 in ms")
        return _lines(titles, chosen, "size", "p50", lambda row: f"{operation}, one caller, {_database(row)}", labels)

    return make


def _bytes(rows: Rows):
    chosen = [row | {"megabytes": row["bytes"] / 1e6, "noisy": False} for row in rows if row["case"] == CHAT]
    titles = ["document a dict", "document a str"]
    labels = ("turns", "MB in the database")
    return _lines(titles, chosen, "turns", "megabytes", lambda row: f"document a {row['document']}", labels)


def _growth(rows: Rows):
    operations = list(growth.OPERATIONS)
    return _lines(
        operations, rows, "length", "p50", lambda row: row["operation"], ("checkpoints in the thread", "p50 in ms")
    )


def _steps(rows: Rows):
    """Draw bars: what a step of the loop costs with each saver."""
    figure, axes = _panels([f"loop, durability sync, {database}: ms a step" for database in (SQLITE, POSTGRESQL)])
    for axis, database in zip(axes, (SQLITE, POSTGRESQL), strict=True):
        bars: dict[str, tuple[float, str]] = {}
        for key in (*graphs.NONE, *BY_KEY):
            chosen = [
                row
                for row in rows
                if (row["saver"], row["graph"], row["durability"], row["callers"]) == (key, graphs.LOOP, graphs.SYNC, 1)
            ]
            saver = BY_KEY.get(key)
            if chosen and (saver is None or saver.database == database):
                colour = "#bbbbbb" if saver is None else _COLOURS[database][not saver.ours]
                name = key if saver is None or not saver.ours else f"ours, {key.split('-')[1]}"
                bars[name] = (median(chosen, "ms"), colour)
        axis.barh(list(bars), [value for value, _ in bars.values()], color=[colour for _, colour in bars.values()])
        axis.invert_yaxis()
    return figure


def _queues(rows: Rows):
    """Draw what a worker begins a second, by its concurrency: a line a contestant."""
    figure, axes = _panels([f"items begun a second, {database}" for database in (SQLITE, POSTGRESQL)])
    for axis, database in zip(axes, (SQLITE, POSTGRESQL), strict=True):
        for one, style in zip(CONTESTANTS, ("-", ":", "--", "-.") * len(CONTESTANTS), strict=False):
            chosen = [row for row in rows if (row["saver"], row["what"]) == (one.key, CLAIMS)]
            if chosen and one.database == database:
                at = sorted({row["concurrency"] for row in chosen})
                points = [median([row for row in chosen if row["concurrency"] == place], "ops") for place in at]
                colour = _COLOURS[database][not one.ours]
                axis.plot(at, points, label=one.title.replace("**", ""), color=colour, linestyle=style, marker="o")
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xlabel("concurrency of the worker")
        axis.legend(frameon=False, fontsize=8)
    return figure


_PLOTS: dict[str, Callable[[Rows], Any]] = {
    "micro-1-throughput": _throughput,
    "micro-2-put": _latency(micro.PUT),
    "micro-3-get": _latency(micro.GET),
    "graphs-loop": _steps,
    "storage-chat": _bytes,
    "growth-threads": _growth,
    "queues-claims": _queues,
}
