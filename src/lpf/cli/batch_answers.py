"""The lines of a batch: questions read and checked, then answered in their order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lpf.errors import LedgerError, LPFError, StorageError

if TYPE_CHECKING:
    from lpf.ingest.files import InputRow
    from lpf.orchestrator import AuditMode
    from lpf.results import QueryResult
    from lpf.types import QueryOptions
    from lpf.workspace import Workspace

CHUNK = 1000


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the input: a question, or what is wrong with it."""

    number: int
    entity_id: str = ""
    predicate: str = ""
    error: str | None = None

    @property
    def question(self) -> tuple[str, str]:
        return self.entity_id, self.predicate

    @property
    def error_row(self) -> dict[str, Any]:
        return {"error": {"line": self.number, "message": self.error}}


def read_lines(workspace: Workspace, path: Path) -> list[Line]:
    """All lines of the input, each checked against the schema."""
    from lpf.ingest.files import open_input

    return [_checked(workspace, row) for row in open_input(path).rows()]


class Answering:
    """Answers lines and counts them; what is answered is recorded. With ``skip_bad`` a question
    that cannot be answered becomes an error row, else it ends the batch. ``fate`` says what then
    becomes of the answers before it."""

    def __init__(
        self,
        workspace: Workspace,
        options: QueryOptions,
        audit: AuditMode,
        skip_bad: bool,
        fate: str,
    ) -> None:
        self._workspace = workspace
        self._options = options
        self._audit = audit
        self._skip_bad = skip_bad
        self._fate = fate
        self.answered = 0
        self.errors = 0

    def rows(self, lines: Sequence[Line]) -> Iterator[dict[str, Any]]:
        """One row a line, in their order."""
        for start in range(0, len(lines), CHUNK):
            for outcome in self._chunk(lines[start : start + CHUNK]):
                if isinstance(outcome, Line):
                    self.errors += 1
                    yield outcome.error_row
                else:
                    yield outcome.to_dict()

    def _chunk(self, lines: Sequence[Line]) -> Iterator[QueryResult | Line]:
        """What comes of each line: an answer, or the line with its error."""
        good = [line for line in lines if line.error is None]
        outcomes = iter(self._together(good) or map(self._alone, good))
        for line in lines:
            yield next(outcomes) if line.error is None else line

    def _together(self, lines: Sequence[Line]) -> Sequence[QueryResult]:
        """All answers; none, and no record, where one of the questions cannot be answered."""
        try:
            return self._asked(lines)
        except (StorageError, LedgerError) as error:
            raise self._ending(lines[0], error) from None
        except LPFError:
            return ()

    def _alone(self, line: Line) -> QueryResult | Line:
        try:
            return self._asked([line])[0]
        except LPFError as error:
            # A store that fails would fail with every other line too.
            if self._skip_bad and not isinstance(error, StorageError | LedgerError):
                return replace(line, error=str(error))
            raise self._ending(line, error) from None

    def _asked(self, lines: Sequence[Line]) -> list[QueryResult]:
        questions = [line.question for line in lines]
        results = self._workspace.query_many(questions, self._options, self._audit)
        self.answered += len(results)
        return results

    def _ending(self, line: Line, error: LPFError) -> LPFError:
        """The error itself, saying also where it ended the batch and what had been done by then."""
        # Records that are written later may be what failed.
        stay = "their records stay" if self._audit == "sync" else "what was recorded of them stays"
        done = f"{self.answered:,} answered before it; {stay}, and {self._fate}"
        error.args = (f"line {line.number} ended the batch: {error}\n{done}.",)
        return error


def _checked(workspace: Workspace, row: InputRow) -> Line:
    from lpf.ingest.fields import identifier_field, name_field, required
    from lpf.ingest.problems import RowError

    if row.error:
        return Line(row.line, error=row.error)
    try:
        entity_id = required(identifier_field(row.values, "entity_id"), "entity_id")
        predicate = workspace.predicate(name_field(row.values, "predicate"))
    except RowError as error:
        return Line(row.line, error=f"{error.name}: {error.message}")
    except LPFError as error:
        return Line(row.line, error=str(error))
    return Line(row.line, entity_id, predicate)
