"""A node that runs membership alone, as a process: prints its address, then whom it takes to run.

python -m tests.runtime.member_process FOLDER LISTEN [CONTACT …]
"""

import json
import sys
import time
from pathlib import Path

from tests.runtime.cluster import QUICK, Node

from thalweg.overlay.membership import Join, Membership
from thalweg.overlay.stack import Stack


def main(folder, listen, *contacts):
    node = Node(Path(folder), lambda: Stack([Membership(QUICK)]), listen=listen)
    node.start()
    if contacts:
        node.driver.call("membership", Join(contacts)).result(10)
    while True:
        seen = {
            "address": node.address,
            "up": sorted(node.up()),
            "lives": node.driver.health().lives,
        }
        sys.stdout.write(json.dumps(seen) + "\n")
        sys.stdout.flush()
        time.sleep(0.05)


if __name__ == "__main__":
    main(*sys.argv[1:])
