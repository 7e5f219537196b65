"""A program that sends messages for ever: ``python -m ... FILE``; tests kill it.

It prints a line of JSON for each epoch that it has stored: the epoch, and the ids of
the messages that it has sent since its start.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from connectors.storage.mvds import SqliteNodeStorage
from sds_core.mvds.node import Node
from tests.support.mvds.network import GROUP


def main() -> None:
    """Run until killed."""
    with SqliteNodeStorage(Path(sys.argv[1])) as storage:
        state = storage.load()
        if state is None:
            node = Node(b"alice")
            node.add_group(GROUP, [b"bob"])
            storage.store(node.snapshot())
        else:
            node = Node.restore(b"alice", state)
        node.record_changes()
        sent: list[str] = []
        while True:
            sent.append(node.append(GROUP, b"hello", node.epoch).hex())
            node.tick()
            changes = node.take_changes()
            assert changes is not None
            storage.store(changes)
            print(json.dumps({"epoch": node.epoch, "sent": sent}), flush=True)


if __name__ == "__main__":
    main()
