"""The contract of every cache, and how the Redis cache handles failures."""

from __future__ import annotations

import logging
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from lpf.errors import CacheUnavailableError, ConfigError, StoreUnavailableError
from lpf.storage.cache import Cache, CacheStats, MemoryCache, NoCache, TieredCache, open_cache
from lpf.storage.redis_cache import CircuitBreaker, RedisCache
from servers import RedisServer

ITEM, OTHER = b"i" * 16, b"o" * 16
PART, ANOTHER = b"factor/v1", b"posterior/v1"
BINARY = bytes(range(256))
RETRY = 0.5
TIMEOUT = 0.2  # longer than the default: the test machine may be busy


def redis_cache(server: RedisServer) -> RedisCache:
    prefix = f"test-{os.getpid()}"
    return RedisCache(server.url, prefix=prefix, timeout_seconds=TIMEOUT, retry_seconds=RETRY)


BUILDERS: dict[str, Callable[[RedisServer], Cache]] = {
    "memory": lambda server: MemoryCache(),
    "redis": redis_cache,
    "tiered": lambda server: TieredCache(MemoryCache(), redis_cache(server)),
    "off": lambda server: NoCache(),
}


@pytest.fixture(params=BUILDERS)
def cache(request: pytest.FixtureRequest, redis_server: RedisServer) -> Iterator[Cache]:
    opened = BUILDERS[request.param](redis_server)
    yield opened
    opened.clear()
    opened.close()


@pytest.fixture(params=[kind for kind in BUILDERS if kind != "off"])
def storing(request: pytest.FixtureRequest, redis_server: RedisServer) -> Iterator[Cache]:
    """All caches that store values."""
    opened = BUILDERS[request.param](redis_server)
    yield opened
    opened.clear()
    opened.close()


@pytest.fixture
def shared(redis_server: RedisServer) -> Iterator[RedisCache]:
    opened = redis_cache(redis_server)
    yield opened
    redis_server.resume()
    redis_server.stop()
    redis_server.start()
    opened.close()


@pytest.mark.parametrize("kind", BUILDERS)
def test_each_kind_is_a_cache(kind: str, redis_server: RedisServer) -> None:
    assert isinstance(BUILDERS[kind](redis_server), Cache)


def test_unknown_items_are_misses(cache: Cache) -> None:
    assert cache.get_many([ITEM, OTHER], PART) == [None, None]
    assert cache.stats().misses == 2


def test_empty_calls_are_allowed(cache: Cache) -> None:
    cache.put_many([], PART, [])
    assert cache.get_many([], PART) == []


def test_forgetting_an_unknown_item_does_nothing(cache: Cache) -> None:
    cache.forget(ITEM)
    cache.clear()


def test_off_stores_nothing() -> None:
    cache = NoCache()
    cache.put_many([ITEM], PART, [b"value"])
    assert cache.get_many([ITEM], PART) == [None]
    assert cache.stats() == CacheStats("off", hits=0, misses=1)


@pytest.mark.parametrize("value", [b"", b"\0", BINARY, b"x" * 100_000])
def test_any_bytes_can_be_stored(storing: Cache, value: bytes) -> None:
    storing.put_many([ITEM], PART, [value])
    assert storing.get_many([ITEM], PART) == [value]
    assert storing.stats().hits == 1


@pytest.mark.parametrize("item", [b"*" * 16, b"\r\n{}\0[?]\\:^-" + b"a" * 5, b"\xff" * 16])
def test_any_bytes_can_be_a_key(storing: Cache, item: bytes) -> None:
    storing.put_many([item], BINARY, [b"value"])
    assert storing.get_many([item, ITEM], BINARY) == [b"value", None]
    storing.clear()
    assert storing.get_many([item], BINARY) == [None]


def test_values_come_in_the_order_of_the_items(storing: Cache) -> None:
    storing.put_many([ITEM, OTHER], PART, [b"1", b"2"])
    assert storing.get_many([OTHER, b"?" * 16, ITEM, OTHER], PART) == [b"2", None, b"1", b"2"]


def test_a_later_value_replaces_an_earlier_one(storing: Cache) -> None:
    storing.put_many([ITEM, ITEM], PART, [b"first", b"second"])
    assert storing.get_many([ITEM], PART) == [b"second"]
    storing.put_many([ITEM], PART, [b"third, and longer"])
    assert storing.get_many([ITEM], PART) == [b"third, and longer"]


def test_parts_are_separate_but_forgotten_together(storing: Cache) -> None:
    storing.put_many([ITEM, OTHER], PART, [b"1", b"2"])
    storing.put_many([ITEM], ANOTHER, [b"3"])
    assert storing.get_many([ITEM], ANOTHER) == [b"3"]
    storing.forget(ITEM)
    assert storing.get_many([ITEM, OTHER], PART) == [None, b"2"]
    assert storing.get_many([ITEM], ANOTHER) == [None]


