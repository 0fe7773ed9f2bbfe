"""Replay: computes the distribution of a record again.

``replay`` starts from the factors in the record. ``replay_deep`` starts from the texts and the
recorded model: reading, encoding, conversion and combination run again, while credibility, copies
and known facts are taken from the record. Evidence about related predicates is read again too, and
goes through the circuit if that is still the recorded one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lpf.circuits import CompiledCircuit
from lpf.combine.combined import Combined, combine_average, normalised
from lpf.combine.learned import LearnedCombiner, join_members
from lpf.combine.paper import PaperParameters, combine_paper, credibility_weight
from lpf.combine.robust import RobustParameters, combine_robust
from lpf.errors import ReplayError, UnknownEvidenceError
from lpf.factors.convert import ConversionConfig, Converter
from lpf.factors.keys import item_keys
from lpf.index.features import known_reader
from lpf.items import Segments
from lpf.model.artefact import Artefact
from lpf.model.familiarity import without_wordless
from lpf.model.held_out import HeldOutAnswers
from lpf.model.runtime import Runtime
from lpf.orchestrator.judging import is_sure_enough, values_of_set
from lpf.orchestrator.known_facts import canonical_probabilities
from lpf.reading import Reader, ReadRequest
from lpf.reading.fitted_words import with_words, without_words
from lpf.reading.tuned import with_tuned
from lpf.reading.words import wordless
from lpf.storage.evidence import DamagedItem, EvidenceStore, StoredEvidence
from lpf.sureness import by_probability
from lpf.types import Float32Array, FloatArray

# How far float32 products may differ if the networks run on batches of another shape.
DEEP_TOLERANCE = 1e-5
ROUNDING = 1e-12
# The same for features, which are of the order of 1.
VECTOR_TOLERANCE = 1e-3


@dataclass(frozen=True)
class Replay:
    """What a record says and what was recomputed. ``exact`` means bit for bit. ``faults`` say what
    is wrong with the stored vectors that new questions would use, or with the record's prediction
    set or deferral."""

    record_id: str
    recorded: Mapping[str, float]
    recomputed: Mapping[str, float]
    deep: bool
    notes: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()

    @property
    def largest_difference(self) -> float:
        return max(abs(self.recorded[value] - self.recomputed[value]) for value in self.recorded)

    @property
    def exact(self) -> bool:
        return dict(self.recorded) == dict(self.recomputed)

    @property
    def agrees(self) -> bool:
        """The answer is the same, its set and deferral follow from it, and the stored vectors are
        those of the texts."""
        return self.same_answer and not self.faults

    @property
    def same_answer(self) -> bool:
        """From the record's factors: but for the last digits, which a later version may round
        otherwise. From texts: to 1e-5. With the same top value."""
        tolerance = DEEP_TOLERANCE if self.deep else ROUNDING
        return self.exact or (self.largest_difference <= tolerance and self.same_top)

    @property
    def same_top(self) -> bool:
        return _top(self.recorded) == _top(self.recomputed)


def replay(fields: Mapping[str, Any], notes: Sequence[str] = ()) -> Replay:
    """``fields`` are those of a record with its blobs filled in (``LedgerReader.expand``)."""
    return as_replay(fields, recombined(fields, fields.get("factors")), deep=False, notes=notes)


def as_replay(
    fields: Mapping[str, Any], distribution: FloatArray, *, deep: bool, notes: Sequence[str] = ()
) -> Replay:
    values = fields["context"]["values"]
    recomputed = dict(zip(values, distribution.tolist(), strict=True))
    faults = judging_faults(fields)
    return Replay(
        fields["record_id"], fields["distribution"], recomputed, deep, tuple(notes), faults
    )


def judging_faults(
    fields: Mapping[str, Any], held: HeldOutAnswers | None = None
) -> tuple[str, ...]:
    """What is wrong with the prediction set and the deferral of a record, given its distribution.
    With the model's held-out answers, their cutoffs are computed again."""
    values = tuple(fields["context"]["values"])
    probabilities = np.array([fields["distribution"][value] for value in values])
    faults = []
    recorded, decision = fields.get("prediction_set"), fields.get("decision")
    if recorded is not None:
        expected: Sequence[str] = values
        if recorded["cutoffs"] is not None:
            cutoffs = [_infinite(recorded["cutoffs"][value]) for value in values]
            expected = values_of_set(values, probabilities, cutoffs)
            if held is not None:
                again = held.cutoffs(recorded["coverage"], recorded["by_value"]).tolist()
                if again != cutoffs:
                    faults.append(
                        "the prediction set of the record has other cutoffs than its model"
                    )
        elif fields["method"] == "canonical":
            by_value = dict(zip(values, probabilities.tolist(), strict=True))
            expected = by_probability(by_value, recorded["coverage"])
        if list(expected) != recorded["values"]:
            faults.append("the prediction set does not follow from the answer")
    if decision is not None and "evidence_chain" in fields and decision["reachable"]:
        cutoff = _infinite(decision["cutoff"])
        unseen = "value_never_seen" in decision["reasons"]
        if decision["answered"] != (is_sure_enough(probabilities, cutoff) and not unseen):
            faults.append("whether the answer was given or deferred does not follow from it")
        if held is not None and held.deferral_cutoff(decision["max_risk"]) != cutoff:
            faults.append("the deferral has another cutoff than the model of the record")
    return tuple(faults)


