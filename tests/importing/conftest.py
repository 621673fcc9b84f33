"""Databases of langgraph's own savers, of each kind, as they are found in the wild."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver

from tests.fixtures.fix_engine import FILE, POSTGRES
from tests.support.plugin import *  # noqa: F403


class Stock:
    """A database of a stock saver: opened when a test writes to it."""

    def __init__(self, url: str, opens: Callable[[], AbstractContextManager[Any]]) -> None:
        self.url = url
        self.opens = opens


@pytest.fixture(params=[FILE, POSTGRES])
def stock(request: pytest.FixtureRequest, tmp_path: Path) -> Stock:
    """An empty database of SqliteSaver, and one of PostgresSaver."""
    if request.param == FILE:
        path = tmp_path / "stock.db"
        made = Stock(f"sqlite:///{path}", lambda: SqliteSaver.from_conn_string(str(path)))
    else:
        dsn = request.getfixturevalue("postgres_dsn")
        made = Stock(dsn, lambda: PostgresSaver.from_conn_string(dsn))
    with made.opens() as saver:
        saver.setup()
    return made
