# Two commands matter: `make run` shows Letopis at work, `make test` proves it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(shell command -v uv 2>/dev/null)
# Tests wait for servers, processes and browsers about as long as they compute: two of them share a core.
WORKERS ?= $(shell n=$$(nproc 2>/dev/null || echo 2); echo $$((n > 4 ? n : 2 * n)))
PACKAGES := packages/letopis-codecs packages/letopis-demo packages/letopis-migrate

ifdef UV
INSTALL := $(UV) pip install -q --python $(BIN)/python
else
INSTALL := $(BIN)/python -m pip install -q --disable-pip-version-check
endif

# Every command that a test starts would compile the package anew where bytecode is not kept.
unexport PYTHONDONTWRITEBYTECODE
# Tests write and sync thousands of small files: these lie in memory where there is room for them.
SCRATCH := $(shell df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 > 4194304 { print "/dev/shm" }')

.PHONY: setup setup-dev run test lint check-types unit together timed scaled coverage metrics bench clean browser requirements fuzz audit openness

setup: $(VENV)/.ready
setup-dev: $(VENV)/.ready-dev

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.ready: requirements.txt pyproject.toml $(PACKAGES:=/pyproject.toml) | $(BIN)/python
	$(INSTALL) --require-hashes -r requirements.txt
	$(INSTALL) --no-deps -e . $(PACKAGES:%=-e %)
	touch $@

$(VENV)/.ready-dev: requirements-dev.txt pyproject.toml $(PACKAGES:=/pyproject.toml) | $(BIN)/python
	$(INSTALL) --require-hashes -r requirements-dev.txt
	$(INSTALL) --no-deps -e . $(PACKAGES:%=-e %)
	touch $@ $(VENV)/.ready

# With a letopis.toml in this folder: that job. Without: the demo web, crawled and shown.
run: setup
	@if [ -f letopis.toml ]; then exec $(BIN)/letopis run; else exec $(BIN)/letopis demo; fi

test: setup-dev browser lint
	$(MAKE) -j 2 check-types together
	$(MAKE) timed

lint: setup-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

check-types: setup-dev
	$(BIN)/mypy

unit: together
	$(MAKE) timed

# A worker keeps to neighbouring tests, which share what their file or folder sets up.
together timed: export TMPDIR := $(or $(SCRATCH),$(TMPDIR),/tmp)
together: setup-dev
	$(BIN)/pytest -q -n $(WORKERS) --dist worksteal -m "not timed" tests

# What bounds CPU time runs last and alone: a busy neighbour makes any figure worse.
timed: setup-dev
	$(BIN)/pytest -q -m timed tests/gates

# The same tests on PostgreSQL and S3 instead of SQLite and files; both run on loopback.
scaled: setup-dev
	LETOPIS_TEST_BACKEND=scaled $(BIN)/pytest -q -n $(WORKERS) tests/archive tests/jobs tests/index/links tests/api

# The same tests with what they cover: twice the time.
coverage: setup-dev
	$(BIN)/pytest -q -n $(WORKERS) --cov --cov-report=term:skip-covered tests

# The shape of the code in figures, each beside its bound.
metrics: setup-dev
	$(BIN)/python tools/metrics.py

# Browser tests need Debian's Chromium; elsewhere they are skipped, loudly.
browser:
	@if ! command -v chromium >/dev/null && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends chromium >/dev/null; fi
	@command -v chromium >/dev/null || echo "no chromium: browser tests will be SKIPPED"
	@if command -v npm >/dev/null && [ ! -d .bench/web/node_modules/vnu-jar ]; then \
	  npm install --silent --no-audit --no-fund --prefix .bench/web axe-core vnu-jar || echo "no npm packages: axe and vnu will be SKIPPED"; fi

# Damaged inputs for every format that comes from outside, with counts; faults are kept in .fuzz.
FUZZ_SECONDS ?= 3600
fuzz: setup-dev
	$(BIN)/python tools/fuzz.py --seconds $(FUZZ_SECONDS)

# Known faults of what is installed, asked of the public database; the auditor has an environment of its own.
audit: .bench/audit/.ready
	.bench/audit/bin/pip-audit --strict --disable-pip --require-hashes -r requirements.txt
	.bench/audit/bin/pip-audit --strict --disable-pip --require-hashes -r requirements-dev.txt

.bench/audit/.ready:
	$(PYTHON) -m venv .bench/audit
	.bench/audit/bin/python -m pip install -q --disable-pip-version-check pip-audit
	touch $@

# What other tools say to the same questions: peers from PyPI in an environment of their own, which nothing else uses.
PEERS := .bench/peers
openness: setup-dev $(PEERS)/.ready
	$(BIN)/python tests/openness/openness.py $(PEERS)

$(PEERS)/.ready: tests/openness/peers.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install -q --disable-pip-version-check -r tests/openness/peers.txt
	touch $@

bench: setup-dev
	$(BIN)/letopis bench all

requirements: setup-dev
	$(BIN)/python -m pip install -q uv
	$(BIN)/uv pip compile -q pyproject.toml packages/requirements.in --universal --extra fast --generate-hashes --no-header --no-annotate -o requirements.txt
	$(BIN)/uv pip compile -q pyproject.toml packages/requirements.in --universal --extra dev --generate-hashes --no-header --no-annotate -o requirements-dev.txt

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis htmlcov .coverage .coverage.* .bench .fuzz
	find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} +
