# Every command of the project. `make` alone lists them. Each creates .venv when it is missing, at the versions of
# requirements.lock, with what it needs: the package alone, the node, or all that development uses.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

MIN_PYTHON := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(firstword $(foreach name,python3.11 python3.12 python3.13 python3,$(if $(shell $(name) -c '$(MIN_PYTHON)' 2>/dev/null && echo yes),$(name))))
BIN := .venv/bin
BASE := .venv/.base
NODE := .venv/.node
SANDBOX := .venv/.sandbox
NETWORK := .venv/.network
STUDIES := .venv/.study
READY := .venv/.ready
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check
PYTEST := $(BIN)/python -m pytest -q
RECORD := .spec/record.json
# Other supported Pythons, if the machine has them: on each, a program must cost the same cycles, and the sandbox's image
# must have the same digest.
VERSIONS := 3.12 3.13
MEASURED_WITH := lmdb msgspec tiny-keccak coincurve cffi pycparser cryptography cowboy-actor-sdk cbor2 sortedcontainers \
	pyroaring typing_extensions componentize-py wasmtime zstandard
# The sections whose clauses must all be proven.
REQUIRED := F,Q,E,L,A,G
# Tests of programs and of what becomes of them: they run on the sandbox as well.
ON_BOTH_ENGINES := tests/unit/vm tests/unit/metering tests/golden tests/examples tests/scenarios tests/integration --ignore tests/integration/node \
	--ignore tests/unit/sandbox --ignore tests/integration/test_actor_machine.py
# The consensus engine of a network, and its client: an external program of the project's own folder.
ENGINE_VERSION := v0.38.25
ENGINE := .engine
ENGINE_SOURCE := github.com/cometbft/cometbft
# Where `make testnet` keeps its network.
TESTNET := .testnet
# The peers of a chain for tests, and of a development node.
ETH_TESTER := eth-tester[py-evm]==0.14.0b1
ANVIL := @foundry-rs/anvil@1.7.1
HARDHAT := hardhat@2.29.1
# Samples what a process does.
SAMPLER := py-spy==0.4.3
# Which study `make study` runs; `.venv/bin/trailboss study list` has them.
STUDY ?= fairness-window
# How long a soak lasts.
MINUTES := 60
# Anything but 0, so that an order that leaks out of a hash shows itself.
SECOND_HASH_SEED := 4242

.PHONY: help demo dev sandbox engine testnet study test check fix spec e2e crash soak docs reference bench bench-flames bench-large bench-peers versions cover lock clean

help: ## list the commands
	@sed -nE 's/^([a-z-]+):.*## (.*)$$/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

demo: $(BASE) ## run six actors for four hundred blocks, and print what became of every timer
	@$(BIN)/trailboss demo

dev: $(NODE) ## run a chain with an API and an explorer on http://localhost:4000
	@exec $(BIN)/trailboss dev

sandbox: $(SANDBOX) ## build the sandbox, in which `trailboss dev` and `trailboss node` run strangers' actors
	@$(BIN)/trailboss sandbox build

engine: $(ENGINE)/.$(ENGINE_VERSION) ## install the consensus engine of a network, for `trailboss testnet`; it needs Go, and takes a minute or two
	@echo "the engine of a network is in $(ENGINE)/: release $$($(ENGINE)/cometbft version)"

testnet: $(NETWORK) engine ## run a network of four validators, each with an explorer
	@$(BIN)/trailboss sandbox build >/dev/null
	@test -e $(TESTNET)/node0/node.toml || $(BIN)/trailboss testnet init $(TESTNET)
	@exec $(BIN)/trailboss testnet start $(TESTNET)

study: $(STUDIES) ## answer STUDY=fairness-window by simulation, in half a minute; the results and figures are in studies/
	@$(BIN)/trailboss study run $(STUDY) --quick

