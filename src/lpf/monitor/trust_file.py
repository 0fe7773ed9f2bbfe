"""What monitoring found, as the workspace keeps it: a small file that queries read.

It names the model that it is about. For another model it says nothing, so a new model begins
without a verdict.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, get_args

from lpf.storage.atomic_files import write_atomically
from lpf.storage.seals import is_sound
from lpf.storage.values import now_micros
from lpf.sureness import Trust, TrustState

FILE: Final = "monitor.json"
FORMAT: Final = "lpf-monitor/1"
STATES: tuple[TrustState, ...] = get_args(TrustState)
DAMAGED = f"{FILE} is damaged, so what monitoring found is not known; run 'lpf monitor' again"


@dataclass(frozen=True)
class StoredTrust:
    """``by_predicate`` is about the answers of the model ``model``, which is "" if the file is
    damaged."""

    model: str
    by_predicate: Mapping[str, Trust] = field(default_factory=dict)

    def of(self, model: str, predicate: str) -> Trust | None:
        """What was found about this model's answers to a predicate; None if nothing was. A file
        that cannot be read is a finding too."""
        if not self.model:
            return Trust("watch", DAMAGED, now_micros())
        return self.by_predicate.get(predicate) if self.model == model else None


def write_trust(folder: Path, stored: StoredTrust) -> None:
    predicates = {
        name: {"state": one.state, "reason": one.reason, "at": one.at}
        for name, one in stored.by_predicate.items()
    }
    document = {"format": FORMAT, "model": stored.model, "predicates": predicates}
    write_atomically(folder / FILE, json.dumps(document, indent=1).encode() + b"\n")


class TrustFile:
    """Reads the file when it has changed; otherwise a look costs one ``stat``."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._lock = threading.Lock()
        self._seen: tuple[int, int, int] | None = None
        self._stored: StoredTrust | None = None

    def read(self) -> StoredTrust | None:
        """None if there is no file."""
        try:
            status = self._path.stat()
            seen = (status.st_mtime_ns, status.st_size, status.st_ino)
            with self._lock:
                if seen != self._seen:
                    self._stored = _parsed(self._path.read_bytes())
                    self._seen = seen
                return self._stored
        except FileNotFoundError:  # also if it is deleted between the two
            return None


def _parsed(content: bytes) -> StoredTrust:
    try:
        document = json.loads(content)
        if document["format"] != FORMAT or not isinstance(document["model"], str):
            return StoredTrust("")
        found = {
            name: Trust(one["state"], one["reason"], one["at"])
            for name, one in document["predicates"].items()
        }
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return StoredTrust("")
    sound = all(
        one.state in STATES and is_sound((one.reason, one.at), ("text", "time"))
        for one in found.values()
    )
    return StoredTrust(document["model"], found) if sound else StoredTrust("")
