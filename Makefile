# `make demo` and `make test` set everything up by themselves; `make help` lists the rest.
SHELL := /bin/sh
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PIP := $(BIN)/python -m pip --disable-pip-version-check
COMPILE = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 \
	--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" \
	$(if $(UPGRADE),--upgrade)
# Processes that the tests start would otherwise compile all modules anew: a second or two each.
export PYTHONDONTWRITEBYTECODE :=
FLINK := .venv-flink
PATHWAY := .venv-pathway

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-13s %s\n", $$1, $$2 }' Makefile

.PHONY: setup
setup: $(STAMP) ## Make .venv from the lock where it is missing or old; see that there is a Java
	@$(BIN)/python scripts/ensure_java.py

.PHONY: demo
demo: setup ## Run the main job: live queries over auction streams, for about a minute
	@$(BIN)/thalweg demo $(DEMO_ARGS)

.PHONY: demo-picture
demo-picture: setup ## Record the demo's screen for the README
	@$(BIN)/thalweg demo --seconds 45 --svg docs/images/demo.svg

.PHONY: kafka
kafka: $(STAMP) ## Fetch Spark's Kafka connector, and a broker for the tests, with Maven
	@$(BIN)/python scripts/fetch_kafka.py

.PHONY: s3
s3: $(STAMP) ## Build an S3 server for the tests (versitygw), with Go where there is one
	@$(BIN)/python scripts/build_s3_server.py

.PHONY: flink
flink: $(FLINK)/.installed ## Install PyFlink, a peer of `thalweg bench many-queries`, beside .venv

.PHONY: pathway
pathway: $(PATHWAY)/.installed ## Install Pathway, another peer of it, beside .venv

.PHONY: test
test: setup kafka s3 ## Run the tests (PYTEST_ARGS="tests/cql -x" narrows them)
ifdef PYTEST_ARGS
	$(BIN)/pytest $(PYTEST_ARGS)
else # apart, so that at most two Sparks start while nothing else runs
	POLARS_MAX_THREADS=1 $(BIN)/pytest -m "not heavy" -n 3 --dist worksteal
	$(BIN)/pytest -m heavy -n 2 --dist worksteal
endif

.PHONY: soak
soak: $(STAMP) ## Every simulated scenario under 10,000 seeds, 100,000 hostile requests, 200 drawn networks (SOAK_SEEDS, SOAK_REQUESTS, SOAK_NETWORKS for fewer)
	$(BIN)/thalweg simulate all --seeds $(or $(SOAK_SEEDS),10000) --jobs $(shell nproc)
	THALWEG_DRAWN=$(or $(SOAK_DRAWN),20) $(BIN)/pytest -q -m "not heavy" -n $(shell nproc) --timeout 36000 tests/cql tests/engine tests/plan tests/runtime/data tests/sharing
	THALWEG_FUZZ_REQUESTS=$(or $(SOAK_REQUESTS),100000) $(BIN)/pytest -q --timeout 36000 tests/fuzz
	THALWEG_STORM_S=$(or $(SOAK_STORM_S),600) $(BIN)/pytest -q --timeout 36000 tests/runtime/test_storm_live.py
	THALWEG_LONG_RUN_TICKS=$(or $(SOAK_TICKS),50000) $(BIN)/pytest -q --timeout 36000 tests/engine/shared/test_long_runs.py
	THALWEG_BENCHES=1 $(BIN)/pytest -q --timeout 3600 tests/bench/test_balancing.py tests/bench/test_network.py tests/bench/test_p2p.py tests/bench/test_swap_live.py tests/bench/test_trees.py tests/bench/test_week.py
	THALWEG_NETWORKS=$(or $(SOAK_NETWORKS),200) $(BIN)/pytest -q --timeout 36000 tests/runtime/network/test_drawn_networks.py
	THALWEG_MOVED_NETWORKS=$(or $(SOAK_MOVED_NETWORKS),100) $(BIN)/pytest -q --timeout 36000 tests/runtime/network/moves/test_drawn_moves.py
	THALWEG_NETWORKS=1 $(BIN)/pytest -q --timeout 3600 tests/runtime/network/test_processes.py
	THALWEG_CHURN_MINUTES=$(or $(SOAK_CHURN_MINUTES),10) $(BIN)/pytest -q --timeout 36000 tests/runtime/peers/test_churn.py tests/runtime/peers/test_losses.py
	THALWEG_FAULTS=1 $(BIN)/pytest -q --timeout 3600 tests/runtime/network/test_fault_matrix.py tests/runtime/network/test_moving_processes.py tests/runtime/network/test_placing_processes.py tests/runtime/network/test_spreading_processes.py tests/runtime/network/test_brokers.py tests/engine/shared/test_crash.py
	THALWEG_SWAP=$(or $(SOAK_KILLS),20) $(BIN)/pytest -q --timeout 3600 tests/runtime/swap/test_joins_processes.py
	THALWEG_PARTNERS=1 $(BIN)/pytest -q -s --timeout 3600 tests/runtime/network/test_partners_processes.py
	THALWEG_TREES=$(or $(SOAK_TREES),16) $(BIN)/pytest -q -s --timeout 3600 tests/runtime/network/test_adaptive_trees.py
	THALWEG_CUTS=$(or $(SOAK_CUTS),4) $(BIN)/pytest -q --timeout 36000 tests/runtime/data/test_cut_plans.py
	THALWEG_MOVES=$(or $(SOAK_MOVES),4) $(BIN)/pytest -q --timeout 36000 tests/runtime/data/test_moved_state.py
	THALWEG_COPIES=1 $(BIN)/pytest -q --timeout 36000 tests/runtime/network/test_second_copies.py
	THALWEG_NATIVE_NODES=1 $(BIN)/pytest -q --timeout 36000 tests/runtime/network/test_native_nodes.py
	THALWEG_DRAWN=$(or $(SOAK_DRAWN),20) $(BIN)/pytest -q --timeout 36000 tests/engine/native/test_conformance.py
	THALWEG_NATIVE_DRAWS=$(or $(SOAK_DRAWS),8) $(BIN)/pytest -q --timeout 36000 tests/engine/native/test_hostile_expressions.py