test: $(READY) versions ## run all tests, those about order under two hash seeds, those of programs on both engines; then check the clauses of the specification
	@rm -f $(RECORD)
	@$(BIN)/trailboss sandbox build
	PYTHONHASHSEED=0 $(PYTEST) -n 2 --spec-record=$(RECORD)
	PYTHONHASHSEED=$(SECOND_HASH_SEED) $(PYTEST) -n 2 -m determinism tests
	PYTHONHASHSEED=0 $(PYTEST) -n 2 --trailboss-vm sandbox $(ON_BOTH_ENGINES)
	$(BIN)/python -m tools.spec --require $(REQUIRED) --quiet

check: $(READY) ## format, lint, types, layers, house rules, spelling, clauses without a test
	$(BIN)/ruff format --check --output-format concise || { echo "run: make fix" >&2; exit 1; }
	$(BIN)/ruff check --quiet
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m tools.tidy
	$(BIN)/codespell
	$(BIN)/python -m tools.spec --named --require $(REQUIRED) --quiet

fix: $(READY) ## format, and apply the automatic fixes of the linter
	$(BIN)/ruff format --quiet
	$(BIN)/ruff check --fix

spec: $(READY) ## the clauses that no passing test names, by section
	@if [ ! -f $(RECORD) ]; then PYTHONHASHSEED=0 $(PYTEST) -n 2 --spec-record=$(RECORD) >&2 || test -f $(RECORD); fi
	@$(BIN)/python -m tools.spec

e2e: $(READY) ## the explorer in Chromium, and pictures of every page in .e2e/
	@command -v chromium chromium-browser google-chrome >/dev/null || \
		{ echo "needs Chromium: on Debian, as root, apt-get install --no-install-recommends chromium" >&2; exit 1; }
	PYTHONHASHSEED=0 $(PYTEST) -rs tests/e2e -k explorer
	$(BIN)/python -m tools.screenshots .e2e

crash: $(READY) ## 2,000 kills of a chain at work, 2,000 of a bare store, 100 of a node under load, 100 of parts of a network, 10,000 schedules of one, 2,500 scenarios alone and on a chain, 1,000 damaged files, a million forged proofs, 200 kills of sandboxes, 300 of restorations, the fuel of hostile programs, a minute of soak
	@$(BIN)/python -m tests.faults.chain_crash --kills 1000 --seed 1 & first=$$!; \
		$(BIN)/python -m tests.faults.chain_crash --kills 1000 --seed 2; wait $$first
	$(BIN)/python -m tests.faults.crash --kills 2000
	$(BIN)/python -m tests.faults.node_crash --kills 100 --seed 1
	$(BIN)/python -m tests.faults.network_faults --kills 100 --seed 1
	@$(BIN)/python -m tests.network.schedules --count 5000 --seed 1 & first=$$!; \
		$(BIN)/python -m tests.network.schedules --count 5000 --seed 5001; wait $$first
	$(BIN)/python -m tests.simulator.agreement --count 500 --seed 1
	$(BIN)/python -m tests.faults.damage --cases 1000
	$(BIN)/python -m tests.faults.forgeries --cases 1000000
	$(BIN)/python -m tests.faults.sandbox_kills --kills 100 --seed 1
	$(BIN)/python -m tests.faults.restoration_kills --kills 300 --seed 1
	$(BIN)/python -m tests.hostile.sandbox
	$(BIN)/python -m benchmarks.soak --minutes 1

soak: $(READY) ## two nodes under load for MINUTES=60: what they hold, and how late their blocks are
	$(BIN)/python -m benchmarks.soak --minutes $(MINUTES)

docs: $(READY) ## the site, into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

bench: $(READY) ## the benchmarks, ratios in one run
	$(BIN)/python -m benchmarks

bench-large: $(READY) ## ten million pending timers: built, killed, opened, fired; five minutes and 4 GB of disk
	$(BIN)/python -m benchmarks rest --large

