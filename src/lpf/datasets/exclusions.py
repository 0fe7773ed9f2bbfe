"""What was left out of a data set, counted, with the first of each kind named."""

from __future__ import annotations

from dataclasses import dataclass, field

NO_EVIDENCE = (
    "entity has no evidence and was left out",
    "entities have no evidence and were left out",
)
NO_LABEL = ("entity has no label and was left out", "entities have no label and were left out")


@dataclass(slots=True)
class _Kind:
    count: int
    first: str


@dataclass(slots=True)
class Exclusions:
    """Counts by kind. A kind is its sentence for one and for several, both without the number:
    ``("entity has no evidence and was left out", "entities have no ...")``."""

    _kinds: dict[tuple[str, str], _Kind] = field(default_factory=dict)

    def note(self, kind: tuple[str, str], place: str) -> None:
        """Counts one more; ``place`` is told if it is the first of its kind."""
        self._kinds.setdefault(kind, _Kind(0, place)).count += 1

    @property
    def sentences(self) -> tuple[str, ...]:
        """Such as "3 entities have no evidence and were left out (first: C0007, line 12)."."""
        return tuple(
            f"{found.count:,} {one if found.count == 1 else several} (first: {found.first})."
            for (one, several), found in self._kinds.items()
        )
