"""How much of the paper's experiments is run: the full plan, or a quick one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lpf.domains import domain_names
from lpf.training import FIFTEEN_SEEDS, SEVEN_SEEDS

QUICK_METHODS = (
    "lpf_robust",
    "lpf_robust_single",
    "lpf_paper",
    "lpf_paper_best",
    "lpf_learned",
    "lpf_learned_published",
    "vae_only",
    "vae_only_ensemble",
    "deterministic_average",
    "deterministic_ensemble_average",
    "spn_only",
    "edl_aggregated",
    "edl_individual",
    "edl_individual_broken",
    "relational_graph",
    "logistic_mean",
    "deep_sets",
    "attention_pooling",
    "majority_vote",
    "confidence_vote",
    "stacking",
    "dawid_skene",
    "prior",
    "perfect_reader",
    "oracle",
)
# The fine-tuned transformer takes minutes per fit, as long as all the others together.
ALL_METHODS = (*QUICK_METHODS[:11], "transformer", *QUICK_METHODS[11:])
CORE_METHODS = (
    "lpf_robust",
    "lpf_robust_single",
    "lpf_paper",
    "lpf_paper_best",
    "lpf_learned",
    "vae_only",
    "vae_only_ensemble",
    "deterministic_average",
    "deterministic_ensemble_average",
    "spn_only",
    "logistic_mean",
    "majority_vote",
    "confidence_vote",
    "dawid_skene",
    "prior",
    "perfect_reader",
)
# Slow to train and much worse than the others, so run on the first data set of each domain only.
SLOW_METHODS = (
    "relational_graph",
    "edl_aggregated",
    "edl_individual",
    "deep_sets",
    "attention_pooling",
    "stacking",
    "lpf_learned_published",
)
ROBUSTNESS_METHODS = (
    "lpf_robust",
    "lpf_paper_best",
    "lpf_learned",
    "vae_only_ensemble",
    "deterministic_ensemble_average",
    "majority_vote",
    "dawid_skene",
    "logistic_mean",
)


@dataclass(frozen=True)
class ExperimentPlan:
    """What is run, and how often.

    ``data_seeds`` are data sets of a domain (``hard_seeds`` with the hard preset),
    ``training_seeds`` the networks trained on each; compliance has its own, ``main_seeds``.
    ``domain_methods`` run on all data sets of a domain, ``slow_methods`` on the first only.
    ``test_entities`` is the number of new test entities, beyond the 135 of a data set
    (``ablation_entities`` in the ablations). ``levels`` is how many levels of each perturbation are
    used, ``few`` the numbers of training entities in the study with few labels. ``files`` are data
    sets to evaluate besides the domains.
    """

    quick: bool
    main_seeds: tuple[int, ...]
    training_seeds: tuple[int, ...]
    main_repetitions: tuple[int, ...]
    data_seeds: tuple[int, ...]
    hard_seeds: tuple[int, ...]
    domains: tuple[str, ...]
    methods: tuple[str, ...]
    domain_methods: tuple[str, ...]
    slow_methods: tuple[str, ...]
    test_entities: int
    ablation_entities: int
    grid: bool
    study_seeds: tuple[int, ...]
    robustness_methods: tuple[str, ...]
    levels: int
    transfer_domains: tuple[str, ...]
    few: tuple[int, ...]
    files: tuple[Path, ...] = ()


def full_plan(files: tuple[Path, ...] = ()) -> ExperimentPlan:
    return ExperimentPlan(
        quick=False,
        main_seeds=FIFTEEN_SEEDS,
        training_seeds=SEVEN_SEEDS,
        main_repetitions=(1, 2, 3),
        data_seeds=(1, 2, 3, 4, 5),
        hard_seeds=(1, 2, 3, 4, 5),
        domains=domain_names(),
        methods=ALL_METHODS,
        domain_methods=CORE_METHODS,
        slow_methods=SLOW_METHODS,
        test_entities=3000,
        ablation_entities=1000,
        grid=True,
        study_seeds=(1, 2, 3),
        robustness_methods=ROBUSTNESS_METHODS,
        levels=5,
        transfer_domains=domain_names(),
        few=(45, 90, 180, 360, 630),
        files=files,
    )


def quick_plan(files: tuple[Path, ...] = ()) -> ExperimentPlan:
    """Two domains, one data set each, three networks: all tables and figures, wide intervals."""
    return ExperimentPlan(
        quick=True,
        main_seeds=FIFTEEN_SEEDS[:5],
        training_seeds=SEVEN_SEEDS[:3],
        main_repetitions=(1,),
        data_seeds=(1,),
        hard_seeds=(1,),
        domains=("compliance", "healthcare"),
        methods=QUICK_METHODS,
        domain_methods=(
            *ROBUSTNESS_METHODS,
            "lpf_robust_single",
            "lpf_paper",
            "vae_only",
            "prior",
            "perfect_reader",
        ),
        slow_methods=(),
        test_entities=500,
        ablation_entities=250,
        grid=False,
        study_seeds=(1,),
        robustness_methods=ROBUSTNESS_METHODS[:5],
        levels=3,
        transfer_domains=("compliance", "healthcare"),
        few=(45, 180, 630),
        files=files,
    )
