"""Any text as any argument of any command: refused with a named error, or carried out; never a
traceback."""

from __future__ import annotations

import fcntl
import json
import os
import random
import re
import shutil
import string
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from test_cli_main import ALL
from typer.main import get_command
from typer.testing import CliRunner

from labelled_workspaces import WordReader, lines, write_lines
from lpf.cli.main import app
from lpf.index import IndexConfig, RankingConfig
from lpf.options import QueryOptions
from lpf.orchestrator import FactPolicy
from lpf.workspace.settings import CacheSettings, IndexSettings, LedgerSettings, StoreSettings

pytestmark = pytest.mark.usefixtures("one_thread")

NUMBERS = [
    *("0", "-0", "-1", "1", "2", "1.5", "-1.5", "0.5", "1e300", "-1e300", "1e999", "-1e999"),
    *("nan", "-nan", "inf", "-inf", "Infinity", "0x10", "1_000", "٣", "½", "²", "1e-400", ".5"),
    *("2147483648", "4294967296", "9007199254740993", "9223372036854775807"),
    *("9223372036854775808", "-9223372036854775809", "18446744073709551616", "1" + "0" * 30),
    *("9" * 400, "9" * 5000, "-" + "9" * 5000, "1" * 5000 + ".5", "1e" + "9" * 30),
]
TIMES = [
    *("0001-01-01", "0001-01-01T00:00:00+14:00", "0001-01-01T00:00:00-14:00", "9999-12-31"),
    *("9999-12-31T23:59:59.999999-12:00", "9999-12-31T23:59:59.999999+14:00", "1677-09-21"),
    *("2262-04-12", "1970-01-01T00:00:00Z", "2026-02-30", "2026-01-25T15:42:33+23:59", "20260125"),
    *("0000-00-00", "10000-01-01", "-2026-01-01", "2026-W04-7", "T12", "2026-01-25T24:00"),
]
TEXTS = [
    *(
        "",
        " ",
        "\t",
        "\n",
        "\r\n",
        "a b",
        "-",
        "--",
        "---",
        "--help=",
        "-x",
        "--json=1",
        "=",
        "a=b",
    ),
    *("'", '"', "\\", "%s", "%(x)s", "{}", "{0}", "${HOME}", "$(id)", ";", "|", "*", "?", "[a]"),
    *("[bold]x", "[/]", "[link=x]y", "\x00", "a\x00b", "\x1b[2J", "\x07", "\x7f", "\x9b", "\u202e"),
    *("\u2028", "\ud800", "a\udcffb", "\udcff", "\U0010ffff", "\ufeff", "é", "e\u0301", "ß", "İ"),
    *("null", "None", "true", "[]", "[" * 10000, '{"a":' * 5000, "a" * 511, "a" * 513),
    *("é" * 400, "a" * 20000, "a," * 3000, "=" * 3000, "1,2,3", "1,,2", ",", ",,", "1,1", "-1,2"),
    *("INF00000001", "INF99999999", "INF" + "9" * 18, "INF" + "9" * 30, "INF0", "inf00000001"),
    *(
        "INF00000000",
        "INF-0000001",
        "INF٠٠٠٠٠٠٠١",
        "0" * 64,
        "f" * 64,
        "F" * 64,
        "g" * 64,
        "é" * 64,
    ),
    *("level", "level=", "=low", "level=low", "level=low,low", "level=low:0.5", "level=a:x,b:1"),
    *(
        "level=a:nan,b:1",
        "level=a:1e999,b:1",
        "low",
        "compliance",
        "all",
        "json:loads",
        "json:",
        ":x",
    ),
    *("nothing.here:x", "sys:nothing", "..:x", "prior", "prior,prior", "seven", "fifteen", "spn"),
    *("sqlite://", "sqlite:///", "sqlite:///missing/x", "postgresql://", "postgresql://x:y@z:w/v"),
    *("http://", "redis://", "minilm", "C0001", "C0001_E001", "entities=x"),
    *("entities=-1", "entities=1e9", "copies=nan", "copies=2", "seed=" + "9" * 5000, "nothing=1"),
]
# Commands write files: every path is relative, and stays in the test's own folder.
PATHS = [
    *(".", "missing"),
    *("missing/missing", "folder", "empty.jsonl", "empty.csv", "bytes.jsonl", "bytes.csv"),
    *("nested.jsonl", "nested.toml", "nested.json", "numbers.jsonl", "huge.jsonl", "text.parquet"),
    *("folder.jsonl", "folder.csv", "folder.parquet", "a" * 300, "a/" * 3000, "loop", "loop.jsonl"),
    *("unreadable.jsonl", "array.jsonl", "array.json", "wrong.toml", "key.pub", "null.jsonl"),
]
SMALL = [
    *("", " ", "nan", "inf", "-1", "0", "1" + "0" * 30, "9" * 5000, "0001-01-01T00:00:00+14:00"),
    *("9999-12-31T23:59:59.999999-12:00", "a\udcffb", "\x00", "\ud800", "INF" + "9" * 18),
    *("nested.jsonl", "nested.toml", "numbers.jsonl", ".", "missing", "1e999"),
    *("9223372036854775808", "a" * 20000, "--", "folder.jsonl", "loop", "nested.json", "\x1b[2J"),
]


