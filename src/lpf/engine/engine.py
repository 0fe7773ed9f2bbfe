"""The engine: chooses and runs the steps for a question, and returns ``Answers``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lpf.circuits import CompiledCircuit
from lpf.combine.combined import Combined, combine_average
from lpf.combine.learned import LearnedCombined, LearnedCombiner
from lpf.combine.paper import PaperParameters, combine_paper, credibility_weight
from lpf.combine.robust import RobustParameters, combine_robust
from lpf.combine.uncertainty import (
    DRAW_SAMPLER,
    Uncertainty,
    entity_blocks,
    entity_keys,
    learned_uncertainty,
    spn_uncertainty,
)
from lpf.engine.background import Background, Facts, check_values_agree, read_only
from lpf.engine.factor_cache import FactorCache
from lpf.errors import ConfigError, EvidenceError
from lpf.factors.convert import ConversionConfig, Converter, StepTimes
from lpf.factors.keys import feature_keys
from lpf.items import Items, Segments
from lpf.model.claim_alone import ClaimAlone
from lpf.model.familiarity import without_wordless
from lpf.model.held_out import HeldOutAnswers
from lpf.model.runtime import Runtime
from lpf.options import DEFAULT_MIN_CREDIBILITY
from lpf.schema import Schema
from lpf.types import Factors, FloatArray, Posteriors, QueryOptions, SoftFactor

Parameters = RobustParameters | PaperParameters
Combination = Callable[[FloatArray], Combined]


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers for E entities: ``distribution`` [E, V] over ``values``, and how it was computed.

    ``method`` is what was actually used: ``average`` if the circuit does not cover the predicate.
    ``factors`` are None for the variant ``learned``. ``weight`` [N] is paper mode's, else None.
    ``has_facts`` says which entities came with known facts; it is empty if none did.
    ``familiarity`` [N] is 1 for items like the training texts and 0 for items unlike all of them;
    None if the model cannot tell. A text without a word has 0 with every model; ``knows_texts`` is
    False if the model can tell nothing else. Only robust mode's variant ``spn`` weighs items by it.
    ``relevance`` [N] is how much each item says about its claim, from 0 to 1; None if items were
    not weighed by it. ``stances`` [N, 3] are the chances of each stance; None if it plays no part
    which of them occur. ``claim_alone`` [E, V] is what the answer was multiplied by, in log space,
    to take out what the claim alone gives away; None if that was not asked for.
    """

    predicate: str
    values: tuple[str, ...]
    distribution: FloatArray
    method: Literal["spn", "learned", "average"]
    combined: Combined | LearnedCombined
    factors: Factors | None
    weight: FloatArray | None
    parameters: Parameters | None
    uncertainty: Uncertainty | None
    has_facts: tuple[bool, ...] = ()
    familiarity: FloatArray | None = None
    knows_texts: bool = True
    relevance: FloatArray | None = None
    stances: FloatArray | None = None
    claim_alone: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.distribution)

    def top(self, position: int = 0) -> tuple[str, float]:
        """The most probable value of an entity and its probability."""
        row = self.distribution[position]
        best = int(row.argmax())
        return self.values[best], float(row[best])

    def source(self, position: int = 0) -> Literal["inference", "facts", "none"]:
        """What the answer is based on: ``inference`` from evidence, known ``facts`` without
        evidence, or ``none``, that is, the prior alone."""
        if self.combined.segments.counts[position] > 0:
            return "inference"
        return "facts" if self.has_facts and self.has_facts[position] else "none"

    def soft_factor(self, position: int, group_id: str | None = None) -> SoftFactor:
        """One item's factor. Its weight is the exponent it entered with. ConfigError for the
        variant ``learned``, which has no factors."""
        if self.factors is None or not isinstance(self.combined, Combined):
            raise ConfigError("the variant 'learned' has weights, not factors.")
        parts = self.combined.parts
        named = {
            name: float(parts[name][position]) for name in ("epsilon", "exponent") if name in parts
        }
        weight = named.get("exponent", 1.0 / len(self.factors))
        return self.factors.item(position, weight, group_id, **named)

    def fill(self, items: Items, entity: int) -> None:
        """Writes the results for one entity's items into ``items``: weight, factors and
        contributions, or the members' distributions."""
        combined, factors = self.combined, self.factors
        rows = combined.segments.rows(entity)
        items.familiarity = self.item_familiarity(rows)
        items.relevance = self.item_relevance(rows)
        items.stances = None if self.stances is None else self.stances[rows]
        if isinstance(combined, LearnedCombined):
            items.weight, items.members = combined.weight[rows], combined.members[:, entity]
            return
        assert factors is not None  # only the variant learned has none
        items.potential, items.mean_sigma = factors.potential[rows], factors.mean_sigma[rows]
        items.contributions = combined.contributions[rows]
        if "exponent" in combined.parts:
            items.weight = combined.parts["exponent"][rows]
        else:
            items.weight = read_only(np.full(len(items), 1.0 / len(items)))

    def item_familiarity(self, rows: slice) -> FloatArray | None:
        """The familiarity of an entity's items; it does not depend on the other entities."""
        if self.familiarity is None:
            return None
        part = self.familiarity[rows]
        return part if self.knows_texts or bool((part < 1.0).any()) else None

    def item_relevance(self, rows: slice) -> FloatArray | None:
        """The relevance of an entity's items."""
        return None if self.relevance is None else self.relevance[rows]

    def freeze(self) -> None:
        """Makes all arrays that ``fill`` hands out read-only: records are written from them after
        the caller has the result."""
        combined, factors = self.combined, self.factors
        if isinstance(combined, LearnedCombined):
            arrays = [combined.weight, combined.members]
        else:
            assert factors is not None  # only the variant learned has none
            arrays = [factors.potential, factors.mean_sigma, combined.contributions, combined.base]
            arrays += [combined.parts[name] for name in ("exponent",) if name in combined.parts]
        others = (self.familiarity, self.relevance, self.stances, self.claim_alone)
        arrays += [one for one in others if one is not None]
        for array in arrays:
            read_only(array)