.PHONY: pages
pages: $(STAMP) ## Make the pages of docs/experiments anew that are missing or old (PAGES="sqpr-time …" for some; hours)
	$(BIN)/python scripts/experiment_pages.py $(PAGES)

.PHONY: lint
lint: $(STAMP) ## Check style, types, and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

.PHONY: format
format: $(STAMP) ## Format the code and sort its imports
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

.PHONY: lock
lock: $(BIN)/uv ## Re-make the locks from pyproject.toml (UPGRADE=1 takes the newest versions)
	$(COMPILE) pyproject.toml --output-file requirements.lock
	$(COMPILE) pyproject.toml --extra dev --constraint requirements.lock \
		--output-file requirements-dev.lock
	$(COMPILE) --group flink --output-file requirements-flink.lock
	$(COMPILE) --group pathway --output-file requirements-pathway.lock

.PHONY: clean
clean: ## Remove .venv, caches and build results
	rm -rf $(VENV) $(FLINK) $(PATHWAY) build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests scripts -name __pycache__ -type d -prune -exec rm -rf {} +

# The environment is brought up to date in place, so that what runs in it keeps running.
# hatchling and editables come from the lock: the editable install downloads nothing unpinned.
$(STAMP): requirements-dev.lock pyproject.toml | $(BIN)/python
	@echo "Installing the locked dependencies into $(VENV) (a few minutes the first time) ..."
	@$(PIP) install --quiet --requirement requirements-dev.lock
	@$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@touch $@
	@echo "Done: '. $(VENV)/bin/activate' puts thalweg on your path."

# PyFlink pins other versions than PySpark does: it needs an environment of its own.
$(FLINK)/.installed: requirements-flink.lock | $(BIN)/uv
	@echo "Installing PyFlink into $(FLINK) (half a gigabyte) ..."
	@test -x $(FLINK)/bin/python || $(BIN)/uv venv --quiet --python 3.11 $(FLINK)
	@$(BIN)/uv pip install --quiet --python $(FLINK)/bin/python --requirement $<
	@touch $@

$(PATHWAY)/.installed: requirements-pathway.lock | $(BIN)/uv
	@echo "Installing Pathway into $(PATHWAY) (half a gigabyte) ..."
	@test -x $(PATHWAY)/bin/python || $(BIN)/uv venv --quiet --python 3.11 $(PATHWAY)
	@$(BIN)/uv pip install --quiet --python $(PATHWAY)/bin/python --requirement $<
	@touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Thalweg needs Python 3.11 or later: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -m venv --clear $(VENV)

# Only `make lock` in an empty tree comes here: afterwards uv is part of the environment.
$(BIN)/uv: | $(BIN)/python
	@$(PIP) install --quiet uv
