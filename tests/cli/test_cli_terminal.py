"""Reader IDs as the terminal shows them."""

from __future__ import annotations

import pytest

from lpf.cli.terminal import short_reader, with_short_readers

MINILM = "all-MiniLM-L6-v2@53aa51172d142c89;precision=float32;max_length=256;graph=1"


@pytest.mark.parametrize(
    ("reader_id", "shown"),
    [
        (MINILM, "all-MiniLM-L6-v2 (53aa5117)"),
        (f"pair({MINILM})", "all-MiniLM-L6-v2 (53aa5117), with claims"),
        (MINILM.replace("float32", "int8"), "all-MiniLM-L6-v2 (53aa5117, precision=int8)"),
        (
            "sentence-transformers:e5@0123456789abcdef;precision=float32;max_length=512",
            "sentence-transformers:e5 (01234567, max_length=512)",
        ),
        (
            f"pair({MINILM})+stance(lpf-stance@8d78343c17af44a6;precision=float32;graph=1)",
            "all-MiniLM-L6-v2 (53aa5117), with claims, with stances",
        ),
        (
            f"pair({MINILM})+stance(lpf-stance-tuned@8d78343c17af44a6)+words(3;0123456789abcdef)",
            "all-MiniLM-L6-v2 (53aa5117), with claims, with tuned stances, with words",
        ),
        ("words@16", "words@16"),
        ("another reader", "another reader"),
        ("", ""),
    ],
)
def test_a_reader_by_its_name(reader_id: str, shown: str) -> None:
    assert short_reader(reader_id) == shown


def test_readers_within_a_sentence() -> None:
    output = f"the model was trained with pair({MINILM}), the workspace reads with {MINILM}"
    assert with_short_readers(output) == (
        "the model was trained with all-MiniLM-L6-v2 (53aa5117), with claims, the workspace reads "
        "with all-MiniLM-L6-v2 (53aa5117)"
    )
    assert with_short_readers("sqlite:////home/ann/store.db opens") == (
        "sqlite:////home/ann/store.db opens"
    )
