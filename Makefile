# Every command of the house. Needs Rust, Python 3.10 or newer, make and a C compiler; everything else is fetched.
#
#   make serve ARGS="--model-id ... --port 8080"    install when stale, then start the server
#   make test                                       Rust tests, shard tests, integration tests
#   make lint fmt bench wheel image clean

PYTHON ?= python3
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/text-generation
# Build products stay outside the checkout, so that a fresh clone starts warm.
export CARGO_TARGET_DIR ?= $(CACHE)/target
# Threads that spin while they wait cost 4 to 25 times the speed on a small machine.
export OMP_WAIT_POLICY ?= passive

VENV := .venv
TEST_VENV := .venv-test
# Frameworks that pin older packages than the tests use; only examples run there.
CLIENTS_VENV := .venv-clients
ARGS ?=
PYTEST_ARGS ?=
# The feature with the fake shard, for tests and benchmarks.
FAKE := text-generation-protocol/fake

SOURCES := Cargo.toml Cargo.lock pyproject.toml README.md $(shell find proto kernels router launcher server -type f \
	-not -name '*.so' -not -name '*.pyc' -not -path '*/tests/*' -not -path '*/__pycache__/*')
PYTHON_FOLDERS := conftest.py server integration-tests benchmarks scripts

.PHONY: install serve test test-rust test-python test-integration develop binaries lint fmt docs requirements \
	bench wheel image clean

# --- install and serve ---

install: $(VENV)/wheel.stamp

$(VENV)/packages.stamp: requirements.lock scripts/venv.sh
	PYTHON=$(PYTHON) sh scripts/venv.sh $(VENV) requirements.lock
	touch $@

# A release rebuild after an edit takes seconds instead of a minute.
$(VENV)/wheel.stamp: export CARGO_PROFILE_RELEASE_INCREMENTAL = true
$(VENV)/wheel.stamp: $(VENV)/packages.stamp $(SOURCES)
	wheel=$$($(VENV)/bin/python scripts/wheel_of_sources.py $(VENV) $(CACHE)/wheel $(SOURCES)) && \
		sh scripts/pip.sh $(VENV) install --no-deps --force-reinstall $$wheel
	touch $@

# The shell becomes the launcher, so `$$$$` is the launcher's process id: the announcer ends with it.
serve: install
	@$(VENV)/bin/python scripts/announce.py $$$$ $(ARGS) & exec $(VENV)/bin/text-generation-launcher $(ARGS)

# --- test ---

test: test-rust test-python test-integration

$(TEST_VENV)/packages.stamp: requirements-test.lock scripts/venv.sh
	PYTHON=$(PYTHON) sh scripts/venv.sh $(TEST_VENV) requirements-test.lock
	sh scripts/pip.sh $(TEST_VENV) install --no-deps text-generation==0.7.0
	touch $@

$(CLIENTS_VENV)/packages.stamp: requirements-clients.lock scripts/venv.sh
	PYTHON=$(PYTHON) sh scripts/venv.sh $(CLIENTS_VENV) requirements-clients.lock
	touch $@

# The package in place, with a native module of the dev profile.
develop: $(TEST_VENV)/packages.stamp
	VIRTUAL_ENV=$(abspath $(TEST_VENV)) PIP_QUIET=1 PIP_DISABLE_PIP_VERSION_CHECK=1 \
		$(TEST_VENV)/bin/maturin develop --quiet --locked

# The examples too: the Python tests start one, and what `cargo test` has built is then reused.
binaries:
	cargo build --locked --workspace --bins --examples --features $(FAKE)

test-rust:
	cargo test --locked --workspace --quiet --features $(FAKE)

test-python: develop binaries
	TEXT_GENERATION_BINARIES=$(CARGO_TARGET_DIR)/debug \
		$(TEST_VENV)/bin/pytest server/tests -m "not gpu and not slow" $(PYTEST_ARGS)

test-integration: develop binaries $(CLIENTS_VENV)/packages.stamp
	TEXT_GENERATION_BINARIES=$(CARGO_TARGET_DIR)/debug \
		$(TEST_VENV)/bin/pytest integration-tests -m "not gpu and not slow" $(PYTEST_ARGS)

# --- lint and format ---

lint: develop
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets --quiet --features $(FAKE) -- -D warnings
	PYO3_PYTHON=$(abspath $(TEST_VENV))/bin/python \
		cargo clippy --locked --package text-generation-router --lib --quiet --features python -- -D warnings
	$(TEST_VENV)/bin/ruff check --quiet $(PYTHON_FOLDERS)
	$(TEST_VENV)/bin/ruff format --check --quiet $(PYTHON_FOLDERS)
	$(TEST_VENV)/bin/python scripts/budget.py
	$(TEST_VENV)/bin/python scripts/architecture.py
	$(TEST_VENV)/bin/text-generation-launcher print-flags --markdown | diff -u docs/flags.md - || \
		{ echo 'docs/flags.md is stale: run `make docs`' >&2; exit 1; }
	$(TEST_VENV)/bin/text-generation-router print-parameters | diff -u docs/parameters.md - || \
		{ echo 'docs/parameters.md is stale: run `make docs`' >&2; exit 1; }

fmt: $(TEST_VENV)/packages.stamp
	cargo fmt --all
	$(TEST_VENV)/bin/ruff check --fix --quiet $(PYTHON_FOLDERS)
	$(TEST_VENV)/bin/ruff format --quiet $(PYTHON_FOLDERS)

# The references are printed by the commands themselves.
docs: develop
	$(TEST_VENV)/bin/text-generation-launcher print-flags --markdown > docs/flags.md
	$(TEST_VENV)/bin/text-generation-router print-parameters > docs/parameters.md

# Pins the newest packages that fit Python 3.10 and later.
COMPILE = $(TEST_VENV)/bin/uv pip compile --universal --python-version 3.10 --upgrade --quiet --no-annotate --no-header
requirements: $(TEST_VENV)/packages.stamp
	$(COMPILE) -o requirements.lock requirements.in
	$(COMPILE) -o requirements-test.lock requirements.in requirements-test.in
	$(COMPILE) -o requirements-clients.lock requirements-clients.in

# --- measure, package, clean ---

bench: export CARGO_PROFILE_RELEASE_INCREMENTAL = true
bench: install develop
	cargo build --locked --release --bins --features $(FAKE)
	model=$$($(TEST_VENV)/bin/python scripts/demo_model.py) && \
	$(TEST_VENV)/bin/python -m benchmarks.router_cpu --binaries $(CARGO_TARGET_DIR)/release --model $$model && \
	$(TEST_VENV)/bin/python -m benchmarks.cpu_decode --launcher $(VENV)/bin/text-generation-launcher --model $$model

# The wheel to hand out: built once, so that the slower build pays.
wheel: export CARGO_PROFILE_RELEASE_LTO = thin
wheel: export CARGO_PROFILE_RELEASE_CODEGEN_UNITS = 1
wheel: $(VENV)/packages.stamp
	sh scripts/wheel.sh $(VENV) dist --release

image:
	docker build --tag text-generation-server .

clean:
	rm -rf $(VENV) $(TEST_VENV) $(CLIENTS_VENV) dist $(CARGO_TARGET_DIR) $(CACHE)/wheel
	find server integration-tests benchmarks scripts -name __pycache__ -type d -prune -exec rm -rf {} +
	rm -f server/text_generation_server/_native*.so
