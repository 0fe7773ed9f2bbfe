from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from made_answers import Skill, made

from lpf.datasets import Dataset, DatasetEntity, DatasetItem, Split, write_dataset
from lpf.errors import DatasetError
from lpf.evaluation import DEFAULT_METHODS
from lpf.evaluation.predictions import Predictions
from lpf.evaluation.result_store import ResultStore
from lpf.evaluation.spec_datasets import file_dataset
from lpf.evaluation.specs import Cell, FileData
from lpf.schema import Predicate, Schema
from lpf_paper.exhibits import Row, StudyResult, Table, Value
from lpf_paper.plan import full_plan, quick_plan
from lpf_paper.studies.files import FilesStudy, is_fever
from lpf_paper.studies.study import ResultReader

STUDY = FilesStudy()
VALUES = ("no", "yes")
OWN_SPLITS: tuple[Split, ...] = ("train", "train", "validation", "test")


def entities(
    count: int, prefix: str, *, own_test: bool, claims: bool, shared: int
) -> Iterator[DatasetEntity]:
    """Of two items each; the last of them is the same text for the first ``shared`` entities."""
    for place in range(count):
        again = "known to all" if place < shared else f"second on {place}"
        items = (
            DatasetItem(f"{place}_a", f"first on {place}", credibility=0.9),
            DatasetItem(f"{place}_b", again),
        )
        yield DatasetEntity(
            f"{prefix}{place}",
            {"verdict": VALUES[place % 7 % 2]},
            items,
            claim=f"claim {place}" if claims else None,
            split=OWN_SPLITS[place % 4] if own_test else None,
        )


def a_file(
    folder: Path,
    name: str,
    *,
    count: int = 240,
    prefix: str = "e",
    own_test: bool = True,
    claims: bool = False,
    shared: int = 0,
) -> Path:
    made_up = entities(count, prefix, own_test=own_test, claims=claims, shared=shared)
    path = folder / f"{name}.jsonl"
    write_dataset(path, Dataset(name, Schema((Predicate("verdict", VALUES),)), tuple(made_up)))
    return path


@cache
def asked_about(data: FileData) -> Dataset:
    dataset = file_dataset(data)[0]
    return dataset.select(dataset.positions("test").tolist())


def answered(cell: Cell, skill: Skill) -> Predictions:
    """Those that the cell asks about, with their labels."""
    assert isinstance(cell.train_spec.data, FileData)
    asked = asked_about(cell.train_spec.data)
    labels = asked.labels("verdict")
    everyone = np.random.default_rng(zlib.crc32(repr(cell.train_spec.data.fold).encode()))
    # The last number was picked so that methods that are equally good do not differ by luck.
    named = (cell.method, cell.train_spec.seed, cell.train_spec.data.fold, 1)
    own = np.random.default_rng(zlib.crc32(repr(named).encode()))
    noise = everyone.normal(size=(len(labels), 2)) + 0.1 * own.normal(size=(len(labels), 2))
    rows = np.exp(skill.signal * np.eye(2)[labels] + noise)
    rows /= rows.sum(axis=1, keepdims=True)
    broken = skill.error is not None
    return replace(
        made(cell, skill, len(labels)),
        raw=None if broken else rows,
        tempered=None if broken else rows,
        labels=labels,
        entity_ids=tuple(entity.entity_id for entity in asked),
        values=VALUES,
    )


def result_of(
    folder: Path, paths: tuple[Path, ...], skill: Callable[[Cell], Skill] = lambda _: Skill(1.0)
) -> StudyResult:
    plan, store = quick_plan(paths), ResultStore(folder)
    for cell in STUDY.cells(plan):
        store.save(cell, answered(cell, skill(cell)))
    return STUDY.result(plan, ResultReader(folder))


def only_good(method: str) -> Callable[[Cell], Skill]:
    return lambda cell: Skill(4.0 if cell.method == method else 1.0)


def table(found: StudyResult, name: str) -> Table:
    return next(one for one in found.tables if one.name == name)


def line(shown: Table, name: str) -> Row:
    return next(one for one in shown.rows if one.name == name)


