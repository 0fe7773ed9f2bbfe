"""Every error this package raises on purpose.

    LPFError
    ├── ConfigError            a setting out of its range, or one that does not apply here
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
    └── ReaderError            the sentence encoder cannot be used
        ├── ReaderUnavailableError  weights or a package are missing; says what to install
        └── ReaderIntegrityError    weights or the exported file are not the genuine ones

A message says what is wrong, where, what was not done and how to mend it. Errors about a wrong
value are also ``ValueError``; look-ups that fail are also ``KeyError``.
"""

from __future__ import annotations


class LPFError(Exception):
    """Base of every error raised on purpose by this package."""

    # KeyError quotes its message; a sentence for a person must be printed as it is.
    def __str__(self) -> str:
        return " ".join(str(part) for part in self.args)


class ConfigError(LPFError, ValueError):
    """A setting is out of its range, or does not apply in this place."""


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
