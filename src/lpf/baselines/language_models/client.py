"""One prompt over HTTP: the endpoint's settings, retries, errors and stored replies.

The body of a reply is checked field by field: any server may be behind the address.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from threading import Event
from time import perf_counter
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from lpf.errors import ConfigError, InputFileError, LanguageModelError
from lpf.storage.atomic_files import write_atomically

if TYPE_CHECKING:
    import httpx


PATH = "/chat/completions"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Prices:
    """Price per million tokens, in the provider's currency."""

    input: float
    output: float

    def __post_init__(self) -> None:
        for name in ("input", "output"):
            _check_number(f"prices.{name}", getattr(self, name), 0.0, math.inf)


@dataclass(frozen=True)
class EndpointConfig:
    """An endpoint that answers POST ``base_url``/chat/completions as OpenAI's does.

    ``api_key_env`` names the environment variable that holds the key, which is read when a question
    is sent and stored nowhere else; None sends no key. ``timeout`` is the longest wait for data, in
    seconds.
    A call that fails temporarily is repeated up to ``retries`` times, after ``first_wait`` seconds,
    then twice as long each time, or as long as the server says; ``longest_wait`` limits both.
    ``limit`` is the largest number of entities per call of ``ask``: 50 in the paper.
    """

    base_url: str
    model: str
    api_key_env: str | None = None
    timeout: float = 60.0
    retries: int = 4
    first_wait: float = 1.0
    longest_wait: float = 60.0
    temperature: float = 0.0
    max_tokens: int = 1024
    concurrency: int = 4
    limit: int = 50
    prices: Prices | None = None

    def __post_init__(self) -> None:
        _check_url(self.base_url)
        object.__setattr__(self, "base_url", self.base_url.rstrip("/"))
        if not isinstance(self.model, str) or not self.model.strip():
            raise ConfigError(f"endpoint.model: must be a name, got {self.model!r}.")
        _check_variable(self.api_key_env)
        for name, lowest in (("retries", 0), ("max_tokens", 1), ("concurrency", 1), ("limit", 1)):
            _check_whole(f"endpoint.{name}", getattr(self, name), lowest)
        for name in ("timeout", "first_wait", "longest_wait"):
            _check_number(f"endpoint.{name}", getattr(self, name), 0.0, math.inf)
        _check_number("endpoint.temperature", self.temperature, 0.0, 2.0)
        if self.timeout == 0.0:
            raise ConfigError("endpoint.timeout: must be above 0 seconds.")


def _check_url(url: object) -> None:
    """An address with a password in it is not repeated in the message."""
    if not isinstance(url, str):
        raise ConfigError(f"endpoint.base_url: must be an address, got {url!r}.")
    try:
        parts = urlsplit(url)
        hidden, host, _ = parts.password or parts.username, parts.hostname, parts.port
    except ValueError as error:
        raise ConfigError(f"endpoint.base_url: is not an address ({error}).") from error
    if hidden:
        raise ConfigError("endpoint.base_url: holds a login; name a key with api_key_env instead.")
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
        raise ConfigError(
            f"endpoint.base_url: must be like https://host/v1, without ? and #, got {url!r}."
        )
    if parts.path.rstrip("/").endswith(PATH):
        raise ConfigError(f"endpoint.base_url: leave {PATH} off {url!r}; it is added.")


def _check_variable(name: object) -> None:
    """If the key itself was given, it must not appear in a log: the message does not repeat it."""
    if name is not None and (not isinstance(name, str) or not _VARIABLE.fullmatch(name)):
        raise ConfigError(
            "endpoint.api_key_env: must be the name of an environment variable, not the key "
            "itself. The given value is not shown."
        )


def _check_whole(name: str, value: object, lowest: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < lowest:
        raise ConfigError(f"{name}: must be a whole number, {lowest} or above, got {value!r}.")


def _check_number(name: str, value: object, lowest: float, highest: float) -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (is_number and lowest <= value <= highest and value < math.inf):  # type: ignore[operator]
        wanted = f"from {lowest:g} to {highest:g}" if highest < math.inf else f"{lowest:g} or above"
        raise ConfigError(f"{name}: must be a finite number, {wanted}, got {value!r}.")


FORMAT = 1


@dataclass(frozen=True)
class Reply:
    """``text`` is what the model wrote, None if the call failed; ``problem`` gives the reason.

    ``requests`` counts all attempts, ``seconds`` is the time of the last one. Tokens are the
    endpoint's own count unless ``estimated``; a failed call counts 0. ``cut_off`` marks a text that
    ended at ``max_tokens``."""

    text: str | None
    problem: str | None
    requests: int
    seconds: float
    input_tokens: int = 0
    output_tokens: int = 0
    estimated: bool = False
    cut_off: bool = False


@dataclass(frozen=True)
class StoredReplies:
    """Stored replies: one file per reply, named by the hash of everything it depends on. Prompts
    and failed calls are not stored."""

    folder: Path
    config: EndpointConfig

    def find(self, prompt: str) -> Reply | None:
        """InputFileError for a file that is not a stored reply."""
        path = self._path(prompt)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        try:
            return _reply(json.loads(content))
        except (ValueError, TypeError) as error:
            raise InputFileError(
                f"{path} is not a stored reply ({error}). Nothing was sent.",
                hint="Remove it and repeat.",
            ) from error

    def save(self, prompt: str, reply: Reply) -> None:
        if reply.text is not None:
            write_atomically(self._path(prompt), json.dumps(asdict(reply), indent=1).encode())

    def _path(self, prompt: str) -> Path:
        config = self.config
        identity = [FORMAT, config.base_url, config.model, config.temperature, config.max_tokens]
        hashed = hashlib.sha256(json.dumps([*identity, prompt]).encode())
        return self.folder / f"{hashed.hexdigest()}.json"


_KINDS: dict[str, tuple[type, ...]] = {
    "text": (str,),
    "problem": (type(None),),
    "requests": (int,),
    "seconds": (float, int),
    "input_tokens": (int,),
    "output_tokens": (int,),
    "estimated": (bool,),
    "cut_off": (bool,),
}
assert list(_KINDS) == [field.name for field in fields(Reply)]


def _reply(document: object) -> Reply:
    if not isinstance(document, dict) or document.keys() != _KINDS.keys():
        raise TypeError(f"its fields must be {list(_KINDS)}")
    for name, kinds in _KINDS.items():
        if not isinstance(document[name], kinds):
            raise TypeError(f"{name} cannot be {document[name]!r:.80}")
    return Reply(**document)


CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True)
class Completion:
    """What the model wrote, and the tokens that the server counted, None if it did not say."""

    text: str
    cut_off: bool
    tokens: tuple[int, int] | None

    def reply(self, prompt: str, requests: int, seconds: float) -> Reply:
        """Without a count, a token is estimated as four characters."""
        counted = self.tokens or (_estimated(prompt), _estimated(self.text))
        estimated = self.tokens is None
        return Reply(self.text, None, requests, seconds, *counted, estimated, self.cut_off)