class Engine:
    """A model, a circuit and a schema, ready to answer. With a ``cache``, what was computed for
    items that have content keys is stored there and used again."""

    def __init__(
        self,
        runtime: Runtime,
        schema: Schema,
        circuit: CompiledCircuit | None = None,
        cache: FactorCache | None = None,
    ) -> None:
        self.runtime = runtime
        self.schema = schema
        self.background = Background(schema, circuit)
        heads = {head.name: head.values for head in runtime.config.predicates}
        check_values_agree(schema, heads, "model")
        self.reads = frozenset(heads).__contains__  # predicates that the model answers
        self._cache = None if cache is None or cache.is_off else cache
        # Paper mode has no ensemble: it answers with the best member, which comes first.
        self._best = runtime.member(0)
        self.conversion = lru_cache(maxsize=64)(self._make_conversion)
        self.shares = lru_cache(maxsize=64)(
            lambda predicate: read_only(np.array(runtime.config.head(predicate).training_shares))
        )
        self._ratios = lru_cache(maxsize=64)(
            lambda predicate: read_only(np.array(runtime.config.head(predicate).occurrence_ratios))
        )
        self.silent = lru_cache(maxsize=64)(self._make_silent)
        self._learned = lru_cache(maxsize=2)(LearnedCombiner)

    def answer(
        self,
        items: Items,
        predicate: str,
        options: QueryOptions = QueryOptions(),  # noqa: B008 - frozen, so safe to share
        facts: Sequence[Facts] = (),
        *,
        factors: Factors | None = None,
        posteriors: Posteriors | None = None,
        log_prior: FloatArray | None = None,
    ) -> Answers:
        """One answer per entity of ``items``. ``facts`` has one entry per entity, or none at all.
        ``factors`` (or, for the variant ``learned``, ``posteriors``) are those of the items, and
        ``log_prior`` [E, V] is what the circuit says with the facts, if they have been computed
        already."""
        self.schema[predicate]  # UnknownPredicateError
        segments = items.layout
        if facts and len(facts) != len(segments):
            raise EvidenceError(f"{len(facts)} entries of facts for {len(segments)} entities.")
        if any(facts) and (options.variant == "learned" or not self.background.covers(predicate)):
            raise ConfigError(
                f"facts: only the circuit can take them into account, and the variant 'learned' or "
                f"an average over {predicate!r} does not use it. Leave them out, or use the "
                "variant 'spn' of a circuit that covers the predicate."
            )
        if options.variant == "learned":
            if posteriors is None:
                posteriors = self.posteriors(items, options)
            return self._answer_learned(items, predicate, options, segments, posteriors)
        if factors is None:
            factors = self.factors(items, predicate, options)
        if log_prior is None:
            log_prior = self.background.log_prior(predicate, facts)
        claim_alone = None
        if options.without_claim_prior:
            claim_alone = self.claim_alone(predicate).taken_out(items.features, segments)
            log_prior = log_prior + claim_alone
        answers = self._answer_spn(items, predicate, options, segments, facts, factors, log_prior)
        return answers if claim_alone is None else replace(answers, claim_alone=claim_alone)

    def claim_alone(self, predicate: str) -> ClaimAlone:
        """What the claim alone says. ConfigError if the model does not know, or if the circuit,
        out of whose product it is taken, does not cover the predicate."""
        known = self.runtime.claim_alone.get(predicate)
        if known is not None and self.background.covers(predicate):
            return known
        why = f"the circuit does not cover {predicate!r}"
        if known is None:
            why = f"model {self.runtime.version} does not know what a claim alone says about "
            why += f"{predicate!r}: it is from before that was fitted, or had too few claims"
        raise ConfigError(
            f"{why}. Nothing was answered.",
            field="options.without_claim_prior",
            hint="Leave the option out, or train a model on entities with different claims.",
        )

    def held_out(self, predicate: str, option: str) -> HeldOutAnswers:
        """What the model knows of held-out entities. ConfigError about ``option``, which needs it,
        if it knows nothing, or if the circuit, which answered them, does not cover the
        predicate."""
        known = self.runtime.held_out.get(predicate)
        if known is not None and self.background.covers(predicate):
            return known
        why = f"the circuit does not cover {predicate!r}"
        hint = "Leave the option out."
        if known is None:
            why = f"model {self.runtime.version} has no answers about held-out entities for "
            why += f"{predicate!r}: it was not trained on labels, or by an earlier version"
            hint = "Train again on labelled entities ('lpf train'), or leave the option out."
        raise ConfigError(f"{why}. Nothing was answered.", field=option, hint=hint)

    def factors(
        self,
        items: Items,
        predicate: str,
        options: QueryOptions,
        times: StepTimes | None = None,
    ) -> Factors:
        """Algorithms 2 and 1: features to soft factors, as ``options`` say. ``times``
        collects how long encoding and converting took."""
        converter, _ = self.conversion(predicate, options)

        def compute(some: Items) -> Factors:
            return converter.from_features(some.features, some.keys, some.ids, times)

        if self._cache is None or not items.content_keys:
            return compute(items)
        return self._cache.factors(items, converter, compute)

    def posteriors(self, items: Items, options: QueryOptions) -> Posteriors:
        """Algorithm 2 alone: features to q(z|e), under the members that ``options`` select."""
        model = self.model_for(options)

        def compute(some: Items) -> Posteriors:
            return model.encode(some.features, some.ids)

        if self._cache is None or not items.content_keys:
            return compute(items)
        shape = (model.members, model.config.encoder.latent_width)
        return self._cache.posteriors(items, model.version, shape, compute)

    def familiarity(self, items: Items, predicate: str) -> FloatArray | None:
        """How like the training texts of the predicate each item is, [N]; 0 for a text without a
        word. None if the model cannot tell and every text has one."""
        known = self.runtime.familiarity_of(predicate)
        weights = None if known is None else known(items.features)
        return without_wordless(weights, items.wordless)

    def model_for(self, options: QueryOptions) -> Runtime:
        """The members that answer: the best alone in paper mode, else all."""
        return self._best if options.mode == "paper" else self.runtime

    def robust_parameters(self, predicate: str) -> RobustParameters:
        """The parameters fitted for the predicate, stored with the model; else the defaults."""
        fitted = self.runtime.config.calibration.get(predicate)
        try:
            return RobustParameters() if fitted is None else RobustParameters.from_dict(fitted)
        except ConfigError as error:
            raise ConfigError(
                f"model {self.runtime.version}: the parameters of {predicate!r} cannot be used: "
                f"{error} Nothing was answered; train again, or use another model."
            ) from error

    def min_credibility(self, predicate: str, options: QueryOptions) -> float:
        """The one given in ``options``; else the one chosen with the model. LPF-Learned was trained
        on all items, so it has none."""
        if options.min_credibility is not None:
            return options.min_credibility
        chosen = self.runtime.config.min_credibility.get(predicate)
        if chosen is None or options.mode == "paper":
            return DEFAULT_MIN_CREDIBILITY
        return 0.0 if options.variant == "learned" else chosen

    def countable(
        self, items: Items, predicate: str, options: QueryOptions
    ) -> NDArray[np.intp] | None:
        """Positions of the items at or above the threshold that was chosen with the model; None if
        all count. For items that were not retrieved from a store, such as those of a data set."""
        if options.mode == "paper" or predicate not in self.runtime.config.min_credibility:
            return None
        least = self.min_credibility(predicate, options)
        return items.credible(least) if least > 0.0 else None

    def learned_temperature(self, predicate: str, options: QueryOptions) -> float:
        """The one given in ``options``; else 1 in paper mode, the fitted one in robust mode."""
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
        log_prior: FloatArray,
    ) -> Answers:
        converter, parameters = self.conversion(predicate, options)
        weight: FloatArray | None = None
        if isinstance(parameters, PaperParameters):
            weight = credibility_weight(factors.mean_sigma, parameters)
        familiarity, relevance, stances = self.familiarity(items, predicate), None, None
        if isinstance(parameters, RobustParameters) and self.background.covers(predicate):
            relevance = self.runtime.relevance(predicate, items.features)
            stances = self.runtime.stances(predicate, items.features)
        combine = self._combination(
            items, predicate, parameters, segments, log_prior, weight, familiarity, relevance,
            stances,
        )  # fmt: skip
        combined = combine(factors.potential)
        uncertainty = None
        if options.uncertainty_samples:
            samples = options.uncertainty_samples
            per_row = converter.runtime.members * samples * len(factors.values)
            parts = []
            for block in entity_blocks(segments.counts, per_row):
                rows = np.arange(segments.offsets[block.start], segments.offsets[block.stop])
                some = items if len(segments) == block.stop - block.start else items.select(rows)
                if some is not items:
                    combine = self._combination(
                        some,
                        predicate,
                        parameters,
                        Segments.of_counts(segments.counts[block]),
                        log_prior if log_prior.ndim == 1 else log_prior[block],
                        None if weight is None else weight[rows],
                        None if familiarity is None else familiarity[rows],
                        None if relevance is None else relevance[rows],
                        None if stances is None else stances[rows],
                    )
                answer = combined.distribution[block]
                parts.append(
                    spn_uncertainty(converter, some.features, some.keys, samples, combine, answer)
                )
            uncertainty = Uncertainty.join(parts)
        return Answers(
            predicate,
            factors.values,
            combined.distribution,
            "spn" if self.background.covers(predicate) else "average",
            combined,
            factors,
            weight,
            parameters,
            uncertainty,
            tuple(map(bool, facts)),
            familiarity,
            self.runtime.familiarity_of(predicate) is not None,
            relevance,
            stances,
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
            uncertainty, (), self.familiarity(items, predicate),
            self.runtime.familiarity_of(predicate) is not None,
        )  # fmt: skip

    def _make_silent(self, predicate: str) -> FloatArray | None:
        """The answer if no item says anything about its claim, [V]; None if it is the prior."""
        silent = self.runtime.config.head(predicate).silent
        return read_only(np.array(silent)) if silent else None

    def _make_conversion(
        self, predicate: str, options: QueryOptions
    ) -> tuple[Converter, Parameters]:
        """Converter and parameters for one kind of question, prepared once."""
        parameters: Parameters
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
        parameters: Parameters,
        segments: Segments,
        log_prior: FloatArray,
        weight: FloatArray | None,
        familiarity: FloatArray | None,
        relevance: FloatArray | None,
        stances: FloatArray | None,
    ) -> Combination:
        """Combines potentials with everything else given, so that draws are combined exactly as the
        answer is."""
        if not self.background.covers(predicate):
            return lambda potential: combine_average(potential, segments)
        if isinstance(parameters, PaperParameters):
            assert weight is not None  # paper mode always computes it
            return lambda potential: combine_paper(potential, weight, log_prior, segments)
        shares = self.shares(predicate)
        return lambda potential: combine_robust(
            potential,
            items.credibility,
            shares,
            log_prior,
            segments,
            parameters,
            items.groups,
            items.sources,
            familiarity,
            relevance,
            self.silent(predicate),
            stances,
            None if stances is None else self._ratios(predicate),
        )
