from tests.faults.labs import fork_server, postgres_lab, sqlite_lab

__all__ = ["fork_server", "postgres_lab", "sqlite_lab"]
