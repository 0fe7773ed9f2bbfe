"""Which transformer is fine-tuned, where not the default one: a folder, or a name on the hub."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from lpf.baselines import TransformerConfig
from lpf.baselines.transformer import split_layers
from lpf.baselines.transformer_checkpoints import PretrainedTransformer, load_checkpoint
from lpf.errors import ConfigError, MissingPackageError
from lpf.evaluation.specs import Setting, Settings

TRANSFORMER = "transformer"


def checkpoint_settings(model: str) -> Settings:
    """Of the method's cells. A folder is known by its place and by what its files hold; a name
    stands for whatever the hub has under it."""
    folder = Path(model)
    if not folder.is_dir():
        return (("checkpoint", model),)
    return (("checkpoint", str(folder.resolve())), ("digest", _digest(folder)))


def chosen_checkpoint(settings: Mapping[str, Setting]) -> str | None:
    """The transformer that ``checkpoint_settings`` speak of; None where settings are others."""
    if "checkpoint" not in settings or not settings.keys() <= {"checkpoint", "digest"}:
        return None
    return str(settings["checkpoint"])


def require_loadable(model: str) -> None:
    """Loads it once, so that no fold finds out for itself; one of the hub is then on this machine.
    ConfigError where it is not to be had, or cannot be fine-tuned as the method does."""
    loaded, config = _loaded(model), TransformerConfig()
    try:
        loaded.budget(config.max_tokens)
        split_layers(loaded.body, config.trained_layers)
    except ConfigError as error:
        raise ConfigError(
            f"model: {model!r} cannot be fine-tuned here. Nothing was evaluated. Name one that is "
            f"built as BERT is, and reads {config.max_tokens} tokens. {_on_one_line(error)}"
        ) from error


def _loaded(model: str) -> PretrainedTransformer:
    try:
        return load_checkpoint(model)
    except MissingPackageError:
        raise
    except ConfigError as error:
        raise ConfigError(
            f"model: {model!r} cannot be had{_absence(model)}. Nothing was evaluated. "
            f"{_on_one_line(error)}"
        ) from error


def _absence(model: str) -> str:
    """Where it was looked for in vain; the loader's own words do not say that it is no folder."""
    if Path(model).is_dir():
        return ""
    from huggingface_hub.constants import HF_HUB_OFFLINE

    if HF_HUB_OFFLINE:
        return ": it is no folder here, and HF_HUB_OFFLINE keeps the hub out of reach"
    return ": it is no folder here, and the hub did not give it"


def _on_one_line(error: ConfigError) -> str:
    """The loader quotes others, who write in paragraphs."""
    return " ".join(str(error).split())


def _digest(folder: Path) -> str:
    """Of the files in it, names and bytes."""
    whole = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.is_file():
            with path.open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
            whole.update(f"{path.name}\0{found}\n".encode())
    return whole.hexdigest()[:16]
