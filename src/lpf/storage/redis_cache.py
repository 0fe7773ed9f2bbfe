"""A cache in Redis, shared by processes and machines: one hash per item, one field per part."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any

from lpf.errors import CacheUnavailableError, ConfigError, StoreUnavailableError
from lpf.storage.cache import (
    DEFAULT_PREFIX,
    DEFAULT_TIMEOUT_SECONDS,
    DEFAULT_TTL_SECONDS,
    CacheStats,
)
from lpf.storage.values import without_password

log = logging.getLogger(__name__)

RETRY_SECONDS = 5.0


class CircuitBreaker:
    """Skips calls to a server that is down, so that it does not add a timeout to every question.

    After an outage one caller per ``retry_seconds`` is let through to see if the server is back.
    Each kind of failure is logged once per outage.
    """

    def __init__(
        self,
        name: str,
        retry_seconds: float = RETRY_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.failures = 0
        self._name = name
        self._retry_seconds = retry_seconds
        self._clock = clock
        self._blocked_until: float | None = None
        self._logged: set[type[Exception]] = set()
        self._lock = threading.Lock()

    def allows_call(self) -> bool:
        if self._blocked_until is None:
            return True
        with self._lock:
            until, now = self._blocked_until, self._clock()
            if until is None or now < until:
                return until is None
            self._blocked_until = now + self._retry_seconds  # other callers wait for this one
            return True

    def succeeded(self) -> None:
        if self._blocked_until is None:
            return
        with self._lock:
            self._blocked_until = None
            self._logged.clear()
        log.info("%s: the cache is available again.", self._name)

    def failed(self, error: Exception, *, outage: bool) -> None:
        """``outage`` is True if the server could not be reached, so that the next call would fail
        too."""
        with self._lock:
            self.failures += 1
            if outage:
                self._blocked_until = self._clock() + self._retry_seconds
            is_new = type(error) not in self._logged
            self._logged.add(type(error))
        if is_new:
            log.warning(
                "%s: the cache failed and is not used; questions take longer (%s: %s).",
                self._name,
                type(error).__name__,
                error,
            )


# Longer than any question that was in progress during an erasure.
REFUSED_SECONDS = 3600
ERASING_TIMEOUT_SECONDS = 5.0  # a question must not wait for Redis, an erasure may
CHECKSUM_BYTES = 8
BATCH = 256  # commands per round trip, so that no round trip takes as long as the timeout


class RedisCache:
    """Never delays or fails a question: if Redis does not answer in time, or with a wrong value,
    that is a miss. ``ttl_seconds`` counts from the last value stored for an item; None means no
    expiry."""

    def __init__(
        self,
        url: str,
        *,
        prefix: str = DEFAULT_PREFIX,
        ttl_seconds: int | None = DEFAULT_TTL_SECONDS,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
        retry_seconds: float = RETRY_SECONDS,
    ) -> None:
        _check_settings(ttl_seconds, timeout_seconds)
        self.name = without_password(url)
        self._errors, self._client = _client(url, timeout_seconds)
        _, self._erasing = _client(url, max(timeout_seconds, ERASING_TIMEOUT_SECONDS))
        self._prefix = f"{prefix}:".encode()
        self._ttl_seconds = ttl_seconds
        self._breaker = CircuitBreaker(self.name, retry_seconds)
        self._lock = threading.Lock()
        self._hits = self._misses = 0

    def get_many(self, items: Sequence[bytes], part: bytes) -> list[bytes | None]:
        def add_gets(pipeline: Any, start: int) -> None:
            for item in items[start : start + BATCH]:
                pipeline.hget(self._prefix + item, part)

        replies = self._replies(len(items), add_gets, transaction=False)
        found: list[bytes | None] = [None] * len(items)
        for place, reply in enumerate(replies):
            found[place] = _checked_value(items[place], part, reply)
        self._count(found)
        return found

    def put_many(self, items: Sequence[bytes], part: bytes, values: Sequence[bytes]) -> None:
        pairs = list(zip(items, values, strict=True))

        def add_puts(pipeline: Any, start: int) -> None:
            for item, value in pairs[start : start + BATCH]:
                pipeline.hset(self._prefix + item, part, _checksum(item, part, value) + value)
                if self._ttl_seconds is not None:
                    pipeline.expire(self._prefix + item, self._ttl_seconds)

        # In a transaction, so that no value is stored without its expiry.
        self._replies(len(pairs), add_puts, transaction=True)

    def forget(self, item: bytes) -> None:
        with self._raising("the item"):
            # A string in place of the hash: until it expires, Redis itself rejects HSET here.
            self._erasing.set(self._prefix + item, b"erased", ex=REFUSED_SECONDS)

    def clear(self) -> None:
        with self._raising("the content"):
            pattern = b"".join(_escaped(byte) for byte in self._prefix) + b"*"
            for keys in _batched(self._erasing.scan_iter(pattern, count=1000)):
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
        """The replies to ``count`` requests; fewer if Redis stops answering."""
        replies: list[Any] = []
        try:
            for start in range(0, count, BATCH):
                if not self._breaker.allows_call():
                    break
                pipeline = self._client.pipeline(transaction=transaction)
                fill(pipeline, start)
                replies += pipeline.execute(raise_on_error=False)
                self._breaker.succeeded()
        except (self._errors.RedisError, OSError) as error:
            refused = isinstance(error, self._errors.ResponseError)
            self._breaker.failed(error, outage=not refused)
        for reply in replies:
            if isinstance(reply, Exception):  # one request failed, such as a key of another type
                self._breaker.failed(reply, outage=False)
        return replies

    @contextmanager
    def _raising(self, what: str) -> Iterator[None]:
        try:
            yield
        except (self._errors.RedisError, OSError) as error:
            raise CacheUnavailableError(
                f"{self.name}: {what} was not completely removed from the shared cache (Redis "
                f"error: {error}). Try again when Redis is available."
            ) from error

    def _count(self, found: list[bytes | None]) -> None:
        misses = found.count(None)
        with self._lock:
            self._misses += misses
            self._hits += len(found) - misses


def _client(url: str, timeout_seconds: float) -> tuple[Any, Any]:
    """The error module and a client. redis is an optional package, so it is imported here."""
    try:
        import redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry
    except ModuleNotFoundError as error:
        raise StoreUnavailableError(
            "a Redis cache needs the package redis.",
            hint="Install it with pip install 'lpf[redis]'.",
        ) from error
    try:
        client = redis.Redis.from_url(
            url,
            socket_timeout=timeout_seconds,
            socket_connect_timeout=timeout_seconds,
            retry=Retry(NoBackoff(), 0),  # the default retries take seconds
        )
    except ValueError:
        # The error's text may quote a part of the password, so it is neither shown nor chained.
        raise ConfigError(
            f"{without_password(url)} is not a valid address of a Redis server.",
            field="cache.url",
            hint="In user name and password write / as %2F, # as %23, @ as %40 and ? as %3F; the "
            "port must be a number up to 65535.",
        ) from None
    return redis.exceptions, client


def _check_settings(ttl_seconds: int | None, timeout_seconds: float) -> None:
    if ttl_seconds is not None and ttl_seconds < 1:
        raise ConfigError(f"must be 1 or more, got {ttl_seconds}.", field="cache.ttl_seconds")
    if timeout_seconds <= 0:
        raise ConfigError(f"must be above 0, got {timeout_seconds}.", field="cache.timeout_seconds")


def _checksum(item: bytes, part: bytes, value: bytes) -> bytes:
    """Detects values that are truncated, stored under another key or written by another program."""
    digest = blake2b(len(part).to_bytes(8, "big"), digest_size=CHECKSUM_BYTES, key=item[:64])
    digest.update(part)
    digest.update(value)
    return digest.digest()


def _checked_value(item: bytes, part: bytes, reply: object) -> bytes | None:
    if not isinstance(reply, bytes):
        return None
    checksum, value = reply[:CHECKSUM_BYTES], reply[CHECKSUM_BYTES:]
    return value if checksum == _checksum(item, part, value) else None


def _escaped(byte: int) -> bytes:
    """A byte escaped so that a Redis pattern matches it literally."""
    return b"\\" + bytes([byte]) if byte in b"*?[]\\^-" else bytes([byte])


def _batched(keys: Iterator[bytes]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    for key in keys:
        batch.append(key)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch
