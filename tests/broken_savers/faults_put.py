"""Savers whose put is broken."""

from langgraph.checkpoint.base import get_checkpoint_metadata

from runtime_persist.errors import RuntimePersistError
from tests.broken_savers import checks_values
from tests.broken_savers.broken import Broken, caught_by, configured, fresh, with_values
from tests.saver import test_metadata, test_optimistic, test_put_and_get, test_thread_ids


@caught_by(test_put_and_get.test_the_parent_is_what_the_config_names)
class IgnoresTheParent(Broken):
    def putting(self, config, checkpoint, metadata, new_versions):
        return configured(config, checkpoint_id=None), checkpoint, metadata, new_versions


@caught_by(test_put_and_get.test_the_parent_is_what_the_config_names)
class TakesTheLatestAsParent(Broken):
    def putting(self, config, checkpoint, metadata, new_versions):
        latest = self.stored(configured(config, checkpoint_id=None))
        return latest.config if latest else config, checkpoint, metadata, new_versions


@caught_by(test_put_and_get.test_what_was_put_is_stored_as_it_was_then)
class StoresLater(Broken):
    """Keeps what it was given until somebody reads: the graph changes it meanwhile."""

    def put(self, config, checkpoint, metadata, new_versions):
        self.memory.setdefault("late", []).append((config, checkpoint, metadata, new_versions))
        return configured(config, checkpoint_ns="", checkpoint_id=checkpoint["id"])

    def get_tuple(self, config):
        for late in self.memory.pop("late", []):
            super().put(*late)
        return super().get_tuple(config)


@caught_by(test_optimistic.test_storing_other_bytes_under_an_id_replaces_them_and_leaves_the_head, shows=ValueError)
class RejectsARePut(Broken):
    def put(self, config, checkpoint, metadata, new_versions):
        if self.stored(configured(config, checkpoint_id=checkpoint["id"])):
            msg = "there is a checkpoint with this id"
            raise ValueError(msg)
        return super().put(config, checkpoint, metadata, new_versions)


@caught_by(test_optimistic.test_storing_other_bytes_under_an_id_replaces_them_and_leaves_the_head)
class IgnoresARePut(Broken):
    def put(self, config, checkpoint, metadata, new_versions):
        there = configured(config, checkpoint_id=checkpoint["id"])
        return there if self.stored(there) else super().put(config, checkpoint, metadata, new_versions)


@caught_by(test_put_and_get.test_a_carried_channel_keeps_its_stored_value_whatever_the_put_brings)
class IgnoresNewVersions(Broken):
    """Stores every value each time."""

    def putting(self, config, checkpoint, metadata, new_versions):
        return config, checkpoint, metadata, {**checkpoint["channel_versions"], **new_versions}


@caught_by(test_put_and_get.test_a_version_is_compared_as_it_is_stored)
class ForgetsWhatDidNotChange(Broken):
    def putting(self, config, checkpoint, metadata, new_versions):
        self.memory[checkpoint["id"]] = set(new_versions)
        return config, checkpoint, metadata, new_versions

    def shown(self, found):
        new = self.memory[found.checkpoint["id"]]
        return with_values(found, {k: v for k, v in found.checkpoint["channel_values"].items() if k in new})


@caught_by(test_put_and_get.test_a_new_version_without_a_value_is_a_tombstone)
class IgnoresTombstones(Broken):
    """A channel that lost its value keeps the old one."""

    def putting(self, config, checkpoint, metadata, new_versions):
        parent = self.stored(config) if config["configurable"].get("checkpoint_id") else None
        before = parent.checkpoint["channel_values"] if parent else {}
        kept = {k: before[k] for k in new_versions if k in before and k not in checkpoint["channel_values"]}
        values = {**checkpoint["channel_values"], **kept}
        return config, {**checkpoint, "channel_values": values}, metadata, new_versions


@caught_by(test_metadata.test_simple_values_of_the_config_are_merged_in)
class NoMetadataMerge(Broken):
    def putting(self, config, checkpoint, metadata, new_versions):
        names = ("thread_id", "checkpoint_ns", "checkpoint_id")
        bare = {key: value for key, value in config["configurable"].items() if key in names}
        return {"configurable": bare}, checkpoint, metadata, new_versions


@caught_by(test_metadata.test_simple_values_of_the_config_are_merged_in)
class ConfigAboveMetadata(Broken):
    def putting(self, config, checkpoint, metadata, new_versions):
        return config, checkpoint, {**metadata, **get_checkpoint_metadata(config, {})}, new_versions


@caught_by(test_metadata.test_simple_values_of_the_config_are_merged_in)
class MergesHiddenNames(Broken):
    def putting(self, config, checkpoint, metadata, new_versions):
        hidden = {k: v for k, v in config.get("metadata", {}).items() if k.startswith("__")}
        return config, checkpoint, {**hidden, **metadata}, new_versions


async def a_key_in_the_config_is_not_stored(saver, way, raw):
    await test_metadata.test_names_of_secrets_are_not_stored(saver, way, raw, "api_key")


@caught_by(a_key_in_the_config_is_not_stored)
class StoresSecrets(Broken):
    def putting(self, config, checkpoint, metadata, new_versions):
        return config, checkpoint, get_checkpoint_metadata(config, metadata), new_versions


@caught_by(test_metadata.test_the_config_itself_is_not_changed)
class ChangesTheConfig(Broken):
    """Covers secrets in the caller's own config."""

    def putting(self, config, checkpoint, metadata, new_versions):
        config["configurable"].update({name: "***" for name in config["configurable"] if "key" in name})
        return config, checkpoint, metadata, new_versions


