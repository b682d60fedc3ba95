# Two commands for a newcomer: `make run` and `make test`. Each installs what it lacks first.

VENV := .venv
BIN := $(VENV)/bin
RUNNER := workers/runner
SOURCES := orchestrator workers reports kernels tests benchmarks docs/examples
# Processes that share the tests, whole files at a time in the order of tests/conftest.py.
WORKERS ?= $(shell nproc)

.PHONY: run test runner runner-android setup-run setup-test lint ctest pytest clean

run: setup-run
	@$(BIN)/tilefarm run --suite smoke

test: setup-test
	@$(MAKE) --no-print-directory -j2 --output-sync=target lint ctest
	@$(MAKE) --no-print-directory pytest

# apt packages, .venv and the runner; takes a second when all is there.
setup-run:
	@scripts/setup run

setup-test:
	@scripts/setup test

runner:
	@scripts/setup runner

# Needs ANDROID_NDK_HOME (docs/add-a-phone.md).
runner-android:
	@scripts/setup runner-android

lint:
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/pyright
	$(BIN)/lint-imports
	clang-format --dry-run --Werror $$(git ls-files '$(RUNNER)/*.c' '$(RUNNER)/*.h')

ctest:
	scripts/ctest

pytest:
	$(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

clean:
	rm -rf $(VENV) $(RUNNER)/build out
