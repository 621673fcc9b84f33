"""Savers whose history of DeltaChannels is broken."""

import functools

from langgraph.checkpoint.base import BaseCheckpointSaver

from runtime_persist.testing import delta_history
from tests.broken_savers import checks_upkeep
from tests.broken_savers.broken import Broken, caught_by, configured
from tests.support.way import ASYNC


def kit(check):
    """A check of the conformance kit's form, which knows async methods only."""

    @functools.wraps(check)
    async def asked(saver, way):
        await check(saver)

    return asked


def history_of(*checks, shows=None):
    return caught_by(*map(kit, checks), ways=(ASYNC,), shows=shows)


class _History(Broken):
    """Changes what the unbroken saver answers."""

    def get_delta_channel_history(self, *, config, channels):
        found = super().get_delta_channel_history(config=config, channels=channels)
        target = self.stored(config)
        return {channel: self.told(entry, channel, target) for channel, entry in found.items()}

    def told(self, entry, channel, target):
        raise NotImplementedError

    def above(self, target):
        """The ancestors, nearest first."""
        while target is not None and target.parent_config is not None:
            target = self.stored(target.parent_config)
            yield target


@history_of(delta_history.ancestors_writes_come_oldest_first, delta_history.a_long_chain_is_followed_to_its_end)
class NewestFirst(_History):
    def told(self, entry, channel, target):
        return {**entry, "writes": entry["writes"][::-1]}


@history_of(delta_history.the_targets_own_writes_are_left_out)
class CountsTheTargetsWrites(_History):
    def told(self, entry, channel, target):
        own = [write for write in target.pending_writes if write[1] == channel] if target else []
        return {**entry, "writes": [*entry["writes"], *own]}


@history_of(delta_history.the_targets_own_value_is_no_seed)
class TakesTheTargetsValue(_History):
    def told(self, entry, channel, target):
        values = target.checkpoint["channel_values"] if target else {}
        return {"writes": [], "seed": values[channel]} if channel in values else entry


@history_of(delta_history.the_nearest_stored_value_is_the_seed, delta_history.a_plain_value_is_a_seed_too)
class LeavesOutTheSeedsWrites(_History):
    def told(self, entry, channel, target):
        seeded = next((one for one in self.above(target) if channel in one.checkpoint["channel_values"]), None)
        own = seeded.pending_writes if seeded else []
        return {**entry, "writes": [write for write in entry["writes"] if write not in own]}


@history_of(delta_history.the_nearest_stored_value_is_the_seed, delta_history.each_channel_ends_at_its_own_seed)
class GoesBeyondTheSeed(_History):
    def told(self, entry, channel, target):
        before = [
            write for one in list(self.above(target))[::-1] for write in one.pending_writes if write[1] == channel
        ]
        return {**entry, "writes": before}


@history_of(delta_history.the_nearest_stored_value_is_the_seed)
class TakesTheFarthestSeed(_History):
    def told(self, entry, channel, target):
        seeds = [one.checkpoint["channel_values"] for one in self.above(target)]
        seeds = [values[channel] for values in seeds if channel in values]
        return {**entry, **({"seed": seeds[-1]} if seeds else {})}


@history_of(delta_history.the_nearest_stored_value_is_the_seed, delta_history.large_values_come_back)
class UnwrapsSnapshots(_History):
    def told(self, entry, channel, target):
        seed = entry.get("seed")
        return {**entry, "seed": seed.value} if hasattr(seed, "value") else entry


@history_of(delta_history.a_stored_none_is_a_seed)
class NoneIsNoSeed(_History):
    def told(self, entry, channel, target):
        return {"writes": entry["writes"]} if entry.get("seed") is None else entry


@history_of(delta_history.a_plain_value_is_a_seed_too)
class EmptyValuesAreNoSeeds(_History):
    def told(self, entry, channel, target):
        return entry if entry.get("seed") else {"writes": entry["writes"]}


@history_of(delta_history.without_a_stored_value_there_is_no_seed, delta_history.what_is_not_stored_has_no_history)
class AlwaysHasASeed(_History):
    def told(self, entry, channel, target):
        return {"seed": None, **entry}


