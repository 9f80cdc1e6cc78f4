"""vLLM inside this process: each rank of a colocated run has its own engine and hands it its weights in memory."""

from __future__ import annotations

import gc
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import torch

from rollout.action_schema import action_schema
from rollout.checksum import added
from rollout.completion import completion_text, stop_token_ids
from rollout.engine import (
    EngineDied,
    EngineError,
    EngineStateError,
    Generation,
    GenerationRequest,
)
from rollout.tokenizer import Tokenizer
from rollout.vllm.arguments import (
    CPU_BLOCK_SIZE,
    check_length,
    cpu_arguments,
    generation_config,
    gpu_arguments,
    sampling_fields,
)
from rollout.vllm.library import (
    PROCESS_GROUP,
    VLLMUnavailable,
    forget_frames,
    forget_model,
    import_vllm,
    incompatible,
    keeping_trainer_state,
)
from rollout.vllm.model_weights import checked_tensors, expected_shapes


class _Ended(Exception):
    """A call ended because somebody wished so: no failure of vLLM's."""

    def __init__(self, wish: BaseException) -> None:
        super().__init__(str(wish))
        self.wish = wish


class VLLMEngine:
    """A colocated vLLM engine.

    Args:
        model_path: a Hugging Face directory: configuration, tokenizer, and weights to start from.
        tokenizer: decodes completions and adds to the stop set.
        dtype: of weights and cache, ``float32`` or ``bfloat16``; the trainer's, or the probe needs a wider bound.
        max_model_len: prompt and completion together; None: the model's context.
        block_size: tokens per block of the prefix cache; None: 32 on CPUs, vLLM's default on GPUs.
        gpu_memory_utilization: the share of a GPU that must be free, and that the cache fills up to if it has no size.
        kv_cache_gib: size of the cache; None: 1 on CPUs.
        tensor_parallel: GPUs that share this engine. Its other workers are processes that can't be handed tensors, so
            more than one takes weights from files only: `rollout.vllm.server` gives them.
        sleep_level: 1 keeps the weights in host memory while asleep; 2 drops them, so that a sync has to follow ``wake``.
            Devices that can't give memory back (CPUs) only change state.
        sleep_mode: whether vLLM keeps what it needs to sleep, one memory pool a process; where nothing trains beside the
            engine, False spares it, and ``sleep`` only changes state.
        structured_output: constrain decoding to the action schema; `rollout.action_schema` says what that biases.

    Raises `VLLMUnavailable`.
    """

    def __init__(
        self,
        model_path: str,
        tokenizer: Tokenizer,
        *,
        dtype: str = "float32",
        max_model_len: int | None = None,
        block_size: int | None = None,
        gpu_memory_utilization: float = 0.4,
        tensor_parallel: int = 1,
        kv_cache_gib: float | None = None,
        sleep_level: int = 1,
        sleep_mode: bool = True,
        structured_output: bool = False,
        policy_version: int = 0,
    ) -> None:
        if sleep_level not in (1, 2):
            raise ValueError(f"sleep_level is {sleep_level}; it must be 1 or 2")
        self.policy_version = policy_version
        self.model_path = model_path
        self._vllm = import_vllm()
        self._tokenizer = tokenizer
        self._on_gpu = torch.cuda.is_available()
        self._sleep_level = sleep_level
        self._gives_memory_back = self._on_gpu and sleep_mode
        self._structured = structured_output
        self._arguments = {
            "model": model_path,
            "dtype": dtype,
            "max_model_len": max_model_len,
            "tensor_parallel_size": tensor_parallel,
            "block_size": block_size or (None if self._on_gpu else CPU_BLOCK_SIZE),
            "enable_prefix_caching": True,
            "enforce_eager": not self._on_gpu,
            "logprobs_mode": "raw_logprobs",
            "generation_config": "vllm",
            "use_tqdm_on_load": False,
            "worker_extension_cls": "rollout.vllm.worker.WeightReader",
            # A grammar needs to know the tokens' texts; nothing else here does.
            "skip_tokenizer_init": not structured_output,
            **(
                gpu_arguments(gpu_memory_utilization, kv_cache_gib, tensor_parallel, sleep_mode)
                if self._on_gpu
                else cpu_arguments(model_path, max_model_len, kv_cache_gib)
            ),
        }
        self._expected = expected_shapes(model_path)
        self._check: Callable[[], None] | None = None
        self._llm: Any = None
        self._weights_valid = True
        self._asleep = False
        self._closed = False
        self._reset_counts()
        self._start()
        llm: Any = self._llm
        config = llm.llm_engine.model_config
        self.max_model_len = int(config.max_model_len)
        self.stop_ids = stop_token_ids(tokenizer, config.hf_config, generation_config(model_path))

    def generate(
        self, requests: Sequence[GenerationRequest], on_done: Callable[[int, Generation], None] | None = None
    ) -> list[Generation]:
        """See `rollout.engine.Engine.generate`. `on_done` is told the place and completion of each request as it ends."""
        self._require_awake("generate")
        if not self._weights_valid:
            raise EngineStateError("generate: the engine's weights are not known; call update_weights first")
        for index, request in enumerate(requests):
            check_length(index, request, self.max_model_len)
        if not requests:
            return []
        started = time.perf_counter()
        try:
            prompts = [{"prompt_token_ids": list(request.prompt_ids)} for request in requests]
            outputs = self._outputs(prompts, [self._sampling(request) for request in requests], on_done)
        except _Ended as ended:
            raise ended.wish from None
        except Exception as error:
            raise self._died("generate", error) from error
        results = [self._generation(output) for output in outputs]
        self._counts["prompt_tokens"] += sum(len(request.prompt_ids) for request in requests)
        self._counts["cached_prompt_tokens"] += sum(output.num_cached_tokens or 0 for output in outputs)
        self._counts["generated_tokens"] += sum(len(result.token_ids) for result in results)
        self._counts["seconds"] += time.perf_counter() - started
        return results

    def update_weights(self, named_tensors: Iterable[tuple[str, torch.Tensor]], version: int) -> None:
        """Reload in place from memory, then drop the prefix cache. See `rollout.engine.Engine.update_weights`.

        A transfer that breaks off leaves layers without weights: the engine counts as dead until ``restart``.
        """
        self._require_awake("update_weights")
        pairs = checked_tensors(named_tensors, self._expected, self.model_path)
        self._reload({"weights_iterator": pairs}, version, pairs)

    def load_files(self, folder: str, version: int) -> None:
        """``update_weights`` from a folder that `rollout.vllm.weight_files` wrote, which was checked where it was written."""
        self._require_awake("load_files")
        self._reload({"weights_path": folder}, version)

    def _reload(self, source: dict[str, Any], version: int, pairs: Iterable[Any] = ()) -> None:
        self._weights_valid = False
        try:
            self._llm.collective_rpc("reload_weights", kwargs=source)
            for _ in pairs:  # the check for missing names stands at the end of the iterator
                pass
        except Exception as error:
            death = self._died("update_weights", error)
            raise (error if isinstance(error, ValueError) else death) from error
        if not self._llm.reset_prefix_cache():
            raise EngineError("update_weights: vLLM would not drop its prefix cache (requests still hold blocks)")
        self._weights_valid = True
        self.policy_version = version

    def weight_checksums(self) -> dict[str, int]:
        """Of what every worker's next forward pass reads. See `rollout.engine.Engine.weight_checksums`."""
        self._require_awake("weight_checksums")
        shapes = {name: tuple(shape) for name, shape in self._expected.items()}
        try:
            return added(self._llm.collective_rpc("weight_checksums", args=(shapes, self._arguments["dtype"])))
        except Exception as error:
            raise self._died("weight_checksums", error) from error

    def sleep(self) -> None:
        """Give the device's memory back, where vLLM can (GPUs)."""
        self._require_alive("sleep")
        if self._asleep:
            return
        if self._gives_memory_back:
            self._on_device("sleep", level=self._sleep_level)
        # The state is the same on every device: what is an error on a GPU is one here.
        self._weights_valid = self._weights_valid and self._sleep_level == 1
        self._asleep = True

    def wake(self) -> None:
        """Take the memory again; after a sleep of level 2, weights have to follow."""
        self._require_alive("wake")
        if self._asleep and self._gives_memory_back:
            self._on_device("wake_up")
        self._asleep = False

    def _on_device(self, what: str, **arguments: Any) -> None:
        try:
            getattr(self._llm, what)(**arguments)
        except Exception as error:  # most likely the device's memory, which somebody else holds
            raise self._died(what, error) from error

    @property
    def alive(self) -> bool:
        """Whether vLLM runs; after `EngineDied` it does not, until ``restart``."""
        return self._llm is not None

    def restart(self) -> None:
        """A new engine from the model directory; its weights count as unknown until ``update_weights``."""
        self._require_open("restart")
        self._stop()
        self._start()
        self._asleep = False
        self._weights_valid = False

    def metrics(self) -> dict[str, float]:
        """Counts since the last call, with ``cached_prompt_tokens`` and ``prefix_cache_hit_rate`` (0 to 1)."""
        counts = dict(self._counts)
        self._reset_counts()
        counts["prefix_cache_hit_rate"] = counts["cached_prompt_tokens"] / max(counts["prompt_tokens"], 1.0)
        return counts

    def close(self) -> None:
        """Shut the engine down and free its memory."""
        self._closed = True
        self._stop()

    def _outputs(self, prompts: list[Any], sampling: list[Any], on_done: Callable[[int, Generation], None] | None) -> list[Any]:
        """vLLM's outputs in the requests' order."""
        if on_done is None and self._check is None:
            return self._llm.generate(prompts, sampling, use_tqdm=False)
        names = self._llm.enqueue(prompts, sampling, use_tqdm=False)
        # vLLM may add a suffix to the name by which it knows a request inside.
        places = {known: place for place, name in enumerate(names) for known in (name, name.rpartition("-")[0])}
        outputs: list[Any] = [None] * len(prompts)
        while self._llm.llm_engine.has_unfinished_requests():
            self._end_if_asked(names)
            for output in self._llm.llm_engine.step():
                if output.finished:
                    place = places[output.request_id]
                    outputs[place] = output
                    if on_done is not None:
                        on_done(place, self._generation(output))
        return outputs

    @contextmanager
    def interruptible(self, check: Callable[[], None]) -> Iterator[None]:
        """See `rollout.engine.Interruptible`."""
        self._check = check
        try:
            yield
        finally:
            self._check = None

    def _end_if_asked(self, names: Sequence[str]) -> None:
        """Between two steps: what the check raises takes the requests out of vLLM."""
        try:
            if self._check is not None:
                self._check()
        except BaseException as wish:
            self._llm.llm_engine.abort_request(list(names), internal=True)
            raise _Ended(wish) from None

    def _sampling(self, request: GenerationRequest) -> Any:
        constraint = None
        if self._structured:
            from vllm.sampling_params import StructuredOutputsParams

            constraint = StructuredOutputsParams(json=action_schema())
        return self._vllm.SamplingParams(
            **sampling_fields(request.sampling), seed=request.seed, stop_token_ids=sorted(self.stop_ids),
            logprobs=0, detokenize=False, structured_outputs=constraint,
        )  # fmt: skip

    def _generation(self, output: Any) -> Generation:
        completion = output.outputs[0]
        if completion.finish_reason not in ("stop", "length"):
            raise EngineError(f"generate: vLLM ended a request with {completion.finish_reason!r}")
        ids = tuple(completion.token_ids)
        logprobs = tuple(values[token].logprob for token, values in zip(ids, completion.logprobs, strict=True))
        stopped = completion.finish_reason == "stop"
        text = completion_text(self._tokenizer, ids, self.stop_ids if stopped else frozenset())
        return Generation(ids, text, logprobs, completion.finish_reason)

    def _start(self) -> None:
        PROCESS_GROUP.join(self)
        with keeping_trainer_state(), warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # of torch about vLLM's code
            try:
                self._llm = self._vllm.LLM(**{k: v for k, v in self._arguments.items() if v is not None})
            except (ImportError, AttributeError) as error:
                raise VLLMUnavailable(incompatible(error)) from error
            except Exception as error:
                line = (str(error).strip().splitlines() or [type(error).__name__])[0]
                raise EngineError(f"vLLM did not start with {self.model_path}: {line}") from error

    def _stop(self) -> None:
        llm, self._llm = self._llm, None
        if llm is None:
            return
        try:
            if self._arguments["tensor_parallel_size"] == 1:  # else the model is in other processes, which end
                forget_model(llm)
            with PROCESS_GROUP.leaving(self):
                llm.llm_engine.engine_core.shutdown()
        finally:
            del llm
            gc.collect()
            if self._on_gpu:
                torch.cuda.empty_cache()

    def _died(self, what: str, error: Exception) -> EngineDied:
        line = (str(error).strip().splitlines() or [""])[0]
        forget_frames(error)  # they hold the weights, whose memory a restart needs
        with suppress(Exception):  # what is broken may not shut down in order
            self._stop()
        return EngineDied(f"{what}: the vLLM engine died ({type(error).__name__}: {line}); restart it and sync")

    def _require_open(self, what: str) -> None:
        if self._closed:
            raise EngineStateError(f"{what}: the engine is closed")

    def _require_alive(self, what: str) -> None:
        self._require_open(what)
        if self._llm is None:
            raise EngineDied(f"{what}: the vLLM engine is dead; restart it and sync")

    def _require_awake(self, what: str) -> None:
        self._require_alive(what)
        if self._asleep:
            raise EngineStateError(f"{what}: the engine is asleep; call wake() first")

    def _reset_counts(self) -> None:
        self._counts = {"prompt_tokens": 0.0, "cached_prompt_tokens": 0.0, "generated_tokens": 0.0, "seconds": 0.0}
