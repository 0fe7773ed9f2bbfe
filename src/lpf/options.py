"""Options that users set, each declared once, and ``QueryOptions``, the options of a question.

A field of a frozen dataclass that is annotated with ``Annotated[int, Option("...", ge=1)]`` is an
option. From this one declaration come the checks (``check_options``), the command-line option with
its help, default and choices (``lpf.cli.options``), the key in ``lpf.toml``, and the tables in the
documentation. The name is the same everywhere: the field ``top_k`` is ``--top-k``, ``query.top_k``
in ``lpf.toml`` and the parameter ``top_k``.

This module imports neither NumPy nor torch, so that ``lpf --help`` is fast.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from datetime import UTC, datetime
from functools import lru_cache
from types import MappingProxyType, NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from lpf.errors import ConfigError

Variant = Literal["spn", "learned"]
Mode = Literal["robust", "paper"]
Fallback = Literal["average", "learned"]
Sampler = Literal["mean", "moments", "plain", "antithetic", "orthogonal", "sobol"]
WeightForm = Literal["product", "sigmoid"]

DRAWS_NOTHING = ("mean", "moments")  # samplers that integrate without samples
INF = float("inf")
# For models made before thresholds were chosen with the model, and in paper mode.
DEFAULT_MIN_CREDIBILITY = 0.5
# Items per question without a ``top_k``. Robust mode is fitted to any number and scored on all of
# an entity, so it answers from all, up to a limit that keeps questions fast.
MOST_ITEMS, PAPER_ITEMS = 100, 5
LARGEST_SEED = 2**53 - 1  # records store it as a JSON number

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
_TIME = re.compile(r"(?P<number>[0-9]{1,9}(\.[0-9]{1,9})?)\s?(?P<unit>[smh]?)")


@dataclass(frozen=True)
class Option:
    """The declaration of one option. ``ge``, ``gt``, ``le`` and ``lt`` are bounds, as in
    "greater or equal". ``unset`` says what None means. ``old_name`` is an earlier spelling
    that the command line still takes, with ``old_values`` for values that were renamed. ``is_time``
    marks a number of seconds, which the command line also takes as ``10m``."""

    help: str
    group: str = ""
    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None
    metavar: str | None = None
    unset: str | None = None
    old_name: str | None = None
    old_values: Mapping[str, str] = field(default_factory=dict)
    is_time: bool = False

    def admits(self, number: float) -> bool:
        """Return True if the number is within the bounds. NaN never is."""
        return (
            (self.ge is None or number >= self.ge)
            and (self.gt is None or number > self.gt)
            and (self.le is None or number <= self.le)
            and (self.lt is None or number < self.lt)
        )

    @property
    def rule(self) -> str:
        """The bounds in words: "at least 1", "in [0, 1]"."""
        low = self.ge if self.gt is None else self.gt
        high = self.le if self.lt is None else self.lt
        if high is None or high == INF:
            return f"above {self.gt:g}" if self.ge is None else f"at least {self.ge:g}"
        first, last = f"{low:g}", f"{high:,}" if isinstance(high, int) else f"{high:g}"
        if self.gt is None and isinstance(high, int) and high > 1:
            return f"from {first} to {last}"
        return f"in {'[' if self.gt is None else '('}{first}, {last}{')' if self.lt else ']'}"


@dataclass(frozen=True)
class DeclaredOption:
    """An option of a class: its field's name, type, choices and default, and the declaration."""

    name: str
    kind: type
    choices: tuple[str, ...]
    is_optional: bool
    default: Any
    option: Option

    @property
    def flag(self) -> str:
        """The option's name on the command line, such as ``--top-k``."""
        return "--" + self.name.replace("_", "-")

    @property
    def off_flag(self) -> str | None:
        """The flag that turns the option off, such as ``--no-related-evidence``, if it is not off
        unless it is given."""
        is_switch = self.kind is bool and self.default is not False
        return "--no-" + self.name.replace("_", "-") if is_switch else None

    @property
    def default_text(self) -> str:
        """The default as a user would write it, or what None means."""
        if self.default is None:
            return self.option.unset or ""
        if isinstance(self.default, tuple):
            return ",".join(map(str, self.default))
        if isinstance(self.default, bool):
            return "on" if self.default else ""
        return shown_time(self.default) if self.option.is_time else str(self.default)


def parse_time(text: str, field: str) -> float:
    """Seconds from ``90``, ``90s``, ``10m`` or ``1h``. ConfigError about ``field`` for any other
    text."""
    found = _TIME.fullmatch(text.strip().lower())
    if found is None:
        raise ConfigError(
            f"must be a time such as 90s, 10m, 1h or a number of seconds, got {text[:80]!r}.",
            field=field,
        )
    return float(found["number"]) * _UNITS[found["unit"]]


