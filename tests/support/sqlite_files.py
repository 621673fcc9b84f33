"""Looking at a SQLite file with a connection of one's own."""

import sqlite3


def integrity(path):
    """What SQLite says of the file: ``ok``, or what is damaged."""
    connection = sqlite3.connect(path)
    (found,) = connection.execute("PRAGMA integrity_check").fetchone()
    connection.close()
    return found


def checkpoint_ids(path):
    """The ids of all checkpoints in the file, in order."""
    connection = sqlite3.connect(path)
    found = [row[0] for row in connection.execute("SELECT checkpoint_id FROM rp_checkpoints")]
    connection.close()
    return sorted(found)
