from __future__ import annotations

import inspect

from lpf import errors


def declared() -> list[type]:
    found = [member for _, member in inspect.getmembers(errors, inspect.isclass)]
    return [member for member in found if issubclass(member, errors.LPFError)]


def test_the_tree_in_the_docstring_is_the_tree_in_the_code() -> None:
    tree = inspect.getdoc(errors) or ""
    for error in declared():
        assert error.__name__ in tree, f"{error.__name__} is missing in the tree"
        assert error.__doc__, f"{error.__name__} says nothing of itself"


def test_field_and_hint_are_part_of_the_sentence() -> None:
    error = errors.ConfigError("must be above 0.", field="options.top_k", hint="Leave it out.")
    assert str(error) == "options.top_k: must be above 0. Leave it out."
    assert (error.message, error.field, error.hint) == (
        "must be above 0.",
        "options.top_k",
        "Leave it out.",
    )


def test_a_key_error_prints_its_sentence_without_quotes() -> None:
    assert str(errors.UnknownPredicateError("no such predicate 'p'.")) == "no such predicate 'p'."