@caught_by(test_put_and_get.test_a_checkpoint_comes_back_as_it_was_given)
class ChangesWhatItIsGiven(Broken):
    def put(self, config, checkpoint, metadata, new_versions):
        stored = super().put(config, fresh(checkpoint), metadata, new_versions)
        checkpoint.pop("channel_values")
        return stored


@caught_by(test_put_and_get.test_a_checkpoint_comes_back_as_it_was_given)
class KnowsOnlyTodaysKeys(Broken):
    def shown(self, found):
        known = ("v", "ts", "id", "channel_values", "channel_versions", "versions_seen", "updated_channels")
        return found._replace(checkpoint={k: v for k, v in found.checkpoint.items() if k in known})


@caught_by(test_put_and_get.test_a_checkpoint_comes_back_as_it_was_given)
class GivesItsOwnFormat(Broken):
    def putting(self, config, checkpoint, metadata, new_versions):
        return config, {**checkpoint, "v": 4}, metadata, new_versions


@caught_by(test_put_and_get.test_configs_are_normal_and_leak_no_foreign_keys)
class ReturnsTheCallersConfig(Broken):
    def put(self, config, checkpoint, metadata, new_versions):
        stored = super().put(config, checkpoint, metadata, new_versions)
        return configured(config, **stored["configurable"])


@caught_by(test_put_and_get.test_no_namespace_is_the_root_in_every_method, shows=KeyError)
class PutNeedsANamespace(Broken):
    def putting(self, config, checkpoint, metadata, new_versions):
        assert isinstance(config["configurable"]["checkpoint_ns"], str)
        return config, checkpoint, metadata, new_versions


@caught_by(test_put_and_get.test_no_namespace_is_the_root_in_every_method, shows=KeyError)
class WritesNeedANamespace(Broken):
    def writing(self, config, writes, task_id, task_path):
        assert isinstance(config["configurable"]["checkpoint_ns"], str)
        return config, writes, task_id, task_path


@caught_by(test_thread_ids.test_an_int_is_its_decimal_text, shows=AttributeError)
class AnIntIsAnotherThread(Broken):
    def putting(self, config, checkpoint, metadata, new_versions):
        return self.typed(config), checkpoint, metadata, new_versions

    def get_tuple(self, config):
        return super().get_tuple(self.typed(config))

    def typed(self, config):
        return configured(config, thread_id=repr(config["configurable"]["thread_id"]))


@caught_by(
    test_optimistic.test_the_first_put_of_a_stale_writer_is_refused,
    test_optimistic.test_of_two_writers_that_start_a_thread_one_is_refused,
    test_optimistic.test_a_later_put_whose_head_moved_is_refused,
    test_optimistic.test_a_graph_whose_thread_was_moved_on_raises_stale_writer,
)
class LosesUpdates(Broken):
    """Two that continue one checkpoint both succeed, as in the stock savers."""

    def __init__(self, core, **options) -> None:
        super().__init__(core, **options)
        core.optimistic = False


@caught_by(test_optimistic.test_the_first_put_of_a_stale_writer_is_refused)
class SwallowsErrorsOfPut(Broken):
    def put(self, config, checkpoint, metadata, new_versions):
        try:
            return super().put(config, checkpoint, metadata, new_versions)
        except RuntimePersistError:
            return configured(config, checkpoint_id=checkpoint["id"])


@caught_by(test_optimistic.test_a_refused_invocation_writes_nothing_more)
class SwallowsErrorsOfWrites(Broken):
    def put_writes(self, config, writes, task_id, task_path=""):
        try:
            super().put_writes(config, writes, task_id, task_path)
        except RuntimePersistError:
            return


@caught_by(test_optimistic.test_a_refused_invocation_writes_nothing_more)
class ForgetsItsFailure(Broken):
    """Every write is judged alone: what follows a refused one goes through."""

    def put_writes(self, config, writes, task_id, task_path=""):
        super().put_writes(configured(config, __pregel_runtime=None), writes, task_id, task_path)


@caught_by(checks_values.a_clone_shares_what_its_saver_knows)
class ClonesKnowNothing(Broken):
    def with_allowlist(self, extra_allowlist):
        clone = super().with_allowlist(extra_allowlist)
        clone._core = type(self._core)(self.engine, owns_engine=False, optimistic=True)
        return clone


@caught_by(checks_values.versions_grow_as_text_and_are_never_given_twice)
class IntVersions(Broken):
    def get_next_version(self, current, channel):
        return 1 if current is None else int(str(current).split(".", maxsplit=1)[0]) + 1


@caught_by(checks_values.versions_grow_as_text_and_are_never_given_twice)
class VersionsOfForksAreEqual(Broken):
    def get_next_version(self, current, channel):
        return super().get_next_version(current, channel).split(".", maxsplit=1)[0]


@caught_by(checks_values.versions_grow_as_text_and_are_never_given_twice)
class VersionsAreNotPadded(Broken):
    def get_next_version(self, current, channel):
        return super().get_next_version(current, channel).lstrip("0")


@caught_by(checks_values.versions_grow_as_text_and_are_never_given_twice)
class VersionsStandStill(Broken):
    def get_next_version(self, current, channel):
        return super().get_next_version(None, channel)


@caught_by(checks_values.langgraph_sees_that_it_takes_a_task_path)
class HidesTheTaskPath(Broken):
    def put_writes(self, *args, **options):
        super().put_writes(*args, **options)
