"""Check a proof bundle or an export with Python alone; no other file of this package is needed.

    python check_bundle.py bundle.json [--key FILE|HEX] [--disclosure E001.json]
    python check_bundle.py ledger.jsonl [--key FILE|HEX] [--disclosure E001.json]

Exit code 0: it is valid; 1: it is not; 2: not a bundle, an export, a disclosure or a key. Without
--key it only proves that the owner of the key named in the file says so. A disclosure is a text
with its salt: the check proves that a record was computed from exactly this text. Hashes follow
RFC 6962, signatures are Ed25519 (RFC 8032). Fields that are not part of a format, repeated keys and
upper-case digits are refused.
"""

import argparse
import json
import re
from collections.abc import Sequence
from hashlib import sha256, sha512
from pathlib import Path
from typing import Any

# Ed25519: the curve -x^2 + y^2 = 1 + D x^2 y^2 modulo P, with a base point of order L.
P, L = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
FIELDS = {"format", "key", "origin", "root", "signature", "size", "timestamp"}
KINDS = {"lpf-inclusion/1": ["checkpoint"], "lpf-consistency/1": ["first", "second"]}
BUNDLE_FIELDS = {
    "lpf-inclusion/1": {"format", "body", "index", "path", "checkpoint", "blobs"},
    "lpf-consistency/1": {"format", "first", "second", "path"},
}
EXPORT, DISCLOSURE = "lpf-ledger/1", "lpf-disclosure/1"
DISCLOSURE_FIELDS = {"format", "evidence_id", "text", "claim", "salt", "commitment"}
MALFORMED = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)


class InvalidBundleError(Exception):
    """The bundle is not valid. The message says why."""


def require(condition: object, message: str) -> None:
    if not condition:
        raise InvalidBundleError(message)


def require_fields(value: dict[str, Any], names: set[str], what: str) -> None:
    require(set(value) == names, f"{what} does not have exactly the fields {sorted(names)}")


def unhex(text: str, length: int) -> bytes:
    """Only lower-case digits, so that a hash has a single form."""
    digits = isinstance(text, str) and re.fullmatch(f"[0-9a-f]{{{2 * length}}}", text)
    require(digits, f"expected {2 * length} lower-case hexadecimal digits")
    return bytes.fromhex(text)


