"""The sampler server's command line (``launch/sampler.py``)."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rollout.engine import RolloutInputError
from rollout.vllm.server import VLLMServer


def main(arguments: Sequence[str], parser: argparse.ArgumentParser | None = None) -> None:
    """Parse ``arguments``, load the engine, and serve until told to stop."""
    parser = parser or argparse.ArgumentParser("rollout.vllm.serve", description=__doc__)
    parser.add_argument("--model", required=True, help="a Hugging Face folder: configuration, tokenizer, weights")
    parser.add_argument("--state", required=True, type=Path, help="file to write once ready (address and key)")
    parser.add_argument("--host", default="127.0.0.1", help="interface to listen on (127.0.0.1: this machine only; 0.0.0.0: all)")
    parser.add_argument("--port", type=int, default=0, help="port (0: a free one)")
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16"), help="of weights and cache")
    parser.add_argument("--tensor-parallel", type=int, default=1, help="GPUs that share the engine")
    parser.add_argument("--max-model-len", type=int, help="prompt and completion together (the model's context)")
    parser.add_argument("--block-size", type=int, help="tokens of a prefix cache block (32 on CPUs)")
    parser.add_argument("--gpu-memory-utilization", type=float, default=0.9, help="share of each GPU's memory")
    parser.add_argument("--kv-cache-gib", type=float, help="cache on CPUs in GiB (1)")
    parser.add_argument("--structured-output", action="store_true", help="constrain decoding to the action schema")
    parser.add_argument("--until-stdin-closes", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args(list(arguments))
    if chosen.until_stdin_closes:
        threading.Thread(target=_end_with_parent, daemon=True).start()

    from rollout.vllm.engine import VLLMEngine

    engine = VLLMEngine(
        chosen.model,
        _tokenizer(chosen.model),
        dtype=chosen.dtype,
        max_model_len=chosen.max_model_len,
        block_size=chosen.block_size,
        gpu_memory_utilization=chosen.gpu_memory_utilization,
        tensor_parallel=chosen.tensor_parallel,
        kv_cache_gib=chosen.kv_cache_gib,
        structured_output=chosen.structured_output,
    )
    print(f"sampler of {chosen.model} ready; state in {chosen.state}", flush=True)
    VLLMServer(engine).serve(chosen.host, chosen.port, chosen.state)


def _tokenizer(model: str) -> Any:
    from rollout.tokenizer_file import load_as_written

    try:
        return load_as_written(model)
    except (OSError, ValueError) as error:
        raise RolloutInputError(f"--model {model} holds no tokenizer ({type(error).__name__}); name a model folder") from None


def _end_with_parent() -> None:
    # os.read, not sys.stdin: a buffered reader's lock, held by this thread, makes an interpreter that ends abort.
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    main(sys.argv[1:])
