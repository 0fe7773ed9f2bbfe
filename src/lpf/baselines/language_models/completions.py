"""The body of a chat completion, read without trust: any server may stand behind the address."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass

from lpf.baselines.language_models.replies import Reply

CHARACTERS_A_TOKEN = 4


@dataclass(frozen=True)
class Completion:
    """What the model wrote, and the tokens the server counted, None where it did not say."""

    text: str
    cut_off: bool
    tokens: tuple[int, int] | None

    def reply(self, prompt: str, requests: int, seconds: float) -> Reply:
        """Without a count, a token is taken for four characters."""
        counted = self.tokens or (_estimated(prompt), _estimated(self.text))
        estimated = self.tokens is None
        return Reply(self.text, None, requests, seconds, *counted, estimated, self.cut_off)


def read_completion(body: bytes) -> Completion | None:
    """None for what is no chat completion. The body decides, not its declared type. A message
    without content (a refusal, a thought that was cut off) is an empty text."""
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
    return math.ceil(len(text) / CHARACTERS_A_TOKEN)
