"""Search by text: every kind of index, and damaged or outdated vector files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from made_up import WIDTH, Filled, MadeUpReader, unit_vectors

from lpf.errors import ConfigError, EvidenceError, StorageError
from lpf.index import FeatureSource, IndexConfig, VectorIndex, forget_rows
from lpf.index.faiss_index import ExactNearest, KindChoice, VectorRows
from lpf.reading.pair import PairReader, text_part

KINDS: tuple[KindChoice, ...] = ("flat", "ivf_flat", "ivf_pq")
COUNT = 2000


def source_of(filled: Filled, width: int = WIDTH) -> FeatureSource:
    return FeatureSource(filled.store, "made-up", width, lambda: MadeUpReader(width=width))


def fill(filled: Filled, vectors: np.ndarray, start: int = 0) -> None:
    names = [f"e{start + number:05d}" for number in range(len(vectors))]
    filled.add(*names, vectors=vectors, width=vectors.shape[1])


def nearest(vectors: np.ndarray, query: np.ndarray, k: int = 10) -> list[str]:
    order = np.argsort(-(vectors @ query), kind="stable")[:k]
    return [f"e{place:05d}" for place in order]


def ids(hits: list) -> list[str]:
    return [hit.evidence_id for hit in hits]


@pytest.fixture
def vectors() -> np.ndarray:
    return unit_vectors(COUNT + 40, 16, clusters=40)[:COUNT]


@pytest.fixture(params=KINDS)
def index_of_kind(
    request: pytest.FixtureRequest, small: Filled, vectors: np.ndarray, tmp_path: Path
):
    """An index of each kind over the same vectors, not yet built."""
    fill(small, vectors)
    return VectorIndex(source_of(small, 16), tmp_path / "vectors", IndexConfig(kind=request.param))


def the_file(tmp_path: Path, suffix: str = "faiss") -> Path:
    (found,) = (tmp_path / "vectors").glob(f"*.{suffix}")
    return found


def test_every_kind_reaches_the_recall_in_its_manifest(index_of_kind: VectorIndex, vectors) -> None:
    manifest = index_of_kind.manifest
    queries = unit_vectors(COUNT + 40, 16, clusters=40)[
        COUNT:
    ]  # from the same distribution, but not in the store
    found = [
        set(ids(index_of_kind.search(query))) & set(nearest(vectors, query)) for query in queries
    ]
    assert manifest.recall >= 0.95
    assert manifest.target_reached
    assert sum(map(len, found)) / 400 >= manifest.recall - 0.05
    assert manifest.count == COUNT


def test_similarity_is_the_exact_cosine(index_of_kind: VectorIndex, vectors) -> None:
    hits = index_of_kind.search(3.0 * vectors[7])
    assert ids(hits)[0] == "e00007"
    expected = [vectors[hit.row_id - 1] @ vectors[7] for hit in hits]
    assert [hit.similarity for hit in hits] == pytest.approx(expected, abs=1e-5)


def test_the_manifest_describes_the_file(index_of_kind: VectorIndex, tmp_path: Path) -> None:
    manifest = index_of_kind.manifest
    written = json.loads(the_file(tmp_path, "json").read_text())
    assert written["kind"] == manifest.kind
    assert written["reader_id"] == "made-up"
    assert written["sha256"] == manifest.sha256
    assert written["last_row_id"] == COUNT
    assert set(written["versions"]) == {"lpf", "faiss"}


def test_a_missed_recall_target_is_reported(small: Filled, tmp_path: Path) -> None:
    """One byte for 16 random numbers, and no reranking."""
    fill(small, unit_vectors(COUNT, 16))
    config = IndexConfig(kind="ivf_pq", pq_bytes=1, rerank=1)
    manifest = VectorIndex(source_of(small, 16), tmp_path / "vectors", config).manifest
    assert not manifest.target_reached
    assert manifest.recall < 0.95
    assert manifest.nprobe < manifest.lists, "more lists do not help here"


def test_recall_counts_the_missed_neighbours() -> None:
    """Whichever is missed, and not counting the query itself."""
    units = unit_vectors(200, 16)
    rows = np.arange(1, 201)
    exact = ExactNearest(VectorRows(rows[:1], units[:1]), 10)
    for half in (slice(0, 100), slice(100, 200)):
        exact.add(rows[half], units[half])
    cosines = units @ units[0]
    ranked = np.argsort(-cosines)
    for missed in (1, 5, 10):
        found = np.delete(ranked[:12], missed)[None]
        assert exact.recall(cosines[found], rows[found]) == pytest.approx(0.9)
    assert exact.recall(cosines[ranked[None, :11]], rows[ranked[None, :11]]) == 1.0


def flip_a_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("suffix", ["faiss", "json"])
@pytest.mark.parametrize(
    "damage",
    [
        flip_a_byte,
        lambda path: path.write_bytes(path.read_bytes()[:-100]),
        lambda path: path.write_bytes(b""),
        Path.unlink,
    ],
    ids=["flipped", "truncated", "emptied", "deleted"],
)
def test_a_damaged_file_is_rebuilt(
    small: Filled, vectors, tmp_path: Path, damage, suffix: str
) -> None:
    fill(small, vectors[:300])
    source = source_of(small, 16)
    VectorIndex(source, tmp_path / "vectors").rebuild()
    sound = the_file(tmp_path).read_bytes()
    damage(the_file(tmp_path, suffix))
    index = VectorIndex(source, tmp_path / "vectors")
    assert ids(index.search(vectors[3])) == nearest(vectors[:300], vectors[3])
    assert the_file(tmp_path).read_bytes() == sound


def test_a_file_of_another_format_or_width_is_rebuilt(
    small: Filled, vectors, tmp_path: Path
) -> None:
    fill(small, vectors[:50])
    source = source_of(small, 16)
    VectorIndex(source, tmp_path / "vectors").rebuild()
    for change in ({"format": 99}, {"width": 12}):
        path = the_file(tmp_path, "json")
        path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
        assert len(VectorIndex(source, tmp_path / "vectors").search(vectors[3])) == 10
        assert json.loads(path.read_text())["format"] == 1


def test_new_items_are_found_before_the_file_is_rebuilt(
    index_of_kind: VectorIndex, small: Filled, vectors, tmp_path: Path
) -> None:
    index_of_kind.rebuild()
    before = the_file(tmp_path).read_bytes()
    for seed, start in ((5, COUNT), (6, COUNT + 10)):
        more = unit_vectors(10, 16, seed=seed)
        fill(small, more, start)
        hits = index_of_kind.search(more[4], 3)
        assert hits[0].evidence_id == f"e{start + 4:05d}"
        assert hits[0].similarity == pytest.approx(1.0, abs=1e-5)
    assert the_file(tmp_path).read_bytes() == before


def test_too_many_new_items_cause_a_rebuild(small: Filled, vectors, tmp_path: Path) -> None:
    fill(small, vectors[:100])
    config = IndexConfig(stale_share=0.1, stale_items=5)
    index = VectorIndex(source_of(small, 16), tmp_path / "vectors", config)
    assert index.manifest.count == 100
    fill(small, vectors[100:115], 100)
    assert index.manifest.count == 100
    fill(small, vectors[115:116], 115)
    assert index.manifest.count == 116


def test_vectors_added_to_older_rows_cause_a_rebuild(small: Filled, tmp_path: Path) -> None:
    """Rows that had no features when the file was built are not after its last row."""
    small.add("late")
    small.add("early", reader=MadeUpReader())
    source = source_of(small)
    index = VectorIndex(source, tmp_path / "vectors")
    assert ids(index.search("text of late")) == ["early"]
    source.read_missing()
    assert ids(index.search("text of late")) == ["late", "early"]


def test_items_erased_by_another_process_are_not_found(
    index_of_kind: VectorIndex, small: Filled, vectors, tmp_path: Path
) -> None:
    index_of_kind.rebuild()
    small.store.erase("e00007")
    assert "e00007" not in ids(index_of_kind.search(vectors[7]))
    assert vectors[7].tobytes() not in the_file(tmp_path).read_bytes()


def test_forgotten_rows_are_in_no_file(
    index_of_kind: VectorIndex, small: Filled, vectors, tmp_path: Path
) -> None:
    kind = index_of_kind.manifest.kind
    held = the_file(tmp_path).open("rb")  # to read the old file after it is unlinked
    (gone,) = small.store.erase("e00007")
    index_of_kind.forget(gone.row_id)
    manifest = json.loads(the_file(tmp_path, "json").read_text())
    assert manifest["count"] == COUNT - 1
    assert manifest["kind"] == kind
    for path in (tmp_path / "vectors").iterdir():
        assert vectors[7].tobytes() not in path.read_bytes()
    with held:
        assert not any(held.read())
    after = the_file(tmp_path).read_bytes()
    assert "e00007" not in ids(index_of_kind.search(vectors[7]))
    assert the_file(tmp_path).read_bytes() == after, "forgetting was enough"


def test_forgetting_one_row_does_not_hide_another_erasure(
    small: Filled, vectors, tmp_path: Path
) -> None:
    fill(small, vectors[:50])
    index = VectorIndex(source_of(small, 16), tmp_path / "vectors")
    index.rebuild()
    gone = [small.store.erase(name)[0].row_id for name in ("e00007", "e00008")]
    index.forget(gone[0])
    assert not {"e00007", "e00008"} & set(ids(index.search(vectors[8], 50)))
    assert vectors[8].tobytes() not in the_file(tmp_path).read_bytes()


def test_no_centroid_equals_a_vector(small: Filled, tmp_path: Path) -> None:
    """A vector alone in its list must not remain as the centroid."""
    vectors = unit_vectors(COUNT, 16, clusters=3)
    vectors[::200] = unit_vectors(10, 16, seed=1)
    fill(small, vectors)
    index = VectorIndex(source_of(small, 16), tmp_path / "vectors", IndexConfig(kind="ivf_flat"))
    index.rebuild()
    content = the_file(tmp_path).read_bytes()
    assert max(content.count(vector.tobytes()) for vector in vectors) == 1


def test_forgetting_wipes_a_damaged_file(small: Filled, vectors, tmp_path: Path) -> None:
    fill(small, vectors[:50])
    index = VectorIndex(source_of(small, 16), tmp_path / "vectors")
    index.rebuild()
    flip_a_byte(the_file(tmp_path))
    index.forget(1)
    assert not list((tmp_path / "vectors").glob("*.faiss"))


def test_forgetting_covers_the_files_of_all_readers(
    small: Filled, vectors, tmp_path: Path, never_opened
) -> None:
    """After a change of reader, the old reader's file still contains the vector."""
    fill(small, vectors[:50])
    other = FeatureSource(small.store, "other", 4, never_opened)
    read = unit_vectors(50, 4)
    small.store.put_features(other.number, range(1, 51), read)
    folder = tmp_path / "vectors"
    before, now = VectorIndex(source_of(small, 16), folder), VectorIndex(other, folder)
    before.rebuild()
    now.rebuild()
    (folder / "notes.json").write_text("of somebody")
    now.forget(small.store.erase("e00007")[0].row_id)
    for path in folder.iterdir():
        for erased in (vectors[7], read[7]):
            assert erased.tobytes() not in path.read_bytes()
    assert (folder / "notes.json").read_text() == "of somebody"
    assert len(list(folder.glob("*.faiss"))) == 2
    assert "e00007" not in ids(before.search(vectors[7], 50))


