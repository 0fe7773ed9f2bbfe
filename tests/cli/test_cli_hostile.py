"""Foreign text never controls the terminal: every command, on a pseudo-terminal and in a pipe, in a
workspace whose every field tries to."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from test_cli_main import ALL
from typer.testing import CliRunner

from builders import sharp_tensors
from labelled_workspaces import WIDTH, WordReader, write_lines
from labelled_workspaces import line as labelled
from lpf.cli.main import app
from lpf.cli.safe_output import json_text, one_line, quoted, visible
from lpf.cli.terminal import Output
from lpf.factors.keys import content_key
from lpf.ingest import content_hash
from lpf.model.artefact import ModelCard, save_model
from lpf.model.config import AggregatorConfig, EncoderConfig, ModelConfig, PredicateHead
from lpf.schema import Predicate, Relation, Schema
from lpf.storage.evidence import NewEvidence
from lpf.storage.facts import NewFact
from lpf.storage.values import iso
from lpf.types import Evidence
from lpf.workspace import Workspace
from lpf.workspace.settings import FILE_NAME
from workspaces import NOW

pytestmark = pytest.mark.usefixtures("one_thread")

# Clear the screen, conceal, set the title, C1, DEL, backspace, right-to-left, separators, a line
# that looks like output.
P = "\x1b[2J\x1b[8m\x1b]0;T\x07\x9b31m\x7f\x08\u202e\u2066\u200f\u2028\x0b\rFAKE\nFAKE LINE"
ENTITY, ITEM, LEVEL, HIGH = f"C{P}", f"E{P}", f"level{P}", f"high{P}"

VALUES = (f"low{P}", HIGH)
FORBIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ud800-\udfff]|\r(?=FAKE)"
)
# What lpf itself sends: styles except concealed, and the movements of its progress displays.
OWN = re.compile(
    r"\x1b\[(?!8m)[0-9;]*m|\x1b\[\?25[lh]|\r\x1b\[2K|\x1b\[2K|\x1b\[[0-9]*A|\r(?=\x1b\[2K|$)"
)


def schema() -> Schema:
    outcome = Predicate(f"outcome{P}", (f"clean{P}", f"qualified{P}"), description=P)
    level = Predicate(LEVEL, VALUES, description=f"description{P}")
    return Schema((level, outcome), (Relation((level.name, outcome.name)),))


def fill(space: Workspace) -> None:
    words = WordReader()
    items = [
        Evidence(
            evidence_id=ITEM if number == 0 else f"E{number}{P}",
            entity_id=ENTITY,
            predicate=LEVEL,
            text_content=f"high text{number} {P}",
            claim=f"claim{P}",
            source=f"source{P}",
            report_id=f"report{P}",
            credibility=0.9,
            timestamp=NOW,
        )
        for number in range(3)
    ]
    features = words.read_many([item.text_content for item in items])
    number = space.evidence.reader_number(words.reader_id, words.width)
    rows = [
        NewEvidence(item, content_key(item.text_content, item.claim), content_hash(item))
        for item in items
    ]
    space.evidence.add(rows, features, number)
    space.facts.add([NewFact(ENTITY, f"outcome{P}", f"clean{P}", NOW, 0.8, f"source{P}", "a")])
    heads = (
        PredicateHead(LEVEL, VALUES),
        PredicateHead(f"outcome{P}", (f"clean{P}", f"qualified{P}")),
    )
    config = ModelConfig(
        predicates=heads,
        encoder=EncoderConfig(input_width=WIDTH, hidden=(8,), latent_width=4),
        aggregator=AggregatorConfig(),
        members=1,
        reader_id=words.reader_id,
    )
    card = ModelCard(f"name{P}", f"data{P}", f"use{P}", f"limits{P}", notes=(f"note{P}",))
    version = save_model(space.folder / "models", config, sharp_tensors(config), card)
    space.use_model(version)
    space.query(ENTITY, LEVEL)
    space.ledger.checkpoint()


@dataclass(frozen=True)
class Place:
    """The workspace, in a folder whose name is hostile too, and files to give to commands."""

    folder: Path

    @property
    def files(self) -> Path:
        return self.folder.parent

    @property
    def version(self) -> str:
        return next(path.name for path in (self.folder / "models").iterdir() if path.is_dir())

    def file(self, name: str, content: str) -> str:
        path = self.files / f"{P.replace('/', '')}{name}"
        path.write_text(content, encoding="utf-8", newline="")
        return str(path)

    def labelled(self, name: str, count: int = 72) -> str:
        rows = []
        for number in range(count):
            row = labelled(number, label=VALUES[number % 2])
            for item in row["evidence"]:
                item["text"] = f"{'high' if number % 2 else 'low'} {item['text']}"
                item["evidence_id"] += P
            split = ("train", "train", "validation", "test")[number // 2 % 4]
            row |= {"entity_id": f"{number}{P}", "labels": {LEVEL: row.pop("label")}}
            rows.append(row | {"split": split, "fields": {f"group{P}": f"a{P}"}})
        path = self.files / f"{P}{name}"
        return str(write_lines(path, rows))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setattr("lpf.workspace.wiring.open_reader", lambda *_, **__: WordReader())
    monkeypatch.setenv("LPF_USER", f"user{P}")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("NO_COLOR", raising=False)
    folder = tmp_path / f"workspace{P}"
    with Workspace.create(folder, schema()) as space:
        fill(space)
    return Place(folder)


Words = list[str]
Case = tuple[int, Words]  # the exit code, and the arguments without the command's name


def ingest_files(at: Place) -> list[Case]:
    columns = f'entity_id,text,predicate,"credibilty{P}"\r\n'
    good = at.file("good.csv", columns + f'"{ENTITY}","text{P}","{LEVEL}",1\r\n')
    bad = at.file("bad.jsonl", json.dumps({"entity_id": ENTITY, "predicate": P, "text": "a"}))
    return [(0, [good]), (1, [bad]), (2, [at.file("none.txt", P)]), (2, [str(at.files / P)])]


def batch_files(at: Place) -> list[Case]:
    question = json.dumps({"entity_id": ENTITY, "predicate": LEVEL})
    wrong = at.file("wrong.jsonl", json.dumps({"entity_id": P, "predicate": P}))
    good = at.file("good.jsonl", question)
    return [(0, [good, "-"]), (0, [good, str(at.files / f"out{P}")]), (2, [wrong, "-"])]


def report_files(at: Place) -> list[Case]:
    question = json.dumps({"entity_id": ENTITY, "predicate": LEVEL})
    wrong = at.file("wrong.jsonl", json.dumps({"entity_id": P, "predicate": P}))
    page = ["--html", str(at.files / f"page{P}"), "--title", P]
    return [(0, [at.file("good.jsonl", question), *page]), (2, [wrong, *page])]


def own_domain(at: Place) -> list[Case]:
    return [(0, ["compliance"]), (2, [at.file("d.toml", f"name = {json.dumps(P)}\n")]), (2, [P])]


QUICK = ["--max-epochs", "1", "--seeds", "1", "--hidden", "8", "--latent-width", "4"]

# By command: calls that print every foreign field it can print, and calls that are refused.
CASES: dict[str, Callable[[Place], list[Case]]] = {
    "demo": lambda at: [(0, ["--worked-example"]), (2, ["--workspace", at.file("demo", "")])],
    "init": lambda at: [
        (0, [str(at.files / f"new{P}"), "--predicate", f"a{P}=x{P},y{P}"]),
        (2, [str(at.files / "new2"), "--predicate", P]),
        (2, [str(at.folder), "--predicate", "a=x,y"]),
    ],
    "ingest": ingest_files,
    "train": lambda at: [
        (0, [at.labelled("train.jsonl"), *QUICK, "--name", P, "--report", str(at.files / P)]),
        (2, [at.file("broken.jsonl", json.dumps({P: P}))]),
    ],
    "query": lambda at: [
        (0, [ENTITY, LEVEL, "--query-text", f"text{P}"]),
        (0, [ENTITY, LEVEL, "--full", "--verbose"]),
        (4, [f"C{P}c", LEVEL]),
        (2, [ENTITY, P]),
        (2, [ENTITY, "--top-k", P]),
        (2, [ENTITY, f"--{P}"]),
    ],
    "explain": lambda at: [
        (0, [ENTITY, LEVEL, "--html", str(at.files / f"case{P}.html")]),
        (0, [ENTITY, LEVEL, "--add", f"text{P}"]),
        (4, [f"C{P}c", LEVEL]),
        (2, [ENTITY, P]),
        (2, [ENTITY, LEVEL, "--between", P]),
        (2, [ENTITY, LEVEL, "--drop", f"a{P}"]),
        (2, [ENTITY, LEVEL, "--weight", f"a{P}=1"]),
        (2, [ENTITY, LEVEL, "--fact", f"a{P}=b{P}"]),
    ],
    "batch": batch_files,
    "report": report_files,
    "entities": lambda at: [(0, []), (2, ["--predicate", P])],
    "rank": lambda at: [
        (0, [LEVEL, str(at.files / f"ranked{P}.csv")]),
        (2, [LEVEL, "--value", P]),
        (0, [LEVEL, str(at.files / f"ranked{P}")]),
    ],
    "evaluate": lambda at: [
        (0, [at.labelled("e.jsonl"), "--methods", "prior,majority_vote", "--seeds", "1",
             "--workers", "1", "--keep", str(at.files / "keep"), "--protected", f"group{P}"]),
        (2, [at.labelled("e.jsonl"), "--methods", P]),
    ],
    "next": lambda at: [(2, [ENTITY, LEVEL]), (2, [P]), (2, [ENTITY, LEVEL, "--cost", f"{P}=1"])],
    "monitor": lambda at: [(0, []), (2, ["--predicate", P]), (2, ["--window", P])],
    "doctor": lambda at: [(0, []), (0, ["--full"])],
    "facts add": lambda at: [
        (0, [at.file("facts.jsonl", json.dumps({"entity_id": f"A{P}", "predicate": LEVEL,
             "value": HIGH, "timestamp": iso(0)}))]),
        (2, [at.file("no.jsonl", json.dumps({"entity_id": P, "predicate": P}))]),
    ],
    "facts set": lambda at: [
        (0, [f"B{P}", LEVEL, HIGH, "--source", P]),
        (2, ["B", LEVEL, P]),
    ],
    "facts list": lambda at: [(0, [])],
    "facts history": lambda at: [(0, [ENTITY])],
    "facts correct": lambda at: [(0, ["1", "--value", f"qualified{P}"]), (2, ["1", "--value", P])],
    "facts withdraw": lambda at: [(0, ["1"]), (2, [P])],
    "facts learn": lambda at: [(0, [])],
    "evidence list": lambda at: [(0, []), (2, ["--predicate", P])],
    "evidence show": lambda at: [(0, [ITEM]), (2, [P])],
    "evidence disclose": lambda at: [
        (0, [ITEM, "--record", "INF00000001", "--out", str(at.files / P)]),
        (2, [P, "--out", str(at.files / P)]),
        (2, [ITEM, "--record", P, "--out", str(at.files / P)]),
    ],
    "evidence edit": lambda at: [
        (0, [ITEM, "--text", f"new{P}", "--source", P]),
        (2, [P, "--text", "new"]),
        (2, [ITEM, "--credibility", P]),
    ],
    "evidence search": lambda at: [(0, ["high text"])],
    "evidence reindex": lambda at: [(0, [])],
    "evidence erase": lambda at: [(0, [ITEM, "--yes"]), (2, [P, "--yes"])],
    "ledger show": lambda at: [(0, ["INF00000001"]), (0, ["--last", "5"]), (2, [P])],
    "ledger replay": lambda at: [(0, ["INF00000001", "--deep"]), (2, [P])],
    "ledger verify": lambda at: [(0, []), (2, ["--key", P]), (2, ["--export", at.file("x", P)])],
    "ledger prove": lambda at: [(0, ["INF00000001"]),
                                (0, ["INF00000001", "--out", str(at.files / P)])],
    "ledger export": lambda at: [(0, ["-"]), (0, [str(at.files / P)])],
    "ledger checkpoint": lambda at: [(0, ["--out", str(at.files / P)])],
    "ledger reindex": lambda at: [(0, [])],
    "ledger forget": lambda at: [(0, ["INF00000001", "--yes"]), (2, [P, "--yes"])],
    "review queue": lambda at: [(0, []), (2, [P])],
    "review show": lambda at: [(0, ["INF00000001"]), (2, [P])],
    "review accept": lambda at: [(0, ["INF00000001", "--comment", P, "--reviewer", f"ann{P}"])],
    "review override": lambda at: [(0, ["INF00000001", HIGH, "--exclude", ITEM,
                                        "--reason", f"{ITEM}={P}"]),
                                   (2, ["INF00000001", P])],
    "review unsure": lambda at: [(0, ["INF00000001", "--comment", P]), (2, [P])],
    "review blind": lambda at: [(0, [ENTITY, LEVEL, "--value", HIGH])],
    "review reveal": lambda at: [(2, [ENTITY, LEVEL, "--reviewer", f"nobody{P}"]), (2, [P, LEVEL])],
    "review withdraw": lambda at: [(2, [P]), (2, ["INF00000001"])],
    "review adjudicate": lambda at: [(2, ["INF00000001", P])],
    "review agreement": lambda at: [(0, []), (2, [P])],
    "review apply": lambda at: [(0, ["--as", "facts", "--dry-run"]),
                                (2, ["--as", "labels", "--predicate", P])],
    "review export": lambda at: [(0, [str(at.files / f"{P}.csv")]), (2, [P])],
    "models list": lambda at: [(0, [])],
    "models show": lambda at: [(0, ["--verbose"]), (2, [P])],
    "models card": lambda at: [(0, [])],
    "models add": lambda at: [(0, [str(at.folder / "models" / at.version)]), (2, [P])],
    "models use": lambda at: [(0, [at.version]), (2, [P])],
    "domains list": lambda at: [(0, [])],
    "domains show": own_domain,
    "domains generate": lambda at: [
        (0, ["compliance", str(at.files / P), "--entities", "20", "--prefix", P]),
        (2, ["compliance", str(at.folder)]),
    ],
}  # fmt: skip
# These print nothing of the workspace's texts.
WITHOUT_FOREIGN = {"domains list", "evidence reindex", "ledger reindex"}
# Data for other programs: exact bytes in a pipe, escaped only on a terminal.
RAW_IN_A_PIPE = {("ledger export", "-")}


def lines_of(at: Place, name: str, words: Words) -> Words:
    path = name.split()
    has_folder = path[0] in ("demo", "init", "domains", "evaluate")
    return [*path, *words, *([] if has_folder else ["--workspace", str(at.folder)])]


def on_terminal(line: Words) -> tuple[int, str]:
    """Run it with both streams on a pseudo-terminal; return the exit code and what was sent."""
    master, slave = pty.openpty()
    received: list[bytes] = []

    def drain() -> None:
        while True:
            try:
                received.append(os.read(master, 65536))
            except OSError:  # the other end is closed
                return

    thread = threading.Thread(target=drain)
    thread.start()
    before = sys.stdout, sys.stderr, sys.stdin
    with os.fdopen(slave, "w", encoding="utf-8", newline="") as stream:
        sys.stdout = sys.stderr = stream
        sys.stdin = io.StringIO("y\n")
        try:
            code = exit_code(line)
        finally:
            sys.stdout, sys.stderr, sys.stdin = before
    thread.join()
    os.close(master)
    return code, b"".join(received).decode("utf-8")


def exit_code(line: Words) -> int:
    try:
        app(line)
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def in_pipe(line: Words) -> tuple[int, str]:
    done = CliRunner().invoke(app, line)
    return done.exit_code, done.stdout_bytes.decode("utf-8") + done.stderr


def assert_harmless(sent: str, name: str) -> None:
    left = OWN.sub("", sent)
    assert "\x1b" not in left, (name, left)
    found = FORBIDDEN.search(left)
    assert found is None, (name, left[max(0, found.start() - 80) : found.end() + 20])
    assert not re.search(r"^FAKE LINE\r?$", left, re.MULTILINE), (name, left)


def test_every_command_has_a_case() -> None:
    assert set(CASES) == {" ".join(path) for path in ALL}


@pytest.mark.parametrize("name", CASES)
def test_nothing_foreign_controls_a_terminal(place: Place, name: str) -> None:
    printed = ""
    for code, words in CASES[name](place):
        ended, sent = on_terminal(lines_of(place, name, words))
        assert ended == code, (name, words, sent)
        assert_harmless(sent, name)
        printed += sent
    if name not in WITHOUT_FOREIGN:
        assert "\\x1b" in printed or "\\u001b" in printed, printed


@pytest.mark.parametrize("as_json", [False, True], ids=["plain", "json"])
@pytest.mark.parametrize("name", CASES)
def test_nothing_foreign_controls_what_reads_a_pipe(place: Place, name: str, as_json: bool) -> None:
    for code, words in CASES[name](place):
        if (name, *words) in RAW_IN_A_PIPE or (as_json and "--full" in words):
            continue
        if as_json and "-" in words:
            continue  # refused: the answers themselves are JSON
        ended, sent = in_pipe([*lines_of(place, name, words), *(["--json"] if as_json else [])])
        assert ended == code, (name, words, sent)
        assert "\x1b" not in sent, (name, sent)
        assert_harmless(sent, name)


@pytest.mark.parametrize(
    "content",
    [
        f"[{json.dumps(P)}]\n",
        f"[query]\n{json.dumps(P)} = 1\n",
        f"[query]\nvariant = {json.dumps(P)}\n",
        f"[reader]\nname = {json.dumps(P)}\n",
        f"[store]\nurl = {json.dumps('sqlite:///' + P)}\n",
        f"[ledger]\nkey = {json.dumps(P)}\n",
        P,
    ],
)
@pytest.mark.parametrize("words", [["query", ENTITY], ["doctor"], ["ledger", "verify"]])
def test_settings_do_not_control_a_terminal(place: Place, content: str, words: Words) -> None:
    settings = place.folder / FILE_NAME
    settings.write_text(settings.read_text("utf-8") + content, "utf-8", newline="")
    for run in (on_terminal, in_pipe):
        code, sent = run([*words, "--workspace", str(place.folder)])
        assert code in (0, 1, 2), sent
        assert_harmless(sent, content)


def test_the_traceback_of_a_bug_does_not_control_a_terminal(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError(f"bug{P}")

    monkeypatch.setattr(Workspace, "query", broken)
    code, sent = on_terminal(["query", ENTITY, LEVEL, "--workspace", str(place.folder)])
    assert code == 3
    assert "RuntimeError: bug\\x1b[2J" in sent
    assert "\x1b[2J" not in sent


def test_warnings_above_a_display_do_not_control_a_terminal(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def warned(*_: object, **__: object) -> int:
        print(f"printed{P}", file=sys.stderr)
        return 0

    monkeypatch.setattr(Workspace, "reindex", warned)
    code, sent = on_terminal(["evidence", "reindex", "--workspace", str(place.folder)])
    assert code == 0, sent
    assert "printed\\x1b[2J" in sent
    assert "\x1b]0;" not in sent


def test_a_program_on_a_terminal_with_arguments_that_are_not_text(place: Place) -> None:
    """A real process: bytes that are not UTF-8 are surrogates in Python."""
    master, slave = pty.openpty()
    words = [b"query", b"C\xff\xfe" + P.encode(), b"--workspace", os.fsencode(place.folder)]
    program = os.fsencode(Path(sys.executable).parent / "lpf")
    with subprocess.Popen([program, *words], stdout=slave, stderr=slave) as process:
        os.close(slave)
        sent = b""
        while True:
            try:
                sent += os.read(master, 65536)
            except OSError:
                break
    os.close(master)
    assert process.returncode == 2, sent
    text = sent.decode("utf-8")  # so no byte of the argument was sent on
    assert_harmless(text, "query")


def test_colours_of_lpf_reach_a_terminal(place: Place) -> None:
    _, sent = on_terminal(["query", ENTITY, LEVEL, "--workspace", str(place.folder)])
    assert "\x1b[1m" in sent  # the verdict is bold
    assert "\x1b[36m" in sent  # the bars are cyan
    _, help_text = on_terminal(["query", "--help"])
    assert "\x1b[" in help_text


def test_output_escapes_the_text_of_any_renderable() -> None:
    stream = io.StringIO()
    output = Output()
    output.file = stream
    output.print(P)
    output.rule(f"title{P}")
    assert not FORBIDDEN.search(stream.getvalue())
    assert "\x1b" not in stream.getvalue()


def test_reports_escape_foreign_text(place: Place) -> None:
    words = ["train", place.labelled("<script>alert(1)<script>.jsonl"), *QUICK]
    name = '"><script>alert(2)</script>'
    code, sent = in_pipe([*words, "--name", name, "--workspace", str(place.folder)])
    assert code == 0, sent
    (page,) = (place.folder / "reports").glob("*/training.html")
    text = page.read_text("utf-8")
    assert "<script>alert" not in text
    assert "alert(1)" in text
    for drawing in page.parent.rglob("*.svg"):
        assert "<script" not in drawing.read_text("utf-8")


def test_json_has_no_control_characters_and_the_same_value() -> None:
    every = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x11000)]))
    text = json_text({every: every})
    assert text.isascii()
    assert text.isprintable()
    assert json.loads(text) == {every: every}


@pytest.mark.parametrize("name", ["plain", "with space", "a'b", "$HOME;rm -rf x", f"x{P}", "\\n\n"])
def test_a_suggested_command_names_the_same_file(name: str) -> None:
    word = quoted(name)
    assert word == one_line(word)
    done = subprocess.run(
        ["bash", "-c", f"printf %s {word}"], capture_output=True, env={"LC_ALL": "C.UTF-8"}
    )
    assert done.stdout.decode() == name
    if not word.startswith("$"):
        assert shlex.split(word) == [name]


def test_visible_text_keeps_every_script() -> None:
    text = "Zürich, 東京, بيروت, ‌‍ 👩‍👧, tab\t\n"
    assert visible(text) == text
    assert one_line("a\nb\tc") == "a\\nb\\tc"
