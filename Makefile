# Everything is built below build/. The work is in scripts/; CMakePresets.json has the build types.
JOBS ?= $(shell nproc)
export JOBS

.PHONY: help demo test bench scoreboard release debug fuzz cross lint format layers clean

help:
	@echo "make demo                    build, fetch SmolLM2, export it to ONNX, answer a question from that export"
	@echo "make test                    all tests; installs what is missing (Debian 12 or 13)"
	@echo "make bench [PEERS=...]       paired measurements against other runtimes"
	@echo "make scoreboard NAME=...     one of the counted suites, with its table"
	@echo "make release | debug | fuzz  one build (debug: address and undefined behaviour sanitizers)"
	@echo "make cross                   compile for aarch64 and run the kernel tests under qemu"
	@echo "make lint | format           clang-tidy and checks | clang-format"

demo:
	@bash scripts/demo.sh

test:
	@bash scripts/test.sh

bench:
	@bash scripts/bench.sh $(PEERS)

scoreboard:
	@bash scripts/scoreboard.sh "$(NAME)"

release debug:
	@bash scripts/install_packages.sh build
	cmake --preset $@ && cmake --build build/$@ -j $(JOBS)

fuzz:
	@bash scripts/fuzz.sh $(or $(FUZZ_SECONDS),60) $(TARGETS)

cross:
	@bash scripts/cross.sh

lint:
	@bash scripts/lint.sh

format:
	@bash scripts/format.sh

layers:
	@python3 scripts/check_layers.py

clean:
	rm -rf build