def test_forgetting_wipes_leftovers_of_another_reader(
    small: Filled, vectors, tmp_path: Path
) -> None:
    fill(small, vectors[:50])
    leftovers = [tmp_path / "vectors" / f"0123456789abcdef.{kind}" for kind in ("new", "old")]
    leftovers[0].parent.mkdir()
    for leftover in leftovers:
        leftover.write_bytes(vectors[7].tobytes())
    forget_rows(small.store, tmp_path / "vectors", [small.store.erase("e00007")[0].row_id])
    assert not any(leftover.exists() for leftover in leftovers)


def test_a_file_that_missed_an_erasure_is_wiped(small: Filled, vectors, tmp_path: Path) -> None:
    fill(small, vectors[:50])
    VectorIndex(source_of(small, 16), tmp_path / "vectors").rebuild()
    gone = [small.store.erase(name)[0].row_id for name in ("e00007", "e00008")]
    forget_rows(small.store, tmp_path / "vectors", gone[1:])
    assert not list((tmp_path / "vectors").glob("*.faiss"))


def test_forgetting_without_files_needs_no_faiss(small: Filled, tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path\n"
        "from lpf.storage.database import Database\n"
        "from lpf.storage.evidence import EvidenceStore\n"
        "from lpf.index import forget_rows\n"
        "forget_rows(EvidenceStore(Database(Path(sys.argv[1]))), sys.argv[2], [1])\n"
        "assert 'faiss' not in sys.modules\n"
    )
    command = [sys.executable, "-c", program, tmp_path / "small.db", tmp_path / "vectors"]
    subprocess.run(command, check=True)
    assert not (tmp_path / "vectors").exists()


