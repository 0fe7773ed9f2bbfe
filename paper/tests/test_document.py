from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from lpf.errors import ConfigError
from lpf_paper.document import Experiment, RunInfo
from lpf_paper.exhibits import Column, Figure, Row, Series, StudyResult, Table, Value

MADE = RunInfo(
    "lpf run", "1", "a machine", "3.11", {"numpy": "2"}, 1.5, (1, 2), False, "2025-01-01"
)


def experiment(*cells: Value | str | None) -> Experiment:
    table = Table("t", "T", "", (Column("a", "A"),), tuple(Row("r", "R", (c,)) for c in cells))
    figure = Figure("f", "F", "", "bars", "", "", (Series("s", ("inf",), (-math.inf,)),))
    study = StudyResult("s", "S", "?", ("found.",), (table,), (figure,))
    return Experiment("Title", MADE, (study,), ("sum.",), ("care.",))


def test_json_and_back_is_the_same() -> None:
    whole = experiment(Value(0.5, 0.1, 0.4, 0.6, 0.7, "why"), Value(math.inf), "inf", None)
    text = json.dumps(whole.to_dict(), allow_nan=False)
    assert Experiment.from_dict(json.loads(text)) == whole
    assert Experiment.from_dict(whole.to_dict()) == whole


def test_infinite_numbers_are_words_and_undefined_ones_null() -> None:
    rows = experiment(Value(math.inf), Value(math.nan)).to_dict()["studies"][0]["tables"][0]["rows"]
    assert [row["cells"][0]["value"] for row in rows] == ["inf", None]


def test_a_study_may_hold_infinity_itself() -> None:
    plain = experiment(Value(1.0)).to_dict()
    studies = [study.to_dict() for study in experiment(Value(math.inf)).studies]
    found = Experiment.from_dict({**plain, "studies": studies}).studies[0].tables[0].rows[0]
    assert found.cells == (Value(math.inf),)


def test_another_format_is_refused() -> None:
    with pytest.raises(ConfigError, match="format 2, not 1"):
        Experiment.from_dict({**experiment().to_dict(), "format": 2})


@pytest.mark.parametrize("name", ["title", "made", "studies", "summary", "cautions"])
def test_a_missing_field_is_named(name: str) -> None:
    plain = experiment().to_dict()
    del plain[name]
    with pytest.raises(ConfigError, match=name):
        Experiment.from_dict(plain)


def test_an_unknown_field_is_named() -> None:
    plain = replace(experiment(), warnings=()).to_dict()
    plain["made"]["colour"] = "red"
    with pytest.raises(ConfigError, match="colour"):
        Experiment.from_dict(plain)
