# Two targets do everything on a fresh machine with Python 3.11: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile

SECONDS ?= 600

# Beside the environment: they have more dependencies than what they look at.
TOOLS := cyclonedx-bom==7.5.0 pip-audit==2.10.1 pip-licenses==5.5.5

# How many of the pinned packages the index knows at all: a mirror often tells no holes, which proves nothing.
AUDITED := import json, sys; every = json.load(sys.stdin)["dependencies"]; known = [d for d in every if "vulns" in d]; \
  holes = [d["name"] + " " + d["version"] + ": " + v["id"] for d in known for v in d["vulns"]]; \
  print("known holes:", ", ".join(holes) or "none found", "in", len(known), "of", len(every), "packages;", \
  "of the others this package index says nothing"); sys.exit(bool(holes))

# The same order everywhere: that of `sort` is the locale's.
BY_NAME := import sys; sys.stdout.writelines(sorted(sys.stdin, key=lambda line: line.partition("==")[0].lower()))

OTHERS ?= python3.11 python3.12 python3.13

# The tests start hundreds of processes: what Python compiles is kept, whatever the environment says.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test check pythons lint types bench soak constraints sbom audit docs notebooks site clean browser vendor

help: ## Say what each target does
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 16

demo: $(VENV)/.run ## Set up and watch a sample debate to its verdict and report: no key, no network
	$(BIN)/moot demo --fast --db $(VENV)/demo.sqlite --output $(VENV)/demo.html

test: $(VENV)/.dev browser ## Set up and pass all tests (lint, types, unit, integration, docs, notebooks)
	$(MAKE) --no-print-directory lint types
	MOOT_REQUIRE_BROWSER=$${MOOT_REQUIRE_BROWSER:-} $(BIN)/python -m pytest -n 2 --dist loadgroup

check: $(VENV)/.dev ## The quick part of `make test`: lint, types and unit tests
	$(MAKE) --no-print-directory lint types
	$(BIN)/python -m pytest -n 2 tests/unit

pythons: $(VENV)/bin/python ## The unit tests on each other Python from 3.11 on that is found, each in an environment of its own
	@own=$$($(BIN)/python --version); for python in $(OTHERS); do found=$$($$python --version 2>/dev/null) || continue; \
	  [ "$${found%.*}" != "$${own%.*}" ] || { echo "$$found: has the whole run"; continue; }; \
	  here=$(VENV)/$$python; echo "Unit tests on $$found:"; \
	  $$python -m venv $$here && $$here/bin/python -m pip install --quiet --disable-pip-version-check \
	    --constraint constraints.txt --editable '.[dev]' && $$here/bin/python -m pytest -n 2 tests/unit || exit 1; done

lint: $(VENV)/.dev ## Lint, check the formatting, look for dead code
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/vulture

types: $(VENV)/.dev ## Check types, strictly
	$(BIN)/mypy

bench: $(VENV)/.dev ## Measure: growth, memory fidelity, prefix, budgets under attack, drift, council, commands, minutes, summaries
	$(BIN)/python -m benchmarks

soak: $(VENV)/.dev ## Kill, stop, fail and double whatever runs, for SECONDS (600): nothing may be lost or paid twice
	$(BIN)/python -m tests.support.soak --seconds $(SECONDS)

constraints: ## Renew constraints.txt: names and versions of a fresh environment with the newest that pyproject.toml allows
	rm -rf $(VENV)/newest && $(PYTHON) -m venv $(VENV)/newest
	$(VENV)/newest/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --editable '.[dev,bench]'
	$(VENV)/newest/bin/python -m pip list --disable-pip-version-check --format=freeze --exclude moot --exclude pip --exclude setuptools \
	  --exclude-editable > $(VENV)/newest.txt && $(PYTHON) -c '$(BY_NAME)' < $(VENV)/newest.txt > constraints.txt
	rm -rf $(VENV)/newest $(VENV)/newest.txt

sbom: $(VENV)/.tools ## For release notes: build/moot.cdx.json, what a plain installation holds, as CycloneDX
	rm -rf $(VENV)/plain && $(PYTHON) -m venv --without-pip $(VENV)/plain && mkdir -p build
	$(BIN)/python -m pip --python $(VENV)/plain/bin/python install --quiet --disable-pip-version-check --no-compile \
	  --constraint constraints.txt .
	$(VENV)/tools/bin/cyclonedx-py environment $(VENV)/plain/bin/python --pyproject pyproject.toml \
	  --output-reproducible -o build/moot.cdx.json

audit: $(VENV)/.tools ## Known holes in what constraints.txt names, and licences that bind more than MIT; asks the package index
	@$(VENV)/tools/bin/pip-audit --requirement constraints.txt --no-deps --disable-pip --progress-spinner off \
	  --format json 2>/dev/null | $(BIN)/python -c '$(AUDITED)'
	@$(VENV)/tools/bin/pip-licenses --python $(BIN)/python --format csv | grep -i gpl || echo "no licence of the GPL's kind"

docs: $(VENV)/.dev ## Write the generated parts of docs/ anew
	$(BIN)/python -m moot.graph.cli.reference
	$(BIN)/python -m moot.graph.json_schemas > docs/debate.schema.json

notebooks: $(VENV)/.dev ## Execute the notebooks and store what they show, with no date, path or random id
	$(BIN)/python -m tests.support.notebooks

vendor: ## Renew the live page's libraries from npm, at the versions that vendor.sh names
	sh vendor.sh

site: $(VENV)/.dev ## Build the docs as a site, with no broken link, in build/site
	$(BIN)/python -m mkdocs build --strict

browser: ## Install Debian's Chromium for the report's tests, where that is possible
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	  { apt-get update -qq && apt-get install -y -qq chromium chromium-driver >/dev/null; }; } || true

clean: ## Remove the environment and everything generated
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .langgraph_api *.egg-info

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) --constraint constraints.txt --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) --constraint constraints.txt --editable '.[dev]'
	@touch $@ $(VENV)/.run

$(VENV)/.tools: $(VENV)/.run
	$(PYTHON) -m venv $(VENV)/tools
	$(VENV)/tools/bin/python -m pip install --quiet --disable-pip-version-check --no-compile $(TOOLS)
	@touch $@
