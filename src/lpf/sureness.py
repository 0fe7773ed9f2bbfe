"""How sure an answer is: its prediction set, whether it is deferred, and how often answers as sure
as it were right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Reason = Literal[
    "unreadable_text",
    "far_from_training",
    "value_never_seen",
    "contradicting_evidence",
    "too_little_evidence",
    "uncertain_fact",
    "risk_out_of_reach",
]
IN_WORDS: Mapping[Reason, str] = {
    "unreadable_text": "unreadable text",
    "far_from_training": "texts unlike the training texts",
    "value_never_seen": "no held-out entity has this value",
    "contradicting_evidence": "contradicting evidence",
    "too_little_evidence": "too little evidence",
    "uncertain_fact": "the known fact is not certain enough",
    "risk_out_of_reach": "this model cannot be shown to keep a risk this low",
}
# From these shares of right answers on, an answer may be relied on, or should be checked.
RELIABLE, DOUBTFUL = 0.9, 0.7
FEWEST_TOLD = 20  # with fewer held-out answers, their share of right ones says nothing


@dataclass(frozen=True, slots=True)
class PredictionSet:
    """The values among which the true one is, for at least the share ``coverage`` of entities like
    the held-out ones; for those of each value by itself if ``by_value``. A value belongs to it if
    its surprise, -log p, is at most its cutoff (None: infinite). ``cutoffs`` are None for an
    answer that is not based on evidence. The most probable value always belongs to it."""

    coverage: float
    by_value: bool
    values: tuple[str, ...]
    cutoffs: Mapping[str, float | None] | None

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> PredictionSet:
        """From what ``to_dict`` made, as records hold it."""
        return cls(**{**fields, "values": tuple(fields["values"])})

    def to_dict(self) -> dict[str, Any]:
        return {
            "coverage": self.coverage,
            "by_value": self.by_value,
            "values": list(self.values),
            "cutoffs": None if self.cutoffs is None else dict(self.cutoffs),
        }


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether the answer is given or deferred, so that with ``confidence`` at most the share
    ``max_risk`` of the answers that are given is wrong. Given are those whose top value has a
    surprise below ``cutoff`` (None: any, if ``reachable``). ``reasons`` say why it is deferred, the
    first one first. ``answered_share`` is the share of held-out entities that get an answer, and
    ``smallest_risk`` the smallest risk that can be kept, where this one cannot."""

    max_risk: float
    confidence: float
    answered: bool
    reachable: bool = True
    cutoff: float | None = None
    reasons: tuple[Reason, ...] = ()
    answered_share: float | None = None
    smallest_risk: float | None = None
    help: str | None = None

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Decision:
        """From what ``to_dict`` made, as records hold it."""
        return cls(**{**fields, "reasons": tuple(fields["reasons"])})

    @property
    def why(self) -> str:
        """The reasons in words."""
        return ", ".join(IN_WORDS.get(reason, reason) for reason in self.reasons)

    def to_dict(self) -> dict[str, Any]:
        fields = ("max_risk", "confidence", "answered", "reachable", "cutoff")
        others = ("answered_share", "smallest_risk", "help")
        return {
            **{name: getattr(self, name) for name in fields},
            "reasons": list(self.reasons),
            **{name: getattr(self, name) for name in others},
        }


TrustState = Literal["trusted", "unknown", "watch", "not trusted"]  # the worse the later


@dataclass(frozen=True, slots=True)
class Trust:
    """Whether a model's probabilities can still be trusted, as monitoring found by ``at``
    (microseconds since 1970). ``reason`` is one sentence."""

    state: TrustState
    reason: str
    at: int

    @property
    def warning(self) -> str | None:
        """What a reader of an answer must know, if anything."""
        if self.state == "not trusted":
            return f"Do not rely on it: {self.reason}"
        return f"Check before relying on it: {self.reason}" if self.state == "watch" else None

    def to_dict(self) -> dict[str, Any]:
        return {"verdict": self.state, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class TrackRecord:
    """``right`` of the ``nearest`` held-out answers that were about as sure were right; there are
    ``entities`` in all. ``apart`` is True if they were used for nothing else. ``caveats`` say how
    this answer differs from them; ``unlike`` is True if they say nothing about it at all.
    ``overtaken`` is True if outcomes since then show that answers are worse."""

    right: int
    nearest: int
    entities: int
    apart: bool
    unlike: bool = False
    caveats: tuple[str, ...] = ()
    overtaken: bool = False

    @property
    def verdict(self) -> Literal["reliable", "check", "unreliable", "unknown"]:
        if self.unlike or self.overtaken:
            return "unreliable"
        if self.nearest < FEWEST_TOLD:
            return "unknown"
        share = self.right / self.nearest
        return "reliable" if share >= RELIABLE else "check" if share >= DOUBTFUL else "unreliable"

    @property
    def sentence(self) -> str:
        """Whether the answer may be relied on, in one line."""
        if self.unlike:
            return (
                "Do not rely on it: its texts are unlike the training texts, so held-out entities "
                "say nothing about this answer"
            )
        if self.overtaken:
            return (
                "Do not rely on it: outcomes since training show that answers are worse than those "
                "about held-out entities"
            )
        if self.verdict == "unknown":
            return (
                f"Reliability unknown: only {self.nearest} entities were held out, too few to tell "
                "how often answers this sure are right"
            )
        word = {
            "reliable": "May be relied on",
            "check": "Check before relying on it",
            "unreliable": "Do not rely on it",
        }[self.verdict]
        record = (
            f"{word}: of {self.nearest} held-out entities answered with about this confidence, "
            f"{100 * self.right / self.nearest:.0f} % were answered right"
        )
        return "; ".join([record, *self.caveats])

    def to_dict(self) -> dict[str, Any]:
        fields = ("verdict", "right", "nearest", "entities", "apart")
        return {**{name: getattr(self, name) for name in fields}, "caveats": list(self.caveats)}


def plain(part: PredictionSet | Decision | TrackRecord | Trust | None) -> dict[str, Any] | None:
    """Plain data for JSON."""
    return None if part is None else part.to_dict()


def by_probability(distribution: Mapping[str, float], coverage: float) -> tuple[str, ...]:
    """The most probable values that together have at least the probability ``coverage``."""
    ordered = sorted(distribution, key=distribution.__getitem__, reverse=True)
    chosen: list[str] = []
    for value in ordered:
        chosen.append(value)
        if sum(distribution[one] for one in chosen) >= coverage - 1e-9:
            break
    return tuple(value for value in distribution if value in chosen)


def joined(values: Sequence[str]) -> str:
    """The values of a set as one text, for a table."""
    return " | ".join(values)
