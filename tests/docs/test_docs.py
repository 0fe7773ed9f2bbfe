"""The documentation matches the code: its Python runs, and every command is described."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import lpf
from lpf.cli.main import app

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def snippets() -> list:
    found = []
    for page in PAGES:
        blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
        found += [pytest.param(block, id=f"{page.name}:{i}") for i, block in enumerate(blocks)]
    return found


@pytest.mark.parametrize("snippet", snippets())
def test_python_in_the_documentation_runs(snippet: str, capsys: pytest.CaptureFixture) -> None:
    exec(compile(snippet, "documentation", "exec"), {})


def test_make_targets_named_in_the_readme_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in set(re.findall(r"make ([a-z-]+)", (ROOT / "README.md").read_text())):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
            if link.startswith(("http:", "https:")):
                continue
            path, _, anchor = link.partition("#")
            target = page.parent / path if path else page
            assert target.exists(), (page.name, link)
            if anchor:
                assert anchor in anchors(target), (page.name, link)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as MkDocs and GitHub make them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", heading).strip().lower() for heading in headings)
    return {heading.replace(" ", "-") for heading in plain}


def test_every_page_is_in_the_site() -> None:
    listed = (ROOT / "mkdocs.yml").read_text()
    for page in (ROOT / "docs").glob("*.md"):
        assert f" {page.name}" in listed, page.name


def test_every_public_name_is_in_the_api_reference() -> None:
    listed = set(re.findall(r"^::: lpf\.(\w+)$", (ROOT / "docs" / "api.md").read_text(), re.M))
    assert set(lpf.__all__) - {"__version__"} <= listed


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_every_module_that_a_page_names_exists(page: str) -> None:
    folders = [ROOT, ROOT / "src" / "lpf", ROOT / "paper" / "src" / "lpf_paper"]
    named = set(re.findall(r"`([\w/]+\.py)`", (ROOT / page).read_text()))
    assert named
    missing = {name for name in named if not any((one / name).exists() for one in folders)}
    assert not missing


def test_every_command_is_documented_and_has_an_example() -> None:
    pages = "".join(page.read_text() for page in PAGES)
    for command in app.registered_commands:
        name = command.name or command.callback.__name__
        assert f"lpf {name}" in pages or f"make {name}" in pages, name
        assert command.epilog, f"{name} has no example"
        assert "Example" in command.epilog
