"""Text in the figures of training reports: nothing overlaps, nothing is cut off."""

from __future__ import annotations

from pathlib import Path

import pytest
from figure_words import assert_readable, drawn
from matplotlib.figure import Figure
from trained_runs import trained

from lpf.report import write_domains_report, write_training_report
from lpf.report.drawing import MOST_LINES, legend_name
from lpf.training import FIFTEEN_SEEDS, SEVEN_SEEDS

__all__ = ["drawn"]  # the fixture

LONG_SEEDS = (2**63 - 1, 2**62, 10**18, 5, 6)
LONG_NAMES = ("materials and everything that they are made of", "Unternehmensbewertungen", "law")


@pytest.mark.parametrize("seeds", [(7,), LONG_SEEDS, SEVEN_SEEDS, FIFTEEN_SEEDS])
def test_text_in_a_training_report_is_readable(
    seeds: tuple[int, ...], drawn: list[Figure], tmp_path: Path
) -> None:
    run = trained(seeds, members=min(5, len(seeds) - len(seeds) // 3))
    write_training_report(run, tmp_path, dataset_name="any")
    assert len(drawn) == len(list(tmp_path.glob("*.svg"))) > 0
    for figure in drawn:
        assert_readable(figure)


@pytest.mark.parametrize("names", [("one",), LONG_NAMES, tuple("abcdefgh")])
def test_text_in_a_domains_report_is_readable(
    names: tuple[str, ...], drawn: list[Figure], tmp_path: Path
) -> None:
    write_domains_report({name: trained() for name in names}, tmp_path)
    assert len(drawn) == 5
    for figure in drawn:
        assert_readable(figure)


def test_an_endless_legend_name_is_cut() -> None:
    assert legend_name("word " * 100).count("\n") == MOST_LINES - 1
    assert legend_name("word " * 100).endswith("…")