def _infinite(number: float | None) -> float:
    return np.inf if number is None else number


def recombined(fields: Mapping[str, Any], factors: Mapping[str, Any] | None) -> FloatArray:
    """The distribution [V] that follows from ``factors`` under the record's settings."""
    context, method = fields["context"], fields["method"]
    if method == "canonical":
        fact = fields["facts"][0]
        values = tuple(context["values"])
        return np.array(canonical_probabilities(values, fact["value"], fact["confidence"]))
    base = as_row(fields.get("base", context["log_prior"]))
    if factors is None:
        nothing = np.empty((0, len(base)))
        return _only(normalised(base, nothing, Segments.one(0), {}).distribution)
    if method == "learned":
        members = np.array(factors["members"])[:, None]
        return _only(join_members(members, context["temperature"]))
    potential = np.array(factors["potential"])
    if method == "average":
        return _only(combine_average(potential, Segments.one(len(potential))).distribution)
    if method != "spn":
        raise ReplayError(f"{fields['record_id']}: the method {method!r} is not known here.")
    return _only(_by_circuit(context, factors, potential, base).distribution)


def as_row(listed: Sequence[float | None]) -> FloatArray:
    """Numbers of a record as an array; None means minus infinity."""
    return np.array([-np.inf if number is None else number for number in listed])


def _by_circuit(
    context: Mapping[str, Any], factors: Mapping[str, Any], potential: FloatArray, base: FloatArray
) -> Combined:
    numbers, segments = context["parameters"], Segments.one(len(potential))
    if context["hyperparameters"]["mode"] == "paper":
        parameters = PaperParameters(numbers["alpha"], numbers["weight_form"])
        weight = credibility_weight(np.array(factors["mean_sigma"]), parameters)
        return combine_paper(potential, weight, base, segments)
    credibility = [np.nan if c is None else c for c in factors["credibility"]]
    return combine_robust(
        potential,
        np.array(credibility),
        np.array(context["training_shares"]),
        base,
        segments,
        RobustParameters.from_dict(numbers),
        _numbered(factors.get("group")),
        _numbered(factors.get("source")),
        None if "familiarity" not in factors else np.array(factors["familiarity"]),
        None if "relevance" not in factors else np.array(factors["relevance"]),
        None if "silent" not in context else np.array(context["silent"]),
        None if "stances" not in factors else np.array(factors["stances"]),
        np.array(context["occurrence_ratios"]) if "occurrence_ratios" in context else None,
    )


def _only(rows: FloatArray) -> FloatArray:
    return np.asarray(rows[0])


def _numbered(listed: Sequence[int] | None) -> Any:
    return None if listed is None else np.array(listed, dtype=np.int64)


def _top(distribution: Mapping[str, float]) -> str:
    return max(distribution, key=distribution.__getitem__)


