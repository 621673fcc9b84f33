# Everything a fresh machine needs is Python (>= 3.11) and make:
#     make demo          shows a crash, a takeover and a refused stale writer
#     make test          runs the tests on SQLite and on a real PostgreSQL
# PYTHON=python3.12 chooses another interpreter, PYTEST_ARGS="-k fence -x" narrows the tests.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/installed
BENCH_STAMP := $(VENV)/installed-bench
PYTEST_ARGS ?=
WORKERS ?= 2

.DEFAULT_GOAL := help
.PHONY: help setup demo browser test test-all bench bench-quick bench-check lint types layers check clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Depends on the two files that decide what is installed: a second call does nothing.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	    echo "make: '$(PYTHON)' is missing or older than Python 3.11;" \
	         "name another one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
	    echo "make: '$(PYTHON)' lacks the venv module (Debian and Ubuntu: apt install python3-venv)" >&2; exit 1; }
	@echo "installing into $(VENV) ..."
	@$(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	    --constraint constraints.txt --editable '.[postgres,demo,dev,postgres-server]'
	@touch $@

setup: $(STAMP)  ## create .venv and install what is pinned in constraints.txt

demo: $(STAMP)  ## the guided demo
	@$(BIN)/runtime-persist demo

# The tests of the pages have a browser: Debian's Chromium is installed where it is missing and may be.
browser: $(STAMP)
	@$(BIN)/python -m tests.ui.chromium

test: browser  ## the tests (about a quarter of an hour)
	$(BIN)/python -m pytest -n $(WORKERS) -m 'not exhaustive' $(PYTEST_ARGS)

test-all: browser  ## the tests with the full product of every matrix (long)
	$(BIN)/python -m pytest -n $(WORKERS) $(PYTEST_ARGS)

# Beside what `make setup` installs: the plots.
$(BENCH_STAMP): $(STAMP)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	    --constraint constraints.txt --editable '.[bench]'
	@touch $@

bench: $(BENCH_STAMP)  ## time, throughput and bytes against the published savers; writes docs/performance.md
	$(BIN)/python -m bench --document

bench-quick: $(BENCH_STAMP)  ## the same with small sizes and one round; writes nothing
	$(BIN)/python -m bench --quick

bench-check: $(STAMP)  ## what no machine changes: statements, round trips, bytes, their growth (part of make test)
	$(BIN)/python -m bench check

lint: $(STAMP)  ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)  ## mypy, strict, over the package and over the public API as users type it
	$(BIN)/mypy
	$(BIN)/mypy --strict tests/typing/api.py

layers: $(STAMP)  ## import-linter: imports only downwards
	$(BIN)/lint-imports --no-cache

check: lint types layers  ## lint, types and layers

clean:  ## remove .venv and the caches of the tools
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis dist
	find runtime_persist tests -name __pycache__ -type d -prune -exec rm -rf {} +
