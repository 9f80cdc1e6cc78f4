"""Serve rollouts from a vLLM engine in a process of its own, for a sampler that has its own GPUs.

    CUDA_VISIBLE_DEVICES=6,7 python launch/sampler.py --model runs/sft/export --state runs/sampler.json --tensor-parallel 2
    accelerate launch ... launch/grpo.py ... --rollout.engine vllm --rollout.server runs/sampler.json

Several servers share a run's requests: --rollout.server "[runs/one.json, runs/two.json]". One may die or come while it runs.

The state file appears when the server is ready and holds its address and a key; all ranks of the run connect through
it. Stop the server with Ctrl-C or SIGTERM.
"""

from launch.cli import parser, run


def main(argv: list[str]) -> None:
    """Serve until told to stop."""
    from rollout.vllm.serve import main as serve

    serve(argv, parser(__doc__))


if __name__ == "__main__":
    run(main)
