"""Savers whose deleting, copying or pruning is broken."""

from runtime_persist.adapters.workflow import upkeep
from tests.broken_savers import checks_upkeep
from tests.broken_savers.broken import Broken, caught_by, configured, patched, place
from tests.saver import test_writes


class _Hides(Broken):
    """Makes rows unreadable instead of deleting them: what a fault left or took is seen the same."""

    def hide(self, found):
        self.memory.setdefault("hidden", set()).update(map(place, found))

    def shown(self, found):
        return None if place(found) in self.memory.get("hidden", ()) else found

    def in_thread(self, thread_id, **options):
        return self.listed({"configurable": {"thread_id": thread_id}}, **options)


# --- deleting -----------------------------------------------------------------------------------------------------


@caught_by(test_writes.test_deleting_a_thread_takes_all_of_it_and_nothing_else)
class DeletesTheRootOnly(_Hides):
    def delete_thread(self, thread_id):
        self.hide(self.listed({"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}))


@caught_by(test_writes.test_deleting_a_thread_takes_all_of_it_and_nothing_else, shows=AttributeError)
class DeletesOtherThreadsToo(Broken):
    def delete_thread(self, thread_id):
        for found in self.listed():
            super().delete_thread(found.config["configurable"]["thread_id"])


@caught_by(test_writes.test_a_deleted_thread_begins_anew, shows=RuntimeError)
class ADeletedThreadIsDead(Broken):
    def delete_thread(self, thread_id):
        super().delete_thread(thread_id)
        self.memory["dead"] = thread_id

    def putting(self, config, checkpoint, metadata, new_versions):
        if config["configurable"]["thread_id"] == self.memory.get("dead"):
            msg = "the thread was deleted"
            raise RuntimeError(msg)
        return config, checkpoint, metadata, new_versions


BY_RUN = checks_upkeep.deleting_by_run_takes_its_checkpoints_everywhere_and_nothing_else


@caught_by(BY_RUN)
class DeletesNoRuns(Broken):
    def delete_for_runs(self, run_ids):
        return None


@caught_by(BY_RUN)
class DeletesRunsInTheRootOnly(_Hides):
    def delete_for_runs(self, run_ids):
        self.hide([one for one in self.listed() if one.metadata["run_id"] in run_ids and not place(one)[1]])


@caught_by(BY_RUN)
class DeletesTheFirstRunOnly(Broken):
    def delete_for_runs(self, run_ids):
        super().delete_for_runs(run_ids[:1])


@caught_by(BY_RUN)
class DeletesThreadsOfRuns(Broken):
    def delete_for_runs(self, run_ids):
        for found in self.listed():
            if found.metadata["run_id"] in run_ids:
                self.delete_thread(found.config["configurable"]["thread_id"])


@caught_by(BY_RUN)
class NoRunsAreAllRuns(Broken):
    def delete_for_runs(self, run_ids):
        super().delete_for_runs(run_ids or [found.metadata["run_id"] for found in self.listed()])


# --- copying ------------------------------------------------------------------------------------------------------

WHOLE, ALONE = checks_upkeep.a_copy_has_all_of_its_source, checks_upkeep.a_copy_lives_on_its_own


class _Copies(Broken):
    """Copies by reading and putting, oldest first."""

    def copy_thread(self, source_thread_id, target_thread_id):
        for found in self.listed({"configurable": {"thread_id": source_thread_id}})[::-1]:
            there = configured(found.config, thread_id=target_thread_id)
            parent = place(found.parent_config)[2] if found.parent_config else None
            self.copied(found, there, configured(there, checkpoint_id=parent))

    def copied(self, found, there, below):
        self.put(below, found.checkpoint, found.metadata, found.checkpoint["channel_versions"])
        for task, channel, value in found.pending_writes:
            self.put_writes(there, [(channel, value)], task)


@caught_by(WHOLE)
class CopiesWithoutWrites(_Copies):
    def copied(self, found, there, below):
        super().copied(found._replace(pending_writes=[]), there, below)


@caught_by(WHOLE)
class CopiesWithoutParents(_Copies):
    def copied(self, found, there, below):
        super().copied(found, there, configured(below, checkpoint_id=None))


@caught_by(WHOLE)
class CopiesWithoutMetadata(_Copies):
    def copied(self, found, there, below):
        super().copied(found._replace(metadata={}), there, below)


@caught_by(WHOLE)
class CopiesTheRootOnly(_Copies):
    def copied(self, found, there, below):
        if not place(found)[1]:
            super().copied(found, there, below)


@caught_by(WHOLE)
class CopiesTheLatestOnly(_Copies):
    def copy_thread(self, source_thread_id, target_thread_id):
        super().copy_thread(source_thread_id, target_thread_id)
        super().prune([target_thread_id])


@caught_by(WHOLE)
class CopiesUnderNewIds(_Copies):
    def copied(self, found, there, below):
        super().copied(
            found._replace(checkpoint={**found.checkpoint, "id": found.checkpoint["id"] + "c"}), there, below
        )


@caught_by(WHOLE)
class MovesInsteadOfCopying(Broken):
    def copy_thread(self, source_thread_id, target_thread_id):
        super().copy_thread(source_thread_id, target_thread_id)
        self.delete_thread(source_thread_id)


@caught_by(ALONE)
class CopiesByName(Broken):
    """The copy is another name of its source."""

    def copy_thread(self, source_thread_id, target_thread_id):
        self.memory[target_thread_id] = source_thread_id

    def list(self, config, **options):
        if config and config["configurable"].get("thread_id") in self.memory:
            config = configured(config, thread_id=self.memory[config["configurable"]["thread_id"]])
        return super().list(config, **options)


@caught_by(ALONE)
class CopiesShareContentThatGoes(_Hides):
    """The content of a copy is the source's, and goes with it."""

    def copy_thread(self, source_thread_id, target_thread_id):
        super().copy_thread(source_thread_id, target_thread_id)
        self.memory["source"], self.memory["copies"] = source_thread_id, self.in_thread(target_thread_id)

    def delete_thread(self, thread_id):
        super().delete_thread(thread_id)
        if thread_id == self.memory["source"]:
            self.hide(self.memory["copies"])


# --- pruning ------------------------------------------------------------------------------------------------------

KEEPS = checks_upkeep.pruning_keeps_the_newest_of_each_namespace_whole


@caught_by(KEEPS)
class PrunesNothing(Broken):
    def prune(self, thread_ids, *, strategy="keep_latest"):
        if strategy == "delete":
            super().prune(thread_ids, strategy=strategy)


@caught_by(KEEPS)
class PrunesTheFirstThreadOnly(Broken):
    def prune(self, thread_ids, *, strategy="keep_latest"):
        super().prune(thread_ids[1:], strategy=strategy)


@caught_by(KEEPS)
class PrunesTheRootOnly(_Hides):
    def prune(self, thread_ids, *, strategy="keep_latest"):
        for thread_id in thread_ids:
            self.hide([found for found in self.in_thread(thread_id) if not place(found)[1]][1:])


@caught_by(KEEPS)
class KeepsTheLatestOfTheThread(_Hides):
    """One for all namespaces."""

    def prune(self, thread_ids, *, strategy="keep_latest"):
        for thread_id in thread_ids:
            self.hide(self.in_thread(thread_id)[1:])


@caught_by(KEEPS)
class KeepsTheOldest(_Hides):
    def prune(self, thread_ids, *, strategy="keep_latest"):
        for thread_id in thread_ids:
            found = self.in_thread(thread_id)
            oldest = {place(one)[1]: place(one) for one in found}
            self.hide([one for one in found if oldest[place(one)[1]] != place(one)])


@caught_by(KEEPS)
class PrunesEveryThread(Broken):
    def prune(self, thread_ids, *, strategy="keep_latest"):
        every = {found.config["configurable"]["thread_id"] for found in self.listed()}
        super().prune(sorted(every), strategy=strategy)


@caught_by(KEEPS)
class PrunesTheWritesToo(Broken):
    def prune(self, thread_ids, *, strategy="keep_latest"):
        super().prune(thread_ids, strategy=strategy)
        self.memory["pruned"] = True

    def shown(self, found):
        return found._replace(pending_writes=[]) if self.memory else found


@caught_by(KEEPS)
class LeavesAParentThatIsGone(Broken):
    def prune(self, thread_ids, *, strategy="keep_latest"):
        self.memory.update({place(found): found.parent_config for found in self.listed()})
        super().prune(thread_ids, strategy=strategy)

    def shown(self, found):
        return found._replace(parent_config=self.memory.get(place(found), found.parent_config))


@caught_by(checks_upkeep.a_pruned_thread_goes_on)
class PrunesCarriedValues(Broken):
    """Takes the content that a pruned checkpoint brought, although the newest one carries it on."""

    def prune(self, thread_ids, *, strategy="keep_latest"):
        super().prune(thread_ids, strategy=strategy)
        self.memory["pruned"] = True

    def shown(self, found):
        if self.memory:
            found.checkpoint["channel_values"].pop("carried", None)
        return found


@caught_by(checks_upkeep.pruning_with_delete_leaves_nothing)
class DeleteKeepsTheLatest(Broken):
    def prune(self, thread_ids, *, strategy="keep_latest"):
        super().prune(thread_ids)


@caught_by(checks_upkeep.a_text_instead_of_a_list_of_threads_is_refused)
class TakesATextForAList(Broken):
    def prune(self, thread_ids, *, strategy="keep_latest"):
        super().prune(list(thread_ids), strategy=strategy)


@caught_by(checks_upkeep.an_unknown_strategy_is_refused_before_anything_changes)
class AnUnknownStrategyDeletes(Broken):
    def prune(self, thread_ids, *, strategy="keep_latest"):
        super().prune(thread_ids, strategy=strategy if strategy == "keep_latest" else "delete")


@caught_by(checks_upkeep.an_unknown_strategy_is_refused_before_anything_changes)
class RefusesAStrategyTooLate(Broken):
    def prune(self, thread_ids, *, strategy="keep_latest"):
        super().prune(thread_ids)
        super().prune(thread_ids, strategy=strategy)


CALLS = checks_upkeep.pruning_takes_a_subgraph_call_with_the_root_it_started_from


@caught_by(CALLS)
class KeepsEverySubgraphCall(Broken):
    def prune(self, thread_ids, *, strategy="keep_latest"):
        with patched(upkeep._Choice, "_stays", lambda *_: True):
            super().prune(thread_ids, strategy=strategy)


@caught_by(CALLS)
class TakesEverySubgraphCall(_Hides):
    def prune(self, thread_ids, *, strategy="keep_latest"):
        super().prune(thread_ids, strategy=strategy)
        self.hide([found for found in self.listed() if ":" in place(found)[1]])


@caught_by(CALLS)
class TakesASubgraphsOwnMemory(_Hides):
    def prune(self, thread_ids, *, strategy="keep_latest"):
        super().prune(thread_ids, strategy=strategy)
        self.hide([found for found in self.listed() if place(found)[1] == "own"])


@caught_by(checks_upkeep.pruning_keeps_writes_that_came_before_their_checkpoint)
class PrunesEarlyWrites(Broken):
    """Deletes all writes but those of the checkpoints it keeps."""

    def writing(self, config, writes, task_id, task_path):
        if self.stored(config) is None:
            self.memory[place(config)] = "early"
        return config, writes, task_id, task_path

    def prune(self, thread_ids, *, strategy="keep_latest"):
        super().prune(thread_ids, strategy=strategy)
        self.memory.update(dict.fromkeys(self.memory, "pruned"))

    def shown(self, found):
        return found._replace(pending_writes=[]) if self.memory.get(place(found)) == "pruned" else found


HISTORY = checks_upkeep.pruning_keeps_the_history_a_delta_channel_is_made_of


@caught_by(HISTORY, checks_upkeep.pruning_keeps_the_sends_of_an_old_head)
class PrunesHistory(Broken):
    """Keeps the head alone, whatever its channels are made of."""

    def prune(self, thread_ids, *, strategy="keep_latest"):
        with patched(upkeep._Choice, "_history", lambda *_: None):
            super().prune(thread_ids, strategy=strategy)


@caught_by(HISTORY)
class ShowsHistoryThatIsKept(Broken):
    """What stays only as history is still listed."""

    def prune(self, thread_ids, *, strategy="keep_latest"):
        return None
