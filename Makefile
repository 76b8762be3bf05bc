# Two commands do everything on a fresh machine: `make train` and `make test`.
# The virtual environment is made once, and installed into again only when pyproject.toml has changed.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help train test test-all bench lint format clean

help:
	@echo "make train     train an agent (ARGS='--help' shows presets and fields)"
	@echo "make test      lint, wheel and fast tests"
	@echo "make test-all  the slow tests too"
	@echo "make bench     measure the search against mctx and C++ (ARGS='--help' shows the sections)"
	@echo "make lint      ruff, mypy and the import contracts"
	@echo "make format    let ruff rewrite what it can"
	@echo "make clean     remove build products (the environment stays)"

$(VENV)/.pip:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	@touch $@

$(VENV)/.train: pyproject.toml $(VENV)/.pip
	$(BIN)/python -m pip install --quiet --group train -e .
	@touch $@

$(VENV)/.dev: pyproject.toml $(VENV)/.pip
	$(BIN)/python -m pip install --quiet --group dev -e .
	@touch $@ $(VENV)/.train

train: $(VENV)/.train
	$(BIN)/python -m train $(ARGS)

lint: $(VENV)/.dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: $(VENV)/.dev
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

# One XLA thread for each of the two workers; a file stays with one of them, for its tests share what is compiled.
PYTEST = NPROC=1 $(BIN)/python -m pytest -n 2 --dist loadfile

test: lint
	$(PYTEST) -m "not slow" $(ARGS)

test-all: lint
	$(PYTEST) $(ARGS)

bench: $(VENV)/.dev
	$(BIN)/python -m tests.bench $(ARGS)

clean:
	rm -rf build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
