"""X: what people write for entities and their evidence, as checked evidence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from lpf.datasets.labelling import DEFAULT_PREDICATE
from lpf.errors import EvidenceError
from lpf.types import Evidence

EvidenceLike = str | Mapping[str, Any] | Evidence
EntityLike = Iterable[EvidenceLike] | Mapping[str, Any]

PREDICATE = DEFAULT_PREDICATE
ITEM_FIELDS = ("text", "credibility", "source", "timestamp", "report_id", "supports_value")
ENTITY_FIELDS = ("claim", "evidence")
_AN_ENTITY = "an entity is a list of evidence"


@dataclass(frozen=True, slots=True)
class Entity:
    """What is known of one entity; ``claim`` is what its evidence is read against."""

    evidence: tuple[Evidence, ...]
    claim: str | None = None


def read_entities(X: Iterable[EntityLike], name: str = "X") -> tuple[Entity, ...]:
    """EvidenceError names the place, such as X[3][1], of what cannot be read."""
    if isinstance(X, str | bytes | Mapping) or not isinstance(X, Iterable):
        raise EvidenceError(
            f"{name}: must be a list of entities, got {_kind(X)}. Nothing was read; write "
            f"{name} = [[text, text], [text], ...]."
        )
    return tuple(read_entity(entity, f"{name}[{place}]") for place, entity in enumerate(X))


def is_missing(value: object) -> bool:
    """Whether it is None or what tables have in its place: NaN, NaT and NA are not equal to
    themselves, or will not say."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:
        return True


def read_entity(entity: EntityLike, place: str) -> Entity:
    """A list of evidence, or a mapping with it and the claim it is read against."""
    if isinstance(entity, str | bytes | Evidence):
        raise EvidenceError(
            f"{place}: is {_kind(entity)}; {_AN_ENTITY}. Nothing was read; put it in brackets if "
            "it is all the evidence there is."
        )
    if isinstance(entity, Mapping):
        return _with_claim(entity, place)
    if not isinstance(entity, Iterable):
        raise EvidenceError(f"{place}: is {_kind(entity)}; {_AN_ENTITY}. Nothing was read.")
    items = tuple(_evidence(item, f"{place}[{number}]") for number, item in enumerate(entity))
    claims = {item.claim for item in items}
    if len(claims) > 1:
        raise EvidenceError(
            f"{place}: its items have several claims, {sorted(map(str, claims))[:3]}. Nothing was "
            "read; an entity is read against one: make it one entity a claim."
        )
    return Entity(items, claims.pop() if claims else None)


def _with_claim(entity: Mapping[str, Any], place: str) -> Entity:
    _refuse_strange(entity, ENTITY_FIELDS, f"{place}: {_AN_ENTITY}, or a mapping; this one")
    if "evidence" not in entity:
        raise EvidenceError(f"{place}: has no field 'evidence'. Nothing was read; add the list.")
    within = f"{place}['evidence']"
    if isinstance(entity["evidence"], Mapping):
        raise EvidenceError(f"{within}: is a mapping; it must be a list. Nothing was read.")
    found = read_entity(entity["evidence"], within)
    claim = entity.get("claim")
    if claim is None:
        return found
    _check_text(claim, f"{place}['claim']", "leave it out where there is none")
    if found.claim not in (None, claim):
        raise EvidenceError(
            f"{place}: its evidence has the claim {found.claim!r}, itself {claim!r}. Nothing was "
            "read; give one of them."
        )
    return Entity(found.evidence, claim)


def _evidence(item: EvidenceLike, place: str) -> Evidence:
    if isinstance(item, Evidence):
        return item
    fields: Mapping[str, Any] = {"text": item} if isinstance(item, str) else item
    if not isinstance(fields, Mapping):
        raise EvidenceError(
            f"{place}: is {_kind(item)}; evidence is a text, a mapping with the field 'text', or "
            "lpf.Evidence. Nothing was read."
        )
    _refuse_strange(fields, ITEM_FIELDS, f"{place}: evidence")
    _check_text(fields.get("text"), place, "leave the item out")
    return Evidence(
        place,
        place.rsplit("[", 1)[0],
        PREDICATE,
        str(fields["text"]),
        credibility=_credibility(fields.get("credibility"), place),
        timestamp=_moment(fields.get("timestamp"), place),
        source=_name(fields.get("source")),
        supports_value=_name(fields.get("supports_value")),
        report_id=_name(fields.get("report_id")),
    )


def _check_text(text: object, place: str, remedy: str) -> None:
    if not isinstance(text, str):
        raise EvidenceError(f"{place}: must be a text, got {_kind(text)}. Nothing was read.")
    if not text.strip():
        raise EvidenceError(f"{place}: the text is empty. Nothing was read; {remedy}.")


def _refuse_strange(fields: Mapping[str, Any], known: tuple[str, ...], what: str) -> None:
    strange = [name for name in fields if name not in known]
    if strange:
        raise EvidenceError(
            f"{what} has the field {strange[0]!r}, which is not known here. Nothing was read; the "
            f"fields are {list(known)}."
        )


def _credibility(given: object, place: str) -> float | None:
    """None where nobody knows. The range is Evidence's to check."""
    if is_missing(given):
        return None
    try:
        number = float(given)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise EvidenceError(
            f"{place}: credibility must be a number in [0, 1], got {given!r}. Nothing was read; "
            "leave it out where it is not known."
        ) from None
    return number


def _moment(given: object, place: str) -> datetime | None:
    """A time or its text in ISO 8601; one without a zone is in UTC, as in dataset files."""
    if is_missing(given):
        return None
    try:
        moment = given if isinstance(given, datetime) else datetime.fromisoformat(str(given))
    except ValueError:
        raise EvidenceError(
            f"{place}: timestamp is not a time in ISO 8601, got {given!r}. Nothing was read; "
            "write it as 2026-01-25T15:42:33Z."
        ) from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _name(given: object) -> str | None:
    """Numbers may name things, too."""
    return None if is_missing(given) else str(given)


def _kind(thing: object) -> str:
    return "a text" if isinstance(thing, str) else f"an object of the type {type(thing).__name__}"