def test_leftovers_of_a_crash_are_wiped(small: Filled, vectors, tmp_path: Path) -> None:
    fill(small, vectors[:50])
    index = VectorIndex(source_of(small, 16), tmp_path / "vectors")
    index.rebuild()
    stem = the_file(tmp_path).with_suffix("")
    leftovers = [stem.with_suffix(".old"), stem.with_suffix(".new")]
    for leftover in leftovers:
        leftover.write_bytes(b"vectors")
    index.rebuild()
    assert not any(leftover.exists() for leftover in leftovers)


def test_hits_pass_the_filters(filled: Filled, tmp_path: Path) -> None:
    reader = MadeUpReader()
    filled.add("a", reader=reader, credibility=0.2)
    filled.add("b", reader=reader, credibility=0.9, predicate="q")
    filled.add("c", reader=reader, entity_id="F")
    index = VectorIndex(source_of(filled), tmp_path / "vectors")
    assert set(ids(index.search("text of a"))) == {"a", "b", "c"}
    assert ids(index.search("text of a", 1)) == ["a"]
    assert set(ids(index.search("text of a", min_credibility=0.5))) == {"b", "c"}
    assert ids(index.search("text of a", predicate="q")) == ["b"]
    assert ids(index.search("text of a", entity_id="F")) == ["c"]
    assert ids(index.search("text of a", entity_id="E", predicate="p")) == ["a"]
    assert index.search("text of a", entity_id="G") == []
    (hit,) = index.search("text of c", 1)
    assert (hit.entity_id, hit.predicate, hit.row_id) == ("F", "p", 3)
    assert hit.similarity == pytest.approx(1.0)


