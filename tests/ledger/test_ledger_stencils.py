"""Drafts filled into a stencil leave the records that they would leave one by one."""

from __future__ import annotations

from pathlib import Path

import pytest
from ledgers import SETTINGS, draft, opened

from lpf.errors import LedgerError, StoreFullError
from lpf.ledger import Draft, LedgerReader, canonical, reference, verify
from lpf.ledger.records import EntryMaker, Filled, Stencil

TIMES = ("as_of", "took", "zone")
VALUES = [
    {"as_of": "then", "took": 0.125, "zone": "Ω"},
    {"as_of": '"}, {"', "took": 3.0, "zone": ""},
    {"as_of": canonical(reference(b"{}")).decode(), "took": 1e-9, "zone": "\n"},
]


def test_it_is_the_same_bytes(store_url: str) -> None:
    stencil = Stencil(draft(1, **VALUES[0]), TIMES)
    with opened(store_url) as (database, ledger):
        plainly = [ledger.append(draft(1, **values)) for values in VALUES]
        filled = [ledger.append(Filled(stencil, values)) for values in VALUES]
        reader = LedgerReader(database)
        for one, other in zip(plainly, filled, strict=True):
            expected = reader.get(one.record_id).body
            named = (one.record_id.encode(), other.record_id.encode())
            assert expected.replace(*named) == reader.get(other.record_id).body
        verify(database).require_ok()


@pytest.mark.parametrize("names", [(), ("zone",), TIMES, ("aaa", "zzz")])
def test_any_fields_may_be_left_open(tmp_path: Path, names: tuple[str, ...]) -> None:
    values = dict.fromkeys(names, "filled in")
    with opened(tmp_path / "store.db") as (database, _):
        maker = EntryMaker(database)
        one = maker.make(draft(1, **values))
        other = maker.make(Filled(Stencil(draft(1), names), values))
        assert one.seal(7) == other.seal(7)


def test_a_blob_is_given_until_the_store_has_it(tmp_path: Path) -> None:
    stencil = Stencil(draft(1), ("as_of",))
    with opened(tmp_path / "store.db") as (database, ledger):
        commit = ledger._group._commit

        def fail(_: object) -> list[object]:
            raise StoreFullError("on purpose")

        ledger._group._commit = fail
        with pytest.raises(StoreFullError, match="on purpose"):
            ledger.append(Filled(stencil, {"as_of": "first"}))
        ledger._group._commit = commit
        receipts = [ledger.append(Filled(stencil, {"as_of": name})) for name in ("a", "b")]
        reader = LedgerReader(database)
        for receipt in receipts:
            expanded = reader.expand(reader.get(receipt.record_id))
            assert canonical(expanded["settings"]) == SETTINGS
        verify(database).require_ok()


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (Draft({"record_id": "INF00000009"}), "the ledger itself sets this field"),
        (Draft({"a": 1}, (SETTINGS,)), "does not refer to it"),
    ],
)
def test_what_would_not_verify_is_refused_when_it_is_made(wrong: Draft, why: str) -> None:
    with pytest.raises(LedgerError, match=why):
        Stencil(wrong, ("as_of",))
