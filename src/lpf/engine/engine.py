"""The order of the steps: which parts answer which kind of question."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from lpf.combine.average import combine_average
from lpf.combine.combined import Combined, Segments
from lpf.combine.learned import LearnedCombiner
from lpf.combine.paper import PaperParameters, combine_paper, credibility_weight
from lpf.combine.robust import RobustParameters, combine_robust
from lpf.engine.answers import Answers, Method
from lpf.engine.items import Facts, Items
from lpf.errors import ConfigError, EvidenceError, SchemaError
from lpf.factors.convert import ConversionConfig, Converter
from lpf.factors.keys import feature_keys
from lpf.model.runtime import Runtime
from lpf.schema import Schema
from lpf.spn import Circuit, CompiledCircuit, Variable, compile_circuit, prior_circuit
from lpf.types import FloatArray, QueryOptions
from lpf.uncertainty.draws import (
    DRAW_SAMPLER,
    entity_keys,
    learned_uncertainty,
    spn_uncertainty,
)

Combination = Callable[[FloatArray], Combined]


class Engine:
    """A model, a circuit and a schema, ready to answer."""

    def __init__(
        self, runtime: Runtime, schema: Schema, circuit: CompiledCircuit | None = None
    ) -> None:
        self.runtime = runtime
        self.schema = schema
        self.circuit = circuit or compile_circuit(_prior_only(schema))
        _check_values_agree(runtime, schema, self.circuit)
        # Paper mode knows no ensemble: it answers with the best member, which comes first.
        self._best = runtime.member(0)
        self._converter = lru_cache(maxsize=64)(self._make_converter)
        self._log_prior = lru_cache(maxsize=64)(self._make_log_prior)
        self._shares = lru_cache(maxsize=64)(
            lambda predicate: _frozen(np.array(runtime.config.head(predicate).training_shares))
        )
        self._learned = lru_cache(maxsize=2)(LearnedCombiner)

    def answer(
        self,
        items: Items,
        predicate: str,
        options: QueryOptions = QueryOptions(),  # noqa: B008 - frozen, so safe to share
        facts: Sequence[Facts] = (),
    ) -> Answers:
        """One answer an entity of ``items.segments`` (all items are one entity's without).
        ``facts`` has one entry an entity, or none at all."""
        self.schema[predicate]
        segments = items.segments
        if segments is None:
            segments = Segments.one(len(items.features))
        if facts and len(facts) != len(segments):
            raise EvidenceError(f"{len(facts)} entries of facts for {len(segments)} entities.")
        if any(facts) and (options.variant == "learned" or not self.circuit.covers(predicate)):
            raise ConfigError(
                f"facts: only the circuit can take them into account, and the variant 'learned' or "
                f"an average over {predicate!r} does not use it. Leave them out, or ask the "
                "variant 'spn' of a circuit that covers the predicate."
            )
        if options.variant == "learned":
            return self._answer_learned(items, predicate, options, segments)
        return self._answer_spn(items, predicate, options, segments, facts)

    def robust_parameters(self, predicate: str) -> RobustParameters:
        """What was fitted for the predicate and kept with the model; else the defaults."""
        fitted = self.runtime.config.calibration.get(predicate)
        return RobustParameters() if fitted is None else RobustParameters.from_dict(fitted)

    def _answer_spn(
        self,
        items: Items,
        predicate: str,
        options: QueryOptions,
        segments: Segments,
        facts: Sequence[Facts],
    ) -> Answers:
        converter, parameters = self._converter(predicate, options)
        factors = converter.from_features(items.features, items.keys, items.ids)
        weight: FloatArray | None = None
        if isinstance(parameters, PaperParameters):
            weight = credibility_weight(factors.mean_sigma, parameters)
        combine = self._combination(items, predicate, parameters, segments, facts, weight)
        combined = combine(factors.potential)
        uncertainty = None
        if options.uncertainty_samples:
            uncertainty = spn_uncertainty(
                converter,
                items.features,
                items.keys,
                options.uncertainty_samples,
                combine,
                combined,
            )
        method: Method = "spn" if self.circuit.covers(predicate) else "average"
        return Answers(
            predicate,
            factors.values,
            combined.distribution,
            method,
            combined,
            factors,
            weight,
            parameters,
            uncertainty,
            tuple(map(bool, facts)),
        )

    def _answer_learned(
        self, items: Items, predicate: str, options: QueryOptions, segments: Segments
    ) -> Answers:
        temperature = 1.0 if options.temperature is None else options.temperature
        runtime = self._best if options.mode == "paper" else self.runtime
        posteriors = runtime.encode(items.features, items.ids)
        combined = self._learned(runtime).combine(posteriors, segments, predicate, temperature)
        uncertainty = None
        if options.uncertainty_samples:
            keys = feature_keys(items.features) if items.keys is None else items.keys
            uncertainty = learned_uncertainty(
                runtime,
                ConversionConfig(
                    DRAW_SAMPLER, options.uncertainty_samples, temperature, options.seed
                ),
                predicate,
                combined,
                entity_keys(keys, segments),
            )
        values = self.runtime.config.head(predicate).values
        return Answers(
            predicate, values, combined.distribution, "learned", combined, None, None, None,
            uncertainty,
        )  # fmt: skip

    def _make_converter(
        self, predicate: str, options: QueryOptions
    ) -> tuple[Converter, RobustParameters | PaperParameters]:
        """What one kind of question needs, prepared once."""
        parameters: RobustParameters | PaperParameters
        if options.mode == "paper":
            parameters = PaperParameters(
                2.0 if options.alpha is None else options.alpha,
                options.weight_form or "product",  # type: ignore[arg-type]
            )
            runtime, sampler, temperature = self._best, options.sampler or "plain", 1.0
        else:
            parameters = self.robust_parameters(predicate)
            runtime, sampler = self.runtime, options.sampler or "mean"
            temperature = parameters.temperature
        if options.temperature is not None:
            temperature = options.temperature
        config = ConversionConfig(sampler, options.n_samples, temperature, options.seed)
        return Converter(runtime, predicate, config), parameters

    def _combination(
        self,
        items: Items,
        predicate: str,
        parameters: RobustParameters | PaperParameters,
        segments: Segments,
        facts: Sequence[Facts],
        weight: FloatArray | None,
    ) -> Combination:
        """Everything but the potentials, so that draws are combined exactly as the answer is."""
        if not self.circuit.covers(predicate):
            return lambda potential: combine_average(potential, segments)
        log_prior = self.log_prior(predicate, facts)
        if isinstance(parameters, PaperParameters):
            assert weight is not None  # paper mode always computes it
            return lambda potential: combine_paper(potential, weight, log_prior, segments)
        shares, credibility = self._shares(predicate), items.credibility
        if credibility is None:
            credibility = np.full(len(items.features), np.nan)
        return lambda potential: combine_robust(
            potential,
            credibility,
            shares,
            log_prior,
            segments,
            parameters,
            items.groups,
            items.sources,
        )

    def log_prior(self, predicate: str, facts: Sequence[Facts]) -> FloatArray:
        """log P_circuit(y, F): [V] where no entity has facts, else [E, V]."""
        if not any(facts):
            return self._log_prior(predicate)
        rows = [
            self.circuit.log_joint(predicate, known.hard, known.soft)
            if known
            else self._log_prior(predicate)
            for known in facts
        ]
        return np.stack(rows)

    def _make_log_prior(self, predicate: str) -> FloatArray:
        return _frozen(self.circuit.log_joint(predicate))


def _check_values_agree(runtime: Runtime, schema: Schema, circuit: CompiledCircuit) -> None:
    """Arrays are matched by position, so model, schema and circuit must list values alike."""
    variables = {variable.name: variable.values for variable in circuit.circuit.variables}
    heads = {head.name: head.values for head in runtime.config.predicates}
    for predicate in schema:
        for whose, lists in (("model", heads), ("circuit", variables)):
            values = lists.get(predicate.name, predicate.values)
            if tuple(values) != predicate.values:
                raise SchemaError(
                    f"predicate {predicate.name!r}: the schema lists {list(predicate.values)}, the "
                    f"{whose} {list(values)}. Values must be the same, in the same order."
                )


def _frozen(array: FloatArray) -> FloatArray:
    """Kept between answers, so nobody may write into it."""
    array.flags.writeable = False
    return array


def _prior_only(schema: Schema) -> Circuit:
    variables = [Variable(predicate.name, predicate.values) for predicate in schema]
    return prior_circuit(variables, {predicate.name: predicate.prior for predicate in schema})
