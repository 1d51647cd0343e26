# The course's commands. `make` alone lists them; every target sets up what it needs.
# Variables: PYTHON=python3.12 picks another interpreter (and its own .venv-3.12).

PYTHON  ?= python3
LESSONS ?=
PROFILE ?=
DEVICES ?=
PARAMS  ?=
RESUME  ?=
REPEAT  ?=
SOLVED  ?=
A       ?=
B       ?=
THRESHOLD ?=
RUN     ?=
JSON    ?=
PORT    ?=
TESTS   ?=
LAB_OPTIONS ?=
QUICK   ?=
ONLY    ?=
export LESSONS PROFILE DEVICES PARAMS RESUME REPEAT SOLVED A B THRESHOLD JSON PORT

SHELL   := /bin/sh
VENV    := .venv$(patsubst python%,-%,$(filter-out python3 python,$(notdir $(PYTHON))))
BIN     := $(VENV)/bin
BENCH   := .venv-bench
# The CUDA build of JAX where a driver answers, the small CPU build elsewhere.
LOCK    := $(shell if nvidia-smi -L >/dev/null 2>&1; then echo requirements.txt; else echo requirements-cpu.txt; fi)
STAMP   := $(VENV)/.installed-$(LOCK)
COMPILE := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
           --custom-compile-command "make lock" pyproject.toml --extra lab --extra test --group build

.DEFAULT_GOAL := help
.PHONY: help setup check run compare plan data lab test lint bench notebooks lock bench-lock clean

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' Makefile

setup: $(STAMP) ## create the virtual environment and install the locked packages

check: $(STAMP) ## say whether this machine is ready, and what to do if not: JSON=1 for machines
	@$(BIN)/python -m course_utils.check

run: $(STAMP) ## run lessons headlessly: LESSONS="01 03" PROFILE=cpu DEVICES=4 PARAMS="NAME=value" REPEAT=3 RESUME=1 SOLVED=1
	@$(BIN)/python -m course_utils.headless

compare: $(STAMP) ## say what changed between two runs: A=runs/x B=runs/y THRESHOLD=10%; fails on a regression
	@$(BIN)/python -m course_utils.headless.compare

plan: $(STAMP) ## say how long each lesson takes people (estimates) and machines (a run: RUN=runs/x)
	@$(BIN)/python -m course_utils.headless.plan $(RUN)

data: $(STAMP) ## fetch and verify Fashion-MNIST ahead of a class, and say where it is
	@$(BIN)/python -m course_utils.fashion_mnist

lab: $(STAMP) ## open JupyterLab on the notebooks (this machine only, with a token): PORT=8884 LAB_OPTIONS=--allow-root
	@$(BIN)/jupyter lab --ServerApp.ip=127.0.0.1 --ServerApp.port=$(or $(PORT),8884) --ServerApp.root_dir="$(CURDIR)" --LabApp.default_url=/lab/tree/notebooks/00_start_here.ipynb $(LAB_OPTIONS)

test: $(STAMP) ## run every test, each lesson included; TESTS=tests/test_timing.py runs some
	@JAX_COURSE_PROGRESS=off $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder $(TESTS)

lint: $(STAMP) ## check style, formatting and the form of the notebooks
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .
	@$(BIN)/python -m course_utils.headless.canonical --check

bench: $(BENCH)/.installed ## measure the README's figures beside their peers and write them there: QUICK=1 ONLY="step imports"
	@$(BENCH)/bin/python -m benchmarks $(if $(filter-out 0,$(QUICK)),--quick) $(if $(ONLY),--groups $(ONLY))

notebooks: $(STAMP) ## put every notebook into its committed form: REFRESH="01" re-makes the kept outputs
	@$(BIN)/python -m course_utils.headless.canonical --fix

lock: $(STAMP) ## compile both requirements files from pyproject.toml
	@$(BIN)/$(COMPILE) --extra cuda12 --output-file requirements.txt
	@$(BIN)/$(COMPILE) --constraint requirements.txt --output-file requirements-cpu.txt

bench-lock: $(STAMP) ## compile benchmarks/requirements.txt from the course's packages and requirements.in
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
	  --custom-compile-command "make bench-lock" pyproject.toml benchmarks/requirements.in \
	  --constraint requirements-cpu.txt --output-file benchmarks/requirements.txt

clean: ## delete the virtual environments, runs and caches of this folder
	rm -rf .venv .venv-[0-9]* $(BENCH) benchmarks/quick runs .pytest_cache .ruff_cache .ipynb_checkpoints notebooks/.ipynb_checkpoints
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The peers have an environment of their own, so that nobody needs them who doesn't measure.
$(BENCH)/.installed: benchmarks/requirements.txt
	@echo "Setting up $(BENCH) with PyTorch, Keras and the other peers (once; several GB) ..."
	@$(PYTHON) -m venv $(BENCH)
	@$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement $<
	@touch $@

$(STAMP): $(LOCK) pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "This course needs Python 3.11 or newer; $(PYTHON) is missing or older. Try: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@echo "Setting up $(VENV) from $(LOCK) (once, about a minute) ..."
	@$(PYTHON) -m venv $(VENV) || { \
	  echo "No virtual environment could be made: this folder must be writable, and Python have its venv module (Debian and Ubuntu: apt-get install python3-venv)" >&2; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement $(LOCK)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@rm -f $(VENV)/.installed-* && touch $@

# --- The cluster: deploy/README.md says what each does and costs. They need gcloud, terraform and
# --- kubectl, and nothing installed by this file. YES=1 answers their questions.
CLUSTER := $(PYTHON) -m deploy.cluster
INFRA   := .venv-infra
.PHONY: preflight cluster-up deploy open stop cluster-down run-on-cluster workers-on-cluster
.PHONY: jupyter-yaml infra-tools infra-lock

preflight: ## check login, services, GPUs and quotas for the cluster; changes nothing
	@$(CLUSTER) preflight

cluster-up: ## make the GKE cluster that terraform/terraform.tfvars asks for (costs money)
	@$(CLUSTER) up

deploy: ## bring this version of the course onto it: STOP_AT=2026-10-05T18:00:00+02:00 IDLE_MINUTES=60 ALLOW=range
	@$(CLUSTER) deploy

open: ## open JupyterLab on the cluster through a tunnel: PORT=8884
	@$(CLUSTER) open

stop: ## stop the server on the cluster; its GPU node goes, its files stay
	@$(CLUSTER) stop

cluster-down: ## delete the server, its files and the cluster, and look for what is left
	@$(CLUSTER) down

run-on-cluster: ## run lessons headlessly on the GPU node and bring the results back: LESSONS="01 03" PROFILE=gpu
	@$(CLUSTER) run

workers-on-cluster: ## train with one process a GPU node: WORKERS=2
	@$(CLUSTER) workers

jupyter-yaml: ## write deploy/jupyter.yaml anew, after a change of deploy/ or of requirements.txt
	@$(CLUSTER) manifest

infra-tools: $(INFRA)/.installed ## install the scanners that tests/infra uses where they are there

$(INFRA)/.installed: tests/infra/tools.txt
	@$(PYTHON) -m venv $(INFRA)
	@$(INFRA)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement $<
	@touch $@

infra-lock: $(STAMP) ## compile tests/infra/tools.txt from tools.in
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	  --custom-compile-command "make infra-lock" tests/infra/tools.in --output-file tests/infra/tools.txt
