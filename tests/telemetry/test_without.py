"""OpenTelemetry is optional: nothing imports it unless it is installed, and nothing is measured without it."""

import subprocess
import sys

from runtime_persist.telemetry import active, configure
from runtime_persist.telemetry import telemetry as process

SCRIPT = """
import sys


class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "opentelemetry":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Missing())
from runtime_persist import Runtime
from runtime_persist.telemetry import active
from tests.support.graphs import chain, config, says

with Runtime.open("sqlite:///:memory:") as runtime:
    print(runtime.bind(chain({"node": says("x")}), name="g").invoke({"log": []}, config())["log"])
print(active(), [name for name in sys.modules if name.startswith("opentelemetry")])
"""


def test_without_opentelemetry_everything_works_and_nothing_is_measured():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["['x']", "None []"], done.stderr


def test_telemetry_can_be_switched_off_and_is_made_once(told):
    before = process._process.current
    assert active() is active() is before
    configure(enabled=False)
    assert active() is None


SET_LATER = """
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from runtime_persist import Runtime
from runtime_persist.telemetry import Telemetry
from tests.support.graphs import chain, config, says

measured = []
for name in ("sent", "batch"):
    inner = getattr(Telemetry, name)
    setattr(Telemetry, name, lambda *given, inner=inner: measured.append(given) or inner(*given))

with Runtime.open("sqlite:///:memory:") as runtime:
    durable = runtime.bind(chain({"node": says("x")}), name="g")
    durable.invoke({"log": []}, config())
    print(len(measured))
    reader = InMemoryMetricReader()
    metrics.set_meter_provider(MeterProvider([reader]))
    durable.invoke({"log": []}, config())
scopes = reader.get_metrics_data().resource_metrics[0].scope_metrics
print("command_duration_seconds" in {metric.name for scope in scopes for metric in scope.metrics})
"""


def test_no_command_is_measured_before_the_process_has_a_provider_and_each_is_afterwards():
    done = subprocess.run([sys.executable, "-c", SET_LATER], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["0", "True"], done.stderr
