"""``lpf train``: from labelled data to the model that answers.

What is said of a training run beside its numbers: what had no effect, and how to go on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from lpf.cli.common import AsJson, WorkspaceFolder, command, opened, print_document
from lpf.errors import ConfigError, LPFError

if TYPE_CHECKING:
    from lpf.training import Trained, TrainingConfig
    from lpf.workspace import Workspace
    from lpf.workspace.training_runs import TrainingOutcome, TrainingRun


def ignored_options(
    run: TrainingRun, patience: int | None, seeds: Sequence[int] | None, unfreeze: bool
) -> list[str]:
    """Options that were given and have no effect on so few entities."""
    if not run.few:
        return []
    given, members = len(seeds or ()), run.config.members
    told = {
        "--patience": patience is not None,
        f"{given - members} of {given} --seeds (members: {members})": given > members,
        "--unfreeze": unfreeze,
    }
    return [option for option, is_so in told.items() if is_so]


def has_no_evidence(space: Workspace) -> bool:
    """Whether there is nothing to ask about. A store out of reach is nothing to training: whoever
    asks is told."""
    try:
        return space.evidence.count() == 0
    except LPFError:
        return False


def next_step(outcome: TrainingOutcome, store_is_empty: bool) -> str:
    """The command that makes use of the model."""
    if not outcome.active:
        return f"lpf models use {outcome.version}"
    ask = f"lpf query ENTITY {outcome.run.predicates[0]}"
    return f"lpf ingest EVIDENCE, then {ask}" if store_is_empty else ask


DEFAULT_PRESET = "paper"
DATA, RECIPE, RESULT = "What is trained on", "How it is trained", "What becomes of it"


def _option(panel: str, *words: str, metavar: str | None = None, text: str) -> Any:
    return typer.Option(
        *words, help=text, metavar=metavar, show_default=False, rich_help_panel=panel
    )


DataName = Annotated[
    str | None,
    typer.Argument(
        metavar="DATASET|DOMAIN",
        help="A data set's file, or a domain by its name (lpf domains list); without, the labelled "
        "evidence of the workspace.",
        show_default=False,
    ),
]
Predicates = Annotated[
    list[str] | None,
    _option(DATA, "--predicate", metavar="NAME", text="Only this one; repeat it. Default: all."),
]
Preset = Annotated[str, _option(DATA, "--preset", text="Of a domain: paper (default) or hard.")]
DataSeed = Annotated[int, _option(DATA, "--data-seed", text="Of a domain: which draw; 42.")]
Resplit = Annotated[
    bool, _option(DATA, "--resplit", text="Forget the splits of the file, and make new ones.")
]
Seeds = Annotated[
    str | None,
    _option(
        RECIPE,
        "--seeds",
        metavar="WHICH",
        text="seven (default), fifteen, N for the first N of the fifteen, or a list: 1,2,3.",
    ),
]
Single = Annotated[
    int | None,
    _option(RECIPE, "--single", metavar="SEED", text="Train and keep this seed alone."),
]
Members = Annotated[
    int | None, _option(RECIPE, "--members", text="Keep so many of the best seeds; 5.")
]
Paper = Annotated[
    bool, _option(RECIPE, "--paper", text="As published: patience 5, one seed, nothing balanced.")
]
Patience = Annotated[
    int | None, _option(RECIPE, "--patience", text="Epochs without a gain before it stops; 15.")
]
Epochs = Annotated[int | None, _option(RECIPE, "--epochs", text="At most so many; 100.")]
LearningRate = Annotated[
    float | None, _option(RECIPE, "--learning-rate", text="Of the first stage; 0.001.")
]
Beta = Annotated[float | None, _option(RECIPE, "--beta", text="Weight of the KL term; 0.01.")]
Latent = Annotated[int | None, _option(RECIPE, "--latent", text="Width of the latent space; 64.")]
Hidden = Annotated[
    str | None,
    _option(RECIPE, "--hidden", metavar="N,N...", text="Widths of the encoder's layers; 256,128."),
]
WeightDecay = Annotated[
    float | None, _option(RECIPE, "--weight-decay", text="Of the first stage; 0.")
]
Balance = Annotated[
    str | None,
    _option(
        RECIPE,
        "--balance",
        text="Draw every value equally often: always, never, or auto, where one is three times as "
        "frequent as another.",
    ),
]
Reading = Annotated[
    str | None,
    _option(
        RECIPE,
        "--reading",
        text="chosen (default): networks or a linear reading, whichever validation entities prefer;"
        " networks: the paper's in any case.",
    ),
]
Deterministic = Annotated[
    bool, _option(RECIPE, "--deterministic", text="Without the variational part.")
]
NoAggregator = Annotated[
    bool, _option(RECIPE, "--no-aggregator", text="Leave the learned aggregator out.")
]
Unfreeze = Annotated[
    bool, _option(RECIPE, "--unfreeze", text="Train encoder and decoder on with the aggregator.")
]
Grid = Annotated[
    bool,
    _option(RECIPE, "--grid", text="Try the paper's learning rates and widths, keep the best."),
]
Onto = Annotated[
    str | None,
    _option(
        RECIPE,
        "--onto",
        metavar="VERSION",
        text="Add a head for one more predicate to this model; nothing else of it changes.",
    ),
]
Name = Annotated[
    str | None, _option(RESULT, "--name", text="What its card calls it; the data's name.")
]
NoUse = Annotated[bool, _option(RESULT, "--no-use", text="Do not make it the one that answers.")]
ReportFolder = Annotated[
    Path | None,
    _option(RESULT, "--report", metavar="DIR", text="Default: reports/VERSION of the workspace."),
]
NoReport = Annotated[bool, _option(RESULT, "--no-report", text="Write no report.")]


def register(app: typer.Typer) -> None:
    command(
        app,
        "lpf train compliance",
        "lpf train labelled.jsonl --predicate level --seeds fifteen",
    )(train)


def train(
    data: DataName = None,
    predicate: Predicates = None,
    preset: Preset = DEFAULT_PRESET,
    data_seed: DataSeed = 42,
    resplit: Resplit = False,
    seeds: Seeds = None,
    single: Single = None,
    members: Members = None,
    paper: Paper = False,
    patience: Patience = None,
    epochs: Epochs = None,
    learning_rate: LearningRate = None,
    beta: Beta = None,
    latent: Latent = None,
    hidden: Hidden = None,
    weight_decay: WeightDecay = None,
    balance: Balance = None,
    reading: Reading = None,
    deterministic: Deterministic = False,
    no_aggregator: NoAggregator = False,
    unfreeze: Unfreeze = False,
    grid: Grid = False,
    onto: Onto = None,
    name: Name = None,
    no_use: NoUse = False,
    report: ReportFolder = None,
    no_report: NoReport = False,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Train a model, fit its probabilities, and answer with it from now on.

    Several seeds are trained together and the best of them answer together. Interrupted, the same
    command goes on where it stopped; done before, it finds what was done. Fewer than 60 entities
    without splits are trained on anew, in seconds.
    """
    given = {
        "members": members,
        "patience": patience,
        "max_epochs": epochs,
        "learning_rate": learning_rate,
        "beta": beta,
        "latent_width": latent,
        "hidden": None if hidden is None else _widths(hidden),
        "weight_decay": weight_decay,
        "balance": balance,
        "reading": reading,
    }
    changes = {field: value for field, value in given.items() if value is not None}
    _refuse_together(grid, changes, single, no_aggregator, unfreeze)
    if report is not None and no_report:
        raise ConfigError("--no-report: --report says where to write one; leave one of them out.")
    from lpf.cli.progress import shown
    from lpf.workspace.training_runs import TrainingPlan, require_torch
    from lpf.workspace.training_sources import TrainingSource

    with opened(workspace) as space, shown() as watching:
        require_torch()
        _check_choices(preset, balance, reading)
        config = _config(paper, deterministic, no_aggregator, unfreeze, changes)
        chosen = _seeds(seeds)
        plan = TrainingPlan(config, chosen, single, grid, name, onto)
        source = TrainingSource(data, tuple(predicate or ()), preset, data_seed, resplit)
        outcome = space.train(
            source,
            plan,
            use=not no_use,
            report=None if no_report else _write_report,
            report_folder=report,
            watching=watching,
        )
        is_empty = has_no_evidence(space)
    from lpf.cli.train_view import document_of, show

    document = document_of(outcome) | {
        "ignored": ignored_options(outcome.run, patience, chosen, unfreeze),
        "next": next_step(outcome, is_empty),
    }
    if as_json:
        print_document(document)
    else:
        show(document)


