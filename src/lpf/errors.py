"""Every error that this package raises on purpose.

    LPFError
    ├── ConfigError            a setting is out of its range, or does not apply here
    │   └── MissingPackageError    an optional package is missing; says what to install
    ├── SchemaError            a schema that cannot be used; names the field
    ├── UnknownPredicateError  a predicate the schema, model or circuit does not have
    ├── UnknownValueError      a value outside its predicate's domain
    ├── EvidenceError          an evidence item that cannot be used; names the item
    │   └── NonFiniteError     features or posteriors with NaN or infinity
    ├── ImpossibleEvidenceError  evidence under which every value has probability zero
    ├── ArtefactError          a model file that cannot be used
    │   ├── ArtefactFormatError    not a model file, or an unknown version
    │   ├── ArtefactTensorError    a tensor is missing, surplus or of the wrong shape
    │   └── ArtefactHashError      the content does not match its version
    ├── CircuitError           an invalid circuit; names the node
    │   ├── IncompleteSumError     children of a sum differ in scope
    │   ├── NotDecomposableError   children of a product share a variable
    │   ├── NotNormalisedError     weights or leaf probabilities do not sum to 1
    │   ├── MalformedCircuitError  cycles, dangling children, unknown variables, wrong sizes
    │   └── CircuitFormatError     not a circuit file, or one that was changed
    ├── ReaderError            the sentence encoder cannot be used
    │   ├── ReaderUnavailableError  weights or a package are missing; says what to install
    │   └── ReaderIntegrityError    weights or the exported file were changed
    ├── StorageError           the store failed
    │   ├── StoreUnavailableError   it does not exist, is not running, or refuses the login
    │   ├── StoreVersionError       a newer version of this package wrote it
    │   ├── ForeignStoreError       a file that this package did not create
    │   ├── StoreFullError          no space is left
    │   ├── StoreReadOnlyError      it cannot be written to
    │   ├── StoreBusyError          another process locked it for too long
    │   ├── StoreDamagedError       its file is not a valid database, or rows were changed
    │   └── CacheUnavailableError   the shared cache could not erase a copy
    ├── FactError              a fact that is refused; names the row
    ├── DatasetError           a labelled data set that cannot be used; names the place
    ├── TrainingError          a training run that cannot start or continue; says why
    ├── LanguageModelError     a language model's endpoint that refuses or does not answer
    ├── InputFileError         a file that cannot be read; names file, line and field
    ├── UnknownEvidenceError   an evidence id that is not in the store, or was erased
    ├── LedgerError            the ledger failed
    │   ├── LedgerKeyError          the signing key is missing, exposed, or another ledger's
    │   ├── LedgerBrokenError       records, tree or signatures are invalid; has the findings
    │   ├── ProofError              a proof or its bundle is invalid
    │   └── UnknownRecordError      a record id that the ledger does not have
    ├── ReviewError            a review that is refused; says why
    │   └── NotAnAnswerError        a record of another kind, where an answer is needed
    ├── ReplayError            a record that cannot be replayed; says what is missing
    └── WorkspaceError         a folder is not a workspace, or cannot be used

A message says what is wrong, where, what was not done and how to fix it; ``field`` and ``hint``
hold the place and the fix separately, if they are known. Errors about a wrong value are also
``ValueError``; failed look-ups are also ``KeyError``.
"""

from __future__ import annotations


class LPFError(Exception):
    """Base of every error raised on purpose by this package.

    ``field`` names the setting, column or option that is wrong (``options.top_k``), or is None.
    ``hint`` says how to fix it, or is None. ``str(error)`` is ``field: message hint``.
    """

    def __init__(self, *args: object, field: str | None = None, hint: str | None = None) -> None:
        super().__init__(*args)
        self.field = field
        self.hint = hint

    @property
    def message(self) -> str:
        """What is wrong, without the field and the hint."""
        return " ".join(str(part) for part in self.args)

    # KeyError prints the repr of its message; users should see the plain sentence.
    def __str__(self) -> str:
        named = self.message if self.field is None else f"{self.field}: {self.message}"
        return named if self.hint is None else f"{named} {self.hint}"


class ConfigError(LPFError, ValueError):
    """A setting is out of its range, or does not apply here."""


class MissingPackageError(ConfigError):
    """An optional package is not installed. The message says what to install."""


