"""Checks a proof bundle with nothing but Python: no other file of this package is needed.

    python check_bundle.py bundle.json [--key HEX]

Exit code 0 when the proof holds, 1 when it does not. Give the ledger's public key with --key:
without it, the proof only shows that whoever holds the key named in it says so. Hashing is
RFC 6962, signatures are Ed25519 (RFC 8032), written out below so that they can be read.
"""

from __future__ import annotations

import argparse
import json
import sys
from hashlib import sha256, sha512
from pathlib import Path
from typing import Any

# Ed25519: the curve -x^2 + y^2 = 1 + D x^2 y^2 modulo P, a base point of order L.
P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
ROOT_OF_MINUS_ONE = pow(2, (P - 1) // 4, P)

Point = tuple[int, int]
Document = dict[str, Any]


class WrongError(Exception):
    """What does not hold."""


def point(data: bytes) -> Point:
    """The curve's point that 32 bytes stand for: y, and the sign of x in the highest bit."""
    number = int.from_bytes(data, "little")
    y, sign = number & (1 << 255) - 1, number >> 255
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if x * x % P != square:
        x = x * ROOT_OF_MINUS_ONE % P
    if y >= P or x * x % P != square or (x == 0 and sign):
        raise WrongError("a key or signature holds bytes that are no point of the curve")
    return (P - x if x & 1 != sign else x), y


def add(first: Point, second: Point) -> Point:
    (x1, y1), (x2, y2) = first, second
    crossed = D * x1 * x2 * y1 * y2 % P
    x = (x1 * y2 + x2 * y1) * pow(1 + crossed, -1, P) % P
    y = (y1 * y2 + x1 * x2) * pow(1 - crossed, -1, P) % P
    return x, y


def times(factor: int, base: Point) -> Point:
    total = (0, 1)
    while factor:
        if factor & 1:
            total = add(total, base)
        base, factor = add(base, base), factor >> 1
    return total


BASE = point((4 * pow(5, -1, P) % P).to_bytes(32, "little"))


def check_signature(key: bytes, signature: bytes, message: bytes) -> None:
    """RFC 8032, 5.1.7."""
    if len(key) != 32 or len(signature) != 64:
        raise WrongError("a key has 32 bytes and a signature 64")
    scalar = int.from_bytes(signature[32:], "little")
    challenge = sha512(signature[:32] + key + message).digest()
    expected = add(
        point(signature[:32]), times(int.from_bytes(challenge, "little") % L, point(key))
    )
    if scalar >= L or times(scalar, BASE) != expected:
        raise WrongError("the checkpoint's signature is not that of its key")


def check_checkpoint(checkpoint: Document, known_key: str | None) -> None:
    """A signed statement: ledger ``origin`` has ``size`` records under ``root``."""
    fields = {"format", "key", "origin", "root", "signature", "size", "timestamp"}
    if set(checkpoint) != fields or checkpoint["format"] != "lpf-checkpoint/1":
        raise WrongError("the checkpoint has not the fields of lpf-checkpoint/1")
    if known_key is not None and checkpoint["key"] != known_key:
        raise WrongError(f"the checkpoint names the key {checkpoint['key']}, not {known_key}")
    # Canonical JSON (RFC 8785): for texts of ASCII and whole numbers it is just this.
    signed = {name: value for name, value in checkpoint.items() if name != "signature"}
    message = json.dumps(signed, sort_keys=True, separators=(",", ":")).encode()
    signature = bytes.fromhex(checkpoint["signature"])
    check_signature(bytes.fromhex(checkpoint["key"]), signature, message)


def node(left: bytes, right: bytes) -> bytes:
    return sha256(b"\x01" + left + right).digest()


def root_from_path(leaf: bytes, index: int, size: int, path: list[bytes]) -> bytes:
    """RFC 9162, 2.1.3.2: climbs from a leaf to the root of a tree of ``size`` leaves."""
    if not 0 <= index < size:
        raise WrongError("the record's index is not within the tree")
    last, root = size - 1, leaf
    for sibling in path:
        if last == 0:
            raise WrongError("the path is too long")
        if index & 1 or index == last:
            root = node(sibling, root)
            while not index & 1 and index:
                index, last = index >> 1, last >> 1
        else:
            root = node(root, sibling)
        index, last = index >> 1, last >> 1
    if last:
        raise WrongError("the path is too short")
    return root


def roots_from_consistency(
    first: int, second: int, old_root: bytes, path: list[bytes]
) -> tuple[bytes, bytes]:
    """RFC 9162, 2.1.4.2: the roots of both trees as the path gives them."""
    if first & (first - 1) == 0:
        path = [old_root, *path]  # the whole old tree is one node of the new one
    if not path:
        raise WrongError("the path is too short")
    index, last = first - 1, second - 1
    while index & 1:
        index, last = index >> 1, last >> 1
    old = new = path[0]
    for sibling in path[1:]:
        if last == 0:
            raise WrongError("the path is too long")
        if index & 1 or index == last:
            old, new = node(sibling, old), node(sibling, new)
            while not index & 1 and index:
                index, last = index >> 1, last >> 1
        else:
            new = node(new, sibling)
        index, last = index >> 1, last >> 1
    if last:
        raise WrongError("the path is too short")
    return old, new


def references(value: Any) -> set[str]:
    """Hashes of the blobs that a record refers to as {"blob": hash}."""
    if isinstance(value, dict):
        if set(value) == {"blob"} and isinstance(value["blob"], str) and len(value["blob"]) == 64:
            return {value["blob"]}
        value = list(value.values())
    return set().union(*map(references, value)) if isinstance(value, list) else set()


def check_inclusion(bundle: Document, known_key: str | None) -> tuple[str, Document]:
    checkpoint, body = bundle["checkpoint"], bundle["body"].encode()
    check_checkpoint(checkpoint, known_key)
    leaf = sha256(b"\x00" + body).digest()
    path = [bytes.fromhex(sibling) for sibling in bundle["path"]]
    root = root_from_path(leaf, bundle["index"], checkpoint["size"], path)
    if root.hex() != checkpoint["root"]:
        raise WrongError("record and path do not lead to the root that was signed")
    record = json.loads(body)
    if record["record_id"] != f"INF{bundle['index'] + 1:08d}":
        raise WrongError(f"{record['record_id']} is not at its place in the ledger")
    for digest, blob in bundle["blobs"].items():
        if sha256(blob.encode()).hexdigest() != digest:
            raise WrongError(f"blob {digest} has another hash")
    if references(record) != set(bundle["blobs"]):
        raise WrongError("the blobs are not those that the record refers to")
    return f"{record['record_id']} is among the {checkpoint['size']} records", checkpoint


def check_consistency(bundle: Document, known_key: str | None) -> tuple[str, Document]:
    first, second = bundle["first"], bundle["second"]
    check_checkpoint(first, known_key)
    check_checkpoint(second, known_key)
    if (first["key"], first["origin"]) != (second["key"], second["origin"]):
        raise WrongError("the two checkpoints are of different ledgers")
    if not 0 < first["size"] <= second["size"]:
        raise WrongError("the first checkpoint is not the earlier one")
    path = [bytes.fromhex(sibling) for sibling in bundle["path"]]
    if first["size"] == second["size"]:
        old, new = bytes.fromhex(first["root"]), bytes.fromhex(first["root"])
    else:
        old_root = bytes.fromhex(first["root"])
        old, new = roots_from_consistency(first["size"], second["size"], old_root, path)
    if (old.hex(), new.hex()) != (first["root"], second["root"]):
        raise WrongError("the later ledger does not begin with the earlier one")
    return f"the first {first['size']} records are unchanged among {second['size']}", second


def check(bundle: Document, known_key: str | None = None) -> str:
    """What the bundle proves, as a sentence. WrongError if it proves nothing."""
    checks = {"lpf-inclusion/1": check_inclusion, "lpf-consistency/1": check_consistency}
    if bundle["format"] not in checks:
        raise WrongError(f"{bundle['format']!r} is not the format of a bundle")
    claim, checkpoint = checks[bundle["format"]](bundle, known_key)
    signer = "the given key" if known_key else f"{checkpoint['key']} (give --key to check whose)"
    where = f"of ledger {checkpoint['origin']} at {checkpoint['timestamp']}"
    return f"holds: {claim} {where}, signed by {signer}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Checks a proof bundle of an LPF ledger.")
    parser.add_argument("bundle", help="the JSON file")
    parser.add_argument("--key", help="the ledger's public key, 64 hexadecimal digits")
    arguments = parser.parse_args()
    try:
        bundle = json.loads(Path(arguments.bundle).read_text(encoding="utf-8"))
        print(check(bundle, arguments.key))
    except WrongError as wrong:
        sys.exit(f"does not hold: {wrong}")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        sys.exit(f"does not hold: not a bundle ({type(error).__name__}: {error})")


if __name__ == "__main__":
    main()
