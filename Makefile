# Two commands matter: `make run` shows Letopis at work, `make test` proves it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(shell command -v uv 2>/dev/null)
# Tests wait for servers, processes and browsers about as long as they compute: two of them share a core.
WORKERS ?= $(shell n=$$(nproc 2>/dev/null || echo 2); echo $$((n > 4 ? n : 2 * n)))
PACKAGES := packages/letopis-codecs packages/letopis-demo packages/letopis-fast packages/letopis-migrate
PARTS_IN_C := $(wildcard packages/letopis-fast/src/letopis_fast/*.[ch])

ifdef UV
INSTALL := $(UV) pip install -q --python $(BIN)/python
else
INSTALL := $(BIN)/python -m pip install -q --disable-pip-version-check
endif

# Every command that a test starts would compile the package anew where bytecode is not kept.
unexport PYTHONDONTWRITEBYTECODE
# Tests write and sync thousands of small files: these lie in memory where there is room for them.
SCRATCH := $(shell df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 > 4194304 { print "/dev/shm" }')

.PHONY: setup setup-dev run test lint check-types unit together timed scaled coverage docs metrics bench clean browser requirements screenshots fuzz campaign soak audit sbom openness

setup: $(VENV)/.ready
setup-dev: $(VENV)/.ready-dev

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.ready: requirements.txt pyproject.toml $(PACKAGES:=/pyproject.toml) $(PARTS_IN_C) | $(BIN)/python
	$(INSTALL) --require-hashes -r requirements.txt
	$(INSTALL) --no-deps -e . $(PACKAGES:%=-e %)
	touch $@

$(VENV)/.ready-dev: requirements-dev.txt pyproject.toml $(PACKAGES:=/pyproject.toml) $(PARTS_IN_C) | $(BIN)/python
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

# The docs as a site in build/docs, with search, in light and dark; a link that leads nowhere stops it.
docs: setup-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "the docs are in build/docs: open build/docs/index.html"

# Every page of the web interface as a picture: wide and narrow, light and dark.
screenshots: setup-dev browser
	$(BIN)/python tools/screenshots.py docs/images

# The shape of the code in figures, each beside its bound.
metrics: setup-dev
	$(BIN)/python tools/metrics.py

# Browser tests need Debian's Chromium, best without a window: half of the time. Elsewhere they are skipped, loudly.
APT_INSTALL := DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends
browser:
	@if ! command -v chromium-headless-shell >/dev/null && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  apt-get -qq update; $(APT_INSTALL) chromium-headless-shell >/dev/null || command -v chromium >/dev/null || \
	  $(APT_INSTALL) chromium >/dev/null; fi
	@command -v chromium-headless-shell >/dev/null || command -v chromium >/dev/null || \
	  echo "no chromium: browser tests will be SKIPPED"
	@if command -v npm >/dev/null && [ ! -d .bench/web/node_modules/vnu-jar ]; then \
	  npm install --silent --no-audit --no-fund --prefix .bench/web axe-core vnu-jar || echo "no npm packages: axe and vnu will be SKIPPED"; fi

# Damaged inputs for every format that comes from outside, with counts; faults are kept in .fuzz.
FUZZ_SECONDS ?= 3600
fuzz: setup-dev
	$(BIN)/python tools/fuzz.py --seconds $(FUZZ_SECONDS)

# Random histories, kills and damages, counted in docs/reliability.json; docs/reliability.md is made of it.
CAMPAIGN_SECONDS ?= 3600
campaign: setup-dev
	PYTHONPATH=tests/site $(BIN)/python tools/campaign.py run --seconds $(CAMPAIGN_SECONDS)
	PYTHONPATH=tests/site $(BIN)/python tools/campaign.py page

# Everything at once for an hour, with faults: nothing lost, memory and descriptors flat.
SOAK_SECONDS ?= 3600
soak: setup-dev
	$(BIN)/python tools/soak.py --seconds $(SOAK_SECONDS)

# Known faults of what is installed, asked of the public database; the auditor has an environment of its own.
# Where it cannot be asked, that is told and the command fails.
audit: setup-dev .bench/audit/.ready
	$(BIN)/python tools/audit.py .bench/audit/bin/pip-audit requirements.txt requirements-dev.txt

# What is installed with Letopis, as CycloneDX; asks no network.
sbom: setup
	$(BIN)/python tools/sbom.py -o letopis.cdx.json

.bench/audit/.ready:
	$(PYTHON) -m venv .bench/audit
	.bench/audit/bin/python -m pip install -q --disable-pip-version-check pip-audit || \
	  echo "audit: pip-audit could not be installed" >&2
	touch $@

# What other tools say to the same questions: peers from PyPI and npm in an environment of their own, which nothing else uses.
PEERS := .bench/peers
openness: setup-dev $(PEERS)/.ready
	$(BIN)/python tests/openness/openness.py $(PEERS)

$(PEERS)/.ready: tests/openness/peers.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install -q --disable-pip-version-check -r tests/openness/peers.txt
	npm install --silent --no-audit --no-fund --prefix $(PEERS) warcio har-validator
	touch $@

# All rows of docs/benchmarks.md, measured one after the other beside their peers: hours. CORPUS has the unpacked data.
CORPUS ?= corpus
bench: setup-dev
	$(BIN)/python tools/benchmarks.py run --corpus $(CORPUS)

requirements: setup-dev
	$(BIN)/python -m pip install -q uv
	$(BIN)/uv pip compile -q pyproject.toml packages/requirements.in --universal --extra fast --generate-hashes --no-strip-extras --no-header --no-annotate -o requirements.txt
	$(BIN)/uv pip compile -q pyproject.toml packages/requirements.in --universal --extra dev --generate-hashes --no-strip-extras --no-header --no-annotate -o requirements-dev.txt

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis htmlcov .coverage .coverage.* .bench .fuzz
	find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} +