class SchemaError(LPFError, ValueError):
    """A schema cannot be used. The message starts with the field's path."""


class UnknownPredicateError(LPFError, KeyError):
    """The schema, model or circuit does not have the predicate."""


class UnknownValueError(LPFError, ValueError):
    """A value is not in its predicate's domain."""


class EvidenceError(LPFError, ValueError):
    """An evidence item cannot be used."""


class NonFiniteError(EvidenceError):
    """Features or posteriors of some items hold NaN or infinity."""


class ImpossibleEvidenceError(LPFError, ValueError):
    """The evidence contradicts itself or the circuit: every value has probability zero."""


class ArtefactError(LPFError):
    """A model artefact cannot be used."""


class ArtefactFormatError(ArtefactError, ValueError):
    """A file is not in the expected format, or has an unknown format version."""


class ArtefactTensorError(ArtefactError, ValueError):
    """A tensor is missing, surplus, or of the wrong shape or type."""


class ArtefactHashError(ArtefactError, ValueError):
    """The content of an artefact does not match its version."""


class CircuitError(LPFError, ValueError):
    """A circuit is invalid. The message names the node."""


class IncompleteSumError(CircuitError):
    """The children of a sum node have different scopes."""


class NotDecomposableError(CircuitError):
    """The children of a product node share a variable."""


class NotNormalisedError(CircuitError):
    """Weights of a sum node or probabilities of a leaf are negative or do not sum to 1."""


class MalformedCircuitError(CircuitError):
    """A circuit has a cycle, a dangling child, an unknown variable or a leaf of the wrong size."""


class CircuitFormatError(CircuitError):
    """A circuit file is not in the expected format, or its hash does not match its content."""


class ReaderError(LPFError):
    """The sentence encoder cannot be used."""


class ReaderUnavailableError(ReaderError):
    """Weights or a package are missing. The message says what to install."""


class ReaderIntegrityError(ReaderError, ValueError):
    """Weights or an exported file were changed: their hash is not the expected one."""


class StorageError(LPFError):
    """The store failed; nothing of the operation was written."""


class StoreUnavailableError(StorageError):
    """The store does not exist, is not running, or refuses the login."""


class StoreVersionError(StorageError):
    """The store was written by a newer version of this package."""


class ForeignStoreError(StorageError):
    """A file given as a store was not created by this package."""


class StoreFullError(StorageError):
    """No space is left to write to."""


class StoreReadOnlyError(StorageError):
    """The store cannot be written to."""


class StoreBusyError(StorageError):
    """Another process locked the store for too long."""


class StoreDamagedError(StorageError):
    """The store's file is not a valid database, or rows in it do not match their hashes."""


class CacheUnavailableError(StorageError):
    """The shared cache could not be reached, so a copy in it was not erased."""


class DatasetError(LPFError, ValueError):
    """A labelled data set, or a declaration of one, cannot be used. Names file, line and field."""


class TrainingError(LPFError):
    """A training run cannot start or continue."""


class FactError(LPFError, ValueError):
    """A fact is refused. The message names the row."""


class LanguageModelError(LPFError):
    """The endpoint of a language model refuses or does not answer."""


class InputFileError(LPFError, ValueError):
    """A file, or a line of it, cannot be read. The message names file, line and field."""


class UnknownEvidenceError(LPFError, KeyError):
    """An evidence id is not in the store, or was erased."""


class LedgerError(LPFError):
    """The ledger failed."""


class LedgerKeyError(LedgerError):
    """The signing key is missing, readable by other users, or belongs to another ledger."""


class LedgerBrokenError(LedgerError, ValueError):
    """Records, tree or signatures are invalid. ``findings`` says where."""

    def __init__(self, message: str, findings: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.findings = findings


class ProofError(LedgerError, ValueError):
    """A proof or its bundle is invalid."""


class UnknownRecordError(LedgerError, KeyError):
    """A record id is not in the ledger."""


class ReviewError(LPFError, ValueError):
    """A review, or what is to be done with reviews, is refused."""


class NotAnAnswerError(ReviewError):
    """A record is of another kind, such as a review, where an answer is needed."""


class ReplayError(LPFError):
    """A record cannot be replayed. The message says what is missing."""


class WorkspaceError(LPFError):
    """A folder is not a workspace, or is a workspace that cannot be used."""
