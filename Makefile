# Two commands for a newcomer: `make run` and `make test`. Each installs what it lacks first.

VENV := .venv
BIN := $(VENV)/bin
RUNNER := workers/runner
SOURCES := orchestrator workers reports kernels tests benchmarks

.PHONY: run test runner runner-android setup-run setup-test lint ctest pytest clean

run: setup-run
	@$(BIN)/tilefarm run --suite smoke

test: setup-test lint ctest pytest

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
	$(BIN)/pytest

clean:
	rm -rf $(VENV) $(RUNNER)/build out
