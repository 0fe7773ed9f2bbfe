"""``lpf evaluate``: every method on one data set."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lpf.cli.common import AsJson, command, print_document
from lpf.cli.options import (
    Columns,
    DateFormat,
    FileEncoding,
    Sheet,
    file_fields_as_given,
    file_options,
)
from lpf.cli.safe_output import one_line
from lpf.errors import ConfigError
from lpf.options import LARGEST_SEED, parse_time, shown_time
from lpf.training.config import DEFAULT_BUDGET

if TYPE_CHECKING:
    from lpf.baselines.language_models import EndpointConfig

MOST_REPETITIONS = 1000
LLM_LIMIT = 50  # as lpf.evaluation.language_model_run.DEFAULT_LIMIT, which is slow to import

DatasetFile = Annotated[
    Path,
    typer.Argument(
        metavar="DATASET",
        help="A JSONL file with labelled entities, see docs/datasets.md, or a table with labels.",
    ),
]
Methods = Annotated[
    str | None,
    typer.Option(
        "--methods",
        metavar="NAME,...",
        help="Methods to compare; 'all' for all, package.module:Name for your own, which may be in "
        "the current folder. Default: the quick ones.",
        show_default=False,
    ),
]
Seeds = Annotated[
    str, typer.Option("--seeds", metavar="N|N,N,...", help="Number of repetitions, or their seeds.")
]
Folds = Annotated[
    int,
    typer.Option(
        "--folds", min=2, max=1000, help="Number of folds, if the file has no test entities."
    ),
]
Resplit = Annotated[
    bool, typer.Option("--resplit", help="Ignore the splits of the file and use folds.")
]
Predicate = Annotated[
    str | None,
    typer.Option(
        "--predicate",
        metavar="NAME",
        help="What to predict; by default the first labelled predicate.",
    ),
]
Protected = Annotated[
    str | None,
    typer.Option(
        "--protected", metavar="FIELD", help="Also report results by this field of the entities."
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="NAME",
        help="Transformer that the method 'transformer' fine-tunes, a folder or a name on the hub "
        "such as bert-base-uncased; adds the method. Default: MiniLM.",
        show_default=False,
    ),
]
LanguageModelName = Annotated[
    str | None,
    typer.Option(
        "--llm",
        metavar="MODEL",
        help="Also ask a language model about some test entities. Their texts are sent to it.",
        show_default=False,
    ),
]
Endpoint = Annotated[
    str | None,
    typer.Option(
        "--endpoint",
        metavar="URL",
        help="Address of the language model, OpenAI-compatible.",
        show_default=False,
    ),
]
KeyVariable = Annotated[
    str | None,
    typer.Option(
        "--api-key-env",
        metavar="NAME",
        help="Environment variable that holds the key of the endpoint.",
        show_default=False,
    ),
]
LanguageModelLimit = Annotated[
    int | None,
    typer.Option(
        "--llm-limit",
        min=1,
        max=1_000_000,
        metavar="N",
        help=f"Largest number of entities to ask it about. Default: {LLM_LIMIT}.",
        show_default=False,
    ),
]
Budget = Annotated[
    str | None,
    typer.Option(
        "--budget",
        metavar="TIME",
        help="Time for the training of lpf_chosen in each fold, such as 90s, 10m or 1h. "
        f"[dim]\\[default: {shown_time(DEFAULT_BUDGET)}][/dim]",
        show_default=False,
    ),
]
Workers = Annotated[
    int, typer.Option("--workers", min=0, max=1024, help="Number of processes; 0 is one per core.")
]
Keep = Annotated[
    Path | None,
    typer.Option(
        "--keep",
        metavar="DIR",
        help="Folder where results are stored; by default in the user's cache folder.",
    ),
]


Verbose = Annotated[
    bool,
    typer.Option("--verbose", help="Show all measures, all comparisons and all notes."),
]


def register(app: typer.Typer) -> None:
    command(
        app,
        "lpf evaluate labelled.jsonl",
        "lpf evaluate labelled.jsonl --methods all --seeds 5 --json",
    )(evaluate)


def evaluate(
    dataset: DatasetFile,
    methods: Methods = None,
    seeds: Seeds = "3",
    folds: Folds = 5,
    resplit: Resplit = False,
    predicate: Predicate = None,
    protected: Protected = None,
    columns: Columns = None,
    date_format: DateFormat = None,
    encoding: FileEncoding = None,
    sheet: Sheet = None,
    model: Model = None,
    llm: LanguageModelName = None,
    endpoint: Endpoint = None,
    api_key_env: KeyVariable = None,
    llm_limit: LanguageModelLimit = None,
    budget: Budget = None,
    workers: Workers = 0,
    keep: Keep = None,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> None:
    """Compare methods on a data set: accuracy, calibration and speed.

    The file's own test entities are answered; without any, every entity is answered once, in folds
    that keep groups together. If it is interrupted, the same command continues.
    """
    from lpf.workspace.training_runs import require_torch

    require_torch()
    import lpf
    from lpf.cli.progress import watched

    options = file_options(columns, encoding, sheet, date_format)
    chosen = parsed_methods(methods)
    if any(":" in name for name in chosen or ()):
        folder = str(Path.cwd())  # modules next to the data, for methods of your own
        sys.path.insert(0, folder)
        typer.echo(f"Methods of your own: modules in {one_line(folder)} are loaded.", err=True)
    language_model = _endpoint(llm, endpoint, api_key_env, llm_limit)
    with watched(f"evaluating {dataset.name}") as progress, file_fields_as_given():
        evaluation = lpf.evaluate(
            dataset,
            methods=chosen,
            seeds=parsed_seeds(seeds),
            folds=folds,
            resplit=resplit,
            predicate=predicate,
            protected=protected,
            model=model,
            language_model=language_model,
            workers=workers,
            progress=progress,
            cache=keep,
            options=options,
            budget=DEFAULT_BUDGET if budget is None else parse_time(budget, "--budget"),
        )
    if as_json:
        from lpf.evaluation import evaluation_document

        print_document(evaluation_document(evaluation))
    else:
        from lpf.cli.evaluate_view import show_evaluation

        show_evaluation(evaluation, verbose=verbose)


def _endpoint(
    llm: str | None, endpoint: str | None, api_key_env: str | None, limit: int | None
) -> EndpointConfig | None:
    """The language model to ask; ConfigError for its options without ``--llm``."""
    if llm is not None:
        from lpf.evaluation import endpoint_config

        return endpoint_config(llm, endpoint, api_key_env, LLM_LIMIT if limit is None else limit)
    options = {"--endpoint": endpoint, "--api-key-env": api_key_env, "--llm-limit": limit}
    given = [option for option, value in options.items() if value is not None]
    if given:
        raise ConfigError(
            "no language model is asked without --llm. Nothing was evaluated.",
            field=", ".join(given),
            hint="Name the model with --llm, or leave this out.",
        )
    return None


def parsed_methods(text: str | None) -> list[str] | None:
    """Names between commas; None for the default ones."""
    if text is None:
        return None
    return [part.strip() for part in text.split(",") if part.strip()]


def parsed_seeds(text: str) -> int | list[int]:
    """``3`` is a number of repetitions; ``7,`` or ``7,9`` are their seeds."""
    try:
        numbers = [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        numbers = []
    least, most = (0, LARGEST_SEED) if "," in text else (1, MOST_REPETITIONS)
    is_short = 1 <= len(numbers) <= MOST_REPETITIONS
    if not is_short or not all(least <= number <= most for number in numbers):
        raise ConfigError(
            f"must be a number from 1 to {MOST_REPETITIONS} or a list such as 1,2,3, got "
            f"{text[:80]!r}.",
            field="--seeds",
        )
    return numbers if "," in text else numbers[0]
