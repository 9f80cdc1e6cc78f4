"""Imported once by the server that training processes are forked from."""

from writer_rl.train.distributed import prepare_environment

prepare_environment()

import deepspeed  # noqa: E402, F401
import torch  # noqa: E402
import transformers.models.qwen2.modeling_qwen2  # noqa: E402, F401

import writer_rl.grpo.run  # noqa: E402
import writer_rl.sft.run  # noqa: E402, F401

torch.set_num_threads(1)
