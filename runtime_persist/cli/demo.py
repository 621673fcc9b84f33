"""demo: kill agents and watch them recover."""

from __future__ import annotations

import importlib
import sys

import click

from runtime_persist.errors import MissingDependency


@click.command()
@click.option("--keep", is_flag=True, help="Keep the databases of the demo and print where they are.")
def demo(keep: bool) -> None:
    """Kill and stop real worker processes in the middle of a payment, and prove what happens."""
    try:
        # By name: the demo stands above the command line, so nothing here may import it.
        story = importlib.import_module("runtime_persist.demo.story")
    except ModuleNotFoundError as error:
        msg = f"the demo needs {error.name}; install runtime-persist[demo]"
        raise MissingDependency(msg) from error
    sys.exit(story.main(keep=keep))
