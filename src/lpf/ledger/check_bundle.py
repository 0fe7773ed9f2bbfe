"""Check a proof bundle with Python alone; no other file of this package is needed.

    python check_bundle.py bundle.json [--key FILE|HEX]

Exit code 0: the bundle is valid; 1: it is not; 2: not a bundle, or not a key. Without --key it only
proves that the owner of the key named in the bundle says so. Hashes follow RFC 6962, signatures are
Ed25519 (RFC 8032).
"""

import argparse
import json
import re
from hashlib import sha256, sha512
from pathlib import Path
from typing import Any

# Ed25519: the curve -x^2 + y^2 = 1 + D x^2 y^2 modulo P, with a base point of order L.
P, L = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
FIELDS = {"format", "key", "origin", "root", "signature", "size", "timestamp"}
KINDS = {"lpf-inclusion/1": ["checkpoint"], "lpf-consistency/1": ["first", "second"]}


class InvalidBundleError(Exception):
    """The bundle is not valid. The message says why."""


def require(condition: object, message: str) -> None:
    if not condition:
        raise InvalidBundleError(message)


def decode_point(data: bytes) -> tuple[int, int]:
    """The point of the curve that 32 bytes encode: y, and the sign of x in the highest bit."""
    sign, y = divmod(int.from_bytes(data, "little"), 2**255)
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    root = pow(square, (P + 3) // 8, P)
    x = root if root * root % P == square else root * pow(2, (P - 1) // 4, P) % P
    valid = y < P and x * x % P == square and (x or not sign)
    require(valid, "a key or signature contains bytes that are not a point of the curve")
    return (P - x if x & 1 != sign else x), y


def add(first: tuple[int, int], second: tuple[int, int]) -> tuple[int, int]:
    (x1, y1), (x2, y2) = first, second
    crossed = D * x1 * x2 * y1 * y2 % P
    x = (x1 * y2 + x2 * y1) * pow(1 + crossed, -1, P) % P
    return x, (y1 * y2 + x1 * x2) * pow(1 - crossed, -1, P) % P


def multiply(factor: int, base: tuple[int, int]) -> tuple[int, int]:
    half = multiply(factor // 2, add(base, base)) if factor else (0, 1)
    return add(half, base) if factor & 1 else half


def check_signature(key: bytes, signature: bytes, message: bytes) -> None:
    """Signature check of RFC 8032, 5.1.7."""
    require(len(key) == 32 and len(signature) == 64, "a key has 32 bytes and a signature 64")
    scalar = int.from_bytes(signature[32:], "little")
    challenge = int.from_bytes(sha512(signature[:32] + key + message).digest(), "little") % L
    base = decode_point((4 * pow(5, -1, P) % P).to_bytes(32, "little"))
    signed = multiply(scalar, base) == add(
        decode_point(signature[:32]), multiply(challenge, decode_point(key))
    )
    require(scalar < L and signed, "the checkpoint's signature is not that of its key")


def check_checkpoint(checkpoint: dict[str, Any], known_key: str | None) -> dict[str, Any]:
    """Check fields, key and signature of a checkpoint, and return it."""
    valid = set(checkpoint) == FIELDS and checkpoint["format"] == "lpf-checkpoint/1"
    require(valid, "the checkpoint does not have the fields of lpf-checkpoint/1")
    key = checkpoint["key"]
    require(known_key in (None, key), f"the checkpoint names the key {key}, not {known_key}")
    # For ASCII texts and whole numbers this is canonical JSON (RFC 8785).
    signed = {name: value for name, value in checkpoint.items() if name != "signature"}
    message = json.dumps(signed, sort_keys=True, separators=(",", ":")).encode()
    check_signature(bytes.fromhex(key), bytes.fromhex(checkpoint["signature"]), message)
    return checkpoint


def climb(index: int, last: int, node: bytes, path: list[str]) -> tuple[str, str]:
    """Path check of RFC 9162, 2.1.3.2 and 2.1.4.2, from node ``index`` of a height whose last node
    is ``last``. Returns two roots: of the tree that ends with this node, and of the whole tree."""
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
    """Check an inclusion bundle; return what it proves."""
    body, index, size, blobs = bundle["body"], bundle["index"], checkpoint["size"], bundle["blobs"]
    require(0 <= index < size, "the record's index is outside the tree")
    _, root = climb(index, size - 1, sha256(b"\x00" + body.encode()).digest(), bundle["path"])
    require(root == checkpoint["root"], "record and path do not lead to the signed root")
    name = json.loads(body)["record_id"]
    require(name == f"INF{index + 1:08d}", f"{name} is not in its place in the ledger")
    for digest, blob in blobs.items():
        require(sha256(blob.encode()).hexdigest() == digest, f"blob {digest} has another hash")
    # Quotes inside a text are escaped, so this finds all references and nothing else.
    referred = set(re.findall(r'\{"blob":"([0-9a-f]{64})"\}', body))
    require(referred == set(blobs), "the blobs are not those that the record refers to")
    return f"{name} is among the {size} records"


def consistent(bundle: dict[str, Any], first: dict[str, Any], second: dict[str, Any]) -> str:
    """Check a consistency bundle; return what it proves."""
    size, last, path = first["size"], second["size"] - 1, bundle["path"]
    require(
        all(first[name] == second[name] for name in ("key", "origin")),
        "the checkpoints are of two ledgers",
    )
    require(0 < size <= last + 1, "the first checkpoint is not the earlier one")
    # The path starts at the largest node that ends the old tree; that may be all of the old tree.
    height = (size & -size).bit_length() - 1 if size <= last else size.bit_length()
    start, *rest = [first["root"], *path] if size >> height <= 1 else path or [""]
    roots = climb((size - 1) >> height, last >> height, bytes.fromhex(start), rest)
    require(
        roots == (first["root"], second["root"]), "the later ledger does not extend the earlier one"
    )
    return f"the first {size} records are unchanged among {last + 1}"


def check(bundle: dict[str, Any], known_key: str | None = None) -> str:
    """Return what the bundle proves. InvalidBundleError if it is not valid, KeyError or TypeError
    if it is not a bundle."""
    names = KINDS[bundle["format"]]
    try:
        signed = [check_checkpoint(bundle[name], known_key) for name in names]
        claim = consistent(bundle, *signed) if len(signed) == 2 else included(bundle, *signed)
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError):
        raise InvalidBundleError("a part of the bundle is missing or malformed") from None
    by = (
        "the given key"
        if known_key
        else f"{signed[-1]['key']} (use --key to check whose key that is)"
    )
    where = f"of ledger {signed[-1]['origin']} at {signed[-1]['timestamp']}"
    return f"holds: {claim} {where}, signed by {by}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Check a proof bundle of an LPF ledger.")
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
    except InvalidBundleError as error:
        parser.exit(1, f"does not hold: {error}\n")
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        parser.error(f"{reading}: cannot be read, or is not a {wanted}")
