"""``lpf train``: from labelled data to the model that answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from lpf.cli.common import (
    AsJson,
    Verbose,
    WorkspaceFolder,
    command,
    open_workspace,
    print_document,
)
from lpf.cli.exits import FileName
from lpf.cli.options import (
    Columns,
    DateFormat,
    FileEncoding,
    Sheet,
    fields_as_given,
    file_fields_as_given,
    file_options,
    whole_numbers,
    with_options,
)
from lpf.cli.safe_output import quoted
from lpf.errors import ConfigError, LPFError
from lpf.options import LARGEST_SEED, options_of
from lpf.training.config import FIFTEEN_SEEDS, HOW, SEED_PRESETS, StageTwoConfig, TrainingConfig

if TYPE_CHECKING:
    from lpf.training import Trained
    from lpf.workspace import Workspace
    from lpf.workspace.training_runs import TrainingOutcome, TrainingRun

DATA, RESULT = "What it is trained on", "What happens to the model"
# Options for which --grid tries several values.
IN_GRID = ("learning_rate", "latent_width", "hidden")


def _option(panel: str, *names: str, help: str, metavar: str | None = None) -> Any:
    return typer.Option(
        *names, help=help, metavar=metavar, show_default=False, rich_help_panel=panel
    )


DataName = Annotated[
    str | None,
    typer.Argument(
        metavar="DATASET|DOMAIN",
        help="Data set file, table with labels, or name of a domain (lpf domains list). By default "
        "the labelled evidence of the workspace.",
        parser=FileName,
        show_default=False,
    ),
]
Predicates = Annotated[
    list[str] | None,
    _option(
        DATA,
        "--predicate",
        metavar="NAME",
        help="Predicate to train; repeat for more. By default all.",
    ),
]
Preset = Annotated[
    Literal["paper", "hard"],
    typer.Option("--preset", help="Difficulty of a domain's data.", rich_help_panel=DATA),
]
DataSeed = Annotated[
    int,
    typer.Option(
        "--data-seed",
        min=0,
        max=LARGEST_SEED,
        help="Random seed of a domain's data.",
        rich_help_panel=DATA,
    ),
]
Resplit = Annotated[
    bool, _option(DATA, "--resplit", help="Ignore the splits in the file and make new ones.")
]
Seeds = Annotated[
    str | None,
    _option(
        HOW,
        "--seeds",
        metavar="SEEDS",
        help="seven, fifteen, N for the first N of the fifteen, or a list: 1,2,3. "
        "[dim]\\[default: seven][/dim]",
    ),
]
SingleSeed = Annotated[
    int | None,
    _option(HOW, "--single", metavar="SEED", help="Train only this seed."),
]
Paper = Annotated[
    bool,
    _option(HOW, "--paper", help="As published: patience 5, one seed, networks, no balancing."),
]
NoAggregator = Annotated[
    bool, _option(HOW, "--no-aggregator", help="Leave out the learned aggregator.")
]
Grid = Annotated[
    bool,
    _option(HOW, "--grid", help="Try the paper's learning rates and widths, keep the best."),
]
Onto = Annotated[
    str | None,
    _option(
        HOW,
        "--onto",
        metavar="VERSION",
        help="Add a head for one more predicate to this model; the rest of it stays the same.",
    ),
]
Name = Annotated[
    str | None, _option(RESULT, "--name", help="Name on the model card. By default the data's.")
]
NoUse = Annotated[bool, _option(RESULT, "--no-use", help="Do not answer with the new model.")]
ReportFolder = Annotated[
    Path | None,
    _option(
        RESULT,
        "--report",
        metavar="DIR",
        help="Folder of the report. By default reports/VERSION in the workspace.",
    ),
]
NoReport = Annotated[bool, _option(RESULT, "--no-report", help="Do not write a report.")]


def register(app: typer.Typer) -> None:
    command(
        app,
        "lpf train compliance",
        "lpf train labelled.jsonl --predicate level --seeds fifteen",
    )(with_options(TrainingConfig)(train))


def train(
    data: DataName = None,
    *,
    predicate: Predicates = None,
    preset: Preset = "paper",
    data_seed: DataSeed = 42,
    resplit: Resplit = False,
    columns: Columns = None,
    date_format: DateFormat = None,
    encoding: FileEncoding = None,
    sheet: Sheet = None,
    seeds: Seeds = None,
    single: SingleSeed = None,
    paper: Paper = False,
    given: Mapping[str, Any],
    no_aggregator: NoAggregator = False,
    unfreeze: Annotated[
        bool, _option(HOW, "--unfreeze", help=options_of(StageTwoConfig)["unfreeze"].option.help)
    ] = False,
    grid: Grid = False,
    onto: Onto = None,
    name: Name = None,
    no_use: NoUse = False,
    report: ReportFolder = None,
    no_report: NoReport = False,
    verbose: Verbose = False,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Train a model, calibrate its probabilities, and answer with it from now on.

    Several seeds are trained together and the best of them form the model. After Ctrl-C, the same
    command continues where it stopped. Fewer than 60 entities without splits are trained on in
    folds, which takes seconds.
    """
    _check_combination(given, grid=grid, single=single, no_aggregator=no_aggregator,
                       unfreeze=unfreeze)  # fmt: skip
    if report is not None and no_report:
        raise ConfigError("contradicts --report.", field="--no-report", hint="Leave one out.")
    options = file_options(columns, encoding, sheet, date_format)
    from lpf.cli.progress import training_progress
    from lpf.workspace.training_runs import TrainingPlan, require_torch
    from lpf.workspace.training_sources import TrainingSource

    with (
        open_workspace(workspace) as space,
        training_progress() as callbacks,
        fields_as_given(TrainingConfig, given),
        file_fields_as_given(),
    ):
        require_torch()
        config = _config(paper, no_aggregator, unfreeze, given)
        chosen = _seeds(seeds)
        plan = TrainingPlan(config, chosen, single, grid, name, onto)
        source = TrainingSource(data, tuple(predicate or ()), preset, data_seed, resplit, options)
        outcome = space.train(
            source,
            plan,
            use=not no_use,
            report=None if no_report else _write_report,
            report_folder=report,
            watching=callbacks,
        )
        has_evidence, top_k = _has_evidence(space), space.settings.query.most_items
    from lpf.cli.train_view import show_training, training_document

    document = training_document(outcome) | {
        "ignored": _ignored_options(outcome.run, "patience" in given, chosen, unfreeze),
        "next": _next_command(outcome, has_evidence),
        "top_k": top_k,
    }
    if as_json:
        print_document(document)
    else:
        show_training(document, verbose=verbose)


