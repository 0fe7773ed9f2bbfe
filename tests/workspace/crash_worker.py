"""A process that works on a workspace until it is killed.

``python crash_worker.py FOLDER SECONDS``: a mother that has everything loaded and forks a child for
each line it reads (a seed), so that a kill costs milliseconds and not an interpreter's start. The
child says on standard output what was acknowledged to it, a line each, written in one go; the
mother says ``gone`` when it is dead.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from hash_reader import HashReader
from lpf.ledger.records import Draft
from lpf.reading import ReadRequest
from lpf.workspace import Workspace

ITEMS = 12


def say(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def work(folder: Path, seed: int, started: int) -> None:
    workspace = Workspace.open(folder)
    workspace.__dict__["reader"] = HashReader()
    jobs = [ingest, ask, append]
    random.Random(seed).shuffle(jobs)
    say("ready")
    os.write(started, b".")
    while True:
        for job in jobs:
            job(workspace, folder, seed)


def ingest(workspace: Workspace, folder: Path, seed: int) -> None:
    """A file of its own, in small batches; what the store has when it returns is acknowledged."""
    path = folder.parent / f"evidence-{seed % 40}.csv"
    workspace.ingest(path, batch=3)
    for item in range(ITEMS):
        say("evidence", f"X{seed % 40:03d}_E{item:03d}")


def ask(workspace: Workspace, folder: Path, seed: int) -> None:
    for number in range(4):
        result = workspace.query(f"C{(seed + number) % 5:04d}", "level")
        say("record", result.audit_ptr, repr(result.confidence))


def append(workspace: Workspace, folder: Path, seed: int) -> None:
    """From four threads, which share commits."""

    def one(number: int) -> None:
        mark = f"{seed}-{number}-{time.monotonic_ns()}"
        receipt = workspace.ledger.append(Draft({"mark": mark}))
        say("mark", receipt.record_id, mark)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def kill_at_random(child: int, seed: int, started: int, longest: float) -> None:
    """Mostly while it works; one time in ten perhaps while it opens the workspace."""
    if seed % 10:
        os.read(started, 1)
    time.sleep(random.Random(seed).random() * longest)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def run_child(folder: Path, seed: int, started: int) -> None:
    try:
        work(folder, seed, started)
    except BaseException as error:
        say("failed", repr(error))
        os._exit(1)


def main(folder: Path, longest: float) -> None:
    HashReader().read_many([ReadRequest("warm")])
    for line in sys.stdin:
        seed = int(line)
        reading_end, writing_end = os.pipe()
        child = os.fork()
        if child == 0:
            run_child(folder, seed, writing_end)
        kill_at_random(child, seed, reading_end, longest)
        os.close(reading_end)
        os.close(writing_end)
        say("gone", seed)


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]))
