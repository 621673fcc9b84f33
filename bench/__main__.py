"""Time, throughput and bytes of the savers, ours and the published ones, taking turns in one run.

    python -m bench [PART …] [--quick] [--rounds N] [--only WORDS] [--savers KEYS]
    python -m bench check       what no machine changes, against bounds
    python -m bench page        draw docs/performance.md anew from the last documented results

Only ratios within one table count. fsync is on everywhere.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import importlib
import shlex
import sys
import time

from rich.console import Console

from bench import check, goals, machine
from bench.noise import Machine
from bench.options import ROUNDS, Options
from bench.report import page, tables
from bench.savers import BY_KEY, lab

PARTS = tuple(ROUNDS)


async def measure(part: str, options: Options) -> dict:
    """Run a part in a lab of its own."""
    module = importlib.import_module(f"bench.{part}")
    began = time.time()
    async with lab(Machine()) as found:
        gc.freeze()  # what is loaded by now never becomes garbage: do not look at it in the middle of a slice
        rows = await module.measure(found, options)
        seconds = time.time() - began
        return {
            "part": part,
            "command": shlex.join(["python", "-m", "bench", *sys.argv[1:]]),
            "when": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(began)),
            "seconds": round(seconds),
            "machine": await machine.described(found.postgresql()),
            "left_out": found.left_out,
            "rows": rows,
        }


def show(console: Console, results: dict[str, dict]) -> None:
    """Print all tables, the goals last."""
    for part, found in results.items():
        for table in tables.TABLES[part](found["rows"]):
            console.print(table.rich())
        for name, reason in found["left_out"].items():
            console.print(f"{name} left out: {reason}")
        console.print(page.noise(found["rows"]))
    reached = goals.table({part: found["rows"] for part, found in results.items()})
    if reached.lines:
        console.print(reached.rich())


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)} (default: all), check or page")
    parser.add_argument("--quick", action="store_true", help="small sizes, one round: shows that all of it works")
    parser.add_argument("--rounds", type=int, help=f"rounds of each part (default {ROUNDS})")
    parser.add_argument("--only", default="", help="only what has one of these words in its name (a,b,…)")
    parser.add_argument("--savers", default="", help=f"only these savers: {', '.join(BY_KEY)}")
    parser.add_argument("--document", action="store_true", help="keep the results and draw docs/performance.md")
    given = parser.parse_args()
    unknown = set(given.parts) - {*PARTS, "check", "page"}
    if unknown:
        parser.error(f"unknown part: {', '.join(sorted(unknown))}")
    if given.document and (given.quick or given.only or given.savers):
        parser.error("--document keeps whole parts only: leave --quick, --only and --savers out")
    return given


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def main() -> int:
    """Run what was asked for and return the exit status."""
    given = _arguments()
    console = Console(width=None if sys.stdout.isatty() else 160)
    if given.parts == ["page"]:
        page.write()
        return 0
    if given.parts == ["check"]:
        found = check.everything()
        console.print(check.table(found).rich())
        return 0 if all(one.holds for one in found) else 1
    options = Options(given.quick, given.rounds, _words(given.only), _words(given.savers))
    results = {}
    failed = False
    for part in given.parts or PARTS:
        try:
            results[part] = asyncio.run(measure(part, options))
        except Exception:  # noqa: BLE001 (the other parts have taken minutes: they are shown)
            console.print_exception()
            failed = True
            continue
        if given.document:
            page.keep(results[part])
    show(console, results)
    if given.document:
        page.write()
        console.print(f"written: {page.PAGE}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
