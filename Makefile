# The whole project by a few words. `make` installs what is missing, configures and builds.
BUILD ?= build
JOBS ?= $(shell nproc)

.PHONY: all configure deps demo test check sanitize tidy operators docs matrix bench fuzz format format-check asan clean

all: configure
	@cmake --build $(BUILD) --parallel $(JOBS) --target product

deps:
	@scripts/deps.sh

configure: deps
	@[ -f $(BUILD)/build.ninja ] || cmake --preset release -B $(BUILD) >$(BUILD).log 2>&1 || { cat $(BUILD).log; exit 1; }
	@rm -f $(BUILD).log

# A small digit classifier, from archive to accuracy and cycles on the NPU model.
demo: configure
	@cmake --build $(BUILD) --parallel $(JOBS) --target carina
	@scripts/demo.sh $(BUILD)/bin/carina

# Everything that proves the product; larger suites join in when CARINA_FIXTURES (default ../shared) is there.
test: configure
	@cmake --build $(BUILD) --parallel $(JOBS)
	@ctest --test-dir $(BUILD) --output-on-failure --parallel $(JOBS)

# What `.ci/run` demands.
check: format-check
	@$(MAKE) --no-print-directory test
	@$(MAKE) --no-print-directory tidy
	@$(MAKE) --no-print-directory sanitize

# What reads untrusted bytes, under clang's ASan and UBSan: unit tests and fuzz corpora. scripts/sanitize.sh --all takes more.
sanitize: deps
	@JOBS=$(JOBS) scripts/sanitize.sh

# clang-tidy over what the build compiles, about three quarters of an hour of CPU; scripts/tidy.py takes files, --changed COMMIT, --analyzer.
tidy: configure
	@cmake --build $(BUILD) --parallel $(JOBS)
	@CARINA_BUILD=$(BUILD) JOBS=$(JOBS) scripts/tidy.py

# docs/operators.md, which the tests compare with what the code does.
operators: all
	@$(BUILD)/bin/carina ops --target ethos-u55-128,ethos-u65-256,ethos-u85-256 >$(BUILD)/operators.md
	@mv $(BUILD)/operators.md docs/operators.md

# What the commands in README.md and docs/ print, which the tests compare with what they print today.
docs: configure
	@cmake --build $(BUILD) --parallel $(JOBS) --target docs

# Every network x target x memory mode: compile, run, compare with the TOSA interpreter.
matrix: all
	@scripts/matrix.sh $(BUILD)/bin/carina

bench: configure
	@cmake --build $(BUILD) --parallel $(JOBS) --target benches
	@for bench in $(BUILD)/bin/*_bench; do $$bench || exit 1; done

# Ten minutes of libFuzzer with ASan and UBSan for each parser.
fuzz: deps
	@scripts/fuzz.sh 600

asan: deps
	@cmake --preset asan >/dev/null && cmake --build build-asan --parallel $(JOBS)
	@ctest --test-dir build-asan --output-on-failure --parallel $(JOBS)

format:
	@git ls-files '*.cpp' '*.hpp' '*.h' '*.c' | xargs clang-format-14 -i
	@python3 scripts/format_rows.py src/aten/operators/*.json

# Fails where `make format` would change something.
format-check: deps
	@git ls-files '*.cpp' '*.hpp' '*.h' '*.c' | xargs -P $(JOBS) -n 40 clang-format-14 --dry-run --Werror
	@python3 scripts/format_rows.py --check src/aten/operators/*.json

clean:
	rm -rf $(BUILD)
