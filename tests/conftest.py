"""The fixtures every test may ask for."""

from hypothesis import HealthCheck, settings

# How long an example takes, or is drawn, says something about the machine only.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

pytest_plugins = [
    "tests.fixtures.fix_postgres",
    "tests.fixtures.fix_engine",
    "tests.fixtures.fix_world",
]