def test_clear_removes_everything(storing: Cache) -> None:
    items = [number.to_bytes(16, "big") for number in range(1000)]
    storing.put_many(items, PART, items)
    assert storing.get_many(items, PART) == items
    storing.clear()
    assert storing.get_many(items, PART) == [None] * 1000


def test_there_must_be_one_value_per_item(storing: Cache) -> None:
    with pytest.raises(ValueError, match="zip"):
        storing.put_many([ITEM, OTHER], PART, [b"only one"])


def test_threads_do_not_lose_or_mix_up_values(storing: Cache) -> None:
    def work(thread: int) -> None:
        own = [bytes([thread, number]) * 8 for number in range(20)]
        for number in range(10):
            storing.put_many(own[number:], PART, own[number:])
            assert storing.get_many(own[number:], PART) == own[number:]
            storing.forget(own[number])
            assert storing.get_many(own[number + 1 :], PART) == own[number + 1 :]

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert storing.stats().failures == 0


def test_a_forgotten_item_is_not_stored_again(storing: Cache) -> None:
    """By a question that was in progress during the erasure."""
    storing.put_many([ITEM, OTHER], PART, [b"1", b"2"])
    storing.forget(ITEM)
    storing.put_many([ITEM, OTHER], PART, [b"1", b"3"])
    assert storing.get_many([ITEM, OTHER], PART) == [None, b"3"]


# Memory


def test_memory_drops_the_least_recently_used_item() -> None:
    cache = MemoryCache(max_bytes=8000)
    items = [bytes([number]) * 16 for number in range(5)]
    cache.put_many(items[:4], PART, [b"x" * 1400] * 4)
    assert cache.get_many(items[:1], PART) != [None]
    cache.put_many(items[4:], PART, [b"x" * 1400])
    kept = [value is not None for value in cache.get_many(items, PART)]
    assert kept == [True, False, True, True, True]


def test_memory_counts_entries_and_bytes() -> None:
    cache = MemoryCache()
    cache.put_many([ITEM], PART, [b"x" * 1000])
    once = cache.stats()
    cache.put_many([ITEM], PART, [b"x" * 1000])
    assert cache.stats() == once
    assert once.entries == 1
    assert 1000 < (once.bytes or 0) < 2000
    cache.forget(ITEM)
    assert (cache.stats().entries, cache.stats().bytes) == (0, 0)


def test_memory_does_not_store_values_larger_than_its_limit() -> None:
    cache = MemoryCache(max_bytes=2000)
    cache.put_many([ITEM], PART, [b"x" * 3000])
    assert (cache.stats().entries, cache.stats().bytes) == (0, 0)


# Redis


def warnings_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if record.levelno == logging.WARNING]


