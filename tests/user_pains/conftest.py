"""The fixtures of this suite: what users of other savers suffered from, row by row (see rows.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from runtime_persist.cli.main import main
from tests.connections.conftest import pooler, proxy, worlds
from tests.support.plugin import *  # noqa: F403

if TYPE_CHECKING:
    from collections.abc import Callable

    from click.testing import Result

__all__ = ["cli", "pooler", "proxy", "worlds"]


@pytest.fixture
def cli(shared_url: str) -> Callable[..., Result]:
    """Run the command line on the test's database."""

    def runs(*arguments: str) -> Result:
        environment = {"RUNTIME_PERSIST_URL": shared_url, "COLUMNS": "250"}
        return CliRunner().invoke(main, arguments, env=environment, catch_exceptions=False)

    return runs