def generated(count: int) -> list[str]:
    """Texts of letters that mean something somewhere, the same in every run."""
    random_text = random.Random(17)
    letters = string.digits + "+-.,:;=\\'\"[]{}()<>@#% \t\n\x00\x1b\x7f\u202e\udcffeEnNTZ_"
    return [
        "".join(random_text.choices(letters, k=random_text.randint(1, 24))) for _ in range(count)
    ]


EVERY = [*NUMBERS, *TIMES, *TEXTS, *PATHS, *generated(110)]


def files(folder: Path) -> None:
    """What PATHS names."""
    deep = "[" * 100_000
    for name in ("folder", "folder.jsonl", "folder.csv", "folder.parquet"):
        (folder / name).mkdir()
    (folder / "loop").symlink_to("loop")
    (folder / "loop.jsonl").symlink_to("loop.jsonl")
    content = {
        "empty.jsonl": b"",
        "empty.csv": b"",
        "bytes.jsonl": bytes(range(256)),
        "bytes.csv": bytes(range(256)),
        "nested.jsonl": f'{{"entity_id": {deep}'.encode(),
        "nested.json": deep.encode(),
        "nested.toml": f"a = {deep}".encode(),
        "numbers.jsonl": (
            f'{{"entity_id": {"9" * 5000}, "text": "a"}}\n'
            '{"entity_id": "a", "text": "b", "credibility": 1e999, "predicate": "level"}\n'
            f'{{"entity_id": "a", "value": "low", "confidence": {"9" * 400}}}\n'
        ).encode(),
        "huge.jsonl": json.dumps({"entity_id": "a" * 100_000, "text": "b"}).encode(),
        "text.parquet": b"PAR1 text",
        "array.jsonl": b"[1, 2]\n3\nnull\n",
        "array.json": b"[1, 2]",
        "wrong.toml": b"a = 1\n[predicates]\n",
        "key.pub": b"0" * 64,
        "null.jsonl": b'{"entity_id": null, "evidence": null, "label": null}\n',
        "unreadable.jsonl": b"\xff\xfe{\x00}\x00",
    }
    for name, data in content.items():
        (folder / name).write_bytes(data)


# Arguments with which a command goes as far as it can in milliseconds. Training and evaluations end
# when the data is missing or small.
BASE: dict[str, list[str]] = {
    "demo": ["--worked-example"],
    "init": ["new", "--predicate", "level=low,high"],
    "ingest": ["missing.jsonl"],
    "train": ["missing.jsonl"],
    "query": ["C0001", "level"],
    "explain": ["C0001", "level"],
    "next": ["C0001", "level"],
    "monitor": ["--no-save"],
    "batch": ["questions.jsonl", "out.jsonl"],
    "report": ["questions.jsonl", "--html", "report.html"],
    "entities": [],
    "rank": ["level", "ranked.csv"],
    "evaluate": ["missing.jsonl"],
    "doctor": [],
    "facts add": ["facts.jsonl"],
    "facts set": ["C0001", "level", "low"],
    "facts list": [],
    "facts history": ["C0001"],
    "facts correct": ["1", "--value", "low"],
    "facts withdraw": ["1"],
    "facts learn": [],
    "evidence list": [],
    "evidence show": ["C0001_E001"],
    "evidence disclose": ["C0001_E001", "--out", "disclosure.json"],
    "evidence edit": ["C0001_E001", "--credibility", "0.5"],
    "evidence search": ["late filings"],
    "evidence reindex": [],
    "evidence erase": ["C0001_E001", "--yes"],
    "ledger show": ["INF00000001"],
    "ledger replay": ["INF00000001"],
    "ledger verify": [],
    "ledger prove": ["INF00000001"],
    "ledger export": ["export.jsonl"],
    "ledger checkpoint": [],
    "ledger reindex": [],
    "ledger forget": ["INF00000001", "--yes"],
    "review queue": [],
    "review show": ["INF00000001"],
    "review accept": ["INF00000001"],
    "review override": ["INF00000001", "medium"],
    "review unsure": ["INF00000001"],
    "review blind": ["C0002", "level", "--value", "low"],
    "review reveal": ["C0002", "level"],
    "review withdraw": ["INF00000001"],
    "review adjudicate": ["INF00000001", "low"],
    "review agreement": [],
    "review apply": ["--as", "facts"],
    "review export": ["reviews.csv"],
    "models list": [],
    "models show": [],
    "models card": [],
    "models add": ["folder"],
    "models use": ["0000000000000000"],
    "domains list": [],
    "domains show": ["compliance"],
    "domains generate": ["compliance", "generated.jsonl", "--entities", "12", "--force"],
}


