"""Savers whose put_writes is broken."""

from langgraph.checkpoint.base import WRITES_IDX_MAP

from runtime_persist.adapters.workflow import encoding
from tests.broken_savers.broken import Broken, caught_by, configured, patched, place
from tests.saver import test_put_and_get, test_writes


@caught_by(test_writes.test_writes_arrive_before_their_checkpoint, shows=KeyError)
class WritesNeedTheirCheckpoint(Broken):
    def writing(self, config, writes, task_id, task_path):
        if self.stored(config) is None:
            raise KeyError(config["configurable"]["checkpoint_id"])
        return config, writes, task_id, task_path


@caught_by(test_writes.test_writes_arrive_before_their_checkpoint)
class LosesEarlyWrites(Broken):
    """Writes that came before the row of their checkpoint are gone."""

    def writing(self, config, writes, task_id, task_path):
        return config, writes if self.stored(config) else [], task_id, task_path


@caught_by(test_writes.test_of_regular_writes_the_first_wins)
class OverwritesRegularWrites(Broken):
    def writing(self, config, writes, task_id, task_path):
        for channel, value in writes:
            self.memory[*place(config), task_id, channel] = value
        return config, writes, task_id, task_path

    def shown(self, found):
        here = place(found)
        newest = [(t, c, self.memory.get((*here, t, c), value)) for t, c, value in found.pending_writes]
        return found._replace(pending_writes=newest)


def keeping(saver, config, task_id, writes, channels):
    """Writes whose special ones have the value that is stored already."""
    found = saver.stored(config)
    old = {c: value for task, c, value in found.pending_writes if task == task_id} if found else {}
    return [(c, old.get(c, value) if c in channels else value) for c, value in writes]


@caught_by(test_writes.test_of_special_writes_the_newest_wins)
class KeepsSpecialWrites(Broken):
    def writing(self, config, writes, task_id, task_path):
        return config, keeping(self, config, task_id, writes, WRITES_IDX_MAP), task_id, task_path


@caught_by(test_writes.test_of_special_writes_the_newest_wins)
class KeepsOldErrors(Broken):
    """Knows three of the four special channels."""

    def writing(self, config, writes, task_id, task_path):
        return config, keeping(self, config, task_id, writes, ["__error__"]), task_id, task_path


@caught_by(test_writes.test_mixed_writes_are_judged_one_by_one)
class JudgesTheWholeCall(Broken):
    """As the stock savers on databases: special writes win only when the call has no others."""

    def writing(self, config, writes, task_id, task_path):
        special = all(channel in WRITES_IDX_MAP for channel, _ in writes)
        kept = writes if special else keeping(self, config, task_id, writes, WRITES_IDX_MAP)
        return config, kept, task_id, task_path


@caught_by(
    test_writes.test_special_writes_come_first_inside_a_task,
    test_writes.test_mixed_writes_are_judged_one_by_one,
)
class NoIndexMap(Broken):
    def put_writes(self, config, writes, task_id, task_path=""):
        with patched(encoding, "WRITES_IDX_MAP", {}):
            super().put_writes(config, writes, task_id, task_path)


@caught_by(test_writes.test_order_is_by_task_path_then_task_then_position)
class OrderOfArrival(Broken):
    def writing(self, config, writes, task_id, task_path):
        self.memory.setdefault(task_id, len(self.memory))
        return config, writes, task_id, task_path

    def shown(self, found):
        return found._replace(pending_writes=sorted(found.pending_writes, key=lambda write: self.memory[write[0]]))


@caught_by(
    test_writes.test_order_is_by_task_path_then_task_then_position,
    test_writes.test_the_task_path_can_be_named,
)
class NoTaskPath(Broken):
    def writing(self, config, writes, task_id, task_path):
        return config, writes, task_id, ""


@caught_by(test_writes.test_order_is_by_task_path_then_task_then_position)
class OrderBackwardsInATask(Broken):
    def shown(self, found):
        tasks = list(dict.fromkeys(task for task, _, _ in found.pending_writes))
        backwards = [write for task in tasks for write in found.pending_writes[::-1] if write[0] == task]
        return found._replace(pending_writes=backwards)


@caught_by(test_writes.test_writes_belong_to_their_checkpoint_and_namespace)
class WritesOfAllNamespacesInTheRoot(Broken):
    def writing(self, config, writes, task_id, task_path):
        return configured(config, checkpoint_ns=""), writes, task_id, task_path


@caught_by(test_writes.test_writes_belong_to_their_checkpoint_and_namespace)
class WritesGoToTheLatest(Broken):
    def writing(self, config, writes, task_id, task_path):
        latest = self.stored(configured(config, checkpoint_id=None))
        return latest.config if latest else config, writes, task_id, task_path


@caught_by(test_writes.test_late_writes_of_an_older_checkpoint_are_accepted, shows=ValueError)
class RefusesLateWrites(Broken):
    def writing(self, config, writes, task_id, task_path):
        latest = self.stored(configured(config, checkpoint_id=None))
        if latest and place(latest) != place(config):
            msg = "there is a newer checkpoint"
            raise ValueError(msg)
        return config, writes, task_id, task_path


@caught_by(test_writes.test_no_writes_is_no_write)
class WritesNothingAsSomething(Broken):
    def writing(self, config, writes, task_id, task_path):
        return config, writes or [("", None)], task_id, task_path


@caught_by(test_put_and_get.test_what_was_put_is_stored_as_it_was_then)
class KeepsLiveWrites(Broken):
    """Shows the very objects it was given."""

    def writing(self, config, writes, task_id, task_path):
        self.memory.update({(task_id, channel): value for channel, value in writes})
        return config, writes, task_id, task_path

    def shown(self, found):
        return found._replace(pending_writes=[(t, c, self.memory[t, c]) for t, c, _ in found.pending_writes])