def _config(
    paper: bool,
    deterministic: bool,
    no_aggregator: bool,
    unfreeze: bool,
    changes: dict[str, Any],
) -> TrainingConfig:
    from lpf.training import TrainingConfig

    config = TrainingConfig.paper() if paper else TrainingConfig()
    if deterministic:
        config = replace(config, deterministic=True)
    if no_aggregator:
        config = replace(config, aggregator=None)
    if unfreeze:
        config = replace(config, stage_two=replace(config.stage_two, unfreeze=True))
    return replace(config, **changes)


def _refuse_together(
    grid: bool,
    changes: dict[str, Any],
    single: int | None,
    no_aggregator: bool,
    unfreeze: bool,
) -> None:
    """ConfigError for options of which one would go unheard."""
    tried = {"learning_rate": "--learning-rate", "latent_width": "--latent", "hidden": "--hidden"}
    fixed = [option for field, option in tried.items() if field in changes]
    if grid and fixed:
        raise ConfigError(f"--grid: tries {', '.join(fixed)} itself; leave one of them out.")
    if single is not None and "members" in changes:
        raise ConfigError("--single: is one member; leave --members out.")
    if no_aggregator and unfreeze:
        raise ConfigError("--unfreeze: speaks of the aggregator; leave --no-aggregator out.")