def replay_deep(
    fields: Mapping[str, Any],
    store: EvidenceStore,
    open_reader: Callable[[], Reader],
    load_model: Callable[[str], Artefact],
    circuit: CompiledCircuit | None = None,
) -> Replay:
    """``fields`` are those of a record with its blobs filled in; ``circuit`` is the one in use now.
    ReplayError names the text, reader or model that is missing."""
    by_evidence = fields["method"] in ("spn", "learned", "average")
    if not by_evidence or not ("evidence_chain" in fields or "related" in fields):
        note = "the answer is not based on evidence: there is no text to read again"
        return as_replay(fields, recombined(fields, None), deep=True, notes=[note])
    context = fields["context"]
    texts = _texts(fields["record_id"], fields.get("evidence_chain", ()), store)
    related = [
        (one, _texts(fields["record_id"], one["evidence_chain"], store))
        for one in fields.get("related", ())
    ]
    model = load_model(context["versions"]["model"])
    pinned = open_reader().pinned(without_words(context["versions"]["reader"]))
    reader = with_words(with_tuned(pinned, model.tuned), model.words)
    again = _Again(_same_reader(fields, reader), model.runtime())
    notes: list[str] = []
    recorded_claim = fields.get("claim_alone")
    if recorded_claim is not None:
        fields = {**fields, "base": (as_row(fields["base"]) - as_row(recorded_claim)).tolist()}
    if related:
        fields, notes = _with_related(fields, related, again, circuit)
    if recorded_claim is not None:
        taken_out = again.claim_alone(context["predicate"], texts)
        fields = {**fields, "base": (as_row(fields["base"]) + taken_out).tolist()}
    if not texts:
        replayed = as_replay(fields, recombined(fields, None), deep=True, notes=notes)
        return replace(replayed, faults=replayed.faults + again.changed_vectors(store))
    if fields["method"] == "learned":
        distribution = again.learned(context, texts)
    else:
        factors = again.factors(context["predicate"], context, fields["factors"], texts)
        distribution = recombined(fields, factors)
    replayed = as_replay(fields, distribution, deep=True, notes=notes)
    faults = judging_faults(fields, again.held_out(context["predicate"]))
    return replace(replayed, faults=faults + again.changed_vectors(store))


def _with_related(
    fields: Mapping[str, Any],
    related: Sequence[tuple[Mapping[str, Any], Sequence[StoredEvidence]]],
    again: _Again,
    circuit: CompiledCircuit | None,
) -> tuple[Mapping[str, Any], list[str]]:
    """The record's fields with ``base`` computed from the texts about related predicates, or, if
    that circuit is gone, unchanged and with a note."""
    messages = {}
    for one, texts in related:
        name, context = one["predicate"], fields["context"]["related"][one["predicate"]]
        factors = again.factors(name, context, one["factors"], texts)
        combined = _by_circuit(
            {**context, "hyperparameters": fields["context"]["hyperparameters"]},
            factors,
            np.array(factors["potential"]),
            as_row(context["log_prior"]),
        )
        messages[name] = combined.contributions.sum(axis=0)
        recomputed = dict(zip(context["values"], combined.distribution[0].tolist(), strict=True))
        furthest = max(abs(one["distribution"][value] - p) for value, p in recomputed.items())
        if furthest > DEEP_TOLERANCE:
            raise ReplayError(
                f"{fields['record_id']}: the texts about {name!r} do not say what the record says "
                f"(probabilities differ by {furthest:.2g}). Replay without --deep uses the "
                "recorded numbers."
            )
    recorded = fields["context"]["versions"]["circuit"]
    if circuit is None or circuit.circuit.hash != recorded:
        note = (
            "the circuit was learned again since: the texts about related predicates say the same, "
            "but what they add to the answer was taken from the record"
        )
        return fields, [note]
    values = {variable.name: variable.values for variable in circuit.circuit.variables}
    facts = fields.get("facts", ())
    hard = {fact["predicate"]: fact["value"] for fact in facts if fact["role"] == "hard"}
    soft = {
        fact["predicate"]: canonical_probabilities(
            values[fact["predicate"]], fact["value"], fact["strength"]
        )
        for fact in facts
        if fact["role"] == "soft"
    }
    joint = circuit.log_joint(fields["predicate"], hard, soft, messages)
    return {**fields, "base": joint.tolist()}, []


def _texts(
    record_id: str, chain: Sequence[tuple[str, str]], store: EvidenceStore
) -> list[StoredEvidence]:
    """The texts that were read, in the version of that time, checked against the hashes in the
    record."""
    return [_text(record_id, name, commitment, store) for name, commitment in chain]


def _text(record: str, evidence_id: str, commitment: str, store: EvidenceStore) -> StoredEvidence:
    damaged: list[DamagedItem] = []
    try:
        versions = store.versions(evidence_id, damaged)
    except UnknownEvidenceError as error:
        raise ReplayError(
            f"{record}: cannot be recomputed from texts: {error} The record's own factors still "
            "give its answer: replay without --deep."
        ) from error
    for stored in versions:
        if stored.commitment.hex() == commitment:
            return stored
    reason = damaged[0].reason if damaged else "its salted hash differs"
    raise ReplayError(
        f"{record}: the text of {evidence_id!r} is not the one that was read ({reason}). Replay "
        "without --deep uses the recorded factors."
    )


