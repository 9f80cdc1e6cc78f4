#!/usr/bin/env bash
# Makes docs/example/run again, its pages and nothing else: two rounds of the embedded Writer on two small networks (a few minutes).
#   PYTHON=.venv/bin/python docs/example/make_run.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
PYTHON=${PYTHON:-.venv/bin/python}
made=runs/example
kept=docs/example/run
networks=memory_env/corpus/data/train
rm -rf "$made"
"$PYTHON" launch/grpo.py --config configs/demo.yaml --output_dir "$made" \
    --data.train "[$networks/train_update_a.json, $networks/train_noop_a.json]" \
    --rollout.networks_per_round 2 --trainer.steps 2 --trainer.warmup_steps 0 --evaluation.every 0 \
    --tracking.wandb off --tracking.plot_every 0
rm -rf "$kept"
mkdir -p "$kept"
cp -r "$made"/config.yaml "$made"/metrics.jsonl "$made"/trajectories "$made"/questions "$kept"
[ ! -f "$made/environment.json" ] || cp "$made/environment.json" "$kept"
"$PYTHON" launch/view.py "$kept"
"$PYTHON" launch/report.py "$kept"
"$PYTHON" -m writer_rl.report.worked_cell docs/viewer.md "$kept"