bench-peers: $(READY) ## a node beside Anvil and Hardhat, a LocalChain beside SimulatedChain and eth-tester; npm and pip install peers into .peers/
	@test -e .peers/node_modules/hardhat || ! command -v npm >/dev/null || \
		npm install --prefix .peers --no-audit --no-fund --loglevel error $(ANVIL) $(HARDHAT) || true
	@test -e .peers/python || { $(PYTHON) -m venv .peers/python && \
		.peers/python/bin/python -m pip install -qq --disable-pip-version-check $(ETH_TESTER); } || rm -rf .peers/python
	@$(BIN)/python -m benchmarks peers in-process

bench-flames: $(READY) ## flame graphs of a transfer and of a fire, which py-spy takes, into docs/pictures/flames/
	@test -x $(BIN)/py-spy || $(PIP) $(SAMPLER)
	@$(BIN)/python -m benchmarks.flames docs/pictures/flames

reference: $(READY) ## write the generated pages, the pictures and the demo in the README again
	$(BIN)/python -m tools.reference
	$(BIN)/python -m tools.studies

versions: $(READY) ## environments of the other supported Pythons that are installed, to compare cycle counts and images
	@for version in $(VERSIONS); do \
		for python in python$$version $(HOME)/.pyenv/versions/$$version.*/bin/python; do \
			if $$python -c '' 2>/dev/null; then break; fi; \
		done; \
		$$python -c '' 2>/dev/null || { echo "no Python $$version here: its cycle counts and image are not compared"; continue; }; \
		if test .venv-$$version/.ready -nt requirements.lock -a .venv-$$version/.ready -nt Makefile; then continue; fi; \
		echo "creating .venv-$$version"; \
		$$python -m venv .venv-$$version; \
		pins=$$(for name in $(MEASURED_WITH); do grep -i "^$$name==" requirements.lock; done); \
		.venv-$$version/bin/python -m pip install -qq --disable-pip-version-check --only-binary :all: --no-deps $$pins; \
		touch .venv-$$version/.ready; \
	done

cover: $(READY) ## branch coverage of the whole suite
	$(BIN)/coverage erase
	PYTHONHASHSEED=0 $(PYTEST) -n 2 --cov --cov-report=term

lock: $(READY) ## resolve the versions again, into requirements.lock
	$(BIN)/python -m tools.lock > requirements.lock.new
	mv requirements.lock.new requirements.lock

clean: ## remove .venv and everything that was built
	rm -rf .venv .venv-* .engine .peers .spec .e2e site dist build .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; name one with: make PYTHON=/path/to/python3" >&2; exit 1; }
	@echo "creating .venv with $(PYTHON)"
	@$(PYTHON) -m venv .venv

$(ENGINE)/.$(ENGINE_VERSION):
	@command -v go >/dev/null || { echo "needs Go: on Debian, as root, apt-get install --no-install-recommends golang" >&2; exit 1; }
	@echo "installing the consensus engine $(ENGINE_VERSION) into $(ENGINE)/"
	@for each in cmd/cometbft abci/cmd/abci-cli; do \
		CGO_ENABLED=0 GOFLAGS=-trimpath GOBIN=$(CURDIR)/$(ENGINE) go install $(ENGINE_SOURCE)/$$each@$(ENGINE_VERSION); \
	done
	@touch $@

$(NODE): EXTRA := node
$(SANDBOX): EXTRA := node,sandbox
$(NETWORK): EXTRA := network
$(STUDIES): EXTRA := study
$(BASE) $(NODE) $(SANDBOX) $(NETWORK) $(STUDIES): requirements.lock pyproject.toml | $(BIN)/python
	@echo "installing $(if $(EXTRA),what $(EXTRA) needs,the package), at the versions of requirements.lock"
	@$(PIP) --only-binary :all: --constraint requirements.lock --editable .$(if $(EXTRA),[$(EXTRA)])
	@touch $@

$(READY): requirements.lock pyproject.toml | $(BIN)/python
	@echo "installing the versions of requirements.lock"
	@$(PIP) --only-binary :all: --no-deps -r requirements.lock
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $(BASE) $(NODE) $(SANDBOX) $(NETWORK) $(STUDIES) $@