@history_of(delta_history.a_new_version_without_a_value_ends_no_walk)
class StopsAtTheFirstAncestor(_History):
    def told(self, entry, channel, target):
        parent = next(self.above(target), None)
        return {"writes": [write for write in parent.pending_writes if write[1] == channel] if parent else []}


@history_of(delta_history.writes_of_one_checkpoint_are_in_the_order_of_their_tasks)
class HistoryByTaskId(_History):
    """The path is left out of the order."""

    def told(self, entry, channel, target):
        return {**entry, "writes": sorted(entry["writes"], key=lambda write: write[0])}


@history_of(delta_history.only_the_parent_chain_counts, delta_history.parents_are_followed_whatever_their_ids)
class HistoryByIds(Broken):
    """Takes all that is older by id for an ancestor."""

    def get_delta_channel_history(self, *, config, channels):
        target = self.stored(config)
        older = self.listed(configured(target.config, checkpoint_id=None), before=target.config) if target else []
        found = {}
        for channel in channels:
            entry = {"writes": []}
            for one in older:
                own = [write for write in one.pending_writes if write[1] == channel]
                entry["writes"][:0] = own
                if channel in one.checkpoint["channel_values"]:
                    entry["seed"] = one.checkpoint["channel_values"][channel]
                    break
            found[channel] = entry
        return found


@history_of(delta_history.each_channel_ends_at_its_own_seed)
class AllChannelsEndTogether(Broken):
    def get_delta_channel_history(self, *, config, channels):
        found = super().get_delta_channel_history(config=config, channels=channels)
        shortest = min((len(entry["writes"]) for entry in found.values() if "seed" in entry), default=None)
        return {c: {**entry, "writes": entry["writes"][-shortest:] if shortest else []} for c, entry in found.items()}


@history_of(delta_history.no_channels_have_no_history)
class NoChannelsAreAllChannels(Broken):
    def get_delta_channel_history(self, *, config, channels):
        return super().get_delta_channel_history(config=config, channels=channels or [delta_history.CHANNEL])


@history_of(delta_history.what_is_not_stored_has_no_history, shows=KeyError)
class LeavesOutEmptyHistories(Broken):
    def get_delta_channel_history(self, *, config, channels):
        found = super().get_delta_channel_history(config=config, channels=channels)
        return {channel: entry for channel, entry in found.items() if entry["writes"] or "seed" in entry}


@history_of(delta_history.no_checkpoint_id_means_the_latest)
class HistoryNeedsAnId(Broken):
    def get_delta_channel_history(self, *, config, channels):
        if not config["configurable"].get("checkpoint_id"):
            return {channel: {"writes": []} for channel in channels}
        return super().get_delta_channel_history(config=config, channels=channels)


@history_of(delta_history.threads_and_namespaces_do_not_mix)
class HistoryOfTheRoot(Broken):
    def get_delta_channel_history(self, *, config, channels):
        return super().get_delta_channel_history(config=configured(config, checkpoint_ns=""), channels=channels)


@history_of(delta_history.a_long_chain_is_followed_to_its_end)
class ReadsOnePage(_History):
    def told(self, entry, channel, target):
        return {**entry, "writes": entry["writes"][-128:]}


@history_of(delta_history.large_values_come_back)
class CutsLargeValues(_History):
    def told(self, entry, channel, target):
        cut = [
            (task, name, value[:30_000] if isinstance(value, str) else value) for task, name, value in entry["writes"]
        ]
        return {**entry, "writes": cut}


@caught_by(checks_upkeep.a_cycle_of_parents_ends, shows=RecursionError)
class WalksInCircles(Broken):
    """LangGraph's default, which goes round for ever; this one tells after a while."""

    def get_delta_channel_history(self, *, config, channels):
        return BaseCheckpointSaver.get_delta_channel_history(self, config=config, channels=channels)

    def shown(self, found):
        self.memory["reads"] = self.memory.get("reads", 0) + 1
        if self.memory["reads"] > 50:
            raise RecursionError
        return found
