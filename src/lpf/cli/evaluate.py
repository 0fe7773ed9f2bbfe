"""``lpf evaluate``: every method on one data set."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lpf.cli.common import AsJson, command, print_document
from lpf.errors import ConfigError

if TYPE_CHECKING:
    from lpf.baselines.language_models import EndpointConfig
    from lpf.evaluation.language_model_run import LanguageModelRun

ALL = "all"
LLM_LIMIT = 50

DatasetFile = Annotated[
    Path, typer.Argument(metavar="DATASET", help="A data set's file, JSONL: see docs/datasets.md.")
]
Methods = Annotated[
    str | None,
    typer.Option(
        "--methods",
        metavar="NAME,...",
        help="Which; all is all of ours, package.module:Name your own. Default: quick ones.",
        show_default=False,
    ),
]
Seeds = Annotated[
    str, typer.Option("--seeds", metavar="N|N,N,...", help="How many repetitions, or their seeds.")
]
Folds = Annotated[
    int, typer.Option("--folds", help="Of the cross-validation, where the file has no test split.")
]
Resplit = Annotated[
    bool, typer.Option("--resplit", help="Forget the splits of the file; use folds.")
]
Predicate = Annotated[
    str | None,
    typer.Option("--predicate", metavar="NAME", help="Which, where several are labelled."),
]
Protected = Annotated[
    str | None,
    typer.Option("--protected", metavar="FIELD", help="Tell results apart by this field."),
]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="NAME",
        help="Fine-tune this transformer, a folder or a name on the hub such as "
        "bert-base-uncased, as the method transformer, which it adds. Default: MiniLM.",
        show_default=False,
    ),
]
AskedName = Annotated[
    str | None,
    typer.Option(
        "--llm",
        metavar="MODEL",
        help="Ask a language model too, about a few of the entities. Their texts are sent there.",
        show_default=False,
    ),
]
Endpoint = Annotated[
    str | None,
    typer.Option(
        "--endpoint",
        metavar="URL",
        help="Of the language model, OpenAI-compatible.",
        show_default=False,
    ),
]
KeyVariable = Annotated[
    str | None,
    typer.Option(
        "--api-key-env",
        metavar="NAME",
        help="The environment variable that holds its key.",
        show_default=False,
    ),
]
MostAsked = Annotated[
    int | None,
    typer.Option(
        "--llm-limit",
        metavar="N",
        help=f"Ask it about so many at most. Default: {LLM_LIMIT}.",
        show_default=False,
    ),
]
Workers = Annotated[int, typer.Option("--workers", help="Processes; 0 is one a core.")]
Keep = Annotated[
    Path | None,
    typer.Option(
        "--keep", metavar="DIR", help="Where results are kept; by default the user's cache."
    ),
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
    model: Model = None,
    llm: AskedName = None,
    endpoint: Endpoint = None,
    api_key_env: KeyVariable = None,
    llm_limit: MostAsked = None,
    workers: Workers = 0,
    keep: Keep = None,
    as_json: AsJson = False,
) -> None:
    """Compare methods on a data set: right or wrong, calibrated or not, how fast.

    The file's own test split is asked about; without one, every entity in turn, in folds that keep
    groups whole. Interrupted, the same command goes on where it stopped.
    """
    from lpf.workspace.training_runs import require_torch

    require_torch()
    sys.path.insert(0, str(Path.cwd()))  # for methods of your own
    from lpf.cli.progress import keeping_folder, watched
    from lpf.evaluation.document import evaluation_document
    from lpf.evaluation.evaluation import EvaluationPlan
    from lpf.evaluation.evaluator import Evaluator
    from lpf.evaluation.language_model_run import run_language_model
    from lpf.evaluation.runner import Runner

    config = _endpoint(llm, endpoint, api_key_env, llm_limit)
    chosen = parsed_methods(methods), parsed_seeds(seeds)
    plan = EvaluationPlan(dataset, *chosen, folds, resplit, predicate, protected, model)
    evaluator = Evaluator.of(plan)
    folder = keeping_folder(keep)
    with watched(f"evaluating {dataset.name}") as progress:
        runner = Runner(folder, workers, progress)
        evaluator.require_model(runner.store)
        runner.run(evaluator.cells())
    found = evaluator.evaluation(runner.store)
    asked = None if config is None else run_language_model(evaluator, found, config, folder)
    if as_json:
        print_document(evaluation_document(found) | told(asked))
    else:
        from lpf.cli.evaluate_view import show_asked, show_evaluation

        show_evaluation(found)
        show_asked(found, asked)


def told(asked: LanguageModelRun | None) -> dict[str, Any]:
    return {} if asked is None else {"language_models": {asked.name: asked.to_dict()}}


def _endpoint(
    llm: str | None, endpoint: str | None, api_key_env: str | None, limit: int | None
) -> EndpointConfig | None:
    """Of the language model to be asked; ConfigError for its options without it."""
    from lpf.evaluation.language_model_run import endpoint_config

    if llm is not None:
        return endpoint_config(llm, endpoint, api_key_env, LLM_LIMIT if limit is None else limit)
    options = {"--endpoint": endpoint, "--api-key-env": api_key_env, "--llm-limit": limit}
    given = [option for option, value in options.items() if value is not None]
    if given:
        raise ConfigError(
            f"{', '.join(given)}: without --llm no language model is asked. Nothing was "
            "evaluated; name the model with --llm, or leave this out."
        )
    return None


def parsed_methods(text: str | None) -> tuple[str, ...]:
    """Names between commas, each once; ``all`` is all of ours but the one that only generated data
    have what it takes for."""
    from lpf.baselines import METHODS
    from lpf.evaluation.evaluation import DEFAULT_METHODS
    from lpf.evaluation.model_cache import CHOSEN

    if text is None:
        return DEFAULT_METHODS
    named: list[str] = []
    for name in (part.strip() for part in text.split(",") if part.strip()):
        every = (one for one in (*METHODS, CHOSEN) if one != "perfect_reader")
        named += every if name == ALL else (name,)
    return tuple(dict.fromkeys(named))


def parsed_seeds(text: str) -> tuple[int, ...]:
    """``3`` is 1, 2, 3; ``7,`` or ``7,9`` are those."""
    try:
        numbers = [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 0 or ("," not in text and numbers[0] < 1):
        raise ConfigError(f"--seeds: must be a number or a list such as 1,2,3, got {text!r}.")
    return tuple(numbers) if "," in text else tuple(range(1, numbers[0] + 1))