def cell_of(shown: Table, row: str, column: str) -> Value | str | None:
    return line(shown, row).cells[[one.name for one in shown.columns].index(column)]


def number(shown: Table, row: str, column: str) -> float:
    cell = cell_of(shown, row, column)
    assert isinstance(cell, Value)
    assert cell.value is not None
    return cell.value


def test_a_file_with_its_own_test_entities_is_trained_once_per_seed(tmp_path: Path) -> None:
    path = a_file(tmp_path, "split")
    for plan in (quick_plan((path,)), full_plan((path,))):
        cells = STUDY.cells(plan)
        assert len(set(cells)) == len(cells) == len(DEFAULT_METHODS) * len(plan.study_seeds)
        assert len({cell.train_spec for cell in cells}) == len(plan.study_seeds)


def test_any_other_file_is_trained_once_per_fold_and_has_claim_only(
    tmp_path: Path,
) -> None:
    path = a_file(tmp_path, "whole", own_test=False, claims=True)
    for plan, folds in ((quick_plan((path,)), 3), (full_plan((path,)), 5)):
        cells = STUDY.cells(plan)
        assert len(set(cells)) == len(cells) == (len(DEFAULT_METHODS) + 1) * folds
        assert len({cell.train_spec for cell in cells}) == folds
        assert {cell.method for cell in cells} == {*DEFAULT_METHODS, "claim_only"}


def test_a_file_that_is_too_small_is_refused_before_anything_is_run(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="59 labelled entities"):
        STUDY.cells(quick_plan((a_file(tmp_path, "small", count=59),)))


def test_without_files_there_is_nothing_to_run_and_nothing_to_show(tmp_path: Path) -> None:
    assert STUDY.cells(quick_plan()) == []
    found = STUDY.result(quick_plan(), ResultReader(tmp_path))
    assert found.findings == ("No files were given.",)
    assert not found.tables
    assert not found.figures


def test_the_winner_is_named_where_lpf_wins_and_where_it_loses(tmp_path: Path) -> None:
    paths = (a_file(tmp_path, "lpf_wins"), a_file(tmp_path, "others_win", own_test=False))

    def skill(cell: Cell) -> Skill:
        assert isinstance(cell.train_spec.data, FileData)
        best = "lpf_chosen" if "lpf_wins" in cell.train_spec.data.path else "logistic_mean"
        return only_good(best)(cell)

    found = result_of(tmp_path, paths, skill)
    first = found.findings[0]
    assert "lower NLL on 1 of 2 files (lpf wins)" in first
    assert "higher on 1 of 2 files (others win)" in first
    assert "no clear difference on none of 2 files" in first
    assert "LPF is" in found.findings[2]
    assert "above Logistic regression, mean embedding, the best without LPF" in found.findings[2]
    shown = table(found, "files")
    assert cell_of(shown, "lpf_wins", "best") == "LPF-SPN, robust, reading chosen"
    assert cell_of(shown, "others_win", "best") == "Logistic regression, mean embedding"
    assert cell_of(shown, "others_win", "simple") == "Logistic regression, mean embedding"
    assert number(shown, "lpf_wins", "difference") < 0 < number(shown, "others_win", "difference")
    assert number(shown, "lpf_wins", "asked") == 60
    assert number(shown, "others_win", "asked") == 240


def test_similar_methods_are_not_ranked(tmp_path: Path) -> None:
    found = result_of(tmp_path, (a_file(tmp_path, "alike"),))
    assert "no clear difference on 1 of 1 files (alike)" in found.findings[0]


def test_a_variant_of_lpf_that_is_better_still_is_named(tmp_path: Path) -> None:
    found = result_of(tmp_path, (a_file(tmp_path, "learned"),), only_good("lpf_learned"))
    assert "The lowest of all has LPF-Learned, repaired." in found.findings[1]


