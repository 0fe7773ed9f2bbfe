"""Which ledger this is: a name drawn once, and the key whose signatures count."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from lpf.errors import LedgerError, LedgerKeyError
from lpf.ledger import statements
from lpf.ledger.stored import broken, require_bytes
from lpf.storage.database import Connection, Database
from lpf.storage.times import now_micros


@dataclass(frozen=True, slots=True)
class Identity:
    """``origin`` is the ledger's name, ``public_key`` 32 bytes."""

    origin: str
    public_key: bytes


def read_identity(database: Database) -> Identity:
    """LedgerError where the store has no ledger yet."""
    rows = database.rows(statements.IDENTITY)
    if not rows:
        raise LedgerError(
            f"{database.name}: has no ledger yet. Make a key with create_key and the ledger with "
            "Ledger.create; 'lpf init' does both."
        )
    if len(rows) > 1:
        raise broken("ledger_identity", f"{len(rows)} rows where one belongs")
    origin, key = rows[0]
    return Identity(str(origin), require_bytes("ledger_identity", "public key", key))


def create_identity(database: Database, public_key: bytes) -> Identity:
    """The store's identity, made now unless it was before. LedgerKeyError where it was, with
    another key."""
    if len(public_key) != 32:
        raise LedgerKeyError(
            f"a public key has 32 bytes, this one {len(public_key)}; no ledger was made."
        )
    with database.writing() as connection:
        take_turn(database, connection)
        if not database.run(connection, statements.IDENTITY).fetchall():
            row = (f"lpf-{secrets.token_hex(8)}", public_key, now_micros())
            database.run(connection, statements.PUT_IDENTITY, row)
    identity = read_identity(database)
    require_key(identity, public_key)
    return identity


def require_key(identity: Identity, public_key: bytes) -> None:
    if public_key != identity.public_key:
        raise LedgerKeyError(
            f"the key {public_key.hex()} is not that of the ledger {identity.origin}, which is "
            f"{identity.public_key.hex()}. Nothing was written; use the ledger.key it was made "
            "with, or none to append without signing."
        )


def take_turn(database: Database, connection: Connection) -> None:
    """From here to the end of the transaction nobody else numbers records. In SQLite the
    transaction itself sees to that."""
    if not database.is_sqlite:
        connection.execute(statements.SEQUENCER_LOCK)
