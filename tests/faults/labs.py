"""The fork server and the two databases as fixtures, one of each a worker process."""

from collections.abc import Iterator

import pytest

from runtime_persist.testing.proxy import PostgresProxy
from tests.faults.kit import ForkServer, PostgresLab, SqliteLab

__all__ = ["fork_server", "postgres_lab", "sqlite_lab"]


@pytest.fixture(scope="session")
def fork_server() -> Iterator[ForkServer]:
    with ForkServer("tests.recovery.lives") as server:
        yield server


@pytest.fixture(scope="session")
def sqlite_lab(tmp_path_factory, sqlite_template) -> SqliteLab:
    return SqliteLab(tmp_path_factory.mktemp("sqlite"), sqlite_template)


@pytest.fixture(scope="session")
def postgres_lab(postgres_server, postgres_template) -> Iterator[PostgresLab]:
    dsn = postgres_server.create_database(postgres_template)
    with PostgresProxy("127.0.0.1", postgres_server.port) as proxy:
        lab = PostgresLab(dsn, proxy)
        yield lab
        lab.close()
    postgres_server.drop_database(dsn)
