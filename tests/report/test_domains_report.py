from __future__ import annotations

import json
import re
from html import escape
from pathlib import Path

import pytest
from trained_runs import trained

from lpf.errors import ConfigError
from lpf.report import write_domains_report

FIGURES = {
    "domain-accuracy",
    "domain-gap",
    "domain-deviation",
    "domain-epochs",
    "domain-converged",
}
LONG = "a name that is far too long to stand beside a bar, with $dollars$ & <b>"


def test_domains_are_sorted_by_validation_accuracy(tmp_path: Path) -> None:
    runs = {"a": trained((1, 2)), "b": trained((3, 4, 5)), LONG: trained((8,), members=1)}
    html = write_domains_report(runs, tmp_path).read_text(encoding="utf-8")
    found = json.loads((tmp_path / "domains.json").read_text(encoding="utf-8"))["domains"]
    means = [one["spread"]["validation_accuracy"]["mean"] for one in found]
    assert means == sorted(means, reverse=True)
    assert {one["domain"] for one in found} == runs.keys()
    rows = re.findall(r'<th scope="row" class="name">([^<]*)</th>', html)
    assert rows == [escape(one["domain"]) for one in found]


def test_numbers_of_a_domain(tmp_path: Path) -> None:
    run = trained((1, 2, 3, 4))
    write_domains_report({"only": run}, tmp_path)
    (found,) = json.loads((tmp_path / "domains.json").read_text(encoding="utf-8"))["domains"]
    assert found["converged_share"] == 0.5
    assert found["mean_best_epoch"] == 5
    assert found["mean_epochs"] == 6
    assert found["train_minus_validation_accuracy"] == pytest.approx(-0.05)
    assert found["selected"] == run.config.seeds[0]


def test_the_page_needs_no_other_file(tmp_path: Path) -> None:
    runs = {f"domain {n}": trained((n, n + 10), warnings=("careful.",)) for n in range(1, 9)}
    html = write_domains_report(runs | {LONG: trained()}, tmp_path).read_text(encoding="utf-8")
    assert {path.stem for path in tmp_path.glob("*.png")} == FIGURES
    assert {path.stem for path in tmp_path.glob("*.svg")} == FIGURES
    assert html.count("<svg") == len(FIGURES)
    for outside in ("http", "src=", "<link", "<script", "<b>"):
        assert outside not in html
    assert "domain 3: careful." in html


def test_the_same_runs_give_the_same_bytes(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        write_domains_report({"a": trained((1, 2)), "b": trained((3,))}, tmp_path / folder)
    first = {path.name: path.read_bytes() for path in (tmp_path / "one").iterdir()}
    assert first == {path.name: path.read_bytes() for path in (tmp_path / "two").iterdir()}


def test_no_runs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no runs"):
        write_domains_report({}, tmp_path)
    assert list(tmp_path.iterdir()) == []
