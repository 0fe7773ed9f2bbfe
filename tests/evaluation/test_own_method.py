"""A user's own method: naming, fitting, answering, and its errors."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from lpf.errors import ConfigError
from lpf.evaluation.own_method import entities_of, is_own, own_settings
from lpf.evaluation.predictions import Predictions
from lpf.evaluation.specs import Cell, EvalSpec
from small_specs import TRAIN_SPEC, bench, own_cells

SHARES = """
class Shares:
    def fit(self, X, y):
        self.classes_ = sorted(set(y))
        self.shares = [y.count(value) / len(y) for value in self.classes_]
        return self

    def predict_proba(self, X):
        return [self.shares for _ in X]
"""
BROKEN = """
class OneRow:
    def fit(self, X, y):
        self.classes_ = sorted(set(y))

    def predict_proba(self, X):
        return [[1.0, 0.0, 0.0]]


class TwoColumns(OneRow):
    def predict_proba(self, X):
        return [[0.5, 0.5] for _ in X]


class Flat(OneRow):
    def predict_proba(self, X):
        return [0.5 for _ in X]


class Sums(OneRow):
    def predict_proba(self, X):
        return [[0.9, 0.9, 0.9] for _ in X]


class Foreign(OneRow):
    def fit(self, X, y):
        self.classes_ = ["low", "medium", "huge"]

    def predict_proba(self, X):
        return [[0.2, 0.3, 0.5] for _ in X]


class Unsaid(OneRow):
    def fit(self, X, y):
        pass
"""
NEW_NAMES = iter(range(1000))

Write = Callable[[str], str]


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes a module that can be imported, under a name that no other test has."""
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)

    def write(text: str) -> str:
        name = f"method_of_mine_{next(NEW_NAMES)}"
        (tmp_path / f"{name}.py").write_text(text)
        importlib.invalidate_caches()
        return name

    yield write
    for name in set(sys.modules) - before:
        if name.startswith("method_of_mine"):
            del sys.modules[name]


def answered(name: str) -> Predictions:
    (cell,) = own_cells(TRAIN_SPEC, name)
    return bench().predict(cell)


def test_a_name_with_a_colon_is_an_own_method() -> None:
    assert is_own("package.module:Name")
    assert not is_own("lpf_robust")


def test_an_own_method_is_fitted_and_tempered_like_others(module: Write) -> None:
    found = answered(f"{module(SHARES)}:Shares")
    assert found.error is None
    labels = bench().train.dataset.labels(bench().predicate)
    shares = np.bincount(labels, minlength=3) / len(labels)
    np.testing.assert_allclose(found.raw, np.tile(shares, (18, 1)))  # values in our order
    assert found.temperature is not None
    assert found.costs.query_ms is not None


def test_it_sees_the_evidence_and_never_a_label(module: Write) -> None:
    name = module(
        SHARES
        + """
class Watches(Shares):
    seen = []

    def fit(self, X, y, validation):
        Watches.seen = [X, y, *validation]
        return super().fit(X, y)
"""
    )
    assert answered(f"{name}:Watches").error is None
    train, values, held, held_values = sys.modules[name].Watches.seen
    assert train == entities_of(bench().train)
    assert (len(held), len(held_values)) == (18, 18)
    assert set(values) == {"low", "medium", "high"}
    assert set(train[0]) == {"claim", "evidence"}
    assert set(train[0]["evidence"][0]) == {"text", "credibility", "source", "timestamp"}


@pytest.mark.parametrize("name", ["seed", "random_state"])
@pytest.mark.parametrize("where", ["Made", "Fitted", "Both"])
def test_an_own_method_gets_the_seed_if_it_takes_one(name: str, where: str, module: Write) -> None:
    written = module(
        SHARES
        + f"""
class Made(Shares):
    seen = []

    def __init__(self, *, {name}=None):
        self.seen.append({name})


class Fitted(Shares):
    seen = []

    def fit(self, X, y, {name}=None):
        self.seen.append({name})
        return super().fit(X, y)


class Both(Fitted):
    seen = []

    def __init__(self, {name}):
        self.seen.append({name})
"""
    )
    assert answered(f"{written}:{where}").error is None
    seen = getattr(sys.modules[written], where).seen
    assert seen == [TRAIN_SPEC.seed] * (2 if where == "Both" else 1)


