"""Keys of cells: equal cells have equal keys, different cells different ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lpf.evaluation.specs import Cell, DomainData, EvalSpec, FileData, TrainSpec
from small_specs import Reworded

DOMAIN = DomainData("compliance", "paper", 3, ("copies=0.2",))
FILE = FileData("a/one.jsonl", "f00d", "label", 5, 2, "region")
TRAIN_SPEC = TrainSpec(DOMAIN, seed=2, seeds=(1, 2), entities=45)
EVAL_SPEC = EvalSpec(DomainData("legal"), 100, Reworded(2), 4)
CELL = Cell(TRAIN_SPEC, EVAL_SPEC, "lpf_robust", (("rho", 0.5),))


def a_cell(**of_lesson: Any) -> Cell:
    return replace(CELL, train_spec=replace(TRAIN_SPEC, **of_lesson))


def test_equal_cells_have_one_key() -> None:
    again = Cell(
        TrainSpec(DomainData("compliance", "paper", 3, ("copies=0.2",)), 2, (1, 2), 45),
        EvalSpec(DomainData("legal"), 100, Reworded(2), 4),
        "lpf_robust",
        (("rho", 0.5),),
    )
    assert again == CELL
    assert again.key == CELL.key
    assert again.train_spec.key == TRAIN_SPEC.key != CELL.key


def test_the_form_of_a_setting_does_not_change_the_key() -> None:
    whole, real = (replace(CELL, settings=(("temperature", one),)) for one in (2, 2.0))
    assert whole == real
    assert whole.key == real.key
    assert replace(CELL, settings=(("rho", 0.25),)).settings == (("rho", 0.25),)
    assert replace(CELL, settings=(("fitted", False),)).settings[0][1] is False


def test_a_file_that_was_moved_has_the_same_key() -> None:
    moved = replace(FILE, path="b/two.jsonl")
    assert a_cell(data=moved).key == a_cell(data=FILE).key
    assert a_cell(data=moved).train_spec.key == a_cell(data=FILE).train_spec.key


CHANGED = {
    "domain": a_cell(data=replace(DOMAIN, domain="legal")),
    "preset": a_cell(data=replace(DOMAIN, preset="hard")),
    "data seed": a_cell(data=replace(DOMAIN, seed=4)),
    "changes": a_cell(data=replace(DOMAIN, changes=())),
    "file": a_cell(data=FILE),
    "digest": a_cell(data=replace(FILE, digest="beef")),
    "predicate": a_cell(data=replace(FILE, predicate=None)),
    "folds": a_cell(data=replace(FILE, folds=4)),
    "fold": a_cell(data=replace(FILE, fold=3)),
    "protected": a_cell(data=replace(FILE, protected=None)),
    "seed": a_cell(seed=3),
    "seeds": a_cell(seeds=(2, 1)),
    "entities": a_cell(entities=None),
    "eval_spec": replace(CELL, eval_spec=EvalSpec()),
    "eval_spec data": replace(CELL, eval_spec=replace(EVAL_SPEC, data=DomainData("legal", seed=2))),
    "eval_spec entities": replace(CELL, eval_spec=replace(EVAL_SPEC, entities=101)),
    "no change": replace(CELL, eval_spec=replace(EVAL_SPEC, change=None)),
    "another change": replace(CELL, eval_spec=replace(EVAL_SPEC, change=Reworded(3))),
    "top_k": replace(CELL, eval_spec=replace(EVAL_SPEC, top_k=None)),
    "method": replace(CELL, method="lpf_paper"),
    "settings": replace(CELL, settings=()),
    "value of a setting": replace(CELL, settings=(("rho", 0.6),)),
}


def test_any_change_gives_another_key() -> None:
    keys = {name: cell.key for name, cell in CHANGED.items()} | {"unchanged": CELL.key}
    assert len(set(keys.values())) == len(keys), keys


def test_keys_can_name_files() -> None:
    assert all(len(cell.key) == 40 and cell.key.isalnum() for cell in CHANGED.values())
