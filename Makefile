# demo: the whole service on an embedded broker and real data, about a minute. test, lint: what `.ci/run` runs.
# bench: the speed table, competitors included. chaos: every scenario of tests/kafka/chaos in full. Each makes .venv first, from the lock file.
# fuzz: tests/fuzz with N times the examples. dist: wheel and sdist in dist/. sbom: what they need, in CycloneDX, beside them.
# audit: known weaknesses in what is locked. It asks a public database, so it needs the network, and is no part of `test`.

PYTHON ?= python3
BIN := .venv/bin
KERNEL_TESTS := $(wildcard tests/learners tests/drift tests/test_evaluate*.py tests/test_history*.py tests/test_margins*.py tests/test_model*.py tests/test_vectorize*.py \
	tests/test_scal*.py tests/test_decode*.py tests/test_digest*.py tests/test_api*.py tests/test_versus*.py tests/test_late*.py tests/test_join*.py)

# How many times `make chaos` hits, where a scenario hits again and again.
N ?= 200

.PHONY: demo test lint bench chaos fuzz dist audit sbom
.DELETE_ON_ERROR:

demo: .venv/made
	$(BIN)/olstream demo

# Tests on a Kafka mostly wait for it. Beside them, on the other core: all others, and those of kernels again without the
# compiler. Of what runs beside only the end is told: what failed stands there, and where a log was cut short.
test: .venv/made
	@mkdir -p build
	( $(BIN)/pytest -p no:cacheprovider --ignore=tests/kafka >build/others.log 2>&1; others=$$?; \
	NUMBA_DISABLE_JIT=1 $(BIN)/pytest -p no:cacheprovider $(KERNEL_TESTS) >build/uncompiled.log 2>&1 && exit $$others ) & beside=$$!; \
	$(BIN)/pytest tests/kafka; kafka=$$?; \
	wait $$beside; beside=$$?; \
	for log in others uncompiled; do echo "build/$$log.log ends with:"; tail -n $$([ $$beside = 0 ] && echo 1 || echo 40) build/$$log.log; done; \
	exit $$((kafka | beside))

lint: .venv/made
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/made .venv-bench/made
	$(BIN)/python -m tests.kafka.broker exec $(BIN)/olstream bench --bootstrap '{bootstrap}' --rivals .venv-bench/bin/python

chaos: .venv/made
	$(BIN)/python -m tests.kafka.chaos --count $(N)

fuzz: .venv/made
	OLSTREAM_FUZZ=$(N) $(BIN)/pytest -q tests/fuzz

# The same bytes from the same sources: hatchling gives every file of an archive one date.
dist: .venv/made
	rm -rf dist/*.whl dist/*.tar.gz
	umask 022 && $(BIN)/python -m hatchling build -d dist

audit: .venv-release/made
	.venv-release/bin/pip-audit --strict --disable-pip --require-hashes -r requirements.lock

sbom: .venv-release/made
	mkdir -p dist
	.venv-release/bin/cyclonedx-py requirements requirements.lock --pyproject pyproject.toml --mc-type application \
		--output-reproducible --of JSON -o dist/olstream.cdx.json

# What looks at a release: not needed to run, to build or to test.
.venv-release/made: requirements-release.lock
	$(PYTHON) -m venv .venv-release
	.venv-release/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-release.lock
	touch $@

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
