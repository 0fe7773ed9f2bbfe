"""Where a language model is asked, how patiently, and at what price."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from lpf.errors import ConfigError

PATH = "/chat/completions"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Prices:
    """Money for a million tokens, in whatever currency the provider charges."""

    input: float
    output: float

    def __post_init__(self) -> None:
        for name in ("input", "output"):
            _check_number(f"prices.{name}", getattr(self, name), 0.0, math.inf)


@dataclass(frozen=True)
class EndpointConfig:
    """An endpoint that answers POST ``base_url``/chat/completions as OpenAI's does.

    ``api_key_env`` names the environment variable that holds the key, which is read when a question
    is asked and stands nowhere else; None sends no key. ``timeout`` is in seconds without a byte.
    A call that fails in passing is repeated up to ``retries`` times, after ``first_wait`` seconds,
    then twice as long each time, or as long as the server says; ``longest_wait`` bounds both.
    ``limit`` is how many entities may be asked about at once: the paper's 50.
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
    """Addresses with a password in them are not repeated in the message."""
    if not isinstance(url, str):
        raise ConfigError(f"endpoint.base_url: must be an address, got {url!r}.")
    try:
        parts = urlsplit(url)
        hidden, host, _ = parts.password or parts.username, parts.hostname, parts.port
    except ValueError as error:
        raise ConfigError(f"endpoint.base_url: is no address ({error}).") from error
    if hidden:
        raise ConfigError("endpoint.base_url: holds a login; name a key with api_key_env instead.")
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
        raise ConfigError(
            f"endpoint.base_url: must be like https://host/v1, without ? and #, got {url!r}."
        )
    if parts.path.rstrip("/").endswith(PATH):
        raise ConfigError(f"endpoint.base_url: leave {PATH} off {url!r}; it is added.")


def _check_variable(name: object) -> None:
    """Whoever gives the key itself must not find it in a log: the message does not repeat it."""
    if name is not None and (not isinstance(name, str) or not _VARIABLE.fullmatch(name)):
        raise ConfigError(
            "endpoint.api_key_env: must be the name of an environment variable, not the key "
            "itself. What was given is not shown."
        )


def _check_whole(name: str, value: object, lowest: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < lowest:
        raise ConfigError(f"{name}: must be a whole number, {lowest} or above, got {value!r}.")


def _check_number(name: str, value: object, lowest: float, highest: float) -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (is_number and lowest <= value <= highest and value < math.inf):  # type: ignore[operator]
        wanted = f"from {lowest:g} to {highest:g}" if highest < math.inf else f"{lowest:g} or above"
        raise ConfigError(f"{name}: must be a finite number, {wanted}, got {value!r}.")
