"""What came back for one prompt, and the folder in which replies are kept by content."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from lpf.baselines.language_models.config import EndpointConfig
from lpf.errors import InputFileError
from lpf.storage.files import write_atomically

FORMAT = 1


@dataclass(frozen=True)
class Reply:
    """``text`` is what the model wrote, None where the call failed and ``problem`` says why.

    ``requests`` counts all that were sent for it, ``seconds`` are those of the last. Tokens are the
    endpoint's own count unless ``estimated``; those of a failed call are unknown and taken as 0.
    ``cut_off`` marks a text that ended at ``max_tokens``."""

    text: str | None
    problem: str | None
    requests: int
    seconds: float
    input_tokens: int = 0
    output_tokens: int = 0
    estimated: bool = False
    cut_off: bool = False


@dataclass(frozen=True)
class KeptReplies:
    """One file a reply, named by the hash of all that it depends on. Prompts are not written, and
    failed calls are not kept: another run asks again."""

    folder: Path
    config: EndpointConfig

    def find(self, prompt: str) -> Reply | None:
        """InputFileError for a file that is not one of ours."""
        path = self._path(prompt)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        try:
            return _reply(json.loads(content))
        except (ValueError, TypeError) as error:
            raise InputFileError(
                f"{path}: is no kept reply ({error}). Nothing was asked; remove it and repeat."
            ) from error

    def keep(self, prompt: str, reply: Reply) -> None:
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
