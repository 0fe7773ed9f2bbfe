"""Checks a proof bundle with nothing but Python: no other file of this package is needed.

    python check_bundle.py bundle.json [--key FILE|HEX]

Exit code 0: it holds; 1: it does not; 2: this is no bundle or key. Without --key it only shows that
whoever holds the key named in it says so. Hashing is RFC 6962, signatures are Ed25519 (RFC 8032).
"""

import argparse
import json
import re
from hashlib import sha256, sha512
from pathlib import Path
from typing import Any

# Ed25519: the curve -x^2 + y^2 = 1 + D x^2 y^2 modulo P, a base point of order L.
P, L = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
FIELDS = {"format", "key", "origin", "root", "signature", "size", "timestamp"}
KINDS = {"lpf-inclusion/1": ["checkpoint"], "lpf-consistency/1": ["first", "second"]}


class WrongError(Exception):
    """What does not hold."""


def require(holds: object, otherwise: str) -> None:
    if not holds:
        raise WrongError(otherwise)


def point(data: bytes) -> tuple[int, int]:
    """The curve's point that 32 bytes stand for: y, and the sign of x in the highest bit."""
    sign, y = divmod(int.from_bytes(data, "little"), 2**255)
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    root = pow(square, (P + 3) // 8, P)
    x = root if root * root % P == square else root * pow(2, (P - 1) // 4, P) % P
    sound = y < P and x * x % P == square and (x or not sign)
    require(sound, "a key or signature holds bytes that are no point of the curve")
    return (P - x if x & 1 != sign else x), y


def add(first: tuple[int, int], second: tuple[int, int]) -> tuple[int, int]:
    (x1, y1), (x2, y2) = first, second
    crossed = D * x1 * x2 * y1 * y2 % P
    x = (x1 * y2 + x2 * y1) * pow(1 + crossed, -1, P) % P
    return x, (y1 * y2 + x1 * x2) * pow(1 - crossed, -1, P) % P


def times(factor: int, base: tuple[int, int]) -> tuple[int, int]:
    half = times(factor // 2, add(base, base)) if factor else (0, 1)
    return add(half, base) if factor & 1 else half


def check_signature(key: bytes, signature: bytes, message: bytes) -> None:
    """RFC 8032, 5.1.7."""
    require(len(key) == 32 and len(signature) == 64, "a key has 32 bytes and a signature 64")
    scalar = int.from_bytes(signature[32:], "little")
    challenge = int.from_bytes(sha512(signature[:32] + key + message).digest(), "little") % L
    base = point((4 * pow(5, -1, P) % P).to_bytes(32, "little"))
    signed = times(scalar, base) == add(point(signature[:32]), times(challenge, point(key)))
    require(scalar < L and signed, "the checkpoint's signature is not that of its key")


def checked(checkpoint: dict[str, Any], known_key: str | None) -> dict[str, Any]:
    """A signed statement: ledger ``origin`` has ``size`` records under ``root``."""
    sound = set(checkpoint) == FIELDS and checkpoint["format"] == "lpf-checkpoint/1"
    require(sound, "the checkpoint has not the fields of lpf-checkpoint/1")
    named = checkpoint["key"]
    require(known_key in (None, named), f"the checkpoint names the key {named}, not {known_key}")
    # Canonical JSON (RFC 8785): for texts of ASCII and whole numbers it is just this.
    signed = {name: value for name, value in checkpoint.items() if name != "signature"}
    message = json.dumps(signed, sort_keys=True, separators=(",", ":")).encode()
    check_signature(bytes.fromhex(named), bytes.fromhex(checkpoint["signature"]), message)
    return checkpoint


def climb(index: int, last: int, node: bytes, path: list[str]) -> tuple[str, str]:
    """RFC 9162, 2.1.3.2 and 2.1.4.2: from node ``index`` of its height, whose last one is
    ``last``, to two roots: of the tree that ends with this node, and of the whole."""
    old = new = node
    for sibling in map(bytes.fromhex, path):
        require(last > 0, "the path is too long")
        if index & 1 or index == last:
            old, new = (sha256(b"\x01" + sibling + below).digest() for below in (old, new))
            while not index & 1 and index:
                index, last = index >> 1, last >> 1
        else:
            new = sha256(b"\x01" + new + sibling).digest()
        index, last = index >> 1, last >> 1
    require(last == 0, "the path is too short")
    return old.hex(), new.hex()


def included(bundle: dict[str, Any], checkpoint: dict[str, Any]) -> str:
    body, index, size, blobs = bundle["body"], bundle["index"], checkpoint["size"], bundle["blobs"]
    require(0 <= index < size, "the record's index is not within the tree")
    _, root = climb(index, size - 1, sha256(b"\x00" + body.encode()).digest(), bundle["path"])
    require(root == checkpoint["root"], "record and path do not lead to the root that was signed")
    name = json.loads(body)["record_id"]
    require(name == f"INF{index + 1:08d}", f"{name} is not at its place in the ledger")
    for digest, blob in blobs.items():
        require(sha256(blob.encode()).hexdigest() == digest, f"blob {digest} has another hash")
    # Within a text quotes are escaped, so these are all references and nothing else.
    referred = set(re.findall(r'\{"blob":"([0-9a-f]{64})"\}', body))
    require(referred == set(blobs), "the blobs are not those that the record refers to")
    return f"{name} is among the {size} records"


def consistent(bundle: dict[str, Any], first: dict[str, Any], second: dict[str, Any]) -> str:
    size, last, path = first["size"], second["size"] - 1, bundle["path"]
    require(all(first[name] == second[name] for name in ("key", "origin")), "these are two ledgers")
    require(0 < size <= last + 1, "the first checkpoint is not the earlier one")
    # The climb starts at the largest node that ends the old tree; often that is all of it.
    height = (size & -size).bit_length() - 1 if size <= last else size.bit_length()
    start, *rest = [first["root"], *path] if size >> height <= 1 else path or [""]
    roots = climb((size - 1) >> height, last >> height, bytes.fromhex(start), rest)
    require(roots == (first["root"], second["root"]), "the later ledger begins otherwise")
    return f"the first {size} records are unchanged among {last + 1}"


def check(bundle: dict[str, Any], known_key: str | None = None) -> str:
    """What it proves. WrongError if it proves nothing, KeyError or TypeError if it is no bundle."""
    names = KINDS[bundle["format"]]
    try:
        signed = [checked(bundle[name], known_key) for name in names]
        claim = consistent(bundle, *signed) if len(signed) == 2 else included(bundle, *signed)
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError):
        raise WrongError("a part of the bundle is missing or malformed") from None
    by = "the given key" if known_key else f"{signed[-1]['key']} (give --key to check whose)"
    where = f"of ledger {signed[-1]['origin']} at {signed[-1]['timestamp']}"
    return f"holds: {claim} {where}, signed by {by}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Checks a proof bundle of an LPF ledger.")
    parser.add_argument("bundle", help="the JSON file")
    parser.add_argument("--key", help="the public key: ledger.pub, or its 64 hexadecimal digits")
    given = parser.parse_args()
    reading, wanted, key = given.key, "public key of 64 hexadecimal digits", given.key
    try:
        if key is not None:
            text = key if len(key) == 64 else Path(key).read_text("ascii")
            key = re.findall(r"\A[0-9a-f]{64}\Z", text.strip().lower())[0]
        reading, wanted = given.bundle, f"bundle of format {' or '.join(KINDS)}"
        print(check(json.loads(Path(reading).read_text("utf-8")), key))
    except WrongError as wrong:
        parser.exit(1, f"does not hold: {wrong}\n")
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        parser.error(f"{reading}: cannot be read, or is no {wanted}")
