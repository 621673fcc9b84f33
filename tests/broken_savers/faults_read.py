"""Savers whose reading is broken: get_tuple, and what values come back as."""

import contextlib
import enum
import math

from runtime_persist.errors import CheckpointCorrupt
from tests.broken_savers import checks_values
from tests.broken_savers.broken import Broken, caught_by, configured, place, replaced, with_values
from tests.saver import test_corruption, test_list, test_put_and_get, test_writes
from tests.support.checkpoints import new_checkpoint


@caught_by(test_put_and_get.test_no_checkpoint_id_none_and_empty_all_mean_the_latest, shows=AttributeError)
class AnEmptyIdIsAnId(Broken):
    def get_tuple(self, config):
        return None if config["configurable"].get("checkpoint_id") == "" else super().get_tuple(config)


@caught_by(test_put_and_get.test_no_checkpoint_id_none_and_empty_all_mean_the_latest)
class AlwaysGivesTheLatest(Broken):
    def get_tuple(self, config):
        return super().get_tuple(configured(config, checkpoint_id=None))


@caught_by(test_put_and_get.test_no_checkpoint_id_none_and_empty_all_mean_the_latest)
class TheLatestIsTheFirst(Broken):
    def get_tuple(self, config):
        if config["configurable"].get("checkpoint_id"):
            return super().get_tuple(config)
        found = self.listed(configured(config, checkpoint_id=None))
        return found[-1] if found else None


@caught_by(test_put_and_get.test_namespaces_and_threads_do_not_see_each_other)
class NamespacesFallBackToTheRoot(Broken):
    def get_tuple(self, config):
        return super().get_tuple(configured(config, checkpoint_ns=""))


@caught_by(test_put_and_get.test_configs_are_normal_and_leak_no_foreign_keys)
class LeaksTheCallersConfig(Broken):
    def get_tuple(self, config):
        found = super().get_tuple(config)
        return found and found._replace(config=configured(config, **found.config["configurable"]))


@caught_by(test_put_and_get.test_the_parent_is_what_the_config_names)
class NoParents(Broken):
    def shown(self, found):
        return found._replace(parent_config=None)


@caught_by(test_put_and_get.test_every_read_gives_fresh_objects)
class SharesWhatItRead(Broken):
    def shown(self, found):
        return self.memory.setdefault(place(found), found)


@caught_by(test_put_and_get.test_reading_an_unknown_thread_writes_nothing)
class MakesWhatIsNotThere(Broken):
    """As a defaultdict does."""

    def get_tuple(self, config):
        if self.stored(config) is None:
            self.put(config, new_checkpoint({}), {}, {})
        return super().get_tuple(config)


class _Values(Broken):
    """Changes every simple value that is read, in channels and in writes."""

    def shown(self, found):
        writes = [(task, channel, replaced(value, self.changed)) for task, channel, value in found.pending_writes]
        values = replaced(found.checkpoint["channel_values"], self.changed)
        return with_values(found, values)._replace(pending_writes=writes)

    def changed(self, value):
        raise NotImplementedError


@caught_by(test_put_and_get.test_odd_values_come_back_equal_on_every_database)
class DropsNul(_Values):
    def changed(self, value):
        return value.replace("\0", "") if type(value) is str else value


@caught_by(test_put_and_get.test_odd_values_come_back_equal_on_every_database)
class NothingIsInfinite(_Values):
    def changed(self, value):
        return None if isinstance(value, float) and math.isinf(value) else value


@caught_by(
    test_put_and_get.test_odd_values_come_back_equal_on_every_database,
    checks_values.values_come_back_with_their_type,
)
class DropsTheSignOfZero(_Values):
    def changed(self, value):
        return 0.0 if value == 0 and type(value) is float else value


@caught_by(checks_values.values_come_back_with_their_type, shows=TypeError)
class NotANumberIsNone(_Values):
    def changed(self, value):
        return None if isinstance(value, float) and math.isnan(value) else value


@caught_by(checks_values.values_come_back_with_their_type)
class EnumsBecomeTexts(_Values):
    def changed(self, value):
        return value.value if isinstance(value, enum.Enum) else value


@caught_by(checks_values.values_come_back_with_their_type)
class ReplacesHalfEmojis(_Values):
    def changed(self, value):
        return value.encode(errors="replace").decode() if type(value) is str else value


@caught_by(checks_values.values_come_back_with_their_type)
class WholeFloatsBecomeInts(_Values):
    def changed(self, value):
        return int(value) if type(value) is float and value and value.is_integer() else value


@caught_by(checks_values.values_come_back_with_their_type)
class TuplesBecomeLists(Broken):
    def shown(self, found):
        values = {k: list(v) if type(v) is tuple else v for k, v in found.checkpoint["channel_values"].items()}
        return with_values(found, values)


async def damage_is_told(saver, way, raw, monkeypatch):
    monkeypatch.setattr(test_corruption.SegmentCache, "add", lambda *_: None)  # as in a process that is new
    await test_corruption.test_damaged_short_values_are_told_too(saver, way, raw)


@caught_by(damage_is_told)
class ServesNothingForDamage(Broken):
    """What cannot be read is as if it had never been."""

    def get_tuple(self, config):
        with contextlib.suppress(CheckpointCorrupt):
            return super().get_tuple(config)
        return None


@caught_by(checks_values.sends_of_an_old_format_come_with_the_child)
class NoSendsOfOldFormats(Broken):
    """As the stock savers but for PostgreSQL's."""

    def shown(self, found):
        values = {k: v for k, v in found.checkpoint["channel_values"].items() if k != "__pregel_tasks"}
        return with_values(found, values)


@caught_by(checks_values.sends_of_an_old_format_come_with_the_child)
class SendsOnlyInGetTuple(Broken):
    def list(self, config, **options):
        for found in super().list(config, **options):
            values = {k: v for k, v in found.checkpoint["channel_values"].items() if k != "__pregel_tasks"}
            yield with_values(found, values)


@caught_by(checks_values.sends_of_an_old_format_come_with_the_child)
class SendsForEveryFormat(Broken):
    """Attaches the parent's sends to checkpoints that keep their own."""

    def shown(self, found):
        parent = found.parent_config and self.stored(found.parent_config)
        sends = [value for _, channel, value in parent.pending_writes if channel == "__pregel_tasks"] if parent else []
        return with_values(found, found.checkpoint["channel_values"] | ({"__pregel_tasks": sends} if sends else {}))


@caught_by(
    test_list.test_newest_come_first_with_values_parents_and_writes,
    test_writes.test_of_regular_writes_the_first_wins,
)
class NoPendingWrites(Broken):
    def shown(self, found):
        return found._replace(pending_writes=[])
