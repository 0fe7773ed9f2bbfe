"""What scikit-learn asks of an estimator, without scikit-learn."""

from __future__ import annotations

from dataclasses import MISSING, Field, fields
from importlib import import_module
from typing import Any, ClassVar, Self

from lpf.errors import ConfigError


class Conventions:
    """For a dataclass whose fields are the hyper-parameters. It keeps them as they were given and
    checks them when it is fitted, since ``clone`` and a search set them one by one."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    _estimator_type = "classifier"  # how scikit-learn before 1.6 asks for the kind

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The hyper-parameters by name. ``deep`` is there for scikit-learn and changes nothing."""
        return {one.name: getattr(self, one.name) for one in _parameters(self)}

    def set_params(self, **parameters: Any) -> Self:
        """Changes some. What is asked from now on follows them; what was learned does not."""
        known = [one.name for one in _parameters(self)]
        strange = sorted(parameters.keys() - set(known))
        if strange:
            raise ConfigError(
                f"{strange[0]!r} is no parameter of {type(self).__name__}. Nothing was set; "
                f"its parameters are {known}."
            )
        for name, value in parameters.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        changed = [
            f"{one.name}={getattr(self, one.name)!r}"
            for one in _parameters(self)
            if one.default is MISSING or getattr(self, one.name) is not one.default
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self) -> Any:
        tags = import_module("sklearn.utils")  # only scikit-learn calls this, so it is there
        return tags.Tags(
            estimator_type="classifier",
            target_tags=tags.TargetTags(required=True),
            classifier_tags=tags.ClassifierTags(),
            input_tags=tags.InputTags(two_d_array=False, string=True),
        )


def _parameters(estimator: Conventions) -> list[Field[Any]]:
    return [one for one in fields(estimator) if one.init]