def read_completion(body: bytes) -> Completion | None:
    """None if the body is not a chat completion; its declared type is ignored. A message without
    content (a refusal, or reasoning that was cut off) is an empty text."""
    try:
        document = json.loads(body)
        choice = document["choices"][0]
        text = choice["message"].get("content")
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return None
    if not isinstance(text, str | None):
        return None
    return Completion(text or "", choice.get("finish_reason") == "length", _tokens(document))


def _tokens(document: Mapping[str, object]) -> tuple[int, int] | None:
    usage = document.get("usage")
    if not isinstance(usage, Mapping):
        return None
    read, written = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
    return None if read is None or written is None else (read, written)


def _count(given: object) -> int | None:
    if isinstance(given, bool) or not isinstance(given, int):
        return None
    return given if given >= 0 else None


def _estimated(text: str) -> int:
    return math.ceil(len(text) / CHARACTERS_PER_TOKEN)


EXCERPT = 300
TEMPORARY = {408, 429}  # and all of 500 and above
_HINTS = {
    401: "check the key in the variable that api_key_env names",
    403: "check the key in the variable that api_key_env names",
    404: "check base_url and model",
}


@dataclass(frozen=True)
class Setback:
    """A request without an answer. ``again``: repeat it. ``wait``: seconds that the server asked to
    wait. ``fatal``: other questions would fail too."""

    problem: str
    again: bool = True
    wait: float | None = None
    fatal: bool = False


@dataclass(frozen=True)
class Endpoint:
    """Thread-safe. Once ``stop`` is set, no thread waits to retry."""

    config: EndpointConfig
    client: httpx.Client
    key: str | None
    stop: Event

    def ask(self, prompt: str) -> Reply:
        """A call that fails temporarily too often gives a reply without text. Errors that will not
        go away raise LanguageModelError: a refusal, an address without a server, a wait longer than
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
            return Setback(f"no server there ({error})", fatal=True)
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
            # Not repeated: the server has answered and charges for it.
            completion = read_completion(response.content)
            if completion is not None:
                return completion
            return Setback(f"not a chat completion: {self._excerpt(response)}", again=False)
        problem = f"HTTP {status}: {self._excerpt(response)}"
        if status in TEMPORARY or status >= 500:
            return Setback(problem, wait=retry_after(response.headers.get("Retry-After")))
        raise self._error(problem, _HINTS.get(status, "check the settings of the endpoint"))

    def _pause(self, setback: Setback, requests: int) -> None:
        longest = self.config.longest_wait
        if setback.wait is not None and setback.wait > longest:
            raise self._error(
                f"{setback.problem}, to be repeated after {setback.wait:.0f} s",
                f"repeat it then, or set longest_wait above {longest:g} s",
            )
        backoff = min(self.config.first_wait * 2.0 ** min(requests - 1, 60), longest)
        if self.stop.wait(backoff if setback.wait is None else setback.wait):
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
        """The beginning of a body on one line. If the body repeats the key, the key is removed."""
        text = " ".join(response.text.split())
        if self.key is not None:
            text = text.replace(self.key, "(key)")
        return repr(text if len(text) <= EXCERPT else f"{text[:EXCERPT]}...")


def retry_after(header: str | None) -> float | None:
    """Seconds to wait, from a number or a date; None if the header cannot be parsed."""
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
    """The key from the environment; ConfigError if the variable holds none."""
    if config.api_key_env is None:
        return None
    key = os.environ.get(config.api_key_env, "").strip()
    if not key or not key.isascii() or not key.isprintable():
        raise ConfigError(
            f"endpoint.api_key_env: the variable {config.api_key_env} is not set or holds no key. "
            "Nothing was asked; set it, or leave api_key_env out for a server that needs none."
        )
    return key
