"""Small edits of a sentence that are known to keep, turn around or weaken what it says.

Data sets of claims hardly teach numbers, dates, comparatives, negation and hedges. Here a sentence
is edited, and the edited and the original one make a pair whose stance follows from the rule:
evidence "sold 320 boats in 1994" supports "sold more than 300 boats in 1994" and refutes "sold
fewer than 300 boats in 1994". Every rule has edits with different stances, so that the edited word
alone tells nothing.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import NamedTuple

SUPPORTS, REFUTES, NEUTRAL = "supports", "refutes", "neutral"


class Pair(NamedTuple):
    claim: str
    evidence: str
    label: str


OPPOSITES = """
increase/decrease increased/decreased increases/decreases increasing/decreasing rise/fall rose/fell
rising/falling grew/shrank growing/shrinking grow/shrink more/less higher/lower highest/lowest
larger/smaller largest/smallest bigger/smaller biggest/smallest better/worse best/worst
stronger/weaker faster/slower longer/shorter longest/shortest older/younger oldest/youngest
earlier/later early/late before/after first/last above/below over/under inside/outside
northern/southern eastern/western north/south east/west upper/lower male/female men/women
man/woman boy/girl boys/girls husband/wife father/mother son/daughter brother/sister actor/actress
king/queen won/lost wins/loses winning/losing accepted/rejected accept/reject approved/rejected
passed/failed passes/fails succeed/fail succeeded/failed success/failure positive/negative
positively/negatively public/private legal/illegal safe/dangerous healthy/ill rich/poor hot/cold
warmer/cooler warm/cool warming/cooling wet/dry open/closed opened/closed begin/end began/ended
beginning/end start/stop started/stopped allowed/forbidden allows/prevents allow/prevent
supports/opposes supported/opposed support/oppose improves/worsens improved/worsened
improve/worsen present/absent with/without always/never many/few most/few major/minor
majority/minority strong/weak high/low long/short large/small big/small old/new old/young
fast/slow full/empty heavy/light deep/shallow wide/narrow thick/thin rare/common easy/difficult
cheap/expensive buy/sell bought/sold import/export imports/exports married/divorced alive/dead
gain/loss gained/lost profit/loss reduces/increases reduced/increased reduce/increase
reduction/increase causes/prevents enhances/reduces enhanced/reduced inhibits/promotes
inhibited/promoted inhibit/promote activates/inhibits true/false real/fake confirmed/denied
confirms/denies guilty/innocent standing/sitting sleeping/awake indoors/outdoors day/night
sufficient/insufficient effective/ineffective efficient/inefficient significant/insignificant
likely/unlikely common/uncommon possible/impossible able/unable known/unknown
successful/unsuccessful complete/incomplete regular/irregular responsible/irresponsible
ascending/descending expand/contract expanded/contracted maximum/minimum permanent/temporary
"""
_OPPOSITE: dict[str, list[str]] = {}
for _couple in OPPOSITES.split():
    _one, _other = _couple.split("/")
    _OPPOSITE.setdefault(_one, []).append(_other)
    _OPPOSITE.setdefault(_other, []).append(_one)

_AUXILIARY = re.compile(
    r"\b(is|are|was|were|has|have|had|will|can|could|would|should|does|did|must)\b"
    r"(?! (?:not|n't)\b)"
)
_NOT = re.compile(
    r"\b(is|are|was|were|has|have|had|will|can|could|would|should|does|do|did|must) (?:not|n't) "
)
_YEAR = re.compile(r"\b[iI]n (1[5-9]\d\d|20[0-4]\d)\b(?! ?[-–])")
_ANY_YEAR = re.compile(r"\b(1[5-9]\d\d|20[0-4]\d)\b")
_NUMBER = re.compile(
    r"(?<![\w.,$£€/:–-])(\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?)(?=( (?!am|pm|BC|AD)[a-z%]|%))"
)
_NAME = re.compile(
    r"(?<=[a-z,] )((?:[A-Z][a-z]+)(?: (?:[A-Z][a-z]+|of the|of|de))*(?: [A-Z][a-z]+|))"
)
_WORD_NUMBERS = {
    "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "twelve": 12, "twenty": 20,
}  # fmt: skip
_DIGITS = {str(value): word for word, value in _WORD_NUMBERS.items()}
_WORD_NUMBER = re.compile(rf"\b({'|'.join(_WORD_NUMBERS)})\b(?= [a-z])")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
_MONTH = re.compile(rf"\b({'|'.join(_MONTHS)})\b")
# Verbs whose two sides are not equal, active and passive: who did it to whom matters.
DIRECTED_VERBS = """
defeated acquired sued founded replaced hired attacked invaded accused supplied invited criticised
praised visited followed warned funded blamed rescued trained succeeded appointed outsold overtook
audited insured recommended interviewed elected licensed
"""
DIRECTED = DIRECTED_VERBS.split()
PASSIVE = {"overtook": "overtaken"}
TAILS = (
    "in {year}", "last year", "after a long dispute", "in the final", "according to the court",
    "before the merger", "on Tuesday", "twice in {year}", "during the war", "for the second time",
    "over unpaid invoices", "in front of 4,000 people",
)  # fmt: skip
UNITS = {
    ("kilometres", "metres"): 1000, ("kilometers", "meters"): 1000, ("km", "m"): 1000,
    ("metres", "centimetres"): 100, ("meters", "centimeters"): 100, ("kg", "grams"): 1000,
    ("tonnes", "kilograms"): 1000, ("hours", "minutes"): 60, ("minutes", "seconds"): 60,
    ("years", "months"): 12, ("weeks", "days"): 7, ("days", "hours"): 24, ("decades", "years"): 10,
    ("centuries", "years"): 100, ("litres", "millilitres"): 1000, ("feet", "inches"): 12,
}  # fmt: skip


def _show(value: float) -> str:
    whole = round(value)
    return f"{whole:,}" if abs(value - whole) < 1e-9 and whole >= 10_000 else f"{value:g}"


def _replace(text: str, found: re.Match[str], new: str, group: int = 0) -> str:
    return text[: found.start(group)] + new + text[found.end(group) :]


def _pick(pattern: re.Pattern[str], text: str, draw: random.Random) -> re.Match[str] | None:
    found = list(pattern.finditer(text))
    return draw.choice(found) if found else None


def negated(text: str, draw: random.Random) -> str | None:
    """The sentence with "not" added after its first auxiliary, or taken away."""
    found = _NOT.search(text)
    if found is not None:
        return _replace(text, found, f"{found[1]} ")
    found = _AUXILIARY.search(text)
    if found is None or found.start() > 120:
        return None
    word = found[1]
    short = {"is": "isn't", "are": "aren't", "was": "wasn't", "were": "weren't", "did": "didn't",
             "has": "hasn't", "have": "haven't", "had": "hadn't", "can": "cannot",
             "could": "couldn't", "does": "doesn't"}  # fmt: skip
    if word in ("has", "have", "had"):  # "had a car" does not become "had not a car"
        after = text[found.end() :].split(" ")
        if len(after) < 2 or not after[1].endswith(("ed", "en", "een", "wn", "ne")):
            return None
    new = short[word] if word in short and draw.random() < 0.35 else f"{word} not"
    if word in ("is", "are", "was", "were", "has", "have") and draw.random() < 0.12:
        new = f"{word} never"
    return _replace(text, found, new)


def opposite(text: str, draw: random.Random) -> str | None:
    """The sentence with one word replaced by its opposite."""
    words = [m for m in re.finditer(r"[A-Za-z]+", text) if m[0].lower() in _OPPOSITE]
    if not words:
        return None
    found = draw.choice(words)
    new = draw.choice(_OPPOSITE[found[0].lower()])
    return _replace(text, found, new.capitalize() if found[0][0].isupper() else new)


def about_negation(text: str, draw: random.Random) -> Pair | None:
    other = negated(text, draw)
    if other is None:
        return None
    kind = draw.random()
    if kind < 0.35:
        return Pair(other, text, REFUTES)
    if kind < 0.65:
        return Pair(text, other, REFUTES)
    if kind < 0.85:
        return Pair(other, other, SUPPORTS)
    return Pair(f"It is not true that {_lower(other)}", text, SUPPORTS)


def about_denial(text: str, draw: random.Random) -> Pair | None:
    """Phrases around a whole sentence that deny, confirm or leave it open."""
    inner = _lower(text)
    denying = ("It is not true that", "It is false that", "It was wrongly reported that",
               "It has been disproved that", "Nobody found that", "It is a myth that")  # fmt: skip
    confirming = ("It is true that", "It was confirmed that", "It is well established that",
                  "It is not false that", "There is no doubt that",
                  "Nobody denies that")  # fmt: skip
    open_ = ("It is claimed that", "Some believe that", "There are rumours that", "It may be that",
             "It is not known whether", "It is unclear whether", "Critics wonder whether",
             "It was not examined whether", "An unconfirmed report says that",
             "Further studies are needed to show whether", "It is hoped that")  # fmt: skip
    kind = draw.randrange(6)
    if kind == 0:
        return Pair(text, f"{draw.choice(denying)} {inner}", REFUTES)
    if kind == 1:
        return Pair(f"{draw.choice(denying)} {inner}", text, REFUTES)
    if kind == 2:
        return Pair(text, f"{draw.choice(confirming)} {inner}", SUPPORTS)
    if kind == 3:
        return Pair(f"{draw.choice(confirming)} {inner}", text, SUPPORTS)
    if kind == 4:
        return Pair(text, f"{draw.choice(open_)} {inner}", NEUTRAL)
    phrase = draw.choice(denying)
    return Pair(f"{phrase} {inner}", f"{draw.choice(denying)} {inner}", SUPPORTS)


def about_hedges(text: str, draw: random.Random) -> Pair | None:
    weaker = {"is": "may be", "are": "may be", "was": "may have been", "were": "may have been",
              "will": "might", "has": "may have", "have": "may have", "can": "might be able to",
              "causes": "may cause", "reduces": "may reduce", "increases": "may increase",
              "shows": "may show", "improves": "could improve", "leads": "could lead"}  # fmt: skip
    found = re.search(rf"\b({'|'.join(weaker)})\b", text)
    if found is None:
        return None
    hedged = _replace(text, found, weaker[found[1]])
    return Pair(text, hedged, NEUTRAL) if draw.random() < 0.6 else Pair(hedged, text, SUPPORTS)


def about_opposites(text: str, draw: random.Random) -> Pair | None:
    other = opposite(text, draw)
    if other is None:
        return None
    kind = draw.random()
    if kind < 0.45:
        return Pair(other, text, REFUTES)
    if kind < 0.75:
        return Pair(text, other, REFUTES)
    return Pair(other, other, SUPPORTS)


def about_numbers(text: str, draw: random.Random) -> Pair | None:
    found = _pick(_NUMBER, text, draw)
    if found is None:
        found = _pick(_WORD_NUMBER, text, draw)
        if found is None:
            return None
        value, spelled = float(_WORD_NUMBERS[found[1]]), True
    else:
        if _ANY_YEAR.fullmatch(found[1]):
            return None
        value, spelled = float(found[1].replace(",", "")), False
    if value < 1:
        return None
    whole = value == int(value)
    step = draw.choice((0.1, 0.2, 0.3, 0.5))
    low, high = value * (1 - step), value * (1 + step)
    if whole:
        low, high = float(min(round(low), value - 1)), float(max(round(high), value + 1))
    less = "less than" if text[found.end() :].lstrip().startswith("%") else draw.choice(
        ("fewer than", "less than", "under"))  # fmt: skip
    more = draw.choice(("more than", "over", "at least"))
    conversion = _converted(text, found, value)
    options: list[tuple[str, str]] = [
        (f"{more} {_show(low)}", SUPPORTS), (f"{more} {_show(high)}", REFUTES),
        (f"{less} {_show(high)}", SUPPORTS), (f"{less} {_show(low)}", REFUTES),
        (_show(high), REFUTES), (_show(low), REFUTES), (found[0], SUPPORTS),
    ]  # fmt: skip
    if spelled or _show(value) in _DIGITS:
        same = _show(value) if spelled else _DIGITS[_show(value)]
        options += [(same, SUPPORTS), (same, SUPPORTS)]
    new, label = draw.choice(options)
    if conversion is not None and draw.random() < 0.6:
        return Pair(conversion[0], text, SUPPORTS) if draw.random() < 0.5 else Pair(
            conversion[1], text, REFUTES)  # fmt: skip
    if not new[0].isdigit() and re.search(r"(than|least|most|about|over|under|only|exactly) $",
                                          text[: found.start()]):  # fmt: skip
        return None
    edited = _replace(text, found, new)
    # The vague one as evidence: it refutes what it rules out, and says nothing else.
    if new.startswith((more, less)) and draw.random() < 0.2:
        return Pair(text, edited, NEUTRAL if label == SUPPORTS else REFUTES)
    return Pair(edited, text, label)


def _converted(text: str, found: re.Match[str], value: float) -> tuple[str, str] | None:
    """The same quantity in another unit, and a wrong one."""
    rest = text[found.end() :]
    for (big, small), factor in UNITS.items():
        for unit, other, new in ((big, small, value * factor), (small, big, value / factor)):
            if re.match(rf" {unit}\b", rest) and new >= 1 and new * 100 == int(new * 100):
                tail = rest[len(unit) + 1 :]
                head = text[: found.start()]
                return f"{head}{_show(new)} {other}{tail}", f"{head}{_show(new * 2)} {other}{tail}"
    return None


def about_dates(text: str, draw: random.Random) -> Pair | None:
    found = _pick(_YEAR, text, draw)
    if found is not None:
        year, gap = int(found[1]), draw.choice((1, 2, 3, 5, 10, 20))
        start = "I" if found[0][0] == "I" else "i"
        before, after = ("Before", "After") if start == "I" else ("before", "after")
        decade = f"{start}n the {year // 10}0s"
        wrong_decade = f"{start}n the {(year - draw.choice((10, 20, 30))) // 10}0s"
        options = [
            (f"{before} {year + gap}", SUPPORTS), (f"{before} {year - gap}", REFUTES),
            (f"{after} {year - gap}", SUPPORTS), (f"{after} {year + gap}", REFUTES),
            (f"{start}n {year + gap}", REFUTES), (f"{start}n {year - gap}", REFUTES),
            (decade, SUPPORTS), (wrong_decade, REFUTES), (found[0], SUPPORTS),
        ]  # fmt: skip
        new, label = draw.choice(options)
        edited = _replace(text, found, new)
        if new == decade and draw.random() < 0.3:
            return Pair(text, edited, NEUTRAL)
        return Pair(edited, text, label)
    month = _pick(_MONTH, text, draw)
    if month is None:
        return None
    other = draw.choice([one for one in _MONTHS if one != month[1]])
    return Pair(_replace(text, month, other), text, REFUTES)


def about_who_did_it(text: str, draw: random.Random, names: list[str]) -> Pair | None:
    """A sentence written from two names, with its sides kept or changed."""
    if len(names) < 2:
        return None
    one, other = draw.sample(names, 2)
    verb = draw.choice(DIRECTED)
    tail = draw.choice(TAILS).format(year=draw.randrange(1950, 2025))
    passive = PASSIVE.get(verb, verb)
    right = (f"{one} {verb} {other} {tail}.", f"{other} was {passive} by {one} {tail}.",
             f"It was {one} that {verb} {other} {tail}.")  # fmt: skip
    wrong = (f"{other} {verb} {one} {tail}.", f"{one} was {passive} by {other} {tail}.",
             f"It was {other} that {verb} {one} {tail}.")  # fmt: skip
    evidence = draw.choice(right)
    if draw.random() < 0.4:
        evidence = f"{text} {evidence}"
    if draw.random() < 0.5:
        return Pair(draw.choice(right), evidence, SUPPORTS)
    return Pair(draw.choice(wrong), evidence, REFUTES)


def about_other_names(text: str, draw: random.Random, names: list[str]) -> Pair | None:
    """Another name in the same place; ``names`` are those of other sentences."""
    found = _pick(_NAME, text, draw)
    if found is None or not names:
        return None
    other = draw.choice(names)
    if other in text:
        return None
    edited = _replace(text, found, other, 1)
    return Pair(edited, text, REFUTES) if draw.random() < 0.7 else Pair(edited, edited, SUPPORTS)


def names_in(text: str) -> list[str]:
    return [found[1] for found in _NAME.finditer(text) if found[1] not in _MONTHS]


def _lower(text: str) -> str:
    """For use inside a sentence: names keep their capital."""
    first = text.split(" ", 1)[0]
    common = {"The", "A", "An", "In", "On", "At", "It", "He", "She", "They", "We", "This", "That",
              "These", "There", "Some", "Many", "Most", "All", "One", "Two", "After", "For", "His",
              "Her", "People", "Several", "Men", "Women", "Studies", "If", "As", "By"}  # fmt: skip
    return text[0].lower() + text[1:] if first in common else text


EDITS: tuple[tuple[Callable[..., Pair | None], float], ...] = (
    (about_negation, 3.0),
    (about_numbers, 3.5),
    (about_dates, 2.0),
    (about_opposites, 3.0),
    (about_denial, 1.0),
    (about_hedges, 1.5),
    (about_who_did_it, 1.2),
    (about_other_names, 1.5),
)


def edited_pair(text: str, draw: random.Random, names: list[str]) -> Pair | None:
    """A pair from one sentence by a random rule; None if that rule does not fit it."""
    rule = draw.choices([one for one, _ in EDITS], [weight for _, weight in EDITS])[0]
    if rule in (about_other_names, about_who_did_it):
        return rule(text, draw, names)
    return rule(text, draw)


def flipped(claim: str, evidence: str, label: str, draw: random.Random) -> Pair | None:
    """A real pair with an edited claim: what supported it now refutes it, or the reverse."""
    if label == SUPPORTS:
        for pattern in (_YEAR, _NUMBER):
            found = _pick(pattern, claim, draw)
            if found is not None and re.search(rf"\b{re.escape(found[1])}\b", evidence):
                rule = about_dates if pattern is _YEAR else about_numbers
                pair = rule(claim, draw)
                return None if pair is None or pair.evidence != claim else Pair(
                    pair.claim, evidence, pair.label)  # fmt: skip
    if label == NEUTRAL:
        edit = draw.choice((negated, opposite))
        edited = edit(claim, draw)
        return None if edited is None else Pair(edited, evidence, NEUTRAL)
    turned = {SUPPORTS: REFUTES, REFUTES: SUPPORTS}[label]
    if draw.random() < 0.12:
        return Pair(f"It is not true that {_lower(claim)}", evidence, turned)
    edit = negated if label == REFUTES or draw.random() < 0.5 else opposite
    edited = edit(claim, draw)
    return None if edited is None else Pair(edited, evidence, turned)
