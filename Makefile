# Everything a newcomer needs: `make demo` to see Berth work, `make test` to check it.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# The browser that the tests of the console run in.
BROWSER := tests/browser/npm
# The environment's own Node comes first: the CDK refuses older ones that a machine may have.
export PATH := $(CURDIR)/$(BIN):$(CURDIR)/node_modules/.bin:$(PATH)
# Unpacked once for the environment (180 MB), wherever the CDK library is used.
export JSII_RUNTIME_PACKAGE_CACHE_ROOT := $(CURDIR)/$(VENV)/jsii
# Compiled code is kept, whatever the shell says: otherwise every process compiles all that it imports, and the tests
# start hundreds of processes.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help

help: ## Show this help
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(VENV)/.installed ## Create the environment in .venv (done by the other targets when needed)

# Two installs at a time would overwrite each other's files, so the second one is refused, on machines that have flock: it
# ends with 1 if the lock is taken, and make never does.
$(VENV)/.installed: pyproject.toml constraints.txt package.json package-lock.json $(BROWSER)/package.json $(BROWSER)/package-lock.json
	@lock=; if command -v flock > /dev/null; then lock='flock -n Makefile'; fi; \
	$$lock $(MAKE) --no-print-directory environment; code=$$?; \
	if [ $$code -eq 1 ]; then echo "Another make is installing the environment into $(VENV). Try again when it has ended." >&2; fi; \
	exit $$code

# The environment is complete if it has the file .installed. One without it is of an install that was interrupted, and of
# which nothing is known: it is removed.
environment:
	@echo "Installing the environment into $(VENV) (about two minutes, once) ..."
	@if [ -e $(VENV)/.installed ]; then rm $(VENV)/.installed; else rm -rf $(VENV); fi
	@$(PYTHON) -c 'import sys; sys.exit("Berth needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Name another one: make PYTHON=python3.12 ...") if sys.version_info < (3, 11) else None'
	@$(PYTHON) -m venv $(VENV)
	@# What is imported is compiled then; the rest, most of the CDK, never is.
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt --editable '.[dev]'
	@$(BIN)/npm ci --silent --no-progress
	@$(BIN)/npm ci --silent --no-progress --ignore-scripts --prefix $(BROWSER)
	@$(BIN)/node $(BROWSER)/unpack.mjs
	@touch $(VENV)/.installed

demo: install ## Deploy onto a local emulator, see a tenant get its queue, a fleet a release and an order its receivers, stop (a minute)
	@$(BIN)/python -m orchestrator.local demo

tour: install ## The same with everything that Berth does (three minutes; BERTH_PICTURE=docs/tour.svg draws it)
	@$(BIN)/python -m orchestrator.local tour

console: install ## Open the console on a local control plane with a fleet of 30 tenants, until Ctrl-C (two minutes to start; CONSOLE_ARGS="--tenants 10 --port 8100 --no-open")
	@$(BIN)/python -m orchestrator.local console $(CONSOLE_ARGS)

up: install ## Start the local control plane and leave it running (BERTH_LOCAL_PORT chooses the port, CDK_ARGS adds settings)
	@$(BIN)/python -m orchestrator.local up $(CDK_ARGS)

down: install ## Stop the local control plane, keeping its state for the next `make up`
	@$(BIN)/python -m orchestrator.local down

status: install ## Say whether the local control plane is up, and where
	@$(BIN)/python -m orchestrator.local status

reset: install ## Stop the local control plane and forget its state
	@$(BIN)/python -m orchestrator.local reset

test: install ## Run every check: format, lint, types, all tests
	@$(MAKE) --no-print-directory format-check lint
	@$(MAKE) --no-print-directory --jobs 2 pytest types

test-fast: install ## Run the tests of rules and decisions, and a few seeds of the simulation (a minute or less)
	@$(BIN)/python -m tests --fast

format: install ## Format the code
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

format-check: install
	@$(BIN)/ruff format --check .

lint: install ## Lint (ruff)
	@$(BIN)/ruff check .

types: install ## Check types (mypy --strict)
	@$(BIN)/mypy

pytest: install
	@$(BIN)/python -m tests

fuzz: install ## Send 10,000 bad inputs to every route, edge and command, and 10,000 forged events to every function (BERTH_FUZZ_SEED sends one of them again)
	@BERTH_FUZZ_INPUTS=10000 $(BIN)/pytest --numprocesses 2 --dist loadscope tests/adapters/bad_input tests/unit/cli/test_bad_input.py

soak: install ## Play 10,000 fresh seeds of the simulation on all cores (SOAK_ARGS="--from N" plays the same again, "--seed N" one, "--rollouts" rollouts)
	@$(BIN)/python -m tests.simulation --seeds 10000 $(SOAK_ARGS)

bench: install ## Measure speed, as ratios in one run; writes bench/results.json
	@$(BIN)/python -m bench

wheel: install ## Build dist/berth-VERSION-py3-none-any.whl, which operators and other teams install
	@$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist .
	@ls dist/berth-$$($(BIN)/python -c 'from orchestrator.common.own_versions import berth_version; print(berth_version())')-py3-none-any.whl

release: install ## Write the tenant template of version.txt into stacks/releases, in place of the one before (RELEASE_ARGS=--redo)
	@$(BIN)/python -m stacks.releases $(RELEASE_ARGS)

bootstrap: install ## Prepare an AWS account and region for the CDK, once, with your credentials
	@$(BIN)/python -m stacks.build
	@cdk bootstrap $(CDK_ARGS)

deploy: install ## Deploy onto AWS, with your credentials (CDK_ARGS adds options, e.g. -c berth:alarmTopicArn=...)
	@$(BIN)/python -m stacks.deploy $(CDK_ARGS)

diff: install ## Show what `make deploy` would change, by CDK's diff and a change set (takes the same CDK_ARGS; LOCAL=true compares with the local control plane)
	@$(BIN)/python -m $(if $(LOCAL),orchestrator.local diff,stacks.diff) $(CDK_ARGS)

verify: install ## See the deployed control plane work, on AWS or locally: a tenant is created, used and deleted (VERIFY_ARGS="--region ...")
	@$(BIN)/berth verify $(VERIFY_ARGS)

.PHONY: help install environment demo tour console up down status reset test test-fast format format-check lint types pytest fuzz soak bench wheel release bootstrap deploy diff verify
