"""One prompt over HTTP: what is repeated, what counts as failed, and what ends the run."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from threading import Event
from time import perf_counter
from typing import TYPE_CHECKING

from lpf.baselines.language_models.completions import Completion, read_completion
from lpf.baselines.language_models.config import PATH, EndpointConfig
from lpf.baselines.language_models.replies import Reply
from lpf.errors import ConfigError, LanguageModelError

if TYPE_CHECKING:
    import httpx

EXCERPT = 300
PASSING = {408, 429}  # besides all of 500 and above
_HINTS = {
    401: "check the key in the variable that api_key_env names",
    403: "check the key in the variable that api_key_env names",
    404: "check base_url and model",
}


@dataclass(frozen=True)
class Setback:
    """A request that brought no answer. ``again`` says whether to repeat it, ``wait`` after how
    many seconds where the server said so, ``fatal`` that repeating it for others is no use."""

    problem: str
    again: bool = True
    wait: float | None = None
    fatal: bool = False


@dataclass(frozen=True)
class Endpoint:
    """Safe to ask from several threads. Once ``stop`` is set, nobody waits to ask again."""

    config: EndpointConfig
    client: httpx.Client
    key: str | None
    stop: Event

    def ask(self, prompt: str) -> Reply:
        """A call that fails in passing once too often gives a reply without text. What cannot get
        better raises LanguageModelError: a refusal, an address where nobody is, a wait longer than
        ``longest_wait``."""
        requests = 0
        while True:
            requests += 1
            start = perf_counter()
            outcome = self._request(prompt)
            seconds = perf_counter() - start
            if isinstance(outcome, Completion):
                return outcome.reply(prompt, requests, seconds)
            if not outcome.again or requests > self.config.retries:
                return self._given_up(outcome, requests, seconds)
            self._pause(outcome, requests)

    def _request(self, prompt: str) -> Completion | Setback:
        import httpx

        try:
            response = self.client.post(self.config.base_url + PATH, json=self._body(prompt))
        except httpx.TimeoutException:
            return Setback(f"no answer within {self.config.timeout:g} s")
        except httpx.ConnectError as error:
            return Setback(f"nobody there ({error})", fatal=True)
        except httpx.RequestError as error:
            return Setback(f"{type(error).__name__}: {error}")
        return self._read(response)

    def _body(self, prompt: str) -> dict[str, object]:
        return {
            "model": self.config.model,
            "messages": [{"role": "user", "content": prompt}],
            "temperature": self.config.temperature,
            "max_tokens": self.config.max_tokens,
        }

    def _read(self, response: httpx.Response) -> Completion | Setback:
        status = response.status_code
        if response.is_success:
            # Not repeated: the server thinks it has answered, and charges for it.
            completion = read_completion(response.content)
            if completion is not None:
                return completion
            return Setback(f"no chat completion: {self._excerpt(response)}", again=False)
        problem = f"HTTP {status}: {self._excerpt(response)}"
        if status in PASSING or status >= 500:
            return Setback(problem, wait=retry_after(response.headers.get("Retry-After")))
        raise self._error(problem, _HINTS.get(status, "check the settings of the endpoint"))

    def _pause(self, setback: Setback, requests: int) -> None:
        longest = self.config.longest_wait
        if setback.wait is not None and setback.wait > longest:
            raise self._error(
                f"{setback.problem}, to be asked again after {setback.wait:.0f} s",
                f"repeat it then, or set longest_wait above {longest:g} s",
            )
        own = min(self.config.first_wait * 2.0 ** min(requests - 1, 60), longest)
        if self.stop.wait(own if setback.wait is None else setback.wait):
            raise self._error(setback.problem, "another question ended the run")

    def _given_up(self, setback: Setback, requests: int, seconds: float) -> Reply:
        if setback.fatal:
            raise self._error(setback.problem, "check base_url, and that the server runs")
        return Reply(None, setback.problem, requests, seconds)

    def _error(self, problem: str, hint: str) -> LanguageModelError:
        return LanguageModelError(
            f"{self.config.model} at {self.config.base_url}: {problem}. This question was not "
            f"answered and no more are asked; {hint}."
        )

    def _excerpt(self, response: httpx.Response) -> str:
        """The beginning of a body on one line; should it repeat the key, the key is taken out."""
        text = " ".join(response.text.split())
        if self.key is not None:
            text = text.replace(self.key, "(key)")
        return repr(text if len(text) <= EXCERPT else f"{text[:EXCERPT]}...")


def retry_after(header: str | None) -> float | None:
    """Seconds to wait, from a number or a date; None where there is none that can be read."""
    if header is None:
        return None
    try:
        return max(0.0, float(int(header)))
    except (ValueError, OverflowError):
        pass
    try:
        moment = parsedate_to_datetime(header)
    except ValueError:
        return None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


def read_key(config: EndpointConfig) -> str | None:
    """The key from the environment; ConfigError where the variable holds none."""
    if config.api_key_env is None:
        return None
    key = os.environ.get(config.api_key_env, "").strip()
    if not key or not key.isascii() or not key.isprintable():
        raise ConfigError(
            f"endpoint.api_key_env: the variable {config.api_key_env} is not set or holds no key. "
            "Nothing was asked; set it, or leave api_key_env out for a server that wants none."
        )
    return key
