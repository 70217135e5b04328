# make demo and make test do everything on a fresh machine with Python >= 3.11 and a C++ compiler.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
SOURCES := pyproject.toml constraints.txt CMakeLists.txt $(wildcard csrc/*.* csrc/engine/* csrc/search/*)

.PHONY: help demo test lint types unit docs test-benchmarks test-slow test-sanitizers test-triton test-gpu bench-ops bench-gpu bench-train bench-scale bench-accuracy bench-cluster bench-small bench-small-speed bench-small-clusters bench-stability rivals paper clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(INSTALLED): $(SOURCES)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

$(VENV)/.demo: $(SOURCES)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[tables]'
	touch $@

demo: $(VENV)/.demo ## Install what is needed, train on a small table, compare with CART, write tree.html
	$(BIN)/prunus demo --force

test: lint types unit ## All tests, lint and types

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(INSTALLED)
	$(BIN)/mypy

unit: $(INSTALLED)
	$(BIN)/pytest -n auto -m 'not slow'

docs: $(INSTALLED) ## Build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

test-benchmarks: $(INSTALLED) ## Tests of the benchmarks
	$(BIN)/pytest tests/benchmarks benchmarks/harness benchmarks/accuracy_lists.py benchmarks/paper/figures

test-slow: $(INSTALLED) ## The long proofs
	$(BIN)/pytest -m slow || test $$? -eq 5  # 5: there are none

# Only the extension differs: it is built apart, and tests/csrc/instrumented.py puts it in the place of the usual one.
SANITIZED := build/sanitizers
CXX ?= g++

$(SANITIZED)/.built: $(SOURCES) $(INSTALLED)
	rm -rf $(SANITIZED)/site
	CXXFLAGS='-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -g1' \
		$(BIN)/pip install --quiet --no-deps --target $(SANITIZED)/site -C build-dir=$(SANITIZED)/cmake .
	touch $@

test-sanitizers: $(SANITIZED)/.built ## The extension under the address and undefined behaviour sanitizers of g++
	PRUNUS_CORE=$$(echo $(SANITIZED)/site/prunus/_core*.so) ASAN_OPTIONS=detect_leaks=0 OMP_WAIT_POLICY=passive \
		LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
		$(BIN)/python -m pytest -p tests.csrc.instrumented -m 'not gpu and not slow' \
		tests/ops/test_sizes.py tests/ops/test_leaves.py tests/ops/test_routes.py tests/ops/test_masses.py \
		tests/fuzz/test_operators.py tests/tree/test_prediction.py tests/fuzz/test_engine.py \
		tests/training/test_native_engine.py tests/training/test_native_sizes.py tests/search/test_search.py \
		tests/search/test_binding.py \
		tests/search/test_greedy.py tests/search/test_slopes.py tests/search/test_reference.py \
		tests/search/test_interrupts.py tests/fuzz/test_search.py

# Triton stays out of the virtual environment, so that all other tests run as they do without it.
TRITON := build/triton

$(TRITON)/.installed: $(INSTALLED)
	$(BIN)/pip install --quiet --no-deps --target $(TRITON) triton==3.9.0
	touch $@

test-triton: $(TRITON)/.installed ## The kernels of GPUs without one: compiled, and run on the CPU by triton's interpreter
	PYTHONPATH=$(TRITON) $(BIN)/python -m pytest -n auto tests/training/test_compilation.py tests/ops/test_launches.py
	PYTHONPATH=$(TRITON) TRITON_INTERPRET=1 $(BIN)/python -m pytest -n auto \
		tests/training/test_fused_engine.py tests/training/test_samples.py tests/ops/test_linear_roots.py \
		tests/estimators/test_fused_fits.py

test-gpu: ## GPU tests, with a python that has torch, triton, scikit-learn and pytest: make test-gpu PYTHON=...
	PYTHONPATH=src $(PYTHON) -m pytest -m gpu tests/ops tests/nn tests/training tests/estimators/test_cuda*.py

bench-ops: $(INSTALLED) ## Speed of the operators against cvxpylayers and torch.clamp
	$(BIN)/python -m benchmarks.ops

bench-gpu: ## Training on an NVIDIA GPU, with a python that has torch, triton and scikit-learn: make bench-gpu PYTHON=...
	PYTHONPATH=src $(PYTHON) -m benchmarks.gpu_train

bench-train: $(INSTALLED) ## Speed of training and prediction, memory of a fit
	$(BIN)/python -m benchmarks.train

bench-scale: $(INSTALLED) ## Files beyond memory, several processes, one killed: make bench-scale DATA=folder [ROWS=...]
	@test -n "$(DATA)" || { echo "DATA must name a folder for a table of 3.7 GB: make bench-scale DATA=folder"; exit 2; }
	$(BIN)/python -m benchmarks.scale --folder $(DATA) $(if $(ROWS),--rows $(ROWS))

bench-accuracy: $(INSTALLED) ## Accuracy against other trees, EBM and boosting, for hours: make bench-accuracy DATA=folder
	@test -n "$(DATA)" || { echo "DATA must name the folder with index.json: make bench-accuracy DATA=folder"; exit 2; }
	$(BIN)/python -m benchmarks.accuracy --data $(DATA)

bench-cluster: $(INSTALLED) ## Clustering against HKMeans, BIRCH and gHHC: make bench-cluster DATA=folder
	@test -n "$(DATA)" || { echo "DATA must name the folder with raw/: make bench-cluster DATA=folder"; exit 2; }
	$(BIN)/python -m benchmarks.cluster --data $(DATA)

bench-small: $(INSTALLED) ## Trees of 4, 8 and 16 leaves against CART and others: make bench-small DATA=folder [PROTOCOL=rivals]
	@test -n "$(DATA)" || { echo "DATA must name the folder with index.json: make bench-small DATA=folder"; exit 2; }
	$(BIN)/python -m benchmarks.small --data $(DATA) $(if $(PROTOCOL),--protocol $(PROTOCOL))

bench-small-speed: $(INSTALLED) ## Seconds and memory of fits of readable trees
	$(BIN)/python -m benchmarks.small_speed

bench-small-clusters: $(INSTALLED) ## Clusters with short rules against Kauri and k-means: make bench-small-clusters DATA=folder
	@test -n "$(DATA)" || { echo "DATA must name the folder with index.json: make bench-small-clusters DATA=folder"; exit 2; }
	$(BIN)/python -m benchmarks.small_clusters --data $(DATA)

bench-stability: $(INSTALLED) ## Whether small trees keep their columns for other seeds and rows: make bench-stability DATA=folder
	@test -n "$(DATA)" || { echo "DATA must name the folder with index.json: make bench-stability DATA=folder"; exit 2; }
	$(BIN)/python -m benchmarks.small_stability --data $(DATA)

# Methods that only bench-small needs stay out of the virtual environment; those that it has are used from there.
RIVALS := build/rivals

$(RIVALS)/.installed: benchmarks/rivals.txt $(INSTALLED)
	$(BIN)/pip install --quiet --no-deps --upgrade --target $(RIVALS) --requirement benchmarks/rivals.txt
	touch $@

rivals: $(RIVALS)/.installed ## Install what bench-small compares with into build/rivals

paper: $(INSTALLED) ## Tables and figures of the paper, into benchmarks/paper/results: make paper DATA=folder [NAMES="..."]
	$(BIN)/python -m benchmarks.paper $(NAMES) $(if $(DATA),--data $(DATA))

clean: ## Remove everything that make made
	rm -rf $(VENV) build dist site tree.html .pytest_cache .mypy_cache .ruff_cache .hypothesis
