"""The cache that processes and machines share: Redis, one hash an item and one field a part.

When to leave a server alone: one that is down must not add a timeout to every question.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any
from urllib.parse import urlsplit

from lpf.errors import CacheUnavailableError, ConfigError, StoreUnavailableError
from lpf.storage.cache import (
    DEFAULT_PREFIX,
    DEFAULT_TIMEOUT_SECONDS,
    DEFAULT_TTL_SECONDS,
    CacheStats,
)

log = logging.getLogger(__name__)

REST_SECONDS = 5.0


class Breaker:
    """Counts failures, says each kind of them once, and after an outage lets one caller a rest
    try whether the server is back."""

    def __init__(
        self,
        name: str,
        rest_seconds: float = REST_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.failures = 0
        self._name = name
        self._rest_seconds = rest_seconds
        self._clock = clock
        self._resting_until: float | None = None
        self._said: set[type[Exception]] = set()
        self._lock = threading.Lock()

    def lets_through(self) -> bool:
        if self._resting_until is None:
            return True
        with self._lock:
            until, now = self._resting_until, self._clock()
            if until is None or now < until:
                return until is None
            self._resting_until = now + self._rest_seconds  # the others rest on meanwhile
            return True

    def succeeded(self) -> None:
        if self._resting_until is None:
            return
        with self._lock:
            self._resting_until = None
            self._said.clear()
        log.info("%s: answers again.", self._name)

    def failed(self, error: Exception, *, outage: bool) -> None:
        """``outage``: the server could not be reached at all, so the next call would fail too."""
        with self._lock:
            self.failures += 1
            if outage:
                self._resting_until = self._clock() + self._rest_seconds
            fresh = type(error) not in self._said
            self._said.add(type(error))
        if fresh:
            log.warning(
                "%s: the cache failed and is done without, questions take longer (%s: %s).",
                self._name,
                type(error).__name__,
                error,
            )


# How long a question that was under way during an erasure may take.
REFUSED_SECONDS = 3600
ERASING_TIMEOUT_SECONDS = 5.0  # a question may not wait for Redis, an erasure may
SEAL_BYTES = 8
BATCH = 256  # commands a round trip, so that no single one takes as long as the timeout


class RedisCache:
    """Never stands in the way of a question: what Redis does not answer, in time and soundly, is a
    miss. ``ttl_seconds`` counts from the last value put for an item; None keeps it for good."""

    def __init__(
        self,
        url: str,
        *,
        prefix: str = DEFAULT_PREFIX,
        ttl_seconds: int | None = DEFAULT_TTL_SECONDS,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
        rest_seconds: float = REST_SECONDS,
    ) -> None:
        _check_settings(ttl_seconds, timeout_seconds)
        self.name = _without_password(url)
        self._errors, self._client = _client(url, timeout_seconds)
        _, self._erasing = _client(url, max(timeout_seconds, ERASING_TIMEOUT_SECONDS))
        self._prefix = f"{prefix}:".encode()
        self._ttl_seconds = ttl_seconds
        self._breaker = Breaker(self.name, rest_seconds)
        self._lock = threading.Lock()
        self._hits = self._misses = 0

    def get_many(self, items: Sequence[bytes], part: bytes) -> list[bytes | None]:
        def ask(pipeline: Any, start: int) -> None:
            for item in items[start : start + BATCH]:
                pipeline.hget(self._prefix + item, part)

        replies = self._replies(len(items), ask, transaction=False)
        found: list[bytes | None] = [None] * len(items)
        for place, reply in enumerate(replies):
            found[place] = _unsealed(items[place], part, reply)
        self._count(found)
        return found

    def put_many(self, items: Sequence[bytes], part: bytes, values: Sequence[bytes]) -> None:
        pairs = list(zip(items, values, strict=True))

        def tell(pipeline: Any, start: int) -> None:
            for item, value in pairs[start : start + BATCH]:
                pipeline.hset(self._prefix + item, part, _sealed(item, part, value))
                if self._ttl_seconds is not None:
                    pipeline.expire(self._prefix + item, self._ttl_seconds)

        # In a transaction, so that no value is left without its time to live.
        self._replies(len(pairs), tell, transaction=True)

    def forget(self, item: bytes) -> None:
        with self._insisting("what was computed from the item"):
            # A text in place of the hash: for a while Redis itself refuses to put values back.
            self._erasing.set(self._prefix + item, b"erased", ex=REFUSED_SECONDS)

    def clear(self) -> None:
        with self._insisting("what it keeps"):
            pattern = b"".join(_literally(byte) for byte in self._prefix) + b"*"
            for keys in _in_batches(self._erasing.scan_iter(pattern, count=1000)):
                self._erasing.unlink(*keys)

    def stats(self) -> CacheStats:
        with self._lock:
            return CacheStats("redis", self._hits, self._misses, failures=self._breaker.failures)

    def close(self) -> None:
        self._client.close()
        self._erasing.close()

    def _replies(
        self, count: int, fill: Callable[[Any, int], None], *, transaction: bool
    ) -> list[Any]:
        """What Redis says to ``count`` requests; as far as it went where it stopped answering."""
        replies: list[Any] = []
        try:
            for start in range(0, count, BATCH):
                if not self._breaker.lets_through():
                    break
                pipeline = self._client.pipeline(transaction=transaction)
                fill(pipeline, start)
                replies += pipeline.execute(raise_on_error=False)
                self._breaker.succeeded()
        except (self._errors.RedisError, OSError) as error:
            refused = isinstance(error, self._errors.ResponseError)
            self._breaker.failed(error, outage=not refused)
        for reply in replies:
            if isinstance(reply, Exception):  # one request was refused: a foreign key, say
                self._breaker.failed(reply, outage=False)
        return replies

    @contextmanager
    def _insisting(self, what: str) -> Iterator[None]:
        try:
            yield
        except (self._errors.RedisError, OSError) as error:
            raise CacheUnavailableError(
                f"{self.name}: {what} was not removed from the shared cache, or not all of it. "
                f"Repeat it when Redis answers (it says: {error})."
            ) from error

    def _count(self, found: list[bytes | None]) -> None:
        misses = found.count(None)
        with self._lock:
            self._misses += misses
            self._hits += len(found) - misses


def _client(url: str, timeout_seconds: float) -> tuple[Any, Any]:
    """The package's errors and a client. The package is an extra, so it is imported only here."""
    try:
        import redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry
    except ModuleNotFoundError as error:
        raise StoreUnavailableError(
            "a Redis cache needs the package redis: pip install 'lpf[redis]'."
        ) from error
    try:
        client = redis.Redis.from_url(
            url,
            socket_timeout=timeout_seconds,
            socket_connect_timeout=timeout_seconds,
            retry=Retry(NoBackoff(), 0),  # the package's own retries take seconds
        )
    except ValueError as error:
        raise ConfigError(f"cache.url: {_without_password(url)}: {error}.") from error
    return redis.exceptions, client