def test_a_filter_that_few_items_pass_still_finds_them(
    index_of_kind: VectorIndex, small: Filled, vectors
) -> None:
    """The items are far from the query, in lists that it would not search."""
    far = -vectors[:3] / np.linalg.norm(vectors[:3], axis=1, keepdims=True)
    small.add("x", "y", "z", vectors=far, width=16, predicate="rare")
    index_of_kind.rebuild()
    assert set(ids(index_of_kind.search(vectors[0], 3, predicate="rare"))) == {"x", "y", "z"}


def test_an_empty_store_has_no_hits(small: Filled, tmp_path: Path) -> None:
    index = VectorIndex(source_of(small), tmp_path / "vectors")
    assert index.search("anything") == []
    small.add("a", reader=MadeUpReader())
    assert ids(index.search("anything")) == ["a"]


def test_search_uses_the_text_part_of_pair_features(small: Filled, tmp_path: Path) -> None:
    pair = PairReader(MadeUpReader())
    small.add("a", "b", reader=pair, claim="the claim")
    part = text_part(pair.reader_id, pair.width)
    source = FeatureSource(small.store, pair.reader_id, pair.width, lambda: pair, part)
    (hit,) = VectorIndex(source, tmp_path / "vectors").search("text of b", 1)
    assert hit.evidence_id == "b"
    assert hit.similarity == pytest.approx(1.0)


