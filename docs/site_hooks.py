"""MkDocs hook that makes CONTRIBUTING.md, in the root of the repository, a page of the site."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

NAME = "CONTRIBUTING.md"


def on_files(files: Files, config: Any) -> Files:
    text = (Path(config.config_file_path).parent / NAME).read_text(encoding="utf-8")
    files.append(File.generated(config, NAME, content=text.replace("](docs/", "](")))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    return markdown.replace(f"](../{NAME}", f"]({NAME}")