def _same_reader(fields: Mapping[str, Any], reader: Reader) -> Reader:
    recorded = fields["context"]["versions"]["reader"]
    if reader.reader_id != recorded:
        raise ReplayError(
            f"{fields['record_id']}: was read by {recorded!r}, the workspace has "
            f"{reader.reader_id!r}. Set that reader in lpf.toml to recompute it from texts."
        )
    return reader


def _left_out_wordless(
    recorded: Mapping[str, Any], texts: Sequence[StoredEvidence]
) -> NDArray[np.bool_] | None:
    """The texts without a word that the record gives no weight, [N]; None if there are none. In
    records from before they were left out, they have the weight that the model gave them."""
    found = wordless(one.evidence.text_content for one in texts)
    if found is None or "familiarity" not in recorded:
        return None
    return np.asarray(found & (np.array(recorded["familiarity"]) == 0.0))


class _Again:
    """The recorded reader and model, which read texts again."""

    def __init__(self, reader: Reader, runtime: Runtime) -> None:
        self._reader = reader
        self._runtime = runtime
        self._read: list[tuple[StoredEvidence, Float32Array]] = []

    def learned(self, context: Mapping[str, Any], texts: Sequence[StoredEvidence]) -> FloatArray:
        """The answer of the learned aggregator, [V]."""
        model, features = self._model(context), self._features(texts)
        combined = LearnedCombiner(model).combine(
            model.encode(features),
            Segments.one(len(features)),
            context["predicate"],
            context["temperature"],
        )
        return np.asarray(combined.distribution[0])

    def factors(
        self,
        predicate: str,
        context: Mapping[str, Any],
        recorded: Mapping[str, Any],
        texts: Sequence[StoredEvidence],
    ) -> dict[str, Any]:
        """The record's factors with potentials, sigmas, familiarity, relevance and stances
        computed again."""
        sampler = context["sampler"]
        config = ConversionConfig(
            sampler["name"], sampler["n_samples"] or None, sampler["temperature"], sampler["seed"]
        )
        keys = item_keys(
            [one.evidence.text_content for one in texts],
            [one.evidence.claim for one in texts],
            self._reader.reader_id,
        )
        model, features = self._model(context), self._features(texts)
        recomputed = Converter(model, predicate, config).from_features(features, keys)
        factors = {
            **recorded,
            "potential": recomputed.potential.tolist(),
            "mean_sigma": recomputed.mean_sigma.tolist(),
        }
        for name in ("familiarity", "relevance", "stances"):
            factors.pop(name, None)
        known = model.familiarity_of(predicate)
        familiarity = without_wordless(
            None if known is None else known(features), _left_out_wordless(recorded, texts)
        )
        if familiarity is not None:
            factors["familiarity"] = familiarity.tolist()
        relevance = model.relevance(predicate, features)
        if relevance is not None:
            factors["relevance"] = relevance.tolist()
        stances = model.stances(predicate, features)
        if stances is not None:
            factors["stances"] = stances.tolist()
        return factors

    def claim_alone(self, predicate: str, texts: Sequence[StoredEvidence]) -> FloatArray:
        """What takes out of the answer what the claim alone gives away, [V]."""
        features = self._features(texts)
        known = self._runtime.claim_alone[predicate]
        return np.asarray(known.taken_out(features, Segments.one(len(features)))[0])

    def held_out(self, predicate: str) -> HeldOutAnswers | None:
        return self._runtime.held_out.get(predicate)

    def _model(self, context: Mapping[str, Any]) -> Runtime:
        return self._runtime.member(0) if context["members"] == "best" else self._runtime

    def _features(self, texts: Sequence[StoredEvidence]) -> Float32Array:
        requests = [ReadRequest(one.evidence.text_content, one.evidence.claim) for one in texts]
        features = self._reader.read_many(requests)
        self._read += zip(texts, features, strict=True)
        return features

    def changed_vectors(self, store: EvidenceStore) -> tuple[str, ...]:
        """The items whose stored vector is not the one that was read from the text now."""
        number = known_reader(store, self._reader.reader_id)
        if number is None:
            return ()
        expected = {one.row_id: features for one, features in self._read}
        changed = store.changed_vectors(number, expected, VECTOR_TOLERANCE)
        names = [one.evidence.evidence_id for one, _ in self._read if one.row_id in changed]
        return tuple(
            f"{name}: its stored vector is not what the reader gives for its text; 'lpf doctor "
            "--full' lists all damaged items"
            for name in dict.fromkeys(names)
        )