def _check_choices(preset: str, balance: str | None, reading: str | None) -> None:
    """ConfigError for one that there is none of."""
    from lpf.training.config import Balance, Reading

    choices: dict[str, tuple[str | None, tuple[str, ...]]] = {
        "--balance": (balance, get_args(Balance)),
        "--reading": (reading, get_args(Reading)),
    }
    if preset != DEFAULT_PRESET:
        from lpf.domains.parameters import PRESETS  # slow to import

        choices["--preset"] = (preset, tuple(PRESETS))
    for option, (given, known) in choices.items():
        if given is not None and given not in known:
            listed = f"{', '.join(known[:-1])} or {known[-1]}"
            raise ConfigError(f"{option}: must be {listed}, got {given!r}. Nothing was trained.")


def _seeds(text: str | None) -> tuple[int, ...] | None:
    from lpf.training import FIFTEEN_SEEDS, SEED_PRESETS

    if text is None or text in SEED_PRESETS:
        return None if text is None else SEED_PRESETS[text]
    listed = _whole_numbers(text, "--seeds", f"{', '.join(SEED_PRESETS)}, a number or a list")
    if "," in text:
        return listed
    count = listed[0]
    if not 1 <= count <= len(FIFTEEN_SEEDS):
        raise ConfigError(
            f"--seeds: a number is how many of the {len(FIFTEEN_SEEDS)} known seeds, got {count}. "
            f"For this seed alone say --single {count}."
        )
    return FIFTEEN_SEEDS[:count]


def _widths(text: str) -> tuple[int, ...]:
    return _whole_numbers(text, "--hidden", "widths such as 256,128")


def _whole_numbers(text: str, option: str, form: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isdecimal() for part in parts):
        raise ConfigError(f"{option}: must be {form}, got {text!r}. Nothing was trained.")
    return tuple(map(int, parts))


def _write_report(trained: Trained, folder: Path, dataset_name: str) -> Path:
    from lpf.report import write_training_report

    return write_training_report(trained, folder, dataset_name=dataset_name)
