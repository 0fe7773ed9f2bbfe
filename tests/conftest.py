import os
import sys
from pathlib import Path

# Before any library looks: nothing in the tests may reach for a hub.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
# Two worker processes share two cores; threads of small networks would only wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent))
# The recipe of the stance reader, which is not installed.
sys.path.append(str(Path(__file__).parent.parent / "packages" / "lpf-stance"))

import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from shared_fixtures import commands_built_once as commands_built_once
from shared_fixtures import one_thread as one_thread

if TYPE_CHECKING:
    from servers import PostgresServer, RedisServer


# The longest files, in order. Workers take whole files, and nobody should wait for one of these at
# the end of a run.
LONGEST = (
    "evaluation/test_runner.py",
    "training/test_linear.py",
    "baselines/test_baseline_contract.py",
    "workspace/test_workspace_tuned.py",
    "classifier/test_classifier_contract.py",
    "cli/test_cli_arguments.py",
    "classifier/test_classifier_baselines.py",
    "training/test_small_data.py",
    "training/test_ladder.py",
    "cli/test_cli_train_view.py",
    "cli/test_cli_train.py",
    "cli/test_cli_damage.py",
    "evaluation/test_feature_cache.py",
    "evaluation/test_fitted_methods.py",
    "training/test_words_in_models.py",
    "workspace/test_training_data.py",
    "workspace/test_workspace_claims.py",
    "training/test_trainer.py",
    "training/test_few_groups.py",
    "cli/test_cli_demo.py",
    "classifier/test_classifier_tuned.py",
    "evaluation/test_evaluation_tuned.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first; ``make test`` keeps this order."""
    here = Path(__file__).parent
    places = {here / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))


def pytest_configure() -> None:
    """Stop the servers also on SIGTERM. Enable SIGINT, which a shell ignores in background jobs:
    tests of interrupts would hang."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def server_folder(name: str) -> Iterator[Path]:
    """Not one of pytest's, which are closed to other users whenever another run begins: run by
    root, PostgreSQL works as a user of its own."""
    with tempfile.TemporaryDirectory(prefix=f"lpf-{name}-") as folder:
        yield Path(folder)


# The first test that asks imports and starts a server; the others need neither it nor its package.


@pytest.fixture(scope="session")
def postgres() -> Iterator["PostgresServer"]:
    """A real PostgreSQL, started once a run; ``fresh_url()`` gives a blank database of it."""
    from servers import PostgresServer

    with server_folder("postgres") as folder, PostgresServer(folder / "data") as server:
        yield server


@pytest.fixture(scope="session")
def redis_server() -> Iterator["RedisServer"]:
    """A real Redis, started once a run."""
    from servers import RedisServer

    with server_folder("redis") as folder, RedisServer(folder) as server:
        yield server


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a blank store of each kind in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'store.db'}"
    return str(request.getfixturevalue("postgres").fresh_url())
