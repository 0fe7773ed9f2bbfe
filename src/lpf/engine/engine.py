"""The order of the steps: which parts answer which kind of question."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from lpf.circuits import CompiledCircuit
from lpf.combine.combined import Combined, Segments, combine_average
from lpf.combine.learned import LearnedCombiner
from lpf.combine.paper import PaperParameters, combine_paper, credibility_weight
from lpf.combine.robust import RobustParameters, combine_robust
from lpf.combine.uncertainty import DRAW_SAMPLER, entity_keys, learned_uncertainty, spn_uncertainty
from lpf.engine.answers import Answers, Method
from lpf.engine.background import Background, check_values_agree, frozen
from lpf.engine.items import Facts, Items
from lpf.errors import ConfigError, EvidenceError
from lpf.factors.convert import ConversionConfig, Converter, StepTimes
from lpf.factors.keys import feature_keys
from lpf.model.runtime import Runtime
from lpf.schema import Schema
from lpf.types import Factors, FloatArray, Posteriors, QueryOptions

Combination = Callable[[FloatArray], Combined]


class Engine:
    """A model, a circuit and a schema, ready to answer."""

    def __init__(
        self, runtime: Runtime, schema: Schema, circuit: CompiledCircuit | None = None
    ) -> None:
        self.runtime = runtime
        self.schema = schema
        self.background = Background(schema, circuit)
        heads = {head.name: head.values for head in runtime.config.predicates}
        check_values_agree(schema, heads, "model")
        # Paper mode knows no ensemble: it answers with the best member, which comes first.
        self._best = runtime.member(0)
        self.conversion = lru_cache(maxsize=64)(self._make_conversion)
        self.shares = lru_cache(maxsize=64)(
            lambda predicate: frozen(np.array(runtime.config.head(predicate).training_shares))
        )
        self._learned = lru_cache(maxsize=2)(LearnedCombiner)

    def answer(
        self,
        items: Items,
        predicate: str,
        options: QueryOptions = QueryOptions(),  # noqa: B008 - frozen, so safe to share
        facts: Sequence[Facts] = (),
        factors: Factors | None = None,
        posteriors: Posteriors | None = None,
    ) -> Answers:
        """One answer an entity of ``items.segments`` (all items are one entity's without).
        ``facts`` has one entry an entity, or none at all. ``factors`` (or, for the variant
        ``learned``, ``posteriors``) are those of the items where they were made before."""
        self.schema[predicate]
        segments = items.segments
        if segments is None:
            segments = Segments.one(len(items.features))
        if facts and len(facts) != len(segments):
            raise EvidenceError(f"{len(facts)} entries of facts for {len(segments)} entities.")
        if any(facts) and (options.variant == "learned" or not self.background.covers(predicate)):
            raise ConfigError(
                f"facts: only the circuit can take them into account, and the variant 'learned' or "
                f"an average over {predicate!r} does not use it. Leave them out, or ask the "
                "variant 'spn' of a circuit that covers the predicate."
            )
        if options.variant == "learned":
            found = posteriors or self.posteriors(items, options)
            return self._answer_learned(items, predicate, options, segments, found)
        made = factors or self.factors(items, predicate, options)
        return self._answer_spn(items, predicate, options, segments, facts, made)

    def factors(
        self,
        items: Items,
        predicate: str,
        options: QueryOptions,
        times: StepTimes | None = None,
    ) -> Factors:
        """Algorithms 2 and 1: features to soft factors, as ``options`` ask for them."""
        converter, _ = self.conversion(predicate, options)
        return converter.from_features(items.features, items.keys, items.ids, times)

    def posteriors(self, items: Items, options: QueryOptions) -> Posteriors:
        """Algorithm 2 alone: features to q(z|e), under the members that ``options`` ask for."""
        return self.model_for(options).encode(items.features, items.ids)

    def model_for(self, options: QueryOptions) -> Runtime:
        """The members that answer: the best alone in paper mode, else all."""
        return self._best if options.mode == "paper" else self.runtime

    def robust_parameters(self, predicate: str) -> RobustParameters:
        """What was fitted for the predicate and kept with the model; else the defaults."""
        fitted = self.runtime.config.calibration.get(predicate)
        try:
            return RobustParameters() if fitted is None else RobustParameters.from_dict(fitted)
        except ConfigError as error:
            raise ConfigError(
                f"model {self.runtime.version}: what was fitted for {predicate!r} cannot be used: "
                f"{error} Nothing was answered; train again, or use another model."
            ) from error

    def learned_temperature(self, predicate: str, options: QueryOptions) -> float:
        """The one asked for; else, but in paper mode, what was fitted for the predicate."""
        if options.temperature is not None:
            return options.temperature
        fitted = self.runtime.config.learned_temperature
        return 1.0 if options.mode == "paper" else fitted.get(predicate, 1.0)

    def _answer_spn(
        self,
        items: Items,
        predicate: str,
        options: QueryOptions,
        segments: Segments,
        facts: Sequence[Facts],
        factors: Factors,
    ) -> Answers:
        converter, parameters = self.conversion(predicate, options)
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
        method: Method = "spn" if self.background.covers(predicate) else "average"
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
        self,
        items: Items,
        predicate: str,
        options: QueryOptions,
        segments: Segments,
        posteriors: Posteriors,
    ) -> Answers:
        temperature = self.learned_temperature(predicate, options)
        runtime = self.model_for(options)
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

    def _make_conversion(
        self, predicate: str, options: QueryOptions
    ) -> tuple[Converter, RobustParameters | PaperParameters]:
        """What one kind of question needs, prepared once."""
        parameters: RobustParameters | PaperParameters
        if options.mode == "paper":
            parameters = PaperParameters(
                2.0 if options.alpha is None else options.alpha,
                options.weight_form or "product",
            )
            sampler, temperature = options.sampler or "plain", 1.0
        else:
            parameters = self.robust_parameters(predicate)
            sampler, temperature = options.sampler or "mean", parameters.temperature
        if options.temperature is not None:
            temperature = options.temperature
        config = ConversionConfig(sampler, options.n_samples, temperature, options.seed)
        return Converter(self.model_for(options), predicate, config), parameters

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
        if not self.background.covers(predicate):
            return lambda potential: combine_average(potential, segments)
        log_prior = self.background.log_prior(predicate, facts)
        if isinstance(parameters, PaperParameters):
            assert weight is not None  # paper mode always computes it
            return lambda potential: combine_paper(potential, weight, log_prior, segments)
        shares, credibility = self.shares(predicate), items.credibility
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