def parameters(name: str) -> list[Any]:
    command: Any = get_command(app)
    for part in name.split():
        command = command.commands[part]
    return [one for one in command.params if one.name not in ("help", "as_json")]


def places(name: str) -> Iterator[Callable[[str], list[str]]]:
    """For each argument and each option, the call with a text in its place."""
    path, base = name.split(), BASE[name]
    arguments = sum(one.param_type_name == "argument" for one in parameters(name))
    for place in range(min(arguments, len(base))):
        # After "--" a text that looks like an option is an argument.
        before, after, options = base[:place], base[place + 1 : arguments], base[arguments:]
        yield lambda text, a=before, b=after, c=options: [*path, *c, "--", *a, text, *b]
    for option in parameters(name):
        if option.param_type_name == "option" and not option.is_flag:
            yield lambda text, flag=option.opts[0]: [*path, *base, flag, text]


@pytest.fixture
def somewhere(pristine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: a workspace with a record and a fact, among files of all kinds."""
    monkeypatch.setattr("lpf.workspace.wiring.open_reader", lambda *_, **__: WordReader())
    folder = tmp_path / "here"
    shutil.copytree(pristine, folder)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path))
    files(folder)
    write_lines(folder / "labelled.jsonl", lines(6))
    (folder / "questions.jsonl").write_text('{"entity_id": "C0001", "predicate": "level"}\n')
    fact = {"entity_id": "C0001", "predicate": "outcome", "value": "clean", "confidence": 0.7}
    (folder / "facts.jsonl").write_text(json.dumps({**fact, "timestamp": "2026-01-01"}))
    for words in (["facts", "add", "facts.jsonl"], ["query", "C0001", "level"]):
        assert CliRunner().invoke(app, words).exit_code == 0
    return folder


def assert_no_traceback(calls: Iterable[list[str]]) -> None:
    failed = {}
    for line in calls:
        done = CliRunner().invoke(app, line, input="")
        if done.exit_code not in (0, 1, 2, 4) or "Traceback" in done.stderr:
            shown = [word if len(word) < 80 else f"{word[:40]}... ({len(word)})" for word in line]
            failed[repr(shown)] = (done.exit_code, repr(done.exception), done.stderr[-400:])
    assert not failed, "\n".join(f"{line}: {end}" for line, end in failed.items())


def test_every_command_has_a_base_call() -> None:
    assert set(BASE) == {" ".join(path) for path in ALL}
    assert len(EVERY) > 300


def test_no_text_names_a_file_elsewhere() -> None:
    """Tests may run as root, and a command may write to the path it is given."""
    for text in [*EVERY, *SMALL]:
        assert not text.strip().startswith(("/", "~"))
        assert ".." not in text or "/" not in text, text
        assert not re.search(r":/{3,}[^/]*(dev|etc|proc)|:////", text), text


@pytest.mark.parametrize("name", BASE)
def test_no_argument_ends_in_a_traceback(somewhere: Path, name: str) -> None:
    """A few of the texts, others for each parameter, the same in every run."""
    chosen = random.Random(zlib.crc32(name.encode()))
    assert_no_traceback(
        call(text)
        for call in places(name)
        for text in [*chosen.sample(SMALL, 5), *chosen.sample(EVERY, 2)]
    )


READ_ONLY = [
    *(
        ["ingest"],
        ["facts", "add"],
        ["models", "add"],
        ["evaluate"],
        ["train"],
        ["domains", "show"],
    ),
    *(
        ["ledger", "verify", "--trusted"],
        ["ledger", "verify", "--key"],
        ["ledger", "prove", "--from"],
    ),
    *(["ledger", "verify", "--export"], ["init", "new", "--schema"]),
]


@pytest.mark.parametrize("words", READ_ONLY, ids=" ".join)
def test_an_empty_device_as_input_is_refused(somewhere: Path, words: list[str]) -> None:
    done = CliRunner().invoke(app, [*words, "/dev/null"])
    assert done.exit_code == 2, done.output
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["ledger", "export"],
        ["ledger", "checkpoint", "--out"],
        ["ledger", "prove", "INF00000001", "--out"],
        ["batch", "questions.jsonl"],
        ["domains", "generate", "compliance", "--entities", "12", "--force"],
    ],
    ids=" ".join,
)
def test_a_pipe_or_folder_is_never_replaced_by_output(somewhere: Path, words: list[str]) -> None:
    """A pipe or device is written to; renaming a file over /dev/null would break the machine."""
    pipe, folder = somewhere / "pipe", somewhere / "folder"
    os.mkfifo(pipe)
    # Open for both, so that neither end waits for the other.
    reading = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    fcntl.fcntl(reading, fcntl.F_SETPIPE_SZ, 2**20)
    try:
        done = CliRunner().invoke(app, [*words, str(pipe)])
        assert done.exit_code == 0, done.output
        assert os.read(reading, 1) == b"{"
    finally:
        os.close(reading)
    assert pipe.is_fifo()
    refused = CliRunner().invoke(app, [*words, str(folder)])
    assert refused.exit_code == 2, refused.output
    assert "Traceback" not in refused.stderr
    assert folder.is_dir()


@pytest.mark.slow
@pytest.mark.parametrize("name", BASE)
def test_no_text_ends_in_a_traceback(somewhere: Path, name: str) -> None:
    assert_no_traceback(call(text) for call in places(name) for text in [*SMALL, *EVERY])


def numeric_settings() -> Iterator[tuple[str, str]]:
    """Every section and field of lpf.toml that is a number."""
    sections = {
        "query": QueryOptions,
        "store": StoreSettings,
        "cache": CacheSettings,
        "ledger": LedgerSettings,
        "facts": FactPolicy,
        "index": IndexSettings,
        "index.ranking": RankingConfig,
        "index.vectors": IndexConfig,
    }
    for section, kind in sections.items():
        for name, hint in get_type_hints(kind).items():
            if {int, float} & {hint, *get_args(hint)}:
                yield section, name


@pytest.mark.parametrize(("section", "name"), list(numeric_settings()))
def test_no_number_in_the_settings_ends_in_a_traceback(
    somewhere: Path, section: str, name: str
) -> None:
    settings = somewhere / "lpf.toml"
    before = re.sub(rf"(?m)^{name} = .*\n", "", settings.read_text())
    for value in ("inf", "nan", "1e300", "-1", "1" + "0" * 30, "1" + "0" * 400):
        if f"[{section}]" in before:
            text = before.replace(f"[{section}]\n", f"[{section}]\n{name} = {value}\n")
        else:
            text = f"{before}\n[{section}]\n{name} = {value}\n"
        settings.write_text(text)
        for words in (["query", "C0001", "level"], ["evidence", "search", "late"]):
            done = CliRunner().invoke(app, words)
            assert done.exit_code in (0, 1, 2, 4), (value, words, done.output)


@pytest.mark.parametrize("days", ["1e300", "1e308", "inf", "nan", "-1", "1" + "0" * 30, "1e9"])
def test_a_fact_that_never_goes_stale_has_a_bound(somewhere: Path, days: str) -> None:
    settings = somewhere / "lpf.toml"
    text = re.sub(r"staleness_days = .*", f"staleness_days = {days}", settings.read_text())
    settings.write_text(text)
    done = CliRunner().invoke(app, ["query", "C0001", "level", "--json"])
    assert done.exit_code == 2, done.output
    assert "staleness_days" in json.loads(done.stdout)["error"]["field"]


@pytest.mark.parametrize("text", ["a = " + "[" * 100_000, "a = " + "9" * 5000, "a = 1" + ".a" * 9])
@pytest.mark.parametrize(
    "words",
    [["query", "C0001"], ["init", "new", "--schema", "x.toml"], ["domains", "show", "x.toml"]],
)
def test_toml_that_is_too_deep_or_too_long(somewhere: Path, text: str, words: list[str]) -> None:
    for name in ("lpf.toml", "x.toml"):
        (somewhere / name).write_text(text)
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2, done.output
    assert "Traceback" not in done.stderr


def test_draws_are_bounded(somewhere: Path) -> None:
    def refused(*words: str) -> dict[str, Any]:
        done = CliRunner().invoke(app, ["query", "C0001", "level", *words, "--json"])
        assert done.exit_code == 2, done.output
        error: dict[str, Any] = json.loads(done.stdout)["error"]
        return error

    assert refused("--uncertainty-samples", "1000000")["field"] == "--uncertainty-samples"
    assert refused("--sampler", "plain", "--n-samples", "1000000")["field"] == "--n-samples"
    assert refused("--top-k", "1" + "0" * 30)["field"] == "--top-k"
    assert refused("--temperature", "nan")["field"] == "--temperature"


def test_lines_that_are_too_deep_or_too_long_are_named(somewhere: Path) -> None:
    lines = [
        '{"entity_id": "C0001", "predicate": "level"}',
        "[" * 100_000,
        f'{{"a": {"9" * 5000}}}',
    ]
    (somewhere / "deep.jsonl").write_text("\n".join(lines))
    done = CliRunner().invoke(app, ["batch", "deep.jsonl", "out.jsonl"])
    assert done.exit_code == 2, done.output
    assert "2 of 3" in done.stderr
    assert not (somewhere / "out.jsonl").exists()
