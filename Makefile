# The two commands of the README (`make run`, `make test`) and what a developer needs beside them.
# Works with python >= 3.11, git and make; everything else comes from the lock files, checked by hash.

PORT ?= 8000
DATA_DIR ?= $(CURDIR)/data
VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= $(shell for name in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$name && break; done)

.PHONY: run test long soak lint types lock wheel chromium pictures screenshots

run: $(VENV)/.runtime
	@PORT='$(PORT)' DATA_DIR='$(DATA_DIR)' exec $(BIN)/python -m inspector.project.cli serve

# The types have a command of their own, `make types`, which costs a minute of a processor where nothing is cached.
test: $(VENV)/.dev chromium lint
	@$(BIN)/python -m tests.plugins.run $(ARGS)

# What repeats at length what `make test` tries on a few cases; `.ci/run` runs both, after the types.
long: $(VENV)/.dev chromium
	@$(BIN)/python -m tests.plugins.run --long $(ARGS)

# The laws on thousands of examples each, every hostile value in every place of a recording, and servers and workers killed
# many times; a chance of its own at every run.
EXAMPLES ?= 5000
KILLS ?= 50
EVENTS ?= 20000
STEPS ?= 50000
soak: $(VENV)/.dev chromium
	@EXAMPLES=$(EXAMPLES) KILLS=$(KILLS) EVENTS=$(EVENTS) STREAM_SEEDS=10000 STEPS=$(STEPS) $(BIN)/python -m tests.plugins.run -n 2 tests/properties tests/guard_core/recordings tests/inspector/streams tests/browser/test_jobs.py $(addprefix tests/services/test_,kills.py large.py opening.py orphans.py streams.py) $(ARGS)

lint: $(VENV)/.dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(VENV)/.dev
	@$(BIN)/mypy

# The lock: exact versions for every platform, each with the hashes of its files. What tests need is locked first, so that
# they run on the very versions that are shipped; `build` is what builds the package.
lock: $(VENV)/.dev
	@compile="$(BIN)/uv pip compile --universal --generate-hashes --no-emit-index-url --no-header --quiet"; \
	$$compile pyproject.toml --extra postgres --extra redis --extra oidc --extra adk --group dev -o requirements/dev.txt && \
	$$compile pyproject.toml -c requirements/dev.txt -o requirements/runtime.txt && \
	$$compile pyproject.toml -c requirements/dev.txt --extra postgres --extra redis --extra oidc -o requirements/team.txt && \
	grep -om1 'hatchling==[0-9.]*' pyproject.toml | $$compile - -c requirements/dev.txt -o requirements/build.txt

wheel: $(VENV)/.dev
	@$(BIN)/python -m build --wheel --no-isolation

# The pictures of the README and of the page Help, in static/pictures.
pictures: $(VENV)/.dev chromium
	@$(BIN)/python -m tests.browser.pictures

# Pictures of every page that a browser test opens, in tests/browser/screenshots.
screenshots: $(VENV)/.dev chromium
	@SCREENSHOTS=1 $(BIN)/python -m tests.plugins.run tests/browser $(ARGS)

# A stamp is as new as its lock file, so an unchanged lock costs no call of pip.
$(VENV)/.runtime: requirements/runtime.txt | $(BIN)/python
	@if [ ! $(VENV)/.dev -nt requirements/runtime.txt ] || [ ! $(VENV)/.dev -nt requirements/dev.txt ]; then \
	echo "Installing what requirements/runtime.txt locks …"; \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements/runtime.txt; fi
	@touch $@

$(VENV)/.dev: requirements/dev.txt | $(BIN)/python
	@echo "Installing what requirements/dev.txt locks …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements/dev.txt
	@touch $@

$(BIN)/python:
	@if [ -z '$(PYTHON)' ]; then echo "Python 3.11 or newer is needed; install it, or name it: make run PYTHON=/path/to/python3" >&2; exit 1; fi
	@$(PYTHON) -m venv $(VENV) || { echo "The environment could not be made; on Debian: apt-get install python3-venv" >&2; exit 1; }

# The browser tests drive a Chromium that the system provides.
chromium:
	@if command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	echo "Installing Chromium …"; apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; \
	else echo "The browser tests need Chromium: install the package chromium (Debian, Fedora, Arch) or Google Chrome." >&2; exit 1; fi
