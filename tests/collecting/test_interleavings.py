"""Two processes that store, read, fork, copy, delete and prune, collections in between, and time: nothing dangles."""

import contextlib
import random
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from runtime_persist.adapters.workflow import WorkflowCheckpointAdapter, collecting
from runtime_persist.engine import run
from runtime_persist.errors import ThreadDeleted
from tests.fixtures.raw import connect
from tests.support.checkpoints import at, new_checkpoint
from tests.support.collecting import HOUR_US, later, whole

THREADS, CHANNELS = ("t1", "t2"), ("a", "b")


def text(seed, size):
    return "".join(random.Random(seed).choices("abcdefgh", k=size))


VALUES = (
    *(text(n, 300) for n in range(3)),
    *([text(1_000 * n + item, 300) for item in range(60)] for n in range(2)),  # their references lie in pages
)
values = st.integers(0, len(VALUES) - 1)  # steps are told by number: they are shown when something fails
processes = st.integers(0, 1)
threads = st.sampled_from(THREADS)
hours = st.sampled_from((0.3, 0.7, 1.5, 25, 25))


class Interleavings(RuleBasedStateMachine):
    """Time goes by only where a step says so: marks, looks and what processes remember all grow older by it."""

    template: Path

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.url = f"sqlite:///{shutil.copy(self.template, self.folder / 'agents.db')}"
        self.savers = [self.opened(), self.opened()]
        self.raw = connect(self.savers[0]._core.engine)
        self.looks = []
        self.fresh = 0
        self.stored = {}  # thread -> all places ever stored, deleted ones too, with their values
        self.heads = {}  # thread -> the newest that is there

    def opened(self):
        return WorkflowCheckpointAdapter.from_conn_string(self.url, concurrency="unsafe")

    def teardown(self):
        self.raw.close()
        for saver in self.savers:
            saver.close()
        shutil.rmtree(self.folder)

    def put(self, process, thread, parent, changed, *, partial=False):
        config, values, versions = parent
        values = values | changed
        versions = versions | dict.fromkeys(changed, str(len(self.stored.get(thread, ())) + 1))
        given = changed if partial else values
        made = new_checkpoint(dict(given), dict(versions))
        with contextlib.suppress(ThreadDeleted):
            place = self.savers[process].put(config, made, {}, {channel: versions[channel] for channel in changed})
            self.heads[thread] = (place, values, versions)
            self.stored.setdefault(thread, []).append(self.heads[thread])

    @initialize()
    def begin(self):
        for thread in THREADS:
            self.put(0, thread, (at(thread), {}, {}), {"a": VALUES[-1], "b": VALUES[0]})

    @rule(process=processes, thread=threads, channel=st.sampled_from(CHANNELS), value=values)
    def goes_on(self, process, thread, channel, value):
        self.put(process, thread, self.heads.get(thread, (at(thread), {}, {})), {channel: VALUES[value]})

    @rule(process=processes, thread=threads, n=st.integers(0, 3))
    def goes_on_and_carries_all_large_values_over(self, process, thread, n):
        self.put(process, thread, self.heads.get(thread, (at(thread), {}, {})), {"n": n})

    @rule(process=processes, thread=threads, n=st.integers(0, 3))
    def brings_only_what_is_new(self, process, thread, n):
        if thread in self.heads:
            self.put(process, thread, self.heads[thread], {"n": n}, partial=True)

    @rule(process=processes, thread=threads, back=st.integers(1, 3))
    def forks_an_old_checkpoint_that_may_be_gone(self, process, thread, back):
        places = self.stored.get(thread, ())
        if len(places) > back:
            self.put(process, thread, places[-1 - back], {"n": back})

    @rule(process=processes, thread=threads, value=values)
    def writes(self, process, thread, value):
        if thread in self.heads:
            with contextlib.suppress(ThreadDeleted):  # a copy has the old ids
                self.savers[process].put_writes(self.heads[thread][0], [("a", VALUES[value])], f"task {process}")

    @rule(process=processes, thread=threads)
    def reads(self, process, thread):
        found = self.savers[process].get_tuple(at(thread))
        if thread in self.heads:
            assert found.checkpoint["channel_values"] == self.heads[thread][1]
        else:
            assert found is None

    @rule(process=processes, thread=threads)
    def deletes(self, process, thread):
        self.savers[process].delete_thread(thread)
        self.heads.pop(thread, None)

    @rule(process=processes, thread=threads)
    def prunes(self, process, thread):
        self.savers[process].prune([thread])

    @rule(process=processes, source=threads)
    def copies(self, process, source):
        target = next(one for one in THREADS if one != source)
        if source in self.heads and target not in self.heads:
            with contextlib.suppress(ThreadDeleted):  # nothing is copied to a thread that was deleted
                self.savers[process].copy_thread(source, target)
                place, *rest = self.heads[source]
                self.heads[target] = (at(target, place["configurable"]["checkpoint_id"]), *rest)
                self.stored.setdefault(target, []).append(self.heads[target])

    @rule(process=processes)
    def starts_again(self, process):
        self.savers[process].close()
        self.savers[process] = self.opened()

    @rule(process=processes)
    def looks_at_what_is_used(self, process):
        self.looks.append(run(collecting.look(self.savers[process].context, lambda _: None)))

    @rule(process=processes, which=st.integers(0, 2))
    def settles_a_look(self, process, which):
        """Of now, or one that was made long ago."""
        if self.looks:
            self.settled(process, self.looks.pop(min(which, len(self.looks) - 1)))

    def settled(self, process, looked):
        run(collecting.settle(self.savers[process].context, looked, 24 * HOUR_US, lambda _: None))

    @rule(process=processes)
    def collects_twice_a_day_apart(self, process):
        self.savers[process].collect_content()
        self.time_goes_by(25)
        self.savers[process].collect_content()

    @rule(
        process=processes,
        writer=processes,
        thread=threads,
        hours=st.sampled_from((0.3, 25)),
        doing=st.sampled_from(("puts", "forks", "writes")),
    )
    def is_used_again_just_before_it_is_removed(self, process, writer, thread, hours, doing):
        """All of a thread is marked; after a last look at what is used a writer uses some of it, and then it goes."""
        self.fresh += 1
        large = {"a": text(-self.fresh, 300), "b": [text(-self.fresh, 300)] * 3}
        self.put(process, thread, self.heads.get(thread, (at(thread), {}, {})), large)
        old = self.stored[thread][-1]
        self.deletes(process, thread)
        self.savers[process].collect_content()
        self.time_goes_by(hours)
        looked = run(collecting.look(self.savers[process].context, lambda _: None))
        other = next(one for one in THREADS if one != thread)
        if doing == "puts":
            self.put(writer, other, self.heads.get(other, (at(other), {}, {})), large)
        elif doing == "forks":
            self.put(writer, thread, old, {"n": 1})
        else:
            self.savers[writer].put_writes(at("elsewhere", "1"), list(large.items()), "task")
        self.settled(process, looked)

    @rule(hours=hours)
    def time_goes_by(self, hours):
        later(self.raw, hours, *self.savers)
        past_us = int(hours * HOUR_US)
        self.raw.rows("UPDATE rp_blobs SET created_us = created_us - ?", past_us)
        self.looks = [replace(one, size=replace(one.size, now_us=one.size.now_us - past_us)) for one in self.looks]

    @invariant()
    def nothing_dangles(self):
        if self.stored:
            whole(self.savers[0])


@pytest.fixture
def machine(sqlite_template):
    return type("Machine", (Interleavings,), {"template": sqlite_template})


def test_no_interleaving_of_writers_and_collections_leaves_a_reference_without_content(machine):
    limits = settings(
        max_examples=20,
        stateful_step_count=25,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],  # shrinking takes minutes, and the steps are told anyway
    )
    run_state_machine_as_test(machine, settings=limits)
