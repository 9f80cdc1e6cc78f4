"""From a configuration to the networks of an evaluation, and who judges them."""

from __future__ import annotations

from collections.abc import Sequence

from memory_env import Network, check_disjoint
from memory_env.datafile import DataError
from memory_env.ingest.formats import read_networks
from memory_env.loader import part_of_prepared
from memory_env.query.retrieve.dense import minilm_installed
from writer_rl.config import ConfigError, EvaluationConfig, resolve
from writer_rl.evaluation.asking import require_models, who_answers
from writer_rl.train.data import load_sources

CACHE_FILE = "responses.sqlite"


def networks_of(config: EvaluationConfig, paths: Sequence[str] = ()) -> list[Network]:
    """The configured networks, or those of `paths` in any known format; only networks with questions count.

    Raises DataError when none has a question.
    """
    if paths:
        networks = [network for path in paths for network in read_networks(part_of_prepared(path, "heldout"))]
        repeated = {network.network_id for network in networks if [n.network_id for n in networks].count(network.network_id) > 1}
        if repeated:
            raise DataError(f"--networks: network {min(repeated)} appears twice; name each source once")
    else:
        networks = load_sources(getattr(config.data, config.evaluation.networks))
        if config.evaluation.networks == "heldout":
            present = [source for source in config.data.train if source.startswith("corpus:") or resolve(source).exists()]
            check_disjoint(load_sources(present), networks)
    asked = [network for network in networks if network.questions]
    if not asked:
        raise DataError("no network with questions: nothing to evaluate")
    return asked


def judging_line(config: EvaluationConfig) -> str:
    """Who answers and judges, for the console.

    Raises ConfigError where the reward asks a model and the evaluation says nothing of its own, or names a model nobody asks:
    figures of the offline judge must not pass for a model's.
    """
    settings, reward = config.evaluation, config.reward.qa
    require_models(settings, "evaluation")
    line = who_answers(settings)
    if settings.backend == "openai" or not reward.enabled or reward.backend == "offline":
        return line
    if "backend" not in settings.model_fields_set:
        raise ConfigError(
            "evaluation.backend: the reward's questions are judged by a model (reward.qa.backend openai), the evaluation's would "
            "be by the offline rules; set evaluation.backend openai and evaluation.model, or evaluation.backend offline"
        )
    return f"WARNING: {line}, though the reward's were by {reward.model}: set evaluation.backend openai and evaluation.model"


def dense_available() -> bool:
    return minilm_installed()
