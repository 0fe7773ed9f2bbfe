"""A chat completions server on this machine whose answers are controlled by the evidence."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread

import numpy as np

from lpf.baselines.language_models import EndpointConfig, LanguageModel, ZeroShot
from lpf.datasets import Dataset, DatasetEntity, DatasetItem
from lpf.schema import Predicate, Schema
from lpf.training import Examples, make_examples

VALUES = ("low", "medium", "high")
LEVEL = Predicate("level", VALUES, description="How well the duties were met.")
SLOW = 1.5
USAGE = {"prompt_tokens": 100, "completion_tokens": 20}
GOOD = '{"value": "high", "confidence": 0.8, "reason": "The audit was clean."}'


@dataclass(frozen=True)
class Sent:
    """What the server sends back."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    kind: str = "application/json"
    delay: float = 0.0


def completion(text: str | None, usage: object = USAGE, finish: str = "stop") -> bytes:
    choice = {"message": {"role": "assistant", "content": text}, "finish_reason": finish}
    return json.dumps({"choices": [choice], "usage": usage}).encode()


# By a word in the evidence; the number is how often a prompt with that word has been sent.
Behaviour = Callable[[int], Sent]
BEHAVIOURS: dict[str, Behaviour] = {
    "plainly": lambda time: Sent(completion(GOOD)),
    "fenced": lambda time: Sent(completion(f"Here it is:\n```json\n{GOOD}\n```\nI hope it helps.")),
    "prose": lambda time: Sent(completion("It is high, I am fairly sure of that.")),
    "truncated": lambda time: Sent(completion(None, finish="length")),
    "uncounted": lambda time: Sent(completion(GOOD, usage=None)),
    "patience": lambda time: (
        Sent(completion(GOOD)) if time > 1 else Sent(b"slow down", 429, {"Retry-After": "1"})
    ),
    "hiccup": lambda time: Sent(completion(GOOD)) if time > 2 else Sent(b"oh no", 503),
    "broken": lambda time: Sent(b"for ever", 500),
    "tomorrow": lambda time: Sent(b"quota", 429, {"Retry-After": formatdate(time + 9e9)}),
    "slow": lambda time: Sent(completion(GOOD), delay=SLOW),
    "malformed": lambda time: Sent(completion(GOOD)[:-9]),
    "webpage": lambda time: Sent(b"<html>Please log in.</html>", kind="text/html"),
    "mislabelled": lambda time: Sent(completion(GOOD), kind="text/plain"),
    "stranger": lambda time: Sent(b'{"choices": []}'),
    "forbidden": lambda time: Sent(b'{"error": "bad key secret-1234"}', 401),
    "moved": lambda time: Sent(b"", 302, {"Location": "/elsewhere"}),
}


@dataclass(frozen=True)
class Received:
    """One request as it came."""

    path: str
    authorization: str | None
    body: Mapping[str, object]
    at: float

    @property
    def prompt(self) -> str:
        return str(self.body["messages"][0]["content"])  # type: ignore[index]


class ChatServer(ThreadingHTTPServer):
    """Runs in threads of its own until it is closed."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.received: list[Received] = []
        self.open = self.most_open = 0
        self.lock = Lock()
        self.thread = Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02})
        self.thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def stop(self) -> None:
        self.shutdown()
        self.thread.join()
        self.server_close()

    def count(self, word: str) -> int:
        return sum(word in one.prompt for one in self.received)

    def answer(self, request: Received) -> Sent:
        word = next(word for word in BEHAVIOURS if word in request.prompt)
        with self.lock:
            self.received.append(request)
            return BEHAVIOURS[word](self.count(word))

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that did not wait any longer is no error of this server."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ChatServer

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        key = self.headers.get("Authorization")
        request = Received(self.path, key, json.loads(content), time.monotonic())
        with self.server.lock:
            self.server.open += 1
            self.server.most_open = max(self.server.open, self.server.most_open)
        self._send(self.server.answer(request))

    def _send(self, sent: Sent) -> None:
        time.sleep(sent.delay or 0.02)
        with self.server.lock:
            self.server.open -= 1
        self.send_response(sent.status)
        for name, value in {"Content-Type": sent.kind, **sent.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(sent.body)))
        self.end_headers()
        self.wfile.write(sent.body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Not on the terminal of a test run."""


def entity(
    number: int, *texts: str, label: str = "high", claim: str | None = None
) -> DatasetEntity:
    items = tuple(DatasetItem(f"E{number}-{i}", text) for i, text in enumerate(texts))
    return DatasetEntity(f"secret-id-{number}", {"level": label}, items, claim=claim)


def examples_from(entities: Sequence[DatasetEntity]) -> Examples:
    data = Dataset("made up", Schema((LEVEL,)), tuple(entities))
    rows = np.zeros((len(list(data.items)), 2), np.float32)
    return make_examples(data, rows, copy_similarity=None)


def saying(*words: str, label: str = "high") -> Examples:
    """One entity a word, of which the server knows how to answer it."""
    return examples_from(
        [entity(i, f"Note {i}, answered {word}.", label=label) for i, word in enumerate(words)]
    )


def config_for(url: str, **settings: object) -> EndpointConfig:
    return EndpointConfig(
        **{"base_url": url, "model": "small", "first_wait": 0.01, "retries": 2, **settings}  # type: ignore[arg-type]
    )


def fitted(config: EndpointConfig, **settings: object) -> ZeroShot:
    data = saying("plainly")
    return LanguageModel("asked", config, **settings).fit(data, data, "level", 0)  # type: ignore[arg-type]