def test_an_outage_costs_one_attempt_and_is_logged_once(
    shared: RedisCache, redis_server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    shared.put_many([ITEM], PART, [b"value"])
    redis_server.stop()
    for _ in range(50):
        shared.put_many([ITEM], PART, [b"value"])
        assert shared.get_many([ITEM], PART) == [None]
    assert shared.stats().failures == 1
    time.sleep(RETRY)
    assert shared.get_many([ITEM], PART) == [None]
    assert shared.stats().failures == 2
    assert len(warnings_in(caplog)) == 1


def test_redis_is_used_again_after_an_outage(shared: RedisCache, redis_server: RedisServer) -> None:
    shared.put_many([ITEM], PART, [b"value"])
    redis_server.stop()
    assert shared.get_many([ITEM], PART) == [None]
    redis_server.start()
    time.sleep(RETRY)
    shared.put_many([ITEM], PART, [b"again"])
    assert shared.get_many([ITEM], PART) == [b"again"]


def test_a_restart_between_two_calls_is_not_a_failure(
    shared: RedisCache, redis_server: RedisServer
) -> None:
    shared.put_many([ITEM], PART, [b"value"])
    redis_server.stop()
    redis_server.start()
    shared.put_many([ITEM], PART, [b"again"])
    assert shared.get_many([ITEM], PART) == [b"again"]
    assert shared.stats().failures == 0


def test_a_hanging_redis_delays_only_one_call(
    shared: RedisCache, redis_server: RedisServer
) -> None:
    shared.put_many([ITEM], PART, [b"value"])
    redis_server.pause()
    started = time.perf_counter()
    for _ in range(20):
        assert shared.get_many([ITEM], PART) == [None]
    assert time.perf_counter() - started < 10 * TIMEOUT
    redis_server.resume()
    time.sleep(RETRY)
    assert shared.get_many([ITEM], PART) == [b"value"]


def test_a_failed_erasure_raises(shared: RedisCache, redis_server: RedisServer) -> None:
    redis_server.stop()
    with pytest.raises(CacheUnavailableError, match="not completely removed"):
        shared.forget(ITEM)
    with pytest.raises(CacheUnavailableError, match="not completely removed"):
        shared.clear()


def test_an_erasure_does_not_wait_for_the_circuit_breaker(
    shared: RedisCache, redis_server: RedisServer
) -> None:
    shared.put_many([ITEM], PART, [b"value"])
    redis_server.pause()
    assert shared.get_many([ITEM], PART) == [None]
    redis_server.resume()
    shared.forget(ITEM)
    time.sleep(RETRY)
    assert shared.get_many([ITEM], PART) == [None]


def test_a_failed_erasure_still_clears_the_memory_cache(
    shared: RedisCache, redis_server: RedisServer
) -> None:
    tiered = TieredCache(MemoryCache(), shared)
    tiered.put_many([ITEM], PART, [b"value"])
    redis_server.stop()
    assert tiered.get_many([ITEM], PART) == [b"value"]
    with pytest.raises(CacheUnavailableError):
        tiered.forget(ITEM)
    assert tiered.get_many([ITEM], PART) == [None]


def test_a_flush_is_a_miss(shared: RedisCache, redis_server: RedisServer) -> None:
    shared.put_many([ITEM], PART, [b"value"])
    redis_server.flush()
    assert shared.get_many([ITEM], PART) == [None]
    assert shared.stats().failures == 0


def test_damaged_and_misplaced_values_are_misses(
    shared: RedisCache, redis_server: RedisServer
) -> None:
    shared.put_many([ITEM, OTHER], PART, [b"a value", b"another"])
    with redis_server.client() as client:
        here, there = (f"test-{os.getpid()}:".encode() + item for item in (ITEM, OTHER))
        whole = client.hget(here, PART)
        assert isinstance(whole, bytes)
        for damaged in (b"", whole[:-1], whole[:4], whole + b"!", b"garbage" * 9):
            client.hset(here, PART, damaged)
            assert shared.get_many([ITEM], PART) == [None]
        client.hset(here, PART, whole)
        client.hset(there, PART, whole)
        client.hset(here, ANOTHER, whole)
    assert shared.get_many([ITEM, OTHER], PART) == [b"a value", None]
    assert shared.get_many([ITEM], ANOTHER) == [None]


def test_a_key_of_another_type_affects_only_its_item(
    shared: RedisCache, redis_server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    with redis_server.client() as client:
        client.set(f"test-{os.getpid()}:".encode() + ITEM, "not a hash")
    for _ in range(3):
        shared.put_many([ITEM, OTHER], PART, [b"value", b"another"])
        assert shared.get_many([ITEM, OTHER], PART) == [None, b"another"]
    assert shared.stats().failures > 0
    assert len(warnings_in(caplog)) == 1
    with redis_server.client() as client:
        client.delete(f"test-{os.getpid()}:".encode() + ITEM)
    shared.put_many([ITEM], PART, [b"value"])
    assert shared.get_many([ITEM], PART) == [b"value"]


@pytest.mark.parametrize(
    "trouble", [{"maxmemory": "1"}, {"min-replicas-to-write": "1"}], ids=["full", "no replica"]
)
def test_a_redis_that_rejects_writes_still_answers(
    shared: RedisCache, redis_server: RedisServer, trouble: dict[str, str]
) -> None:
    shared.put_many([ITEM], PART, [b"value"])
    with redis_server.client() as client:
        for setting, value in trouble.items():
            client.config_set(setting, value)
    shared.put_many([OTHER], PART, [b"another"])
    assert shared.stats().failures == 1
    assert shared.get_many([ITEM, OTHER], PART) == [b"value", None]


def test_a_read_only_replica_still_answers(shared: RedisCache, redis_server: RedisServer) -> None:
    shared.put_many([ITEM], PART, [b"value"])
    with redis_server.client() as client:
        client.replicaof("127.0.0.1", 1)
    shared.put_many([OTHER], PART, [b"another"])
    assert shared.get_many([ITEM, OTHER], PART) == [b"value", None]
    with pytest.raises(CacheUnavailableError, match="read only"):
        shared.forget(ITEM)


def test_values_expire(redis_server: RedisServer) -> None:
    with redis_server.client() as client:
        for seconds, expected in ((100, range(98, 101)), (None, [-1])):
            cache = RedisCache(redis_server.url, prefix="timed", ttl_seconds=seconds)
            cache.clear()
            cache.put_many([ITEM], PART, [b"value"])
            assert client.ttl(b"timed:" + ITEM) in expected
            cache.clear()
            cache.close()


def test_clear_leaves_other_prefixes_alone(redis_server: RedisServer) -> None:
    caches = [RedisCache(redis_server.url, prefix=prefix) for prefix in ("a*", "ab", "a")]
    for cache in caches:
        cache.put_many([ITEM], PART, [b"value"])
    caches[0].clear()
    assert [cache.get_many([ITEM], PART)[0] for cache in caches] == [None, b"value", b"value"]
    for cache in caches:
        cache.clear()
        cache.close()


def test_memory_is_filled_from_the_shared_cache(shared: RedisCache) -> None:
    tiered = TieredCache(MemoryCache(), shared)
    shared.put_many([ITEM], PART, [b"from another process"])
    for _ in range(2):
        assert tiered.get_many([OTHER, ITEM], PART) == [None, b"from another process"]
    stats = tiered.stats()
    assert (stats.kind, stats.hits, stats.misses, stats.entries) == ("memory+redis", 2, 2, 1)


def test_a_value_erased_while_being_fetched_is_not_stored() -> None:
    class Slow(MemoryCache):
        """The item is erased while it answers."""

        def get_many(self, items: list[bytes], part: bytes) -> list[bytes | None]:  # type: ignore[override]
            found = super().get_many(items, part)
            if tiered.stats().entries == 0 and found == [b"value"]:
                tiered.forget(ITEM)
            return found

    behind = Slow()
    tiered = TieredCache(MemoryCache(), behind)
    behind.put_many([ITEM], PART, [b"value"])
    tiered.get_many([ITEM], PART)
    assert tiered.stats().entries == 0


def test_after_an_outage_one_caller_at_a_time_tries_again() -> None:
    moment = 0.0
    breaker = CircuitBreaker("redis://there", retry_seconds=5.0, clock=lambda: moment)
    breaker.failed(ConnectionError("gone"), outage=True)
    assert not breaker.allows_call()
    moment = 5.0
    assert [breaker.allows_call() for _ in range(3)] == [True, False, False]
    breaker.succeeded()
    assert breaker.allows_call()


# Opening


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        (None, MemoryCache),
        ("memory", MemoryCache),
        ("off", NoCache),
        ("redis://localhost:1/0", TieredCache),
        ("rediss://localhost:1", TieredCache),
        ("unix:///nowhere.sock", TieredCache),
    ],
)
def test_open_cache_returns_the_cache_for_a_url(url: str | None, kind: type[Cache]) -> None:
    """Redis need not be running when the cache is opened."""
    cache = open_cache(url)
    assert type(cache) is kind
    cache.close()