def parse(text: str) -> Any:
    """JSON without repeated keys, and without NaN and infinities, which JSON does not have."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        require(len(dict(pairs)) == len(pairs), "a key occurs twice in one object")
        return dict(pairs)

    def refuse(constant: str) -> None:
        raise InvalidBundleError(f"{constant} is not JSON")

    return json.loads(text, object_pairs_hook=once, parse_constant=refuse)


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
    require_fields(checkpoint, FIELDS, "the checkpoint")
    require(checkpoint["format"] == "lpf-checkpoint/1", "the checkpoint has another format")
    require(type(checkpoint["size"]) is int, "the checkpoint's size is not a whole number")
    unhex(checkpoint["root"], 32)
    key = checkpoint["key"]
    require(known_key in (None, key), f"the checkpoint names the key {key}, not {known_key}")
    # For ASCII texts and whole numbers this is canonical JSON (RFC 8785).
    signed = {name: value for name, value in checkpoint.items() if name != "signature"}
    message = json.dumps(signed, sort_keys=True, separators=(",", ":")).encode()
    check_signature(unhex(key, 32), unhex(checkpoint["signature"], 64), message)
    return checkpoint


def climb(index: int, last: int, node: bytes, path: list[str]) -> tuple[str, str]:
    """Path check of RFC 9162, 2.1.3.2 and 2.1.4.2, from node ``index`` of a height whose last node
    is ``last``. Returns two roots: of the tree that ends with this node, and of the whole tree."""
    old = new = node
    for sibling in (unhex(node, 32) for node in path):
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
    require(type(index) is int and 0 <= index < size, "the record's index is outside the tree")
    _, root = climb(index, size - 1, sha256(b"\x00" + body.encode()).digest(), bundle["path"])
    require(root == checkpoint["root"], "record and path do not lead to the signed root")
    name = parse(body)["record_id"]
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
    roots = climb((size - 1) >> height, last >> height, unhex(start, 32), rest)
    require(
        roots == (first["root"], second["root"]), "the later ledger does not extend the earlier one"
    )
    return f"the first {size} records are unchanged among {last + 1}"


def commitment_of(disclosure: dict[str, Any]) -> list[str]:
    """Check a disclosure by itself: salt, text and claim give its hash. Returns id and hash, as the
    evidence chain of a record has them."""
    require_fields(disclosure, DISCLOSURE_FIELDS, "the disclosure")
    digest = sha256(unhex(disclosure["salt"], 16))
    for part in (disclosure["text"], disclosure["claim"]):
        encoded = b"" if part is None else part.encode()
        digest.update(b"\xff" * 8 if part is None else len(encoded).to_bytes(8, "big"))
        digest.update(encoded)
    computed = digest.hexdigest()
    require(
        computed == disclosure["commitment"], "text, claim and salt do not give the disclosed hash"
    )
    return [disclosure["evidence_id"], computed]


def chain_of(fields: dict[str, Any]) -> list[list[str]]:
    """The items a record was computed from, with those about related predicates."""
    parts = [fields, *fields.get("related", [])]
    return [item for part in parts for item in part.get("evidence_chain", [])]


def disclosed(disclosure: dict[str, Any], records: dict[str, dict[str, Any]]) -> str:
    """Find a disclosure in the evidence chains of records; return which of them used the text."""
    named = commitment_of(disclosure)
    users = [name for name, fields in records.items() if named in chain_of(fields)]
    require(users, f"no record here was computed from the disclosed text of {named[0]}")
    more = f" and {len(users) - 3} more" if len(users) > 3 else ""
    return f"the disclosed text of {named[0]} was used by {', '.join(users[:3])}{more}"


def check_export(
    lines: list[bytes],
    known_key: str | None = None,
    disclosures: Sequence[dict[str, Any]] = (),
) -> str:
    """Check all lines of an export, with their line ends: hashes, tree, checkpoints, signatures.
    Returns what holds and what could not be checked."""
    header, tree, records, checkpoints = parse(lines[0].decode()), Tree(), {}, 0
    require_fields(header, {"format", "origin", "public_key"}, "the header")
    key, counts = header["public_key"], {"records": 0, "blobs": 0}
    unhex(key, 32)
    require(known_key in (None, key), f"the export names the key {key}, not {known_key}")
    missing: set[str] = set()
    blobs: set[str] = set()
    last = 0
    for line in lines[1:-1]:
        entry = parse(line.decode())
        if "blob" in entry:
            require_fields(entry, {"blob", "body"}, "a blob")
            require(
                sha256(entry["body"].encode()).digest() == unhex(entry["blob"], 32),
                f"blob {entry['blob']} has another hash",
            )
            blobs.add(entry["blob"])
            counts["blobs"] += 1
            continue
        require(not counts["blobs"], "a record follows a blob")
        require_fields(entry, {"body", "checkpoint", "leaf", "seq"}, "a record's line")
        counts["records"] += 1
        name = f"INF{counts['records']:08d}"
        fields = parse(entry["body"])
        require(entry["seq"] == counts["records"], f"{name} is missing or out of order")
        require(fields["record_id"] == name, f"{name} has the body of {fields['record_id']}")
        leaf = sha256(b"\x00" + entry["body"].encode()).digest()
        require(leaf == unhex(entry["leaf"], 32), f"{name} is not what was recorded")
        tree.add(leaf)
        missing |= set(re.findall(r'\{"blob":"([0-9a-f]{64})"\}', entry["body"]))
        records[name] = fields
        if entry["checkpoint"] is not None:
            signed = check_checkpoint(parse(entry["checkpoint"]), key)
            require(signed["origin"] == header["origin"], f"{name}: a checkpoint of another ledger")
            require(
                signed["size"] == tree.size and signed["root"] == tree.root(),
                f"{name}: the signed root is not that of the records",
            )
            checkpoints, last = checkpoints + 1, tree.size
    require(missing <= blobs, "a blob that a record refers to is missing")
    end = parse(lines[-1].decode())
    require_fields(end, {"end"}, "the last line")
    whole = {**counts, "sha256": sha256(b"".join(lines[:-1])).hexdigest()}
    require(end["end"] == whole, "the last line does not match the lines before it")
    found = [disclosed(one, records) for one in disclosures]
    unsigned = tree.size - last
    limits = [
        *([f"the last {unsigned} records, which no checkpoint signs"] if unsigned else []),
        "records removed after the last checkpoint",
        "the canonical form of the JSON",
        *([] if known_key else ["whose key it is (--key)"]),
    ]
    claims = [f"{tree.size} records and {checkpoints} signed checkpoints", *found]
    return (
        f"holds: {'; '.join(claims)}; ledger {header['origin']}, root {tree.root()}. "
        f"Not checked: {', '.join(limits)}"
    )


class Tree:
    """The Merkle tree of RFC 6962 over leaves that are added one by one."""

    def __init__(self) -> None:
        self.size = 0
        self._roots: list[bytes] = []  # of complete subtrees, the largest first

    def add(self, leaf: bytes) -> None:
        self._roots.append(leaf)
        self.size += 1
        for _ in range((self.size & -self.size).bit_length() - 1):
            right = self._roots.pop()
            self._roots.append(sha256(b"\x01" + self._roots.pop() + right).digest())

    def root(self) -> str:
        node, *larger = reversed(self._roots or [sha256().digest()])
        for left in larger:
            node = sha256(b"\x01" + left + node).digest()
        return node.hex()


def check(
    bundle: dict[str, Any],
    known_key: str | None = None,
    disclosures: Sequence[dict[str, Any]] = (),
) -> str:
    """Return what the bundle proves. InvalidBundleError if it is not valid, KeyError or TypeError
    if it is not a bundle."""
    kind = bundle["format"]
    names = KINDS[kind]
    try:
        require_fields(bundle, BUNDLE_FIELDS[kind], "the bundle")
        signed = [check_checkpoint(bundle[name], known_key) for name in names]
        claim = consistent(bundle, *signed) if len(signed) == 2 else included(bundle, *signed)
        require(len(signed) == 1 or not disclosures, "this bundle has no record with evidence")
        record = parse(bundle["body"]) if disclosures else {}
        found = [disclosed(one, {record["record_id"]: record}) for one in disclosures]
    except MALFORMED:
        raise InvalidBundleError("a part of the bundle is missing or malformed") from None
    by = (
        "the given key"
        if known_key
        else f"{signed[-1]['key']} (use --key to check whose key that is)"
    )
    where = f"of ledger {signed[-1]['origin']} at {signed[-1]['timestamp']}"
    return "; ".join([f"holds: {claim} {where}, signed by {by}", *found])


def check_file(data: bytes, known_key: str | None, disclosures: Sequence[dict[str, Any]]) -> str:
    """Check a bundle or an export by its content."""
    lines = [line + b"\n" for line in data.split(b"\n")[:-1]]
    if not data.startswith(f'{{"format":"{EXPORT}"'.encode()):
        return check(parse(data.decode()), known_key, disclosures)
    try:
        require(len(lines) > 1 and data.endswith(b"\n"), "the export is cut off")
        return check_export(lines, known_key, disclosures)
    except MALFORMED:
        raise InvalidBundleError("a line of the export is missing or malformed") from None


def printable(text: str) -> str:
    """Names in the files are foreign: their control characters are shown, not sent."""
    return "".join(
        one if one.isascii() and one.isprintable() else one.encode("unicode_escape").decode()
        for one in text.encode("utf-8", "replace").decode()
    )


def read_disclosure(path: str) -> dict[str, Any]:
    """ValueError if the file is not a disclosure."""
    document = parse(Path(path).read_text("utf-8"))
    if not isinstance(document, dict) or document.get("format") != DISCLOSURE:
        raise ValueError("another format")
    return document


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Check a proof or an export of an LPF ledger.")
    parser.add_argument("bundle", help="the file of the bundle or the export")
    parser.add_argument(
        "--disclosure", action="append", default=[], help="a disclosed text; repeat for more"
    )
    parser.add_argument("--key", help="the public key: ledger.pub, or its 64 hexadecimal digits")
    given = parser.parse_args()
    reading, wanted, key = given.key, "public key of 64 hexadecimal digits", given.key
    try:
        if key is not None:
            text = key if len(key) == 64 else Path(key).read_text("ascii")
            key = re.findall(r"\A[0-9a-f]{64}\Z", text.strip().lower())[0]
        texts = []
        for reading in given.disclosure:
            wanted = f"disclosure of format {DISCLOSURE}"
            texts.append(read_disclosure(reading))
        reading, wanted = given.bundle, f"bundle of format {' or '.join(KINDS)}, or an export"
        print(printable(check_file(Path(reading).read_bytes(), key, texts)))
    except InvalidBundleError as error:
        parser.exit(1, f"does not hold: {printable(str(error))}\n")
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        parser.error(f"{printable(reading)}: cannot be read, or is not a {wanted}")