def shown_time(seconds: float) -> str:
    """As ``parse_time`` takes it: 600 is ``10m``."""
    for unit in ("h", "m"):
        if seconds and seconds % _UNITS[unit] == 0:
            return f"{seconds / _UNITS[unit]:g}{unit}"
    return f"{seconds:g}s" if seconds else "0"


@lru_cache
def options_of(kind: type) -> Mapping[str, DeclaredOption]:
    """The options that a dataclass declares, by name, in the order of its fields."""
    hints = get_type_hints(kind, include_extras=True)
    options = {}
    for entry in fields(kind):
        hint, *extras = (
            get_args(hints[entry.name])
            if get_origin(hints[entry.name]) is Annotated
            else (hints[entry.name],)
        )
        for option in extras:
            if isinstance(option, Option):
                options[entry.name] = _declared(entry.name, hint, entry.default, option)
    return MappingProxyType(options)


def _declared(name: str, hint: Any, default: Any, option: Option) -> DeclaredOption:
    parts = get_args(hint) if get_origin(hint) in (UnionType, Union) else (hint,)
    (plain,) = (part for part in parts if part is not NoneType)
    choices = get_args(plain) if get_origin(plain) is Literal else ()
    kind = str if choices else (get_origin(plain) or plain)
    assert default is not MISSING, f"{name}: an option has a default"
    return DeclaredOption(name, kind, choices, NoneType in parts, default, option)


def check_options(config: object, where: str) -> None:
    """Raise ConfigError for a value that is not among the choices or not within the bounds. Its
    ``field`` is ``where.name``."""
    kind: type = type(config)
    for name, declared in options_of(kind).items():
        value, option = getattr(config, name), declared.option
        if value is None and declared.is_optional:
            continue
        if declared.choices and value not in declared.choices:
            raise out_of_range(where, name, f"one of {declared.choices}", value)
        numbers = value if declared.kind is tuple else (value,)
        if declared.kind in (int, float, tuple) and not all(map(option.admits, numbers)):
            raise out_of_range(where, name, option.rule, value)


def out_of_range(where: str, name: str, rule: str, value: object) -> ConfigError:
    return ConfigError(f"must be {rule}, got {value!r}.", field=f"{where}.{name}")


HOW = "How to answer"
WHICH = "Which evidence counts"
SURE = "How sure to be"


