# `make demo` and `make test` need nothing but Python 3.11+, make and git.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test fuzz lint docs bench format clean

demo: $(STAMP)
	$(BIN)/nhsvm demo

# one process a core, so one thread each: BLAS threads that wait for each other cost more than they bring; kernels are
# compiled before, since under coverage that takes longer
test: $(STAMP) lint
	$(BIN)/nhsvm warmup --quiet
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal --cov --cov-report=term

# damaged models, data files and blocks, N of them; a failure names the number of its case, and CASE=... runs it again
N ?= 10000
CASE ?=
fuzz: $(STAMP)
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python tests/fuzz/run.py $(N) --processes $$(nproc) $(addprefix --case ,$(CASE))

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# the guide, into site/; mkdocs is not needed for anything else, so it is installed only here
docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: $(STAMP)
	$(BIN)/python benchmarks/hierarchy.py --clarabel
	$(BIN)/python benchmarks/norms.py
	$(BIN)/python benchmarks/single_label.py

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist site .fuzz_cache .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .coverage .hypothesis

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "nhsvm needs Python 3.11 or newer; say which with: make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $(STAMP)
