"""Canonical JSON (RFC 8785): one value, one sequence of bytes.

Written for speed, because every record is written here: strings are escaped by the standard
library's C function (its escapes are those of RFC 8785), and numbers start from Python's shortest
``repr``, which has ECMAScript's digits and differs only in how it writes exponents.
"""

from __future__ import annotations

import json.encoder
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from lpf.errors import LedgerError

LARGEST_INTEGER = 2**53 - 1  # larger integers are not all exact as a double

# The characters of lists of plain floats; strings, exponents and NaN have others.
_PLAIN = b"-0123456789.,[]"
_escaped = json.encoder.encode_basestring
_NOT_WRITTEN = "nothing was written"


class _AsLedgerError:
    """Turns errors raised inside it into a LedgerError. A class, because a generator of
    contextlib costs several times as much."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, UnicodeEncodeError):
            raise LedgerError(
                f"a text holds the lone surrogate {error.object[error.start]!r}, which is not "
                f"a character; {_NOT_WRITTEN}. Decode the text with errors='replace' first."
            ) from error
        if isinstance(error, RecursionError):
            raise LedgerError(f"a value is nested too deeply; {_NOT_WRITTEN}.") from error


_AS_LEDGER_ERROR = _AsLedgerError()


def canonical(value: Any) -> bytes:
    """The bytes of ``value``. LedgerError for what JSON cannot hold exactly: NaN, infinities,
    integers of 2**53 and beyond, lone surrogates, keys that are not texts, foreign types."""
    with _AS_LEDGER_ERROR:
        return _WRITERS[type(value)](value).encode()


def canonical_around(fields: Mapping[str, Any], name: str) -> tuple[bytes, bytes]:
    """The bytes before and after the value of ``name``, a field that ``fields`` does not have:
    what ``canonical`` would write around it."""
    with _AS_LEDGER_ERROR:
        ordered = _sorted_names([*fields, name])
        place = ordered.index(name)
        before = ",".join([*_members(fields, ordered[:place]), _NAMES[name]])
        after = "".join([f",{text}" for text in _members(fields, ordered[place + 1 :])])
        return f"{{{before}".encode(), f"{after}}}".encode()


def _object(value: Mapping[str, Any]) -> str:
    return "{" + ",".join(_members(value, _sorted_names(value))) + "}"


def _members(value: Mapping[str, Any], names: list[str]) -> list[str]:
    return [_NAMES[name] + _WRITERS[type(item := value[name])](item) for name in names]


def _array(value: Sequence[Any]) -> str:
    if value and type(value[0]) in (float, list):
        text = _numbers(value)
        if text is not None:
            return text
    return "[" + ",".join([_WRITERS[type(item)](item) for item in value]) + "]"


def _numbers(value: Sequence[Any]) -> str | None:
    """Lists of floats, nested or not, in one call: Python writes them in the same way except for
    spaces. None if they hold anything else, or a float that ECMAScript writes differently."""
    text = repr(value).replace(" ", "")
    # Every number has a point and, except for the first, a comma before it: so all are floats.
    if text.count(".") != text.count(",") + 1 or text.encode().translate(None, _PLAIN):
        return None
    return None if ".0," in text or ".0]" in text else text  # ECMAScript writes 1.0 as 1


class _Names(dict[str, str]):
    """JSON texts of field names. Records have the same few names, so they are cached."""

    def __missing__(self, name: str) -> str:
        written = f"{_escaped(name)}:"
        if len(self) < 4096:
            self[name] = written
        return written


_NAMES = _Names()


def _sorted_names(names: Iterable[str]) -> list[str]:
    """In the order of their UTF-16 code units, which for ASCII is Python's own order."""
    try:
        plain = "".join(names).isascii()
    except TypeError as error:
        raise LedgerError(f"a key is not a text ({error}); {_NOT_WRITTEN}.") from error
    return sorted(names) if plain else sorted(names, key=_code_units)


def _code_units(name: str) -> bytes:
    return name.encode("utf-16-be", "surrogatepass")


def _integer(value: int) -> str:
    if -LARGEST_INTEGER <= value <= LARGEST_INTEGER:
        return int.__repr__(value)
    raise LedgerError(
        f"the integer {value} is larger than 2**53 - 1, and such JSON numbers are not exact; "
        f"{_NOT_WRITTEN}. Give it as a text."
    )


def _float(value: float) -> str:
    text = repr(value)
    if text[-2:] == ".0":
        return text[:-2] if value else "0"
    return _with_exponent(text) if "e" in text or "n" in text else text


def _with_exponent(text: str) -> str:
    """ECMAScript writes exponents from -6 to 20 out, and pads none with zeros."""
    if "n" in text:
        raise LedgerError(f"the number {text} has no form in JSON; {_NOT_WRITTEN}.")
    mantissa, _, exponent_text = text.partition("e")
    exponent = int(exponent_text)
    if not -7 < exponent < 21:
        return f"{mantissa}e{exponent:+d}"
    sign = "-" if mantissa.startswith("-") else ""
    digits = mantissa.lstrip("-").replace(".", "")
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    return sign + digits.ljust(exponent + 1, "0")


class _Writers(dict[type, Callable[[Any], str]]):
    def __missing__(self, kind: type) -> Callable[[Any], str]:
        """A subclass is written like its base: NumPy's float64 like float, a str enum like str."""
        for base, writer in _BASES.items():
            if issubclass(kind, base):
                return writer
        raise LedgerError(
            f"a value of type {kind.__name__} has no form in JSON; {_NOT_WRITTEN}. "
            "Convert it to dict, list, str, int, float, bool or None."
        )


_WRITERS = _Writers(
    {
        str: _escaped,
        float: _float,
        bool: lambda value: "true" if value else "false",
        int: _integer,
        type(None): lambda _: "null",
        dict: _object,
        list: _array,
        tuple: _array,
    }
)
_BASES: dict[type, Callable[[Any], str]] = {
    **_WRITERS,
    float: lambda value: _float(float(value)),
    Mapping: _object,
}
