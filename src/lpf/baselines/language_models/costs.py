"""What answers cost: requests, tokens, time and money."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from lpf.baselines.language_models.config import Prices
from lpf.baselines.language_models.replies import Reply


@dataclass(frozen=True)
class Costs:
    """Over ``questions`` different prompts, whenever they were asked: for the ``kept`` ones, which
    were read from disk, it is what they cost when they were asked.

    ``requests`` includes ``retries``. ``failed_calls`` brought no answer, ``failed_parses`` none
    that can be read. Tokens of ``estimated`` replies are the characters divided by four, for want
    of the server's own count; failed calls count none, though a server may charge for one that came
    too late. Seconds are from a request to its answer without waits between retries, None where no
    call got through, as is ``money`` without prices.
    """

    questions: int
    kept: int
    requests: int
    retries: int
    failed_calls: int
    failed_parses: int
    input_tokens: int
    output_tokens: int
    estimated: int
    mean_seconds: float | None
    p95_seconds: float | None
    money: float | None

    @classmethod
    def of(
        cls, replies: Sequence[Reply], kept: int, failed_parses: int, prices: Prices | None
    ) -> Costs:
        requests = sum(reply.requests for reply in replies)
        read = sum(reply.input_tokens for reply in replies)
        written = sum(reply.output_tokens for reply in replies)
        seconds = [reply.seconds for reply in replies if reply.text is not None]
        return cls(
            questions=len(replies),
            kept=kept,
            requests=requests,
            retries=requests - len(replies),
            failed_calls=len(replies) - len(seconds),
            failed_parses=failed_parses,
            input_tokens=read,
            output_tokens=written,
            estimated=sum(reply.estimated for reply in replies),
            mean_seconds=float(np.mean(seconds)) if seconds else None,
            p95_seconds=float(np.quantile(seconds, 0.95)) if seconds else None,
            money=None if prices is None else (read * prices.input + written * prices.output) / 1e6,
        )

    def to_dict(self) -> dict[str, int | float | None]:
        return asdict(self)
