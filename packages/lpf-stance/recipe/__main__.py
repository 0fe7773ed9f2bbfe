"""python -m recipe --base model.safetensors --tokenizer tokenizer.json --data pairs --out run"""

from __future__ import annotations

import argparse
from pathlib import Path

from recipe.training import RunSettings, StanceRun


def main() -> None:
    parser = argparse.ArgumentParser(description="Train the stance reader; run again to continue.")
    parser.add_argument("--base", required=True, help="BERT weights to start from (safetensors)")
    parser.add_argument("--tokenizer", required=True, type=Path)
    parser.add_argument("--data", required=True, type=Path, help="folder of the pairs")
    parser.add_argument("--out", required=True, type=Path, help="folder of the run")
    parser.add_argument("--pairs", type=int, default=550_000, help="training pairs in all")
    parser.add_argument("--rate", type=float, default=1.2e-4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first-pass", type=int, default=0, help="number of the first pass")
    given = parser.parse_args()
    settings = RunSettings(
        given.base, given.pairs, given.rate, seed=given.seed, first_pass=given.first_pass
    )
    StanceRun(settings, given.out, given.data, given.tokenizer).run()


if __name__ == "__main__":
    main()
