# Every target sets up what it needs in .venv and reuses it the next time.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

# What is imported here is compiled. pip would compile everything, which takes longer than all else of installing.
COMPILE := from myxtts.runtime import import_tensorflow; import_tensorflow(); \
  import myxtts.inference.synthesizer, myxtts.training.trainer, pytest, hypothesis

.PHONY: help install demo test test-slow bench gpu-code samples scores lint lock clean

help:
	@echo "make demo       train a small voice from nothing and hear it (about 15 minutes)"
	@echo "make test       the tests (five to eight minutes)"
	@echo "make test-slow  the long proofs   make bench  the measurements"
	@echo "make gpu-code   what a graphics card is given, counted without one (about half an hour)"
	@echo "make samples    one page to listen to"
	@echo "make scores     what myxtts evaluate measures with (about 1.5 GB)"
	@echo "make lint       ruff and mypy     make lock   renew requirements.lock"

install: $(VENV)/.ready

$(VENV)/.ready: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if (3, 11) <= v <= (3, 13) else "Python 3.11 to 3.13 is needed, this is %d.%d; try make PYTHON=python3.11" % v)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -c '$(COMPILE)'
	@touch $@

demo: install
	$(BIN)/myxtts demo $(DEMO_FLAGS)

test: install
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy
	$(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder --durations=8

test-slow: install
	$(BIN)/pytest -m slow --durations=8

gpu-code: install $(VENV)-gpu/.ready
	$(BIN)/python benchmarks/gpu_code.py --compiler $(VENV)-gpu/bin/python $(GPU_CODE_FLAGS)

# XLA's compiler for NVIDIA cards, out of JAX; it needs no card and lives apart.
$(VENV)-gpu/.ready: benchmarks/requirements-gpu.txt
	$(PYTHON) -m venv $(VENV)-gpu
	$(VENV)-gpu/bin/pip install --quiet --disable-pip-version-check -r benchmarks/requirements-gpu.txt
	@touch $@

bench: install $(VENV)-bench/.ready
	$(BIN)/python benchmarks/synthesis.py
	$(BIN)/python benchmarks/alignment.py
	$(BIN)/python benchmarks/memory.py
	$(BIN)/python benchmarks/overlap.py
	$(BIN)/python benchmarks/driver.py
	$(BIN)/python benchmarks/cluster.py
	$(BIN)/python benchmarks/cluster_model.py --check
	$(BIN)/python benchmarks/watching.py
	$(BIN)/python benchmarks/profiling.py
	$(BIN)/python benchmarks/training.py --torch-python $(VENV)-bench/bin/python
	$(BIN)/python benchmarks/data.py --torch-python $(VENV)-bench/bin/python

# PyTorch and Matcha-TTS are the yardsticks of benchmarks/data.py and training.py and nothing else; they live apart.
$(VENV)-bench/.ready: benchmarks/requirements.txt
	$(PYTHON) -m venv $(VENV)-bench
	$(VENV)-bench/bin/pip install --quiet --disable-pip-version-check -r benchmarks/requirements.txt
	$(VENV)-bench/bin/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation matcha-tts==0.0.7.2
	@touch $@

samples: install
	$(BIN)/python recipes/samples.py $(SAMPLES_FLAGS)

# What `myxtts evaluate` measures with. Resemblyzer names packages that newer ones have replaced; they are listed instead.
scores: $(VENV)-scores/.ready

$(VENV)-scores/.ready: requirements-scores.txt
	$(PYTHON) -m venv $(VENV)-scores
	$(VENV)-scores/bin/pip install --quiet --disable-pip-version-check -r requirements-scores.txt
	$(VENV)-scores/bin/pip install --quiet --disable-pip-version-check --no-deps resemblyzer==0.1.4
	@touch $@
	@echo 'now: export MYXTTS_SCORER=$(VENV)-scores/bin/python'

lint: install
	$(BIN)/ruff check --fix . && $(BIN)/ruff format . && $(BIN)/mypy

# The lock holds versions only, so it serves whatever index pip is set up with.
lock: install
	$(BIN)/pip install --quiet uv
	$(BIN)/uv pip compile pyproject.toml --extra dev --extra demo --extra ja --universal --python-version 3.11 \
	  --no-header --no-annotate --no-emit-index-url --upgrade --output-file requirements.lock

clean:
	rm -rf $(VENV) $(VENV)-bench $(VENV)-gpu $(VENV)-scores build *.egg-info .pytest_cache .mypy_cache .ruff_cache demo
