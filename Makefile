# demo: the whole service on an embedded broker and real data, about a minute. test, lint: what `.ci/run` runs.
# bench: the speed table, competitors included. chaos: every scenario of tests/kafka/chaos in full. Each makes .venv first, from the lock file.

PYTHON ?= python3
BIN := .venv/bin
KERNEL_TESTS := $(wildcard tests/learners tests/drift tests/test_evaluate*.py tests/test_model*.py tests/test_vectorize*.py \
	tests/test_scal*.py tests/test_decode*.py tests/test_digest*.py tests/test_api*.py)

# How many times `make chaos` hits, where a scenario hits again and again.
N ?= 200

.PHONY: demo test lint bench chaos
.DELETE_ON_ERROR:

demo: .venv/made
	$(BIN)/olstream demo

test: .venv/made
	$(BIN)/pytest
	NUMBA_DISABLE_JIT=1 $(BIN)/pytest $(KERNEL_TESTS)

lint: .venv/made
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/made .venv-bench/made
	$(BIN)/python -m tests.kafka.broker exec $(BIN)/olstream bench --bootstrap '{bootstrap}' --rivals .venv-bench/bin/python

chaos: .venv/made
	$(BIN)/python -m tests.kafka.chaos --count $(N)

# Competitors of the benchmark: quixstreams pins an older confluent-kafka, so they never share an environment with ours.
.venv-bench/made: requirements-bench.lock
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-bench.lock
	touch $@

.venv/made: pyproject.toml requirements-dev.lock
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@
