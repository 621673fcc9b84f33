"""Real processes: some write what others collect at that very moment."""

import threading

from tests.support import programs
from tests.support.checkpoints import at
from tests.support.collecting import blobs, later, whole

BURSTS = 6


def test_two_processes_write_and_delete_while_others_collect_and_nothing_dangles(
    open_runtime, shared_url, raw_of, fork
):
    """All share content; every mark is a day old at once, so all that nobody refers to at a moment goes right then."""
    savers = [open_runtime().checkpointer for _ in range(2)]
    raw = raw_of(savers[0])
    pair = [fork(programs.sharer, shared_url, name, BURSTS) for name in ("one", "other")]
    done = []

    def collects(saver):
        done.append(saver.collect_content())

    for _ in range(BURSTS):
        for child in pair:
            child.until("ready")
            child.give_the_word()
        for _ in range(3):
            collecting = [threading.Thread(target=collects, args=(saver,)) for saver in savers]
            for thread in collecting:
                thread.start()
            for thread in collecting:
                thread.join()
            later(raw, 25)
        whole(savers[0])
    for child in pair:
        child.result()
    assert len(done) == 6 * BURSTS, "none of them failed"
    assert sum(one.removed for one in done) > 0
    whole(savers[0])
    savers[0].collect_content()
    later(raw, 25)
    savers[0].collect_content()
    whole(savers[0])
    assert savers[0].collect_content().scanned == len(blobs(raw))
    for name in ("one", "other"):
        values = savers[1].get_tuple(at(f"{name} kept {BURSTS - 1}")).checkpoint["channel_values"]
        assert len(values["shared"]) == 150 - (BURSTS - 1)
