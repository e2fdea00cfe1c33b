# Each goal does its own set-up: python3 with venv and make are all it takes.
#   make demo            the whole line on a day it simulates
#   make demo FILE=day   the same on a real day file or capture; ARGS="--lenient --date 2019-12-30" …
#   make test            lint, types, kernels, and the default tests, the conformance suite with few examples

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
FILE   ?=
ARGS   ?=
# Two processes or more for the tests; `make test PARALLEL=` has them one after the other.
PARALLEL ?= -n auto --maxprocesses 8 --dist worksteal
# Else two processes of the tests compile the same kernels at the same time; and where Python is told to write no
# bytecode, each of the many processes that tests start would compile the sources again.
WARM   := $(BIN)/python -m compileall -q trident_core plugins conformance && $(BIN)/trident warm
# A venv that another Python made, or whose set-up failed half-way, is made anew.
MAKE_VENV = $(BIN)/python -c 'import sys, pip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
  || $(PYTHON) -m venv --clear $(VENV)

.DEFAULT_GOAL := help
.PHONY: help demo test test-all conformance bench lint clean

help:
	@sed -n 's/^#   //p' Makefile
	@echo "make test-all        also the tests marked slow (what CI runs)"
	@echo "make conformance     every installed engine against the conformance suite"
	@echo "make bench           the project's benchmarks on this machine"
	@echo "make lint            ruff and mypy"

# The stamps make set-up a no-op until pyproject.toml changes.
$(VENV)/.base: pyproject.toml
	@$(MAKE_VENV)
	@echo "installing Trident into $(VENV) …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml
	@$(MAKE_VENV)
	@echo "installing Trident and its test tools into $(VENV) …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@ $(VENV)/.base

demo: $(VENV)/.base
	@$(BIN)/trident demo $(if $(FILE),"$(FILE)") $(ARGS)

test: $(VENV)/.dev lint
	@$(WARM)
	@$(BIN)/python -m pytest $(PARALLEL) --quick

test-all: $(VENV)/.dev lint
	@$(WARM)
	@$(BIN)/python -m pytest $(PARALLEL) -m ""

conformance: $(VENV)/.dev
	@$(BIN)/python -m trident_conformance

bench: $(VENV)/.dev
	@$(BIN)/trident bench all

lint: $(VENV)/.dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy --no-error-summary

clean:
	rm -rf $(VENV) demo-out .pytest_cache .mypy_cache .ruff_cache .hypothesis
