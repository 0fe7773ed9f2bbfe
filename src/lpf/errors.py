"""Every error this package raises on purpose.

    LPFError
    ├── ConfigError            a setting out of its range, or one that does not apply here
    │   └── MissingPackageError    what was asked for needs a package; says what to install
    ├── SchemaError            a schema that cannot be used; names the field
    ├── UnknownPredicateError  a predicate the schema, model or circuit does not have
    ├── UnknownValueError      a value outside its predicate's domain
    ├── EvidenceError          an evidence item that cannot be used; names the item
    │   └── NonFiniteError     features or posteriors with NaN or infinity
    ├── ImpossibleEvidenceError  evidence that leaves every value with probability zero
    ├── ArtefactError          a model file that cannot be trusted or used
    │   ├── ArtefactFormatError    not one of our files, or a version we do not know
    │   ├── ArtefactTensorError    a tensor is missing, surplus or of the wrong shape
    │   └── ArtefactHashError      the content does not match its version
    ├── CircuitError           a circuit that is not valid; names the node
    │   ├── IncompleteSumError     children of a sum differ in scope
    │   ├── NotDecomposableError   children of a product share a variable
    │   ├── NotNormalisedError     weights or leaf probabilities do not sum to 1
    │   ├── MalformedCircuitError  cycles, dangling children, unknown variables, wrong sizes
    │   └── CircuitFormatError     a circuit file that is not ours or was changed
    ├── ReaderError            the sentence encoder cannot be used
    │   ├── ReaderUnavailableError  weights or a package are missing; says what to install
    │   └── ReaderIntegrityError    weights or the exported file are not the genuine ones
    ├── StorageError           the store did not do what was asked of it
    │   ├── StoreUnavailableError   it is not there, not running, or refuses the login
    │   ├── StoreVersionError       a newer version of this package wrote it
    │   ├── StoreFullError          no space is left
    │   ├── StoreReadOnlyError      it may not be written to
    │   ├── StoreBusyError          another process held it for too long
    │   ├── StoreDamagedError       its file is not a sound database
    │   └── CacheUnavailableError   the shared cache did not erase what it was told to
    ├── FactError              a fact that is refused; names the row
    ├── DatasetError           a labelled data set that cannot be trained or judged on; names where
    ├── TrainingError          a training run that cannot begin or go on; says why
    ├── LanguageModelError     an endpoint that refuses or does not answer; says what it said
    ├── InputFileError         a file that cannot be read; names file, line and field
    ├── UnknownEvidenceError   an evidence id that is not in the store, or was erased
    ├── LedgerError            the ledger did not do what was asked of it
    │   ├── LedgerKeyError          the signing key is missing, exposed or another ledger's
    │   ├── LedgerBrokenError       records, tree or signatures do not hold; carries the findings
    │   ├── ProofError              a proof or its bundle does not hold
    │   └── UnknownRecordError      a record id that the ledger does not have
    ├── ReplayError            a record cannot be recomputed; says what is missing
    └── WorkspaceError         a folder that is no workspace, or one that cannot be used

A message says what is wrong, where, what was not done and how to mend it. Errors about a wrong
value are also ``ValueError``; look-ups that fail are also ``KeyError``.
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

    # KeyError quotes its message; a sentence for a person must be printed as it is.
    def __str__(self) -> str:
        named = self.message if self.field is None else f"{self.field}: {self.message}"
        return named if self.hint is None else f"{named} {self.hint}"


class ConfigError(LPFError, ValueError):
    """A setting is out of its range, or does not apply in this place."""


class MissingPackageError(ConfigError):
    """An optional package is not installed. Installed, the same call works."""


class SchemaError(LPFError, ValueError):
    """A schema cannot be used. The message starts with the field's path."""


class UnknownPredicateError(LPFError, KeyError):
    """A predicate is not known to the schema, model or circuit that was asked."""


class UnknownValueError(LPFError, ValueError):
    """A value is not in its predicate's domain."""


class EvidenceError(LPFError, ValueError):
    """An evidence item cannot be used."""


class NonFiniteError(EvidenceError):
    """Features or posteriors of some items hold NaN or infinity."""


class ImpossibleEvidenceError(LPFError, ValueError):
    """The evidence contradicts itself or the circuit: every value has probability zero."""


class ArtefactError(LPFError):
    """A model artefact cannot be trusted or used."""


class ArtefactFormatError(ArtefactError, ValueError):
    """A file is not in our format, or in a version of it that is not known."""


class ArtefactTensorError(ArtefactError, ValueError):
    """A tensor is missing, surplus, or of the wrong shape or type."""


class ArtefactHashError(ArtefactError, ValueError):
    """The content of an artefact does not match its version."""


class CircuitError(LPFError, ValueError):
    """A circuit is not valid. The message names the node."""


class IncompleteSumError(CircuitError):
    """The children of a sum node have different scopes."""


class NotDecomposableError(CircuitError):
    """The children of a product node share a variable."""


class NotNormalisedError(CircuitError):
    """Weights of a sum node or probabilities of a leaf are negative or do not sum to 1."""


class MalformedCircuitError(CircuitError):
    """A circuit has a cycle, a dangling child, an unknown variable or a leaf of the wrong size."""


class CircuitFormatError(CircuitError):
    """A circuit file is not in our format, or its hash does not match its content."""


class ReaderError(LPFError):
    """The sentence encoder cannot be used."""


class ReaderUnavailableError(ReaderError):
    """Weights or a package are missing. The message says what to install."""


class ReaderIntegrityError(ReaderError, ValueError):
    """Weights or an exported file are not the genuine ones."""


class StorageError(LPFError):
    """The store did not do what was asked of it; nothing of that was written."""


class StoreUnavailableError(StorageError):
    """The store is not there, not running, or refuses the login."""


class StoreVersionError(StorageError):
    """The store was written by a newer version of this package."""


class StoreFullError(StorageError):
    """No space is left for what was to be written."""


class StoreReadOnlyError(StorageError):
    """The store may not be written to."""


class StoreBusyError(StorageError):
    """Another process held the store for too long."""


class StoreDamagedError(StorageError):
    """The store's file is not a sound database."""


class CacheUnavailableError(StorageError):
    """The shared cache could not be reached, so that a copy there was not erased."""


class DatasetError(LPFError, ValueError):
    """A labelled data set, or a declaration of one, cannot be used. Names file, line and field."""


class TrainingError(LPFError):
    """A training run cannot begin or go on."""


class FactError(LPFError, ValueError):
    """A fact is refused. The message names the row."""


class LanguageModelError(LPFError):
    """The endpoint of a language model refuses, or answers nothing at all."""


class InputFileError(LPFError, ValueError):
    """A file, or a line of it, cannot be read. The message names file, line and field."""


class UnknownEvidenceError(LPFError, KeyError):
    """An evidence id is not in the store, or was erased."""


class LedgerError(LPFError):
    """The ledger did not do what was asked of it."""


class LedgerKeyError(LedgerError):
    """The signing key is missing, readable by others, or another ledger's."""


class LedgerBrokenError(LedgerError, ValueError):
    """Records, tree or signatures do not hold. ``findings`` says where."""

    def __init__(self, message: str, findings: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.findings = findings


class ProofError(LedgerError, ValueError):
    """A proof or the bundle that carries it does not hold."""


class UnknownRecordError(LedgerError, KeyError):
    """A record id is not in the ledger."""


class ReplayError(LPFError):
    """A record cannot be recomputed. The message says what is missing."""


class WorkspaceError(LPFError):
    """A folder is no workspace, or one that cannot be used."""
