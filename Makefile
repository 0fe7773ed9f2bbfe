# Every target builds .venv when it is missing, so each works alone on a fresh machine.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
export HF_HUB_OFFLINE := 1
export TRANSFORMERS_OFFLINE := 1
export TOKENIZERS_PARALLELISM := false

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow bench check format clean

help:  ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-10s %s\n", $$1, $$2}'

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $(STAMP)

demo: $(STAMP)  ## Answer the worked question on embedded defaults
	@$(BIN)/lpf demo

test: $(STAMP)  ## The tests a change must pass (minutes)
	$(BIN)/python -m pytest

test-slow: $(STAMP)  ## Claims and referees (longer)
	$(BIN)/python -m pytest -m slow

bench: $(STAMP)  ## Speed and size as ratios, written to benchmarks/results.json
	$(BIN)/python -m benchmarks

# Where an import belongs depends on other files, which ruff's cache does not see.
check: $(STAMP)  ## Format, lint and strict types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check --no-cache .
	$(BIN)/mypy

format: $(STAMP)  ## Rewrite the code in the house format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:  ## Remove the environment and everything made by the tools
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
