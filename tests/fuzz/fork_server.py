"""Runs lpf on a pseudo-terminal, each command in a process forked from one that has imported it.

``ForkServer`` starts this file as a process; a command then costs a fork, not an import.
"""

from __future__ import annotations

import base64
import json
import os
import pty
import resource
import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MOST_ADDRESS_SPACE = 8 << 30  # so that a blow-up ends the command, not the machine
MOST_SECONDS = 120


@dataclass(frozen=True)
class Ended:
    """How a command ended: exit code (negative: killed by this signal), all it printed, and the
    most memory it held, in bytes."""

    code: int
    output: bytes
    memory: int

    @property
    def text(self) -> str:
        return self.output.decode("utf-8", "replace")


class ForkServer:
    """The other process. Use it in a ``with`` block."""

    def __enter__(self) -> ForkServer:
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "100", "TERM": "xterm-256color"},
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def run(self, *words: object, folder: Path | None = None) -> Ended:
        """``lpf WORDS`` in ``folder``. Words may hold any bytes but NUL, as surrogates."""
        raw = [base64.b64encode(os.fsencode(str(word))).decode() for word in words]
        request = json.dumps({"words": raw, "folder": str(folder or Path.cwd())})
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(request.encode() + b"\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        return Ended(answer["code"], base64.b64decode(answer["output"]), answer["memory"])


def _serve() -> None:
    # Imported here, not started: a child must find no threads and no open files.
    import lpf.cli.main
    import lpf.index.search
    import lpf.ingest
    import lpf.ledger.verifier
    import lpf.workspace  # noqa: F401

    for line in sys.stdin:
        request = json.loads(line)
        words = [os.fsdecode(base64.b64decode(word)) for word in request["words"]]
        print(json.dumps(_run(words, request["folder"])), flush=True)


def _run(words: list[str], folder: str) -> dict[str, Any]:
    child, terminal = pty.fork()
    if child == 0:
        _become_command(words, folder)
    output = _read_all(child, terminal)
    _, status, usage = os.wait4(child, 0)
    return {
        "code": os.waitstatus_to_exitcode(status),
        "output": base64.b64encode(output).decode(),
        "memory": usage.ru_maxrss * 1024,
    }


def _become_command(words: list[str], folder: str) -> None:
    code = 70
    try:
        resource.setrlimit(resource.RLIMIT_AS, (MOST_ADDRESS_SPACE, MOST_ADDRESS_SPACE))
        sys.stdin, sys.stdout, sys.stderr = (
            open(number, mode, closefd=False)  # noqa: SIM115 - the child's own streams
            for number, mode in ((0, "r"), (1, "w"), (2, "w"))
        )
        os.chdir(folder)
        sys.argv = ["lpf", *words]
        from lpf.cli.main import app

        try:
            app()
            code = 0
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _read_all(child: int, terminal: int) -> bytes:
    """Until the command closes the terminal. One that takes too long is killed."""
    parts: list[bytes] = []
    deadline = time.monotonic() + MOST_SECONDS
    while True:
        ready, _, _ = select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            os.kill(child, signal.SIGKILL)
            break
        try:
            part = os.read(terminal, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        parts.append(part)
    os.close(terminal)
    return b"".join(parts)


if __name__ == "__main__":
    _serve()
