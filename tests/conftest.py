"""The fixtures every test may ask for."""

pytest_plugins = [
    "tests.fixtures.fix_postgres",
    "tests.fixtures.fix_engine",
    "tests.fixtures.fix_world",
]
