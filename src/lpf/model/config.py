"""The shape of a model: widths and options, checked on construction.

Defaults are the paper's: encoder 384-256-128-(64, 64), decoder [64; 32]-128-64-K.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from math import inf
from typing import Any, Literal, get_args

from lpf.errors import ConfigError, UnknownPredicateError

# As many as ``reading.stance.STANCES``, which is not imported: the command line's help needs this
# module, and it should not wait for NumPy.
STANCE_LOGITS = 3
OCCURRENCE_CASES = 4  # those of ``combine.occurrence``
HELD_OUT_COLUMNS = 5  # those of ``model.held_out``
# Fields of ModelConfig with one entry per predicate, filled in when a model is fitted.
BY_PREDICATE = (
    *("calibration", "learned_temperature", "calibrated_on", "min_credibility"),
    *("head_familiarity", "held_out"),
)
# Fields of ModelConfig that list predicates with tensors of their own, which all members share.
LISTS_PREDICATES = ("words", "claim_alone")
PairInput = Literal["difference", "concatenation"]
Normalisation = Literal["softmax", "l1"]


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ConfigError(message)


def _check_widths(name: str, widths: tuple[int, ...]) -> None:
    _require(
        all(isinstance(width, int) and width > 0 for width in widths),
        f"{name}: every width must be a whole number above 0, got {widths!r}.",
    )


def _check_dropout(name: str, rate: float) -> None:
    _require(0.0 <= rate < 1.0, f"{name}: must lie in [0, 1), got {rate!r}.")


@dataclass(frozen=True)
class EncoderConfig:
    """Features -> (μ, log σ). ``input_width`` is the reader's. A ``deterministic`` encoder has
    σ = 0; it is used for a baseline and for linear models."""

    input_width: int = 384
    hidden: tuple[int, ...] = (256, 128)
    latent_width: int = 64
    dropout: float = 0.2
    deterministic: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", tuple(self.hidden))
        _check_widths("encoder.input_width", (self.input_width,))
        _check_widths("encoder.hidden", self.hidden)
        _check_widths("encoder.latent_width", (self.latent_width,))
        _check_dropout("encoder.dropout", self.dropout)


@dataclass(frozen=True)
class DecoderConfig:
    """[z; predicate embedding] -> logits, one head per predicate."""

    hidden: tuple[int, ...] = (128, 64)
    predicate_width: int = 32
    dropout: float = 0.2

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", tuple(self.hidden))
        _require(bool(self.hidden), "decoder.hidden: needs at least one layer.")
        _check_widths("decoder.hidden", self.hidden)
        _check_widths("decoder.predicate_width", (self.predicate_width,))
        _check_dropout("decoder.dropout", self.dropout)


@dataclass(frozen=True)
class AggregatorConfig:
    """The learned aggregator (Algorithm 3). The class methods are the shapes that the paper
    publishes; the default is that of section 5 made symmetric, c(i, j) = c(j, i).

    ``mean_sigma_input`` adds mean σ to the quality network's input (129 wide at d = 64).
    ``pair_input`` is [μi-μj, |Δ log σ²|] (2d wide) or both items side by side (4d wide).
    ``aggregate_logvar`` also reports Σ wᵢ log σ²ᵢ; the answer does not depend on it.
    """

    quality_hidden: tuple[int, ...] = (128, 64)
    consistency_hidden: tuple[int, ...] = (128, 64)
    weight_hidden: tuple[int, ...] = (64, 32)
    pair_input: PairInput = "difference"
    mean_sigma_input: bool = False
    symmetric: bool = True
    normalisation: Normalisation = "softmax"
    aggregate_logvar: bool = True
    dropout: float = 0.1

    def __post_init__(self) -> None:
        for name in ("quality_hidden", "consistency_hidden", "weight_hidden"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
            _check_widths(f"aggregator.{name}", getattr(self, name))
        for name, kind in (("pair_input", PairInput), ("normalisation", Normalisation)):
            value = getattr(self, name)
            _require(
                value in get_args(kind),
                f"aggregator.{name}: must be one of {get_args(kind)}, got {value!r}.",
            )
        _check_dropout("aggregator.dropout", self.dropout)

    def quality_width(self, latent_width: int) -> int:
        return 2 * latent_width + int(self.mean_sigma_input)

    def pair_width(self, latent_width: int) -> int:
        return (2 if self.pair_input == "difference" else 4) * latent_width

    @classmethod
    def section_4(cls) -> AggregatorConfig:
        """129-64-32-1, 256-128-64-1 and 2-32-1."""
        return cls(
            (64, 32), (128, 64), (32,), "concatenation", mean_sigma_input=True, symmetric=False
        )

    @classmethod
    def worked_example(cls) -> AggregatorConfig:
        """[128, 64] networks with a [64, 32] weight network, not symmetric."""
        return cls(symmetric=False)

    @classmethod
    def implementation_details(cls) -> AggregatorConfig:
        """128-64-32-1 twice and 2-32-16-1, weights normalised by L1 as in Algorithm 3."""
        return cls((64, 32), (64, 32), (32, 16), symmetric=False, normalisation="l1")


@dataclass(frozen=True)
class PredicateHead:
    """A predicate the decoder can answer: its values, and π, the shares of the labels it was
    trained on (never the schema's prior).

    If items had labels of their own, the decoder predicts those: row ℓ of ``channel`` is the
    distribution of the entity's value given that an item's is ℓ, and π is that of the entity's
    value. ``channel`` is empty if every item's label is its entity's.

    ``trained_rho`` is 1 for a head that was trained on whole entities, to be averaged over their
    items in log space, and 0 for one trained item by item.

    ``relevance_start`` is the column of the first stance logit, for a head whose items count by
    their relevance (see ``reading.stance.relevance``); None if they do not. ``silent`` is then the
    answer if there are items, but none says anything about its claim; empty: the prior.
    ``occurrence_ratios`` has a row per case of ``combine.occurrence``, if which stances occur among
    the items is part of the answer; else it is empty.
    """

    name: str
    values: tuple[str, ...]
    training_shares: tuple[float, ...] = ()
    channel: tuple[tuple[float, ...], ...] = ()
    trained_rho: float = 0.0
    relevance_start: int | None = None
    silent: tuple[float, ...] = ()
    occurrence_ratios: tuple[tuple[float, ...], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(self.values))
        _require(
            self.trained_rho in (0.0, 1.0),
            f"predicate {self.name!r}: trained_rho must be 0 or 1, got {self.trained_rho!r}.",
        )
        _require(
            self.relevance_start is None or self.relevance_start >= 0,
            f"predicate {self.name!r}: relevance_start must be 0 or above, got "
            f"{self.relevance_start!r}.",
        )
        _require(bool(self.values), f"predicate {self.name!r}: needs at least one value.")
        shares = tuple(map(float, self.training_shares)) or (1.0 / len(self.values),) * len(
            self.values
        )
        object.__setattr__(self, "training_shares", shares)
        _require(
            len(shares) == len(self.values) and min(shares) > 0 and abs(sum(shares) - 1) < 1e-6,
            f"predicate {self.name!r}: training_shares must be {len(self.values)} numbers above 0 "
            f"that sum to 1 (smooth the counts first), got {shares!r}.",
        )
        channel = tuple(tuple(map(float, row)) for row in self.channel)
        object.__setattr__(self, "channel", channel)
        _require(
            not channel
            or (len(channel) == len(shares) and all(map(self._is_distribution, channel))),
            f"predicate {self.name!r}: channel must be empty, or have one row per value, each of "
            f"{len(shares)} numbers that sum to 1; got {channel!r}.",
        )

        object.__setattr__(self, "silent", tuple(map(float, self.silent)))
        _require(
            not self.silent
            or (self._is_distribution(self.silent) and self.relevance_start is not None),
            f"predicate {self.name!r}: silent must be empty, or {len(shares)} numbers that sum to "
            f"1, for a head with relevance_start; got {self.silent!r}.",
        )
        ratios = tuple(tuple(map(float, row)) for row in self.occurrence_ratios)
        object.__setattr__(self, "occurrence_ratios", ratios)
        _require(
            not ratios
            or (
                self.relevance_start is not None
                and len(ratios) == OCCURRENCE_CASES
                and all(
                    len(row) == len(shares) and min(row) > 0 and max(row) < inf for row in ratios
                )
            ),
            f"predicate {self.name!r}: occurrence_ratios must be empty, or, with relevance_start, "
            f"have {OCCURRENCE_CASES} rows of {len(shares)} numbers above 0; got {ratios!r}.",
        )

    def _is_distribution(self, row: tuple[float, ...]) -> bool:
        return len(row) == len(self.values) and min(row) >= 0 and abs(sum(row) - 1) < 1e-6


@dataclass(frozen=True)
class FamiliarityConfig:
    """How texts unlike the training texts are recognised (see ``model.familiarity``).

    Features ``start`` to ``stop`` are those of the text alone. A text nearer than ``full_until``
    has its full weight, one farther than ``none_from`` has none.
    """

    start: int
    stop: int
    rank: int
    full_until: float
    none_from: float

    def __post_init__(self) -> None:
        _require(
            0 <= self.start < self.stop,
            f"familiarity.start: must be 0 or above and below stop, got {self.start} and "
            f"{self.stop}.",
        )
        _require(self.rank >= 1, f"familiarity.rank: must be at least 1, got {self.rank!r}.")
        _require(
            -inf < self.full_until < self.none_from < inf,
            f"familiarity.full_until: must be below none_from, got {self.full_until!r} and "
            f"{self.none_from!r}.",
        )


@dataclass(frozen=True)
class HeldOutConfig:
    """How many ``entities`` were held out to tell how sure answers are, and how: ``apart`` from
    everything else, or ``shared`` with it (see ``model.held_out``)."""

    entities: int
    kind: Literal["apart", "shared"]

    def __post_init__(self) -> None:
        _require(self.entities >= 1, f"held_out.entities: must be at least 1: {self.entities!r}.")
        _require(
            self.kind in ("apart", "shared"),
            f"held_out.kind: must be apart or shared, got {self.kind!r}.",
        )


@dataclass(frozen=True)
class ModelConfig:
    """A whole model: ``members`` networks of one shape (an ensemble when more than one).

    By predicate, ``calibration`` has the fitted parameters of robust mode, ``learned_temperature``
    the temperature of the variant ``learned``, ``calibrated_on`` the number of entities they were
    fitted on, ``min_credibility`` the credibility below which items are left out of a question.
    ``familiarity`` is None for a model that takes every text at its full weight. A head that was
    added later was trained on other texts: ``head_familiarity`` has its own.

    ``held_out`` is what statements about reliability are based on (``model.held_out``); models from
    before that was stored have none.

    ``words`` are the predicates with a regression on words, whose logits are the last features.
    ``claim_alone`` are those with a regression on the claim alone (see ``model.claim_alone``).
    ``tuned_reader`` is the hash of the reader that was tuned together with the model, if one was.

    ``sampling_key`` seeds the random draws of answers. It follows from the seeds, so that another
    wording of the model card does not change what a model answers.
    """

    predicates: tuple[PredicateHead, ...]
    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    decoder: DecoderConfig = field(default_factory=DecoderConfig)
    aggregator: AggregatorConfig | None = None
    members: int = 1
    seeds: tuple[int, ...] = ()
    reader_id: str = ""
    calibration: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    learned_temperature: Mapping[str, float] = field(default_factory=dict)
    calibrated_on: Mapping[str, int] = field(default_factory=dict)
    min_credibility: Mapping[str, float] = field(default_factory=dict)
    sampling_key: str = ""
    familiarity: FamiliarityConfig | None = None
    head_familiarity: Mapping[str, FamiliarityConfig | None] = field(default_factory=dict)
    words: tuple[str, ...] = ()
    claim_alone: tuple[str, ...] = ()
    tuned_reader: str | None = None
    held_out: Mapping[str, HeldOutConfig] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("predicates", "seeds", *LISTS_PREDICATES):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        _require(bool(self.predicates), "predicates: a model needs at least one.")
        names = [head.name for head in self.predicates]
        _require(len(set(names)) == len(names), f"predicates: given more than once in {names}.")
        _require(self.members >= 1, f"members: must be at least 1, got {self.members!r}.")
        for known in (self.familiarity, *self.head_familiarity.values()):
            _require(
                known is None or known.stop <= self.encoder.input_width,
                f"familiarity.stop: must be at most {self.encoder.input_width}, the number of "
                f"features, got {known and known.stop}.",
            )
        last = self.encoder.input_width - STANCE_LOGITS
        for head in self.predicates:
            _require(
                head.relevance_start is None or head.relevance_start <= last,
                f"predicate {head.name!r}: relevance_start must be at most {last}, so that the "
                f"{STANCE_LOGITS} stance logits are features, got {head.relevance_start!r}.",
            )
        for field_name in BY_PREDICATE:
            for name in getattr(self, field_name):
                _require(name in names, f"{field_name}: {name!r} is not a predicate of the model.")
        for field_name in LISTS_PREDICATES:
            for name in getattr(self, field_name):
                _require(name in names, f"{field_name}: {name!r} is not a predicate of the model.")
        for name, least in self.min_credibility.items():
            _require(0.0 <= least <= 1.0, f"min_credibility of {name!r}: not in [0, 1]: {least!r}.")

    def head(self, predicate: str) -> PredicateHead:
        for head in self.predicates:
            if head.name == predicate:
                return head
        raise UnknownPredicateError(
            f"the model was not trained on the predicate {predicate!r}, only on "
            f"{[head.name for head in self.predicates]}. Train a head for it first."
        )

    def to_dict(self) -> dict[str, Any]:
        document = asdict(self)
        # Models from before these fields existed must keep their version.
        for head in document["predicates"]:
            for name in ("channel", "trained_rho", "silent", "occurrence_ratios"):
                if not head[name]:
                    del head[name]
            if head["relevance_start"] is None:
                del head["relevance_start"]
        added = ("min_credibility", "sampling_key", "familiarity", "head_familiarity", "held_out")
        for name in (*added, *LISTS_PREDICATES, "tuned_reader"):
            if not document[name]:
                del document[name]
        return document

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> ModelConfig:
        """The config from plain data; ConfigError for unknown or missing fields."""
        plain = dict(document)
        try:
            plain["predicates"] = tuple(PredicateHead(**head) for head in plain["predicates"])
            plain["encoder"] = EncoderConfig(**plain["encoder"])
            plain["decoder"] = DecoderConfig(**plain["decoder"])
            if plain.get("aggregator") is not None:
                plain["aggregator"] = AggregatorConfig(**plain["aggregator"])
            if plain.get("familiarity") is not None:
                plain["familiarity"] = FamiliarityConfig(**plain["familiarity"])
            plain["head_familiarity"] = {
                name: None if one is None else FamiliarityConfig(**one)
                for name, one in plain.get("head_familiarity", {}).items()
            }
            plain["held_out"] = {
                name: HeldOutConfig(**one) for name, one in plain.get("held_out", {}).items()
            }
            return cls(**plain)
        except (KeyError, TypeError, AttributeError) as error:
            raise ConfigError(f"model config: {error}.") from error
