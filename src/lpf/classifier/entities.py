"""X: entities as users write them (texts, dicts, ``Evidence``), checked and in one form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
    """The evidence of one entity, and the claim it is read with."""

    evidence: tuple[Evidence, ...]
    claim: str | None = None


def read_entities(X: Iterable[EntityLike], name: str = "X") -> tuple[Entity, ...]:
    """The entities of X. EvidenceError names the place of what cannot be read, such as X[3][1]."""
    if isinstance(X, str | bytes | Mapping) or not isinstance(X, Iterable):
        raise EvidenceError(
            f"must be a list of entities, got {_kind(X)}. Nothing was read; write "
            f"{name} = [[text, text], [text], ...].",
            field=name,
        )
    return tuple(_read_entity(entity, f"{name}[{place}]") for place, entity in enumerate(X))


def claims_in(entities: Sequence[Entity]) -> bool:
    """Return True if any entity with evidence has a claim."""
    return any(entity.claim is not None for entity in entities if entity.evidence)


def is_missing(value: object) -> bool:
    """Return True for None, NaN, NaT and NA. The last three are not equal to themselves, or refuse
    to be compared."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:
        return True


def _read_entity(entity: EntityLike, place: str) -> Entity:
    if isinstance(entity, str | bytes | Evidence):
        raise EvidenceError(
            f"is {_kind(entity)}; {_AN_ENTITY}. Nothing was read; write X = [[text, text], ...], "
            "also for a single entity.",
            field=place,
        )
    if isinstance(entity, Mapping):
        return _with_claim(entity, place)
    if not isinstance(entity, Iterable):
        raise EvidenceError(f"is {_kind(entity)}; {_AN_ENTITY}. Nothing was read.", field=place)
    items = tuple(_evidence(item, f"{place}[{number}]") for number, item in enumerate(entity))
    claims = {item.claim for item in items}
    if len(claims) > 1:
        raise EvidenceError(
            f"its items have several claims, {sorted(map(str, claims))[:3]}. Nothing was read; "
            "split it into one entity per claim.",
            field=place,
        )
    return Entity(items, claims.pop() if claims else None)


def _with_claim(entity: Mapping[str, Any], place: str) -> Entity:
    _refuse_unknown(entity, ENTITY_FIELDS, f"{place}: {_AN_ENTITY}, or a dict; this dict")
    if "evidence" not in entity:
        raise EvidenceError("has no field 'evidence'. Nothing was read; add the list.", field=place)
    within = f"{place}['evidence']"
    if isinstance(entity["evidence"], Mapping):
        raise EvidenceError("is a dict; it must be a list. Nothing was read.", field=within)
    unclaimed = _read_entity(entity["evidence"], within)
    claim = entity.get("claim")
    if claim is None:
        return unclaimed
    _check_text(claim, f"{place}['claim']", "leave it out if there is none")
    if unclaimed.claim not in (None, claim):
        raise EvidenceError(
            f"its evidence has the claim {unclaimed.claim!r}, the entity {claim!r}. Nothing was "
            "read; give only one of them.",
            field=place,
        )
    return Entity(unclaimed.evidence, claim)


def _evidence(item: EvidenceLike, place: str) -> Evidence:
    if isinstance(item, Evidence):
        return item
    fields: Mapping[str, Any] = {"text": item} if isinstance(item, str) else item
    if not isinstance(fields, Mapping):
        raise EvidenceError(
            f"is {_kind(item)}; evidence is a text, a dict with the field 'text', or "
            "lpf.Evidence. Nothing was read.",
            field=place,
        )
    _refuse_unknown(fields, ITEM_FIELDS, f"{place}: evidence")
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
        raise EvidenceError(f"must be a text, got {_kind(text)}. Nothing was read.", field=place)
    if not text.strip():
        raise EvidenceError(f"the text is empty. Nothing was read; {remedy}.", field=place)


def _refuse_unknown(fields: Mapping[str, Any], known: tuple[str, ...], what: str) -> None:
    unknown = [name for name in fields if name not in known]
    if unknown:
        raise EvidenceError(
            f"{what} has the unknown field {unknown[0]!r}. Nothing was read; the fields are "
            f"{list(known)}."
        )


def _credibility(given: object, place: str) -> float | None:
    """None if it is missing. ``Evidence`` checks the range."""
    if is_missing(given):
        return None
    try:
        number = float(given)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise EvidenceError(
            f"credibility must be a number in [0, 1], got {given!r}. Nothing was read; leave it "
            "out if it is not known.",
            field=place,
        ) from None
    return number


def _moment(given: object, place: str) -> datetime | None:
    """From a datetime or ISO 8601. Without a time zone it is UTC, as in data set files."""
    if is_missing(given):
        return None
    try:
        moment = given if isinstance(given, datetime) else datetime.fromisoformat(str(given))
    except ValueError:
        raise EvidenceError(
            f"timestamp is not a time in ISO 8601, got {given!r}. Nothing was read; write it as "
            "2026-01-25T15:42:33Z.",
            field=place,
        ) from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _name(given: object) -> str | None:
    return None if is_missing(given) else str(given)


def _kind(thing: object) -> str:
    return "a text" if isinstance(thing, str) else f"an object of the type {type(thing).__name__}"
