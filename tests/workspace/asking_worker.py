"""``asking_worker.py FOLDER COUNT``: wait for a line, ask COUNT questions, print the IDs."""

from __future__ import annotations

import sys
from pathlib import Path

from lpf.workspace import Workspace


def main(folder: Path, count: int) -> None:
    with Workspace.open(folder) as workspace:
        workspace.orchestrator  # noqa: B018  opened before the start, so that all ask at once
        print("ready", flush=True)
        sys.stdin.readline()
        for number in range(count):
            result = workspace.query(f"C{number % 5:04d}", "level")
            print(result.audit_ptr, flush=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