@pytest.mark.parametrize("url", ["", "redis", "memcached://user:secret@there", "Memory"])
def test_other_cache_urls_are_rejected(url: str) -> None:
    with pytest.raises(ConfigError, match=r"cache\.url: must be") as caught:
        open_cache(url)
    assert "secret" not in str(caught.value)


def test_settings_out_of_range_are_rejected() -> None:
    with pytest.raises(ConfigError, match="max_bytes"):
        open_cache("memory", max_bytes=0)
    with pytest.raises(ConfigError, match="ttl_seconds"):
        open_cache("redis://there", ttl_seconds=0)
    with pytest.raises(ConfigError, match="timeout_seconds"):
        open_cache("redis://there", timeout_seconds=0)
    with pytest.raises(ConfigError, match=r"cache\.url"):
        open_cache("redis://there:notaport")


def test_passwords_are_not_shown() -> None:
    cache = RedisCache("redis://user:secret@localhost:1/0", timeout_seconds=0.01)
    with pytest.raises(CacheUnavailableError) as caught:
        cache.forget(ITEM)
    assert "secret" not in str(caught.value)
    assert "localhost:1/0" in str(caught.value)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(StoreUnavailableError, match=r"lpf\[redis\]"):
        open_cache("redis://localhost")


@pytest.mark.parametrize(
    "url",
    [
        "redis://user:s3cret@host:99999/0",
        "redis://user:p/s3cret@host:1",
        "redis://user:s3cret#x@host:1",
        "redis://u:s3cret@[bad:1/0",
        "redis://host:abc/0?password=s3cret",
        "redis:/u:s3cret@host",
        "u:s3cret@host",
    ],
)
def test_no_error_shows_a_password(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_cache(url)
    assert "s3cret" not in "".join(traceback.format_exception(caught.value)).replace(url, "")
    assert "s3cret" not in str(caught.value)
    assert caught.value.field == "cache.url"
