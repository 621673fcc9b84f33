"""The worker's status line: what it counts, and that it fits."""

import io

import pytest
from rich.console import Console, Group

from runtime_persist.cli.status_line import StatusLine


def line_of(*, terminal, width=120):
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=width, color_system=None)
    return StatusLine(console, "worker-1", slots=4), console, out


def tell(line):
    line.told("ready", {"worker": "worker-1"})
    for n in range(3):
        line.told("claimed", {"run_id": f"run-{n}", "takeover": n == 0})
    line.told("finished", {"run_id": "run-0"})
    line.told("stopped", {"run_id": "run-1", "code": "RUN_FAILED", "error": "no luck"})


def test_it_counts_what_the_worker_reports():
    line, *_ = line_of(terminal=True)
    tell(line)
    said = line.line().plain
    assert "working" in said
    assert "1/4 slots  1 finished  1 stopped (last: RUN_FAILED)  1 taken over" in said
    line.told("stopped", {"run_id": "run-2", "code": "GraphDrained"})
    line.draining = True
    said = line.line().plain
    assert said.startswith("● draining  0/4 slots")
    assert "1 stopped (last: RUN_FAILED)  1 queued again" in said


def test_a_takeover_that_is_blocked_holds_no_slot():
    line, *_ = line_of(terminal=True)
    line.told("claimed", {"run_id": "run-1", "takeover": True})
    line.told("blocked", {"run_id": "run-1", "code": "DOMAINS_OPEN", "error": "nothing proves it"})
    assert "0/4 slots  0 finished  1 taken over  1 blocked" in line.line().plain


def test_a_database_that_is_away_is_told():
    line, *_ = line_of(terminal=True)
    line.told("waiting", {"code": "CONNECTION_LOST", "error": "…"})
    assert "database: CONNECTION_LOST" in line.line().plain


@pytest.mark.parametrize("width", [20, 80])
def test_it_is_one_line_however_narrow_the_terminal_is(width):
    line, console, _ = line_of(terminal=True, width=width)
    tell(line)
    with console.capture() as captured:
        console.print(Group(line.line()))  # a text alone is joined with others, and wrapped
    (only,) = captured.get().splitlines()
    assert len(only) <= width


def test_where_there_is_no_terminal_there_are_plain_lines_only():
    line, _, out = line_of(terminal=False)
    with line:
        tell(line)
    lines = out.getvalue().splitlines()
    assert lines[0] == "ready    worker=worker-1"
    assert lines[-1] == "stopped  run_id=run-1  code=RUN_FAILED  error=no luck"
    assert len(lines) == 6
    assert "\x1b" not in out.getvalue()


def test_on_a_terminal_the_line_stays_below_what_is_printed():
    line, _, out = line_of(terminal=True)
    with line:
        tell(line)
    assert "● working" in out.getvalue()
    assert out.getvalue().count("finished run_id=run-0") == 1
