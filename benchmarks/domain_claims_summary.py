"""``python -m benchmarks.domain_claims_summary``: what ``domain_claims`` measured, in tables."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.domain_claims import RESULTS

REFERENCES = ("perfect_reader", "prior")


def main() -> None:
    found: dict[str, Any] = json.loads(RESULTS.read_text())
    console = Console(width=110)
    for preset in ("paper", "hard"):
        runs = {key: one for key, one in found.items() if key.startswith(f"{preset}/")}
        for place in ("fixed", "varying"):
            if runs:
                console.print(table_of(f"{preset}, {place} number of items", runs, place))
        if runs:
            console.print(claims_of(preset, runs))


def table_of(title: str, runs: dict[str, Any], place: str) -> Table:
    """Every method over all domains and data sets, lowest NLL first. ``wins``: in how many runs
    it had a lower NLL than robust LPF-SPN."""
    rows: dict[str, list[dict[str, float]]] = defaultdict(list)
    wins: dict[str, int] = defaultdict(int)
    for run in runs.values():
        for name, one in run[place].items():
            if "nll" in one:
                rows[name].append(one)
                wins[name] += one["nll"] < run[place]["lpf_robust"]["nll"]
    table = Table(title=title)
    for heading in (
        "method",
        "runs",
        "NLL",
        "± sd",
        "accuracy",
        "ECE",
        "ECE told from perfect",
        "wins",
    ):
        table.add_column(heading, justify="left" if heading == "method" else "right")
    for name in sorted(rows, key=lambda one: mean(rows[one], "nll")):
        told = np.mean([one["ece_p"] < 0.05 for one in rows[name]])
        table.add_row(
            name,
            str(len(rows[name])),
            f"{mean(rows[name], 'nll'):.4f}",
            f"{np.std([one['nll'] for one in rows[name]]):.4f}",
            f"{mean(rows[name], 'accuracy'):.4f}",
            f"{mean(rows[name], 'ece'):.4f}",
            f"{100 * told:.0f} %",
            "" if name in ("lpf_robust", *REFERENCES) else f"{wins[name]} of {len(rows[name])}",
        )
    return table


def claims_of(preset: str, runs: dict[str, Any]) -> Table:
    table = Table(title=f"{preset}: by domain, mean over data sets (fixed number of items)")
    for heading in (
        "domain",
        "runs",
        "items",
        "accuracy",
        "NLL",
        "paper + T",
        "perfect",
        "gap closed",
    ):
        table.add_column(heading, justify="left" if heading == "domain" else "right")
    by_domain: dict[str, list[Any]] = defaultdict(list)
    for key, run in runs.items():
        by_domain[key.split("/")[1]].append(run)
    for domain, those in sorted(by_domain.items()):
        robust, paper, perfect = (
            mean([one["fixed"][name] for one in those], "nll")
            for name in ("lpf_robust", "lpf_paper", "perfect_reader")
        )
        table.add_row(
            domain,
            str(len(those)),
            f"{np.mean([one['item_accuracy'] for one in those]):.3f}",
            f"{mean([one['fixed']['lpf_robust'] for one in those], 'accuracy'):.4f}",
            f"{robust:.4f}",
            f"{paper:.4f}",
            f"{perfect:.4f}",
            f"{100 * (paper - robust) / (paper - perfect):.0f} %",
        )
    return table


def mean(rows: list[dict[str, float]], name: str) -> float:
    return float(np.mean([one[name] for one in rows]))


if __name__ == "__main__":
    main()