def _config(
    paper: bool, no_aggregator: bool, unfreeze: bool, given: Mapping[str, Any]
) -> TrainingConfig:
    config = TrainingConfig.paper() if paper else TrainingConfig()
    if no_aggregator:
        config = replace(config, aggregator=None)
    if unfreeze:
        config = replace(config, stage_two=replace(config.stage_two, unfreeze=True))
    return replace(config, **given)


def _check_combination(
    given: Mapping[str, Any],
    *,
    grid: bool,
    single: int | None,
    no_aggregator: bool,
    unfreeze: bool,
) -> None:
    """Raise ConfigError for options that contradict each other."""
    flags = [options_of(TrainingConfig)[name].flag for name in IN_GRID if name in given]
    if grid and flags:
        raise ConfigError(
            f"tries values of {', '.join(flags)} itself.", field="--grid", hint="Leave one out."
        )
    if single is not None and "members" in given:
        raise ConfigError("keeps one seed.", field="--single", hint="Leave --members out.")
    if no_aggregator and unfreeze:
        raise ConfigError(
            "concerns the aggregator.", field="--unfreeze", hint="Leave --no-aggregator out."
        )


def _seeds(text: str | None) -> tuple[int, ...] | None:
    if text is None or text in SEED_PRESETS:
        return None if text is None else SEED_PRESETS[text]
    form = f"{', '.join(SEED_PRESETS)}, a number or a list such as 1,2,3"
    numbers = whole_numbers(text, "--seeds", form)
    if "," in text:
        return numbers
    count = numbers[0]
    if not 1 <= count <= len(FIFTEEN_SEEDS):
        raise ConfigError(
            f"a number is how many of the {len(FIFTEEN_SEEDS)} known seeds to use, got {count}.",
            field="--seeds",
            hint=f"To train the seed {count} alone, use --single {count}.",
        )
    return FIFTEEN_SEEDS[:count]


def _write_report(trained: Trained, folder: Path, dataset_name: str) -> Path:
    from lpf.report import write_training_report

    return write_training_report(trained, folder, dataset_name=dataset_name)


def _ignored_options(
    run: TrainingRun, patience: bool, seeds: Sequence[int] | None, unfreeze: bool
) -> list[str]:
    """Options that were given and have no effect on few entities."""
    if not run.few:
        return []
    count, members = len(seeds or ()), run.config.members
    options = {
        "--patience": patience,
        f"{count - members} of {count} --seeds (members: {members})": count > members,
        "--unfreeze": unfreeze,
    }
    return [option for option, is_ignored in options.items() if is_ignored]


def _has_evidence(space: Workspace) -> bool:
    """Return True if there is something to ask about. A store that cannot be reached does not
    make the training fail; a query will report it."""
    try:
        return space.evidence.count() > 0
    except LPFError:
        return True


def _next_command(outcome: TrainingOutcome, has_evidence: bool) -> str:
    """The command that makes use of the model."""
    if not outcome.active:
        return f"lpf models use {quoted(outcome.version)}"
    ask = f"lpf query ENTITY {quoted(outcome.run.predicates[0])}"
    return ask if has_evidence else f"lpf ingest EVIDENCE, then {ask}"
