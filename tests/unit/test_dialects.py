"""Engines share what their dialect has compiled, and nothing else."""

from runtime_persist.dialects import dialect_of, parse_url
from runtime_persist.engine import Engine
from runtime_persist.queries import spaces

FILE, OTHER = parse_url("sqlite:///a.db"), parse_url("sqlite:///b.db")
SERVER = parse_url("postgresql://host/db")


def test_a_statement_is_compiled_once_for_all_engines_of_a_process(monkeypatch):
    Engine("sqlite:///:memory:").close()
    compiled = []
    dialect = type(dialect_of(FILE))
    monkeypatch.setattr(dialect, "compile", lambda *given: compiled.append(given))
    Engine("sqlite:///:memory:").close()
    assert compiled == []


def test_databases_and_schemas_have_statements_of_their_own():
    assert dialect_of(FILE) is dialect_of(OTHER)
    assert dialect_of(SERVER) is not dialect_of(FILE)
    assert dialect_of(SERVER, "one") is not dialect_of(SERVER, "two")
    assert dialect_of(SERVER, "one") is dialect_of(SERVER, "one")
    (query,) = (found for found in vars(spaces).values() if getattr(found, "name", "") == "read_space")
    texts = {dialect_of(SERVER, schema).query(query).sql for schema in (None, "one", "two")}
    assert len(texts) == 3
