"""Hostile texts, and what must never reach a terminal."""

from __future__ import annotations

import random
import re

from fuzz.fork_server import Ended

MOST_MEMORY = 1 << 30
# Done, a check failed, the call is wrong, no answer. 3 would be a bug in lpf.
ENDINGS = frozenset({0, 1, 2, 4})

# Clears the screen, sets the title, rings, moves back, turns the direction of text around.
PAYLOADS = (
    "\x1b[2J\x1b[HAPPROVED 100 %",
    "\x1b]0;owned\x07",
    "back\x08\x08\x08\x08space",
    "\x9b2Jcleared",
    "\x85next line",
    "right\u202eto left\u2066",
    "line\u2028separator\u2029",
    "cr\rover",
    "\x7f\x00nul",
    "[red]markup[/red] [link=file:///etc/passwd]x[/link]",
    "<script>alert(1)</script>",
    "=HYPERLINK(1)",
    "'; DROP TABLE evidence; --",
    "\ud800 lone",
    "{0} %s %n",
    "..\\..//../etc/passwd",
)

# Of these lpf prints none itself: its own colours, progress bars and line ends look different.
_FORBIDDEN = re.compile(
    rb"\x1b\[2J|\x1b\[H|\x1b\]|[\x00\x07\x08\x7f]|\xc2[\x80-\x9f]"
    rb"|\xe2\x80[\xa8-\xae\x8e\x8f]|\xe2\x81[\xa6-\xa9]|cr\rover|\x1b\]8;"
)


def raw_controls(output: bytes) -> list[bytes]:
    """The forbidden sequences in what a command printed, with what surrounds each."""
    return [
        output[max(0, found.start() - 20) : found.end() + 20]
        for found in _FORBIDDEN.finditer(output)
    ]


def problems(ended: Ended) -> list[str]:
    """What is wrong with how a command ended; nothing if it ended well."""
    found = []
    if ended.code not in ENDINGS or b"Traceback" in ended.output:
        found.append(f"exit code {ended.code}: {ended.text[-1500:]}")
    if controls := raw_controls(ended.output):
        found.append(f"raw control characters: {controls[:3]}")
    if ended.memory > MOST_MEMORY:
        found.append(f"{ended.memory >> 20} MB of memory")
    return found


def mutated(content: bytes, generator: random.Random) -> bytes:
    """A damaged copy: bytes changed, removed, doubled, inserted, or the end cut off."""
    data = bytearray(content)
    for _ in range(generator.choice((1, 1, 2, 5, 20))):
        place = generator.randrange(len(data) or 1)
        length = generator.choice((1, 1, 2, 8, 64))
        kind = generator.randrange(6)
        if kind == 0:
            data[place : place + length] = generator.randbytes(length)
        elif kind == 1:
            del data[place : place + length]
        elif kind == 2:
            data[place:place] = data[place : place + length] * generator.choice((1, 3, 50))
        elif kind == 3:
            data[place:place] = generator.choice(PAYLOADS).encode("utf-8", "surrogatepass")
        elif kind == 4:
            data[place : place + 1] = bytes([generator.choice(b"\x00\xff\"',;\n\t{}[]0-")])
        elif generator.random() < 0.3:
            del data[place:]
    return bytes(data)
