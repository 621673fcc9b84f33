"""Databases of langgraph's own savers, of each kind, as they are found in the wild."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver

from tests.fixtures.fix_engine import FILE, POSTGRES
from tests.fixtures.recycled import PostgresDatabases
from tests.support.plugin import *  # noqa: F403


class Stock:
    """A database of a stock saver: opened when a test writes to it."""

    def __init__(self, url: str, opens: Callable[[], AbstractContextManager[Any]]) -> None:
        self.url = url
        self.opens = opens


@pytest.fixture(scope="session")
def stock_databases(postgres_server) -> Iterator[PostgresDatabases]:
    """Databases with the tables of PostgresSaver."""
    template = postgres_server.create_database()
    with PostgresSaver.from_conn_string(template) as saver:
        saver.setup()
    made = PostgresDatabases(postgres_server, urlsplit(template).path.removeprefix("/"))
    yield made
    made.close()
    postgres_server.drop_database(template)


@pytest.fixture
def stock_dsn(stock_databases: PostgresDatabases) -> Iterator[str]:
    """A database with the tables of PostgresSaver that holds nothing."""
    dsn = stock_databases.take()
    yield dsn
    stock_databases.give_back(dsn)


@pytest.fixture(params=[FILE, POSTGRES])
def stock(request: pytest.FixtureRequest, tmp_path: Path) -> Stock:
    """An empty database of SqliteSaver, and one of PostgresSaver."""
    if request.param == POSTGRES:
        dsn = request.getfixturevalue("stock_dsn")
        return Stock(dsn, lambda: PostgresSaver.from_conn_string(dsn))
    path = tmp_path / "stock.db"
    made = Stock(f"sqlite:///{path}", lambda: SqliteSaver.from_conn_string(str(path)))
    with made.opens() as saver:
        saver.setup()
    return made
