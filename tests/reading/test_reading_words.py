"""Which texts have words: those of any language do, punctuation, numbers and base64 do not."""

from __future__ import annotations

import base64
import textwrap

import numpy as np
import pytest

from lpf.reading.words import has_words, wordless

WORDLESS = (
    *(".", "!!!", "-----", "", "  \n", "x", "A+", "N/A"),
    *("0 0 0", "3.14 2.71", "12:00", "2024-01-31", "½ ½", "①②③", "٣٤٥"),
    *("\U0001f600", "\U0001f44d\U0001f44d", "1\ufe0f\u20e3", "❤\ufe0f", "\u2800\u2800"),
    "SGVsbG8gd29ybGQsIHRoaXMgaXMgYmFzZTY0",
    "'iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4'",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUA",
    "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "550ea400-e29b-41d4-a7ab-446655440000",
)
WORDS = (
    *("ok", "No.", "12 kg", "don't", "COVID19", "3 of 4 were late", "<br/>", "https://a.example/b"),
    *("iPhone15ProMax", "getElementById", "AuditReport2023Q4", "yes/no/yes/no/no", "on-time-only"),
    *("Donaudampfschifffahrtsgesellschaft", "a" * 24, "ŁÓDŹ", "cafe\u0301", "Ja\u0304"),
    *("我", "네", "あ", "这是一个中文句子。", "これは日本語の文章です。"),
    *("की", "ไม่", "לא", "это", "هذه جملة", "ქართული", "አማርኛ"),
    "SGVsbG8gd29ybGQsIHRoaXMgaXMgYmFzZTY0 came late",
)


@pytest.mark.parametrize("text", WORDLESS)
def test_a_text_without_a_word(text: str) -> None:
    assert not has_words(text)


@pytest.mark.parametrize("text", WORDS)
def test_a_text_with_a_word(text: str) -> None:
    assert has_words(text)


def test_base64_of_bytes_and_of_sentences_has_no_words() -> None:
    generator = np.random.default_rng(5)
    sentence = "The delivery came two weeks late and half of it was missing. " * 3
    encoded = [base64.b64encode(generator.bytes(90)).decode() for _ in range(200)]
    encoded += [base64.b64encode(sentence[start:].encode()).decode() for start in range(100)]
    assert sum(map(has_words, encoded)) <= 1
    wrapped = ["\n".join(textwrap.wrap(one, 64)) for one in encoded]
    assert sum(map(has_words, wrapped)) <= 15


def test_marks_only_if_there_is_a_text_without_a_word() -> None:
    found = wordless(["It came late.", "...", "我"])
    assert found is not None
    assert found.tolist() == [False, True, False]
    assert wordless(["It came late.", "我"]) is None
    assert wordless([]) is None
