"""Data sets of a domain: labelled entities, their texts, and the perfect reader's answers."""

from __future__ import annotations

from dataclasses import replace

from lpf.datasets.dataset import Dataset
from lpf.datasets.splits import assign_splits
from lpf.domains.assembly import Assembly, Part
from lpf.domains.declaration import Domain
from lpf.domains.evidence_model import EvidenceModel
from lpf.domains.parameters import GeneratorParameters
from lpf.domains.perfect_reader import posteriors, with_fact
from lpf.domains.records import draw_records
from lpf.domains.streams import uniforms
from lpf.domains.symbols import draw_symbols, draws_needed
from lpf.errors import ConfigError


def generate(
    domain: Domain,
    parameters: GeneratorParameters,
    *,
    seed: int,
    extra_test: int = 0,
    prefix: str | None = None,
) -> Dataset:
    """``parameters.entities`` entities, split 70/15/15 by group with each value in proportion, and
    ``extra_test`` more in ``test``. ``prefix`` stands before every id. The same arguments give the
    same data set on every machine."""
    _check_number("seed", seed, 0)
    _check_number("extra_test", extra_test, 0)
    part = _drawn(domain, parameters, parameters.entities, seed, "main", 1)
    made = Assembly(domain, parameters, seed, prefix or "")
    bare = Dataset(domain.name, made.schema, tuple(made.bare(part)))
    splits = [entity.split for entity in assign_splits(bare, domain.predicate, seed=seed)]
    entities = made.entities(part, splits, first_item=1)
    if extra_test:
        more = _drawn(domain, parameters, extra_test, seed, "extra", len(entities) + 1)
        items = sum(len(entity.evidence) for entity in entities)
        entities += made.entities(more, ["test"] * extra_test, first_item=items + 1)
    return replace(bare, entities=tuple(entities))


def generate_test(
    domain: Domain,
    parameters: GeneratorParameters,
    *,
    seed: int,
    entities: int,
    prefix: str | None = None,
) -> Dataset:
    """Test entities only, drawn apart from those that ``generate`` makes of the same seed."""
    _check_number("seed", seed, 0)
    _check_number("entities", entities, 1)
    part = _drawn(domain, parameters, entities, seed, "test", 1)
    made = Assembly(domain, parameters, seed, prefix or "")
    texts = made.entities(part, ["test"] * entities, first_item=1)
    return Dataset(domain.name, made.schema, tuple(texts))


def evidence_model(domain: Domain, parameters: GeneratorParameters) -> EvidenceModel:
    """The chances behind a domain's evidence; ConfigError where the parameters do not fit it."""
    shares = parameters.shares or domain.shares
    if len(shares) != len(domain.values):
        raise ConfigError(
            f"generator.shares: must be {len(domain.values)} numbers, one for each of "
            f"{list(domain.values)}, got {list(shares)}. Nothing was generated."
        )
    return EvidenceModel(parameters, shares)


def _check_number(name: str, number: int, least: int) -> None:
    if number < least:
        raise ConfigError(f"{name}: must be at least {least}, got {number}. Nothing was generated.")


def _drawn(
    domain: Domain, parameters: GeneratorParameters, count: int, seed: int, name: str, first: int
) -> Part:
    model = evidence_model(domain, parameters)
    path = (domain.name, name)
    records = draw_records(domain, model, count, seed=seed, path=path)
    sources = [len(aspect.sources) for aspect in domain.aspects]
    width = draws_needed(parameters, len(sources))
    uniform = uniforms(seed, (*path, "evidence"), range(count), width)
    symbols = draw_symbols(model, records.values, records.towards, sources, uniform)
    posterior = posteriors(
        model, symbols.symbols, symbols.credibility, symbols.age_days, symbols.original
    )
    known = with_fact(posterior, domain.table, records.related, records.known)
    return Part(path, first, records, symbols, posterior, known)
