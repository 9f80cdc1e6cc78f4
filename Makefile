# make help lists the targets. Each sets up .venv first (once; launch/setup.sh).
SHELL := /bin/bash
VENV ?= .venv
PYTHON_BIN := $(VENV)/bin/python
ENGINE ?= hf
SEEDS ?= 0 1 2
RUNS ?= runs
TESTS ?=
WORKERS ?= $(shell n=$$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2); echo $$(( n < 4 ? n : 4 )))
THREADS ?= $(shell n=$$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2); echo $$(( n < 8 ? n : 8 )))

export VENV
# Nothing is downloaded and nobody is asked to log in once the environment stands.
OFFLINE := HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1 WANDB_MODE=offline WANDB_SILENT=true TOKENIZERS_PARALLELISM=false

.DEFAULT_GOAL := help
.PHONY: help setup demo base sft reproduce controls controls-more test lint rehearse doctor clean distclean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | awk -F '\t' '{printf "  make %-14s %s\n", $$1, $$2}'
	@echo "  variables: ENGINE=hf|vllm (rollouts), SEEDS=\"0 1 2\", RUNS=folder of results, TESTS=paths, WORKERS=test processes, VENV=folder, PYTHON=interpreter"

setup: ## create .venv with the pinned packages (every other target does this first)
	@bash launch/setup.sh

demo: setup ## train the tiny Writer with GRPO from its SFT checkpoint and evaluate both on two held-out sets
	@$(OFFLINE) OMP_NUM_THREADS=$(THREADS) $(PYTHON_BIN) launch/reproduce.py --sft configs/tiny_writer --seeds 0 --engine $(ENGINE) --output_dir $(RUNS)/demo

base: setup ## train the base of the tiny Writer anew, from its structured initialisation (what configs/tiny_base holds)
	@$(OFFLINE) OMP_NUM_THREADS=$(THREADS) $(PYTHON_BIN) launch/sft.py --config configs/tiny-base.yaml --output_dir $(RUNS)/base

sft: setup ## train the SFT Writer anew from configs/tiny_base (what configs/tiny_writer holds)
	@$(OFFLINE) OMP_NUM_THREADS=$(THREADS) $(PYTHON_BIN) launch/sft.py --config configs/tiny-sft.yaml --output_dir $(RUNS)/sft

reproduce: setup ## SFT, GRPO and the evaluation for each of SEEDS, mean and standard deviation (hours; resumable)
	@$(OFFLINE) OMP_NUM_THREADS=$(THREADS) $(PYTHON_BIN) launch/reproduce.py --seeds $(SEEDS) --engine $(ENGINE) --output_dir $(RUNS)/reproduce

controls: setup ## SFT, GRPO and the core controls beside them for each of SEEDS, one table with paired tests (hours; resumable)
	@$(OFFLINE) OMP_NUM_THREADS=$(THREADS) $(PYTHON_BIN) launch/reproduce.py --rows configs/controls.yaml:core --seeds $(SEEDS) --engine $(ENGINE) --output_dir $(RUNS)/controls

controls-more: setup ## every control of configs/controls.yaml; what make controls has run is not run again
	@$(OFFLINE) OMP_NUM_THREADS=$(THREADS) $(PYTHON_BIN) launch/reproduce.py --rows configs/controls.yaml --seeds $(SEEDS) --engine $(ENGINE) --output_dir $(RUNS)/controls

test: setup ## ruff, mypy and every test, all of them whatever fails (TESTS=path for some tests alone)
	@$(OFFLINE) OMP_NUM_THREADS=1 VENV=$(VENV) WORKERS=$(WORKERS) bash launch/test.sh $(TESTS)

rehearse: setup ## the GPU commands of README.md on this machine, from nothing, with stand-ins for what it lacks
	@$(OFFLINE) OMP_NUM_THREADS=1 $(PYTHON_BIN) -m tests.rehearsal.rehearse --folder $(RUNS)/rehearsal

lint: setup ## ruff and mypy over the code
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/mypy

doctor: setup ## what this machine has, and what is wrong with it
	@$(PYTHON_BIN) launch/doctor.py

clean: ## remove caches (results in runs/ stay)
	@rm -rf .pytest_cache .ruff_cache .hypothesis build dist *.egg-info
	@find . -path ./$(VENV) -prune -o -name __pycache__ -type d -print0 | xargs -0 rm -rf

distclean: clean ## clean, and remove .venv too
	@rm -rf $(VENV)