def test_two_processes_can_build_at_once(small: Filled, vectors, tmp_path: Path) -> None:
    fill(small, vectors[:500])
    program = (
        "import sys; from pathlib import Path; import numpy as np\n"
        "from lpf.storage.database import Database\n"
        "from lpf.storage.evidence import EvidenceStore\n"
        "from lpf.index import FeatureSource, VectorIndex\n"
        "store = EvidenceStore(Database(Path(sys.argv[1])))\n"
        "source = FeatureSource(store, 'made-up', 16, lambda: None)\n"
        "print(len(VectorIndex(source, sys.argv[2]).search(np.ones(16, 'f4'))))\n"
    )
    command = [sys.executable, "-c", program, tmp_path / "small.db", tmp_path / "vectors"]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate()[0].strip() for process in running] == ["10", "10"]


def test_an_unusable_folder_is_named(small: Filled, tmp_path: Path) -> None:
    (tmp_path / "vectors").write_text("a file")
    index = VectorIndex(source_of(small), tmp_path / "vectors")
    with pytest.raises(StorageError, match=r"vectors.*Nothing was searched or changed"):
        index.search("anything")


def test_invalid_arguments_are_rejected(small: Filled, tmp_path: Path) -> None:
    index = VectorIndex(source_of(small), tmp_path / "vectors")
    with pytest.raises(ConfigError, match="k: must be at least 1"):
        index.search("anything", 0)
    with pytest.raises(EvidenceError, match="must be 8 finite numbers"):
        index.search(np.full(WIDTH, np.nan, np.float32))


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"kind": "tree"}, "kind"),
        ({"recall_target": 0.0}, "recall_target"),
        ({"rerank": 0}, "rerank"),
        ({"stale_share": -0.1}, "stale_share"),
    ],
)
def test_index_settings_out_of_range_are_named(settings: dict, name: str) -> None:
    with pytest.raises(ConfigError, match=rf"index\.vectors\.{name}: must be"):
        IndexConfig(**settings)


def test_the_kind_depends_on_the_size() -> None:
    config = IndexConfig()
    assert [config.kind_for(count) for count in (0, 49_999, 50_000)] == ["flat", "flat", "ivf_flat"]
    assert IndexConfig(kind="ivf_pq").kind_for(100) == "flat"


def test_importing_the_index_does_not_import_faiss() -> None:
    program = "import sys, lpf.index; assert 'faiss' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ivf_flat", "ivf_pq"])
def test_recall_of_a_large_index(small: Filled, tmp_path: Path, kind: KindChoice) -> None:
    drawn = unit_vectors(60_120, 32, clusters=300)
    vectors, queries = drawn[:60_000], drawn[60_000:]
    fill(small, vectors)
    index = VectorIndex(source_of(small, 32), tmp_path / "vectors", IndexConfig(kind=kind))
    found = [set(ids(index.search(query))) & set(nearest(vectors, query)) for query in queries]
    assert sum(map(len, found)) / (10 * len(queries)) >= 0.93
    assert index.manifest.nprobe < index.manifest.lists / 4