def test_rows_stand_in_the_order_of_their_nll_with_references_last(tmp_path: Path) -> None:
    path = a_file(tmp_path, "order", own_test=False, claims=True)
    shown = table(result_of(tmp_path, (path,), only_good("prior")), "file_order")
    assert {row.standing for row in shown.rows[-2:]} == {"reference"}
    ranked = [number(shown, row.name, "nll") for row in shown.rows[:-2]]
    assert ranked == sorted(ranked)
    assert shown.title == "Order"
    assert "240 entities with 2.0 items each" in shown.caption
    assert "in 3 folds" in shown.caption


def test_the_claim_alone_is_held_against_the_evidence(tmp_path: Path) -> None:
    path = a_file(tmp_path, "telling", claims=True)
    told = result_of(tmp_path, (path,), only_good("claim_only")).findings[2]
    assert "telling: the claim alone" in told
    assert "evidence did harm here" in told
    other = tmp_path / "other"
    other.mkdir()
    told = result_of(other, (path,), only_good("lpf_chosen")).findings[2]
    assert "due to evidence, or to a better use of the claim" in told
    alike = tmp_path / "alike"
    alike.mkdir()
    assert "is not clear" in result_of(alike, (path,)).findings[2]


def test_what_is_shared_is_said_and_the_others_are_shown_alone(tmp_path: Path) -> None:
    found = result_of(tmp_path, (a_file(tmp_path, "leaky", shared=40),))
    shown = table(found, "file_leaky")
    assert "10 of 60 test entities share a text" in shown.caption
    assert number(shown, "lpf_chosen", "clean_nll") > 0.0
    assert "leaky: on the 50 entities that share nothing" in found.findings[-1]
    clean = table(result_of(tmp_path, (a_file(tmp_path, "clean"),)), "file_clean")
    assert "clean_nll" not in [column.name for column in clean.columns]


def test_fever_has_the_papers_numbers_beside_and_those_it_alone_has(tmp_path: Path) -> None:
    path = a_file(tmp_path, "claims_of_fever", prefix="FEVER_")
    shown = table(result_of(tmp_path, (path,)), "file_claims_of_fever")
    beside = cell_of(shown, "lpf_paper_best", "accuracy")
    assert isinstance(beside, Value)
    assert (beside.paper, beside.value is not None) == (0.997, True)
    assert beside.doubt is not None
    assert number(shown, "vae_only", "accuracy") > 0.0
    alone = cell_of(shown, "llm:qwen3-32b", "accuracy")
    assert isinstance(alone, Value)
    assert (alone.value, alone.paper) == (None, 0.62)
    assert (line(shown, "llm:qwen3-32b").note or "").startswith("not asked here: needs an endpoint")
    assert "1,800 claims" in shown.caption


def test_other_sets_named_after_fever_are_not_fever(tmp_path: Path) -> None:
    names = ("FEVER_", "fever-dev-", "fsym-", "cf-")
    sets = [
        Dataset(
            "any",
            Schema((Predicate("verdict", VALUES),)),
            tuple(entities(4, name, own_test=False, claims=False, shared=0)),
        )
        for name in names
    ]
    assert [is_fever(one) for one in sets] == [True, True, False, False]


def test_a_method_that_crashed_is_a_row_and_lpf_that_crashed_is_told(tmp_path: Path) -> None:
    broken = Skill(error="TrainingError: it broke")
    found = result_of(
        tmp_path,
        (a_file(tmp_path, "broken"),),
        lambda cell: broken if cell.method == "lpf_chosen" else Skill(1.0),
    )
    note = line(table(found, "file_broken"), "lpf_chosen").note
    assert note is not None
    assert "it broke" in note
    assert "could not be compared" in found.findings[1]


def test_everything_shown_survives_the_document_and_fits_its_columns(tmp_path: Path) -> None:
    paths = (
        a_file(tmp_path, "one", prefix="fever-", shared=40),
        a_file(tmp_path, "two", own_test=False, claims=True),
    )
    found = result_of(tmp_path, paths)
    plain = json.dumps(found.to_dict(), allow_nan=False)
    assert StudyResult.from_dict(json.loads(plain)) == found
    for shown in found.tables:
        assert shown.rows
        assert all(len(row.cells) == len(shown.columns) for row in shown.rows)
    assert all(series.y for figure in found.figures for series in figure.series)
