"""Sends many prompts, a few at a time, and adds up their costs. Stored replies are reused."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass
from threading import Event
from typing import TYPE_CHECKING

import numpy as np

from lpf.baselines.language_models.client import (
    Endpoint,
    EndpointConfig,
    Prices,
    Reply,
    StoredReplies,
    read_key,
)
from lpf.errors import ConfigError, LanguageModelError

if TYPE_CHECKING:
    import httpx


@dataclass(frozen=True)
class Replies:
    """The reply to each distinct prompt; ``kept`` of them were read from disk."""

    by_prompt: dict[str, Reply]
    kept: int


def ask_all(
    config: EndpointConfig, prompts: Sequence[str], stored: StoredReplies | None = None
) -> Replies:
    """Equal prompts are sent once. LanguageModelError if no call succeeded: failed answers say
    nothing about a model. If all replies are stored, neither key nor network is needed."""
    different = list(dict.fromkeys(prompts))
    known = {} if stored is None else _known(stored, different)
    missing = [prompt for prompt in different if prompt not in known]
    new = _ask(config, missing, stored) if missing else {}
    replies = {prompt: known.get(prompt) or new[prompt] for prompt in different}
    _require_some_answer(config, list(replies.values()))
    return Replies(replies, len(known))


def _known(stored: StoredReplies, prompts: Sequence[str]) -> dict[str, Reply]:
    replies = {prompt: stored.find(prompt) for prompt in prompts}
    return {prompt: reply for prompt, reply in replies.items() if reply is not None}


def _ask(
    config: EndpointConfig, prompts: Sequence[str], stored: StoredReplies | None
) -> dict[str, Reply]:
    key = read_key(config)
    with _client(config, key) as client:
        endpoint = Endpoint(config, client, key, Event())

        def answer(prompt: str) -> Reply:
            reply = endpoint.ask(prompt)
            if stored is not None:
                stored.save(prompt, reply)  # at once: an interrupted run continues from here
            return reply

        with ThreadPoolExecutor(config.concurrency, "language-model") as pool:
            futures = [pool.submit(answer, prompt) for prompt in prompts]
            try:
                replies = _results(futures)
            except BaseException:
                endpoint.stop.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    return dict(zip(prompts, replies, strict=True))


def _results(futures: Sequence[Future[Reply]]) -> list[Reply]:
    """All replies; raises the first error as soon as it occurs."""
    done, _ = wait(futures, return_when=FIRST_EXCEPTION)
    for future in done:
        future.result()
    return [future.result() for future in futures]


def _client(config: EndpointConfig, key: str | None) -> httpx.Client:
    try:
        import httpx
    except ImportError as error:
        raise ConfigError(
            "language models need the package httpx. Nothing was sent.",
            hint="Install it: `pip install 'lpf[baselines]'`.",
        ) from error
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    return httpx.Client(headers=headers, timeout=config.timeout)


def _require_some_answer(config: EndpointConfig, replies: Sequence[Reply]) -> None:
    if all(reply.text is None for reply in replies):
        raise LanguageModelError(
            f"{config.model} at {config.base_url}: none of {len(replies)} questions was answered "
            f"(last problem: {replies[-1].problem}). Nothing can be compared.",
            hint="Fix that and repeat.",
        )


@dataclass(frozen=True)
class TokenCosts:
    """Costs of ``questions`` distinct prompts. For the ``kept`` ones, which were read from disk,
    they are the costs at the time they were sent.

    ``requests`` includes ``retries``. ``failed_calls`` have no answer, ``failed_parses`` none that
    can be parsed. Without the server's own count (``estimated`` replies), tokens are characters
    divided by four; failed calls count none, though a server may charge for a late answer. Seconds
    are from a request to its answer without waits between retries, None if no call succeeded;
    ``money`` is None without prices.
    """

    questions: int
    kept: int
    requests: int
    retries: int
    failed_calls: int
    failed_parses: int
    input_tokens: int
    output_tokens: int
    estimated: int
    mean_seconds: float | None
    p95_seconds: float | None
    money: float | None

    @classmethod
    def of(
        cls, replies: Sequence[Reply], kept: int, failed_parses: int, prices: Prices | None
    ) -> TokenCosts:
        requests = sum(reply.requests for reply in replies)
        read = sum(reply.input_tokens for reply in replies)
        written = sum(reply.output_tokens for reply in replies)
        seconds = [reply.seconds for reply in replies if reply.text is not None]
        return cls(
            questions=len(replies),
            kept=kept,
            requests=requests,
            retries=requests - len(replies),
            failed_calls=len(replies) - len(seconds),
            failed_parses=failed_parses,
            input_tokens=read,
            output_tokens=written,
            estimated=sum(reply.estimated for reply in replies),
            mean_seconds=float(np.mean(seconds)) if seconds else None,
            p95_seconds=float(np.quantile(seconds, 0.95)) if seconds else None,
            money=None if prices is None else (read * prices.input + written * prices.output) / 1e6,
        )

    def to_dict(self) -> dict[str, int | float | None]:
        return asdict(self)
