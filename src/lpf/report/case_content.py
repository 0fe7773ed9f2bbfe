"""Everything that a case file shows, gathered from a workspace.

``case_of_result`` takes an answer that was just given, ``case_of_record`` one from the ledger. A
record has no texts, so both look them up in the store, in the version that was read for the answer;
what was erased since is named as such.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from lpf.errors import LPFError, ProofError, UnknownEvidenceError, UnknownRecordError
from lpf.explain import AnswerExplanation, explain_record, explain_result
from lpf.explain.how_sure import how_sure, how_sure_then
from lpf.explain.sentences import not_used, reasons
from lpf.ledger import canonical, prove_inclusion
from lpf.model.artefact import WARNING_PREFIX, Artefact, ModelCard
from lpf.model.held_out import HeldOutAnswers
from lpf.report.case_calibration import CaseCalibration
from lpf.results import QueryResult
from lpf.review import AnswerFeedback
from lpf.storage.evidence import DamagedItem, StoredEvidence
from lpf.storage.values import iso

if TYPE_CHECKING:
    from lpf.workspace import Workspace

MINUTE: Final = len("2026-01-25T15:42")
NO_MODEL_METHODS: Final = ("canonical", "prior")
LARGEST_BUNDLE: Final = 100_000  # bytes that a page carries along
Chain = Sequence[tuple[str, str | None]]  # evidence IDs with the salted hash of what was read


@dataclass(frozen=True)
class CaseText:
    """What the store knows about an item. ``text`` is None if it cannot be shown; ``missing`` says
    why. ``is_replaced`` is True if the item has a newer version by now."""

    text: str | None = None
    missing: str = ""
    claim: str | None = None
    source: str | None = None
    date: str | None = None
    is_replaced: bool = False


@dataclass(frozen=True)
class CaseFact:
    """A known fact that was used. ``belief`` is the probability with which it counted."""

    predicate: str
    value: str
    belief: float
    is_certain: bool
    date: str
    source: str | None = None


@dataclass(frozen=True)
class CaseRelated:
    """What evidence about a related predicate says together, and its items by ID."""

    predicate: str
    distribution: Mapping[str, float]
    items: tuple[str, ...]


@dataclass(frozen=True)
class CaseModel:
    """The model that answered. ``card`` is None if it cannot be read, and ``problem`` says why;
    ``scores`` are those of whole held-out entities for this predicate and way of answering.
    ``calibration`` are its answers about held-out entities, if it has any that were given like this
    one."""

    version: str
    card: ModelCard | None = None
    scores: Mapping[str, float] = field(default_factory=dict)
    scored_on: str = ""
    calibration: CaseCalibration | None = None
    problem: str = ""

    @property
    def warnings(self) -> tuple[str, ...]:
        if self.card is None:
            return ()
        notes = [note for note in self.card.notes if note.startswith(WARNING_PREFIX)]
        marked = (note.removeprefix(WARNING_PREFIX) for note in notes)
        return (*self.card.verdicts(), *marked)


@dataclass(frozen=True)
class CaseProof:
    """Where the record is in the ledger. ``root``, ``size`` and ``signed_at`` belong to the newest
    checkpoint; they are None if none covers the record, and ``why_not`` says so. ``bundle`` is the
    proof as canonical JSON, None also if it is too large for a page."""

    record_id: str
    leaf: str
    key: str
    root: str | None = None
    size: int | None = None
    signed_at: str | None = None
    bundle: bytes | None = None
    why_not: str = ""


@dataclass(frozen=True)
class CaseContent:
    """One answer with all that its case file shows.

    ``sentences`` explain it in words, and ``how_sure`` say how far it may be relied on.
    ``prediction_set`` are the values that cannot be ruled out, or None. ``texts`` are those of the
    items and of related evidence, by ID. ``question`` are pairs of a name and a value, such as when
    it was asked. ``similar`` are known entity IDs like an unknown one. ``feedback``
    is what reviewers said about a recorded answer.
    """

    explanation: AnswerExplanation
    has_answer: bool = True
    sentences: tuple[str, ...] = ()
    prediction_set: tuple[str, ...] | None = None
    description: str = ""
    texts: Mapping[str, CaseText] = field(default_factory=dict)
    facts: tuple[CaseFact, ...] = ()
    related: tuple[CaseRelated, ...] = ()
    question: tuple[tuple[str, str], ...] = ()
    model: CaseModel | None = None
    proof: CaseProof | None = None
    similar: tuple[str, ...] = ()
    feedback: AnswerFeedback | None = None
    how_sure: tuple[str, ...] = ()

    @property
    def claims(self) -> tuple[str, ...]:
        """The different claims of the items, that of the first item first."""
        found = (self.texts.get(item.name, CaseText()).claim for item in self.explanation.items)
        return tuple(dict.fromkeys(claim for claim in found if claim is not None))


def case_of_result(
    workspace: Workspace,
    result: QueryResult,
    *,
    between: tuple[str, str] | None = None,
    explanation: AnswerExplanation | None = None,
    with_proof: bool = True,
) -> CaseContent:
    """The case of a live answer. Its sentences compare the values ``between``, by default the most
    probable ones; ``explanation`` is made here if it is not given."""
    if explanation is None:
        explanation = explain_result(result, workspace.engine, workspace.background)
    used = [one for one in (result.evidence, *(one.items for one in result.related)) if one]
    chain = [
        (name, mark.hex() if mark else None)
        for items in used
        for name, mark in zip(items.ids, items.commitments or [b""] * len(items), strict=True)
    ]
    question = [("asked", _minute(iso(result.timestamp)))]
    if result.as_of != result.timestamp:
        question.append(("as of", _minute(iso(result.as_of))))
    question += [("not used", ": ".join(one)) for one in not_used(explanation)]
    version = None if workspace.engine is None else workspace.engine.runtime.version
    return CaseContent(
        explanation,
        result.has_answer,
        tuple(reasons(explanation, between)),
        None if result.prediction_set is None else result.prediction_set.values,
        _description(workspace, result.predicate),
        _texts(workspace, chain),
        tuple(
            _fact(workspace, fact.fact_id, fact.predicate, fact.value, fact.strength,
                  fact.role == "hard", iso(fact.timestamp))
            for fact in result.facts
        ),
        tuple(
            CaseRelated(
                one.predicate,
                dict(zip(one.values, one.distribution, strict=True)),
                one.evidence_chain,
            )
            for one in result.related
        ),
        tuple(question),
        _model(workspace, version, explanation),
        _proof(workspace, result.record_id) if with_proof else None,
        result.similar or (),
        how_sure=tuple(how_sure(result)),
    )  # fmt: skip


def case_of_record(
    workspace: Workspace,
    record_id: str,
    *,
    between: tuple[str, str] | None = None,
    explanation: AnswerExplanation | None = None,
    with_proof: bool = True,
) -> CaseContent:
    """The case of a record, as it was answered then. UnknownRecordError if there is no such
    record."""
    fields = workspace.records.expand(workspace.records.get(record_id))
    if explanation is None:
        explanation = explain_record(fields)
    related = fields.get("related", ())
    chain = [
        (name, mark) for one in (fields, *related) for name, mark in one.get("evidence_chain", ())
    ]
    question = [("asked", _minute(fields["timestamp"]))]
    if fields["as_of"] != fields["timestamp"]:
        question.append(("as of", _minute(fields["as_of"])))
    if "asked_by" in fields:
        question.append(("asked by", fields["asked_by"]))
    version = fields["context"]["versions"]["model"]
    return CaseContent(
        explanation,
        fields["method"] != "prior",
        tuple(reasons(explanation, between)),
        tuple(fields["prediction_set"]["values"]) if "prediction_set" in fields else None,
        _description(workspace, fields["predicate"]),
        _texts(workspace, chain),
        tuple(
            _fact(workspace, fact["fact_id"], fact["predicate"], fact["value"], fact["strength"],
                  fact["role"] == "hard", fact["timestamp"])
            for fact in fields.get("facts", ())
        ),
        tuple(
            CaseRelated(
                one["predicate"],
                one["distribution"],
                tuple(name for name, _ in one["evidence_chain"]),
            )
            for one in related
        ),
        tuple(question),
        _model(workspace, version, explanation),
        _proof(workspace, record_id) if with_proof else None,
        feedback=workspace.reviews.of(record_id),
        how_sure=tuple(how_sure_then(fields)),
    )  # fmt: skip


def _minute(moment: str) -> str:
    return f"{moment[:MINUTE].replace('T', ' ')} UTC"


def _description(workspace: Workspace, predicate: str) -> str:
    """Empty for a record about a predicate that the schema does not have any more."""
    found = [one for one in workspace.schema if one.name == predicate]
    return found[0].description if found else ""


def texts_of_record(workspace: Workspace, record_id: str) -> dict[str, str]:
    """The texts that a recorded answer was computed from, by evidence ID, in the versions that were
    read. Of one that cannot be shown, the reason in brackets; an erased one is missing."""
    fields = workspace.records.get(record_id).fields
    chain = [(name, mark) for name, mark in fields.get("evidence_chain", ())]
    found = _texts(workspace, chain)
    return {
        name: one.text if one.text is not None else f"({one.missing})"
        for name, one in found.items()
    }


def _texts(workspace: Workspace, chain: Chain) -> dict[str, CaseText]:
    damaged: list[DamagedItem] = []
    current = workspace.evidence.get_many({name for name, _ in chain}, damaged)
    gone = workspace.evidence.erasure_times({name for name, _ in chain if name not in current})
    found: dict[str, CaseText] = {}
    for name, mark in chain:
        stored = current.get(name)
        if stored is not None and mark in (None, stored.commitment.hex()):
            found[name] = _text(stored)
        elif name in gone:
            found[name] = CaseText(missing=f"erased, {_minute(iso(gone[name]))}")
        else:
            found[name] = _older_text(workspace, name, mark)
    return found


def _older_text(workspace: Workspace, name: str, mark: str | None) -> CaseText:
    """The version with this salted hash, or why there is none."""
    damaged: list[DamagedItem] = []
    try:
        versions = workspace.evidence.versions(name, damaged)
    except UnknownEvidenceError:
        return CaseText(missing="not in this store")
    for stored in versions:
        if stored.commitment.hex() == mark:
            return _text(stored)
    return CaseText(missing="damaged in the store" if damaged else "not in this store")


def _text(stored: StoredEvidence) -> CaseText:
    item = stored.evidence
    return CaseText(
        item.text_content,
        "",
        item.claim,
        item.source,
        None if item.timestamp is None else _day(item.timestamp),
        stored.superseded_at is not None,
    )


def _day(moment: datetime) -> str:
    return moment.date().isoformat()


def _fact(
    workspace: Workspace,
    fact_id: int,
    predicate: str,
    value: str,
    belief: float,
    is_certain: bool,
    moment: str,
) -> CaseFact:
    try:
        source = workspace.facts.get(fact_id).source
    except LPFError:  # damaged, or of another store; the answer itself holds the rest
        source = None
    return CaseFact(predicate, value, belief, is_certain, moment[: len("2026-01-25")], source)


def _model(
    workspace: Workspace, version: str | None, explanation: AnswerExplanation
) -> CaseModel | None:
    method, predicate = explanation.method, explanation.predicate
    if version is None or method in NO_MODEL_METHODS:
        return None
    try:
        active = workspace.model if workspace.models.active() == version else None
        model = active or workspace.models.load(version)
    except LPFError as error:  # removed, or damaged since; the answer itself is in the record
        return CaseModel(version, problem=error.message)
    scores, scored_on = _scores(model.card, predicate, "learned" if method == "learned" else "spn")
    found = _calibration(model, explanation)
    return CaseModel(version, model.card, scores, scored_on, found)


def _calibration(model: Artefact, explanation: AnswerExplanation) -> CaseCalibration | None:
    """None if the model has no held-out answers that were given as this one."""
    known = model.config.held_out.get(explanation.predicate)
    if known is None or explanation.method != "spn" or explanation.mode != "robust":
        return None
    values = len(model.config.head(explanation.predicate).values)
    held = HeldOutAnswers.of(known.kind, values, model.tensors, explanation.predicate)
    sure = float(explanation.probabilities.max()) if explanation.items else None
    return CaseCalibration(held, sure)


def _scores(card: ModelCard, predicate: str, variant: str) -> tuple[Mapping[str, float], str]:
    """The held-out scores, and on what. A model without labels has its own short names."""
    own = [one for one in card.scores() if one.predicate == predicate and one.variant == variant]
    for data in dict.fromkeys(one.data for one in card.held_out()):
        for one in own:
            if one.data == data:
                return one.metrics, f"{data} entities".replace("out of fold", "held-out")
    names = ("accuracy", "nll", "ece", "ece_null")
    short = {
        name: card.metrics[f"{predicate}/{name}"]
        for name in names
        if f"{predicate}/{name}" in card.metrics
    }
    return short, "claims of public data sets" if short else ""


def _proof(workspace: Workspace, record_id: str | None) -> CaseProof | None:
    """None if the answer was not recorded, or its record is still being written."""
    if record_id is None:
        return None
    try:
        record = workspace.records.get(record_id)
    except UnknownRecordError:
        return None
    key = workspace.records.identity.public_key.hex()
    try:
        bundle = prove_inclusion(workspace.database, record_id)
    except ProofError as error:
        return CaseProof(record.record_id, record.leaf.hex(), key, why_not=str(error))
    checkpoint: Mapping[str, Any] = bundle["checkpoint"]
    content = canonical(bundle)
    return CaseProof(
        record.record_id,
        record.leaf.hex(),
        key,
        checkpoint["root"],
        checkpoint["size"],
        _minute(checkpoint["timestamp"]),
        content if len(content) <= LARGEST_BUNDLE else None,
    )


def texts_by_id(texts: Mapping[str, CaseText], ids: Iterable[str]) -> dict[str, str]:
    """What to show for each item: its text, or in brackets why there is none."""
    return {
        name: shown_text(texts.get(name, CaseText(missing="not in this store"))) for name in ids
    }


def shown_text(text: CaseText) -> str:
    return f"({text.missing})" if text.text is None else text.text