@dataclass(frozen=True, kw_only=True)
class QueryOptions:
    """How a question is answered. An option that does not apply to the mode raises ConfigError.

    ``robust`` is the default mode; ``paper`` follows the published algorithms to the letter, and
    ``QueryOptions.paper()`` and ``paper_best()`` are its two published settings. ``top_k``,
    ``min_credibility``, ``query_text`` and ``as_of`` choose the evidence, before the engine sees
    it. Without a ``min_credibility`` the one that was chosen with the model applies, without a
    ``top_k`` that of the mode (``most_items``); results and records hold the numbers. Records store
    the options by field name. With a ``coverage``, the answer has a prediction set; with a
    ``max_risk``, it may be deferred.
    """

    variant: Annotated[
        Variant,
        Option("Multiply factors in the circuit (spn), or use learned weights (learned).", HOW),
    ] = "spn"
    mode: Annotated[
        Mode, Option("The corrected algorithms (robust), or those of the paper (paper).", HOW)
    ] = "robust"
    top_k: Annotated[
        int | None,
        Option(
            "Use at most this many items.",
            WHICH,
            ge=1,
            le=10**9,
            unset=f"{MOST_ITEMS}; paper: {PAPER_ITEMS}",
        ),
    ] = None
    sampler: Annotated[
        Sampler | None,
        Option("How to integrate over an item's latent code.", HOW, unset="mean; paper: plain"),
    ] = None
    n_samples: Annotated[
        int | None,
        Option(
            "Samples per item, for samplers that draw any.",
            HOW,
            ge=1,
            le=8192,
            unset="16",
            old_name="samples",
        ),
    ] = None
    temperature: Annotated[
        float | None,
        Option("Temperature of the decoder.", HOW, gt=0, lt=INF, unset="fitted; paper: 1"),
    ] = None
    alpha: Annotated[
        float | None,
        Option("Penalty on uncertain items; paper mode only.", HOW, ge=0, lt=INF, unset="2"),
    ] = None
    weight_form: Annotated[
        WeightForm | None,
        Option("Form of the credibility weight; paper mode only.", HOW, unset="product"),
    ] = None
    min_credibility: Annotated[
        float | None,
        Option(
            "Leave out items below this credibility; 0 uses all.",
            WHICH,
            ge=0,
            le=1,
            unset="the model's; paper: 0.5",
        ),
    ] = None
    query_text: Annotated[
        str | None, Option("Prefer items close in meaning to this text.", WHICH, old_name="text")
    ] = None
    as_of: Annotated[
        datetime | None,
        Option(
            "Ignore facts and items dated later than this; UTC unless it has a zone.",
            WHICH,
            metavar="TIME",
            unset="now",
        ),
    ] = None
    seed: Annotated[int, Option("Random seed.", HOW, ge=0, le=LARGEST_SEED)] = 0
    uncertainty_samples: Annotated[
        int,
        Option(
            "Also measure by this many draws how far the answer varies; 0 is off.",
            HOW,
            ge=0,
            le=10_000,
            metavar="N",
            old_name="uncertainty",
        ),
    ] = 0
    fallback: Annotated[
        Fallback, Option("How to answer if the circuit lacks the predicate.", HOW)
    ] = "average"
    related_evidence: Annotated[
        bool | None,
        Option(
            "Also use evidence about related predicates; robust mode and variant spn only.",
            WHICH,
            unset="on; paper and learned: off",
        ),
    ] = None
    without_claim_prior: Annotated[
        bool,
        Option(
            "Take out of the answer what the claim alone gives away; robust mode and variant spn "
            "only.",
            HOW,
        ),
    ] = False
    coverage: Annotated[
        float | None,
        Option(
            "Also give the set of values that has the true one for this share of entities; robust "
            "mode and variant spn only.",
            SURE,
            gt=0,
            lt=1,
            unset="no set",
        ),
    ] = None
    coverage_by_value: Annotated[
        bool, Option("Keep the coverage among the entities of each value by itself.", SURE)
    ] = False
    max_risk: Annotated[
        float | None,
        Option(
            "Defer the answer unless at most this share of such answers is wrong; robust mode "
            "and variant spn only.",
            SURE,
            gt=0,
            lt=1,
            unset="always answer",
        ),
    ] = None

    def __post_init__(self) -> None:
        check_options(self, "options")
        if self.uncertainty_samples == 1:
            raise out_of_range("options", "uncertainty_samples", "0 (off) or at least 2", 1)
        if self.query_text is not None and not self.query_text.strip():
            raise out_of_range("options", "query_text", "a text that is not blank", self.query_text)
        if self.as_of is not None:
            self._check_time(self.as_of)
        for names, reason in self._inapplicable():
            for name in names:
                value = getattr(self, name)
                if value is not None and value is not False:  # False is what happens anyway
                    raise ConfigError(f"{reason}; leave it out.", field=f"options.{name}")

    def _check_time(self, moment: datetime) -> None:
        if moment.tzinfo is None:
            raise out_of_range("options", "as_of", "a time with a time zone", moment)
        try:
            moment.astimezone(UTC)
        except OverflowError:
            rule = "in the years 1 to 9999, in UTC"
            raise out_of_range("options", "as_of", rule, moment.isoformat()) from None

    def _inapplicable(self) -> Iterator[tuple[Sequence[str], str]]:
        """Options that have no effect given the others, with the reason."""
        if self.mode == "robust":
            yield ("alpha", "weight_form"), "applies in paper mode only"
        else:
            yield (
                ("related_evidence", "without_claim_prior", "coverage", "max_risk"),
                "applies in robust mode only",
            )
        if self.variant == "learned":
            yield (
                ("alpha", "weight_form", "sampler", "n_samples"),
                "does not apply to the variant 'learned', which draws no samples",
            )
            yield (
                ("related_evidence", "without_claim_prior"),
                "does not apply to the variant 'learned', which does not use the circuit",
            )
            yield (
                ("coverage", "max_risk"),
                "does not apply to the variant 'learned': how sure it is was not measured",
            )
        if self.coverage is None:
            yield ("coverage_by_value",), "applies with a coverage only"
        sampler = self.sampler or ("mean" if self.mode == "robust" else "plain")
        if sampler in DRAWS_NOTHING:
            yield ("n_samples",), f"does not apply to the sampler {sampler!r}, which draws none"

    @property
    def most_items(self) -> int:
        """``top_k``, or how many items the mode uses without one."""
        if self.top_k is not None:
            return self.top_k
        return PAPER_ITEMS if self.mode == "paper" else MOST_ITEMS

    @property
    def uses_related(self) -> bool:
        """Whether evidence about related predicates counts."""
        applies = self.mode == "robust" and self.variant == "spn"
        return applies and self.related_evidence is not False

    @classmethod
    def paper(cls) -> QueryOptions:
        """The paper's defaults: M = 16, T = 1, α = 2, top_k = 5."""
        return cls(
            mode="paper",
            top_k=PAPER_ITEMS,
            sampler="plain",
            n_samples=16,
            temperature=1.0,
            alpha=2.0,
        )

    @classmethod
    def paper_best(cls) -> QueryOptions:
        """The setting behind the paper's headline table: M = 4, T = 0.8, α = 0.1."""
        return cls(
            mode="paper",
            top_k=PAPER_ITEMS,
            sampler="plain",
            n_samples=4,
            temperature=0.8,
            alpha=0.1,
        )