def test_arguments_that_an_own_method_does_not_take_are_not_passed(module: Write) -> None:
    name = module(
        SHARES
        + """
class Any(Shares, dict):
    def __init__(self, **options):
        assert not options

    def fit(self, X, y, *more, seed_of_mine=0, **options):
        assert (more, seed_of_mine, options) == ((), 0, {})
        return super().fit(X, y)


class Inherits(dict, Shares):
    pass
"""
    )
    assert answered(f"{name}:Any").error is None
    assert answered(f"{name}:Inherits").error is None


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("OneRow", "gave (1, 3) for 18 entities"),
        ("TwoColumns", "gave (18, 2) for 18 entities"),
        ("Flat", "gave (18,) for 18 entities"),
        ("Foreign", "must be among ('low', 'medium', 'high')"),
        ("Unsaid", "AttributeError"),
        ("Sums", "sum"),
    ],
)
def test_answers_of_a_wrong_shape_become_an_error_row(
    kind: str, message: str, module: Write
) -> None:
    found = answered(f"{module(BROKEN)}:{kind}")
    assert message in (found.error or "")
    assert found.tempered is None


def test_values_that_an_own_method_lacks_get_probability_zero(module: Write) -> None:
    name = module(
        """
class Medium:
    classes_ = ["medium", "high"]

    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        return [[0.75, 0.25] for _ in X]
"""
    )
    fitted = bench().fitted(f"{name}:Medium", own_settings(f"{name}:Medium"))
    np.testing.assert_array_equal(
        fitted.predict_proba(bench().test_examples(EvalSpec())), np.tile([0.0, 0.75, 0.25], (18, 1))
    )
    # Some entities are low, which no temperature can mend.
    found = answered(f"{name}:Medium")
    assert (found.temperature, found.error) == (None, None)
    assert "probability zero" in (found.note or "")


def test_changed_source_code_is_another_method(module: Write, tmp_path: Path) -> None:
    name = module(SHARES)
    (before,) = own_cells(TRAIN_SPEC, f"{name}:Shares")
    assert own_cells(TRAIN_SPEC, f"{name}:Shares") == [before]
    (tmp_path / f"{name}.py").write_text(SHARES + "\n# changed\n")
    (after,) = own_cells(TRAIN_SPEC, f"{name}:Shares")
    assert after.key != before.key
    assert isinstance(after, Cell)


BAD_NAMES: list[tuple[str, str]] = [
    ("no_such_module:Name", "cannot be imported (No module named 'no_such_module')"),
    ("json:NoSuchName", "cannot be imported"),
    ("json:", "cannot be imported"),
    (":Name", "cannot be imported"),
    ("builtins:dict", "is not a class of a Python file"),
    ("math:pi", "is not a class of a Python file"),
]


@pytest.mark.parametrize(("name", "message"), BAD_NAMES)
def test_invalid_methods_are_refused(name: str, message: str) -> None:
    with pytest.raises(ConfigError, match="Nothing was evaluated") as error:
        own_settings(name)
    assert message in str(error.value)


@pytest.mark.parametrize("text", ["def broken(:\n", "raise RuntimeError('not today')\n"])
def test_a_module_that_fails_while_it_is_imported_is_refused(text: str, module: Write) -> None:
    with pytest.raises(ConfigError, match="cannot be imported"):
        own_settings(f"{module(text)}:Name")


def test_a_class_that_needs_arguments_becomes_an_error_row(module: Write) -> None:
    name = module("class Asks:\n    def __init__(self, size): ...\n")
    assert (answered(f"{name}:Asks").error or "").startswith("TypeError")
