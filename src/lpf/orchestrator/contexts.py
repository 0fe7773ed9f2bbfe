"""The part of a record that many questions share."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from lpf.combine.paper import PaperParameters
from lpf.combine.robust import RobustParameters
from lpf.engine import Background, Engine
from lpf.orchestrator.recording import Context, hyperparameters, numbers
from lpf.results import Method, QueryResult
from lpf.schema import Schema
from lpf.types import QueryOptions, lasting
from lpf.version import __version__


class Contexts:
    """Settings, fitted numbers and versions of each kind of question, made once and kept."""

    def __init__(
        self, schema: Schema, background: Background, engine: Engine | None, reader_id: str
    ) -> None:
        self._schema = schema
        self._background = background
        self._engine = engine
        self._reader_id = reader_id
        self._kept = lru_cache(maxsize=256)(self._make)

    def of(self, result: QueryResult) -> Context:
        options = lasting(result.options)
        return self._kept(result.predicate, options, result.method, result.evidence is not None)

    def _make(
        self, predicate: str, options: QueryOptions, method: Method, has_evidence: bool
    ) -> Context:
        content: dict[str, Any] = {
            "predicate": predicate,
            "values": list(self._schema[predicate].values),
            "method": method,
            "hyperparameters": hyperparameters(options),
            "log_prior": numbers(self._background.log_prior(predicate)),
            "versions": self._versions(),
        }
        if has_evidence:
            content |= self._inference(predicate, options, method)
        return Context(content)

    def _inference(self, predicate: str, options: QueryOptions, method: Method) -> dict[str, Any]:
        assert self._engine is not None  # evidence is only answered from with a model
        members = "best" if options.mode == "paper" else "all"
        if method == "learned":
            temperature = self._engine.learned_temperature(predicate, options)
            return {"members": members, "temperature": temperature}
        converter, parameters = self._engine.conversion(predicate, options)
        config = converter.config
        return {
            "members": members,
            "sampler": {
                "name": config.sampler,
                "n_samples": config.samples,
                "temperature": config.temperature,
                "seed": config.seed,
            },
            "parameters": _parameters(parameters),
            "training_shares": self._engine.shares(predicate).tolist(),
        }

    def _versions(self) -> dict[str, Any]:
        return {
            "circuit": self._background.circuit.circuit.hash,
            "code": __version__,
            "model": None if self._engine is None else self._engine.runtime.version,
            "reader": self._reader_id,
            "schema": self._schema.hash,
        }


def _parameters(parameters: RobustParameters | PaperParameters) -> dict[str, Any]:
    return dict(parameters.to_dict())