def _check_settings(ttl_seconds: int | None, timeout_seconds: float) -> None:
    if ttl_seconds is not None and ttl_seconds < 1:
        raise ConfigError(f"cache.ttl_seconds: must be 1 or more, got {ttl_seconds}.")
    if timeout_seconds <= 0:
        raise ConfigError(f"cache.timeout_seconds: must be above 0, got {timeout_seconds}.")


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _seal(item: bytes, part: bytes, value: bytes) -> bytes:
    """Binds a value to its place: cut short, swapped or another program's, it does not fit."""
    digest = blake2b(len(part).to_bytes(8, "big"), digest_size=SEAL_BYTES, key=item[:64])
    digest.update(part)
    digest.update(value)
    return digest.digest()


def _sealed(item: bytes, part: bytes, value: bytes) -> bytes:
    return _seal(item, part, value) + value


def _unsealed(item: bytes, part: bytes, reply: object) -> bytes | None:
    if not isinstance(reply, bytes):
        return None
    seal, value = reply[:SEAL_BYTES], reply[SEAL_BYTES:]
    return value if seal == _seal(item, part, value) else None


def _literally(byte: int) -> bytes:
    """A byte of a pattern that stands for itself."""
    return b"\\" + bytes([byte]) if byte in b"*?[]\\^-" else bytes([byte])


def _in_batches(keys: Iterator[bytes]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    for key in keys:
        batch.append(key)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch
