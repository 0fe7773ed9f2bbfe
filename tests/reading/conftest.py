"""One export and one reader for all tests in this folder, since an export takes a second."""

from __future__ import annotations

from pathlib import Path

import pytest

from lpf.reading import MiniLMReader
from lpf.reading.reader import IN_PASSAGES


@pytest.fixture(scope="session")
def cache_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def minilm(cache_dir: Path) -> MiniLMReader:
    return MiniLMReader(cache_dir=cache_dir)


@pytest.fixture(scope="session")
def cutting(minilm: MiniLMReader) -> MiniLMReader:
    """The reader of models from before long texts were read in passages."""
    return minilm.pinned(minilm.reader_id.removesuffix(IN_PASSAGES))


@pytest.fixture(scope="session")
def minilm_int8(cache_dir: Path) -> MiniLMReader:
    return MiniLMReader(cache_dir=cache_dir, precision="int8")
