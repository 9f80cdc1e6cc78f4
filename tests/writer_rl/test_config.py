"""Configuration: every shipped file parses, every mistake is one line that names the key, nothing heavy is imported."""

import subprocess
import sys

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from writer_rl.config import KINDS, ROOT, ConfigError, config_keys, help_text, load_config, resolve, to_yaml

TRAINING_KINDS = ("sft", "grpo", "evaluate")


def shipped():
    """Our configuration files: the YAML directly in configs/ (accelerate and DeepSpeed files lie in folders)."""
    rows = ("controls.yaml", "new-networks.yaml")  # rows of reproduce.py; tests/writer_rl/evaluation/test_controls.py loads each
    return sorted(path.name for path in (ROOT / "configs").glob("*.yaml") if path.name not in rows)


@pytest.mark.parametrize("name", shipped())
def test_every_shipped_file_parses_for_the_scripts_it_is_for(name):
    """A file with blocks is for those scripts, one without for at least one."""
    path = ROOT / "configs" / name
    blocks = set(yaml.safe_load(path.read_text())) & set(KINDS)
    served, refusals = set(), []
    for kind in TRAINING_KINDS:
        try:
            load_config(kind, path)
            served.add(kind)
        except ConfigError as error:
            refusals.append(str(error))
    assert served >= blocks and served, refusals


def test_the_papers_numbers_are_the_defaults():
    config = load_config("grpo")
    trainer, rollout = config.trainer, config.rollout
    assert (trainer.steps, trainer.epochs, trainer.lr, trainer.clip, trainer.kl_coef, trainer.kl_limit) == (
        30,
        2,
        1e-6,
        0.2,
        0.1,
        0.02,
    )
    assert (trainer.max_grad_norm, trainer.min_abs_advantage, trainer.resume) == (1.0, 0.0, "auto")
    assert (rollout.group_size, rollout.temperature, rollout.top_p, rollout.max_new_tokens) == (8, 0.8, 0.95, 2048)
    assert (rollout.networks_per_round, config.reward.qa.max_questions) == (1, 4)
    assert (config.reward.qa.s1_k, config.reward.qa.s2_k, config.reward.qa.source_k) == (10, 2, 1)
    sft = load_config("sft").trainer
    assert (sft.epochs, sft.lr, sft.weight_decay, sft.accumulation) == (10, 1e-5, 0.01, 8)
    assert load_config("sft").model.path == "Qwen/Qwen2.5-3B-Instruct"


def test_the_qwen_file_spells_out_the_papers_numbers():
    shipped, default = load_config("grpo", ROOT / "configs/qwen2.5-3b.yaml"), load_config("grpo")
    for key in ("steps", "epochs", "lr", "clip", "kl_coef", "kl_limit", "max_grad_norm"):
        assert getattr(shipped.trainer, key) == getattr(default.trainer, key)


def test_files_blocks_and_overrides_in_order(tmp_path):
    file = tmp_path / "c.yaml"
    file.write_text(
        "seed: 1\nmodel: {path: shared}\ngrpo: {model: {path: rl}, trainer: {lr: 1e-4, epochs: 3}}\nsft: {trainer: {lr: 2e-4}}\n"
    )
    grpo = load_config("grpo", file, ["--trainer.lr", "3e-4", "--seed=5"])
    assert (grpo.seed, grpo.model.path, grpo.trainer.lr, grpo.trainer.epochs) == (5, "rl", 3e-4, 3)
    sft = load_config("sft", file)
    assert (sft.seed, sft.model.path, sft.trainer.lr) == (1, "shared", 2e-4)
    assert load_config("evaluate", file).model.path == "shared"


def test_evaluate_reads_a_training_runs_own_config(tmp_path):
    (tmp_path / "config.yaml").write_text(to_yaml(load_config("grpo", None, ["--seed", "3"])))
    assert load_config("evaluate", tmp_path / "config.yaml").seed == 3


@pytest.mark.parametrize("kind", TRAINING_KINDS)
def test_yaml_round_trip(kind, tmp_path):
    config = load_config(kind, None, ["--data.train", "[a, b]", "--reward.weights", "{qa: 0.0}"])
    (tmp_path / "c.yaml").write_text(to_yaml(config))
    assert load_config(kind, tmp_path / "c.yaml") == config


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["--trainer.lrr", "1"], ["trainer.lrr", "trainer.lr"]),
        (["--lr", "1"], ["'lr'", "trainer.lr"]),
        (["--rollout.goup_size", "4"], ["rollout.goup_size", "rollout.group_size"]),
        (["--trainer.lr", "fast"], ["trainer.lr", "fast"]),
        (["--trainer.lr", "-1"], ["trainer.lr", "-1"]),
        (["--trainer.lr", "nan"], ["trainer.lr", "nan"]),
        (["--trainer.clip", "1.5"], ["trainer.clip"]),
        (["--trainer.zero_stage", "4"], ["trainer.zero_stage"]),
        (["--trainer.betas", "[0.9, 1.0]"], ["trainer.betas"]),
        (["--rollout.group_size", "1"], ["rollout.group_size", "2"]),
        (["--rollout.top_p", "0"], ["rollout.top_p"]),
        (["--data.train", "corpus:nope"], ["data.train", "corpus:nope", "corpus:train"]),
        (["--model.dtype", "float16"], ["model.dtype", "bfloat16"]),
        (["--trainer", "5"], ["trainer", "section"]),
        (["--trainer.lr"], ["trainer.lr", "value"]),
        (["--trainer.lr", "--seed"], ["trainer.lr", "value"]),
        (["trainer.lr=1"], ["trainer.lr=1"]),
        (["--data.train", "[a"], ["data.train", "YAML"]),
        (["--seed", "-1"], ["seed"]),
        (["--a.b.c.d", "1"], ["'a'"]),
        (["--model.path.deeper", "1"], ["model.path"]),
        (["--", "1"], ["--"]),
        (["--seed", "!!int word"], ["seed"]),
        (["--trainer.curriculum", "[" * 5000], ["trainer"]),
    ],
)
def test_a_bad_override_is_one_line_that_names_the_key(overrides, words):
    with pytest.raises(ConfigError) as caught:
        load_config("grpo", None, overrides)
    message = str(caught.value)
    assert "\n" not in message and "command line" in message
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("trainer: {lrr: 1}", ["trainer.lrr", "trainer.lr"]),
        ("sampling: {}", ["sampling"]),
        ("trainer: {lr: [1]}", ["trainer.lr"]),
        ("trainer: {lr: null}", ["trainer.lr", "None"]),
        ("trainer: 3", ["trainer", "section"]),
        ("grpo: 3", ["grpo"]),
        ("seed: 1\nseed: 2", ["c.yaml:2", "seed", "twice"]),
        ("trainer: {lr: 1", ["YAML", "c.yaml:"]),
        ("- a", ["list"]),
        ("1: 2", ["1"]),
        ("a: &x [*x]", ["'a'"]),
        ("\x00", ["YAML"]),
        ("seed: !!python/object:os.system ls", ["YAML"]),
        ("seed: !!int word", ["YAML"]),
        ("? [a, b]\n: 1", ["c.yaml:1", "key"]),
        ("? {a: b}\n: 1", ["c.yaml:1", "key"]),
        ("trainer: {epochs: yes}", ["trainer.epochs", "yes/no"]),
        ("trainer: {lr: on}", ["trainer.lr", "yes/no"]),
        ("trainer: {resume: no}", ["trainer.resume", "quote"]),
        ("seed: true", ["seed", "yes/no"]),
        ("reward: {weights: {qa: off}}", ["reward.weights", "yes/no"]),
        ("trainer: {betas: [0.9, false]}", ["trainer.betas", "yes/no"]),
        ("trainer: {kl_limit: None}", ["trainer.kl_limit", "null"]),
        ("output_dir: ''", ["output_dir", "at least 1 character"]),
        ("data: {train: ['']}", ["data.train", "at least 1 character"]),
        ("reward: {qa: {api_key: sk-1}}", ["reward.qa.api_key", "OPENAI_API_KEY"]),
    ],
)
def test_a_bad_file_is_one_line_that_names_file_and_key(tmp_path, text, words):
    file = tmp_path / "c.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_config("grpo", file)
    message = str(caught.value)
    assert "\n" not in message and "c.yaml" in message
    for word in words:
        assert word in message


@pytest.mark.parametrize("word", ["off", "no", "'off'"])
def test_tracking_can_be_switched_off_without_quotes(tmp_path, word):
    (tmp_path / "c.yaml").write_text(f"tracking: {{wandb: {word}, progress: off}}")
    tracking = load_config("grpo", tmp_path / "c.yaml").tracking
    assert (tracking.wandb, tracking.progress) == ("off", False)


@pytest.mark.parametrize("date", ["2026-11-30", "2026-13-45", "2026-11-30 10:00:00"])
def test_a_date_is_a_name_like_any_other(tmp_path, date):
    (tmp_path / "c.yaml").write_text(f"tracking: {{name: {date}}}")
    assert load_config("grpo", tmp_path / "c.yaml").tracking.name == date
    assert load_config("grpo", None, [f"--tracking.name={date}"]).tracking.name == date


def test_an_unknown_key_in_a_list_of_sections_is_named_with_its_place(tmp_path):
    (tmp_path / "c.yaml").write_text("trainer: {curriculum: [{name: a, max_steps: 1}, {name: b, max_step: 1}]}")
    with pytest.raises(ConfigError, match=r"unknown key 'trainer.curriculum.1.max_step'; did you mean '.*max_steps'") as caught:
        load_config("sft", tmp_path / "c.yaml")
    assert "c.yaml" in str(caught.value)


@pytest.mark.parametrize("key", ["reward.qa.base_url", "evaluation.base_url"])
def test_an_address_with_a_password_is_refused_and_not_repeated(key):
    with pytest.raises(ConfigError, match="OPENAI_BASE_URL") as caught:
        load_config("grpo", None, [f"--{key}", "http://ann:s3cret@host/v1"])
    assert key in str(caught.value) and "s3cret" not in str(caught.value)
    assert load_config("grpo", None, [f"--{key}", "http://host:8000/v1"])


def test_a_limit_of_zero_is_a_limit():
    assert load_config("grpo", None, ["--trainer.kl_limit", "0"]).trainer.kl_limit == 0


def test_a_missing_file_and_one_that_is_no_text(tmp_path):
    with pytest.raises(ConfigError, match="nowhere.yaml"):
        load_config("grpo", "nowhere.yaml")
    (tmp_path / "c.yaml").write_bytes(b"\xff\xfe\x00a")
    with pytest.raises(ConfigError, match="c.yaml"):
        load_config("grpo", tmp_path / "c.yaml")


@given(st.sampled_from(sorted({key for key, _, _ in config_keys(KINDS["grpo"])})), st.text(max_size=12))
def test_whatever_a_value_is_the_answer_is_a_configuration_or_one_line(key, text):
    try:
        load_config("grpo", None, [f"--{key}={text}"])
    except ConfigError as error:
        assert "\n" not in str(error).replace(repr(text), "")


def test_numbers_written_as_words_and_words_that_look_like_numbers():
    config = load_config("grpo", None, ["--trainer.lr", "1e-4", "--tracking.name", "007", "--trainer.kl_limit", "null"])
    assert (config.trainer.lr, config.tracking.name, config.trainer.kl_limit) == (1e-4, "007", None)
    assert load_config("grpo", None, ["--data.train", "here"]).data.train == ("here",)


def test_frozen():
    config = load_config("grpo")
    with pytest.raises(ValueError, match="frozen"):
        config.seed = 3


def test_every_key_has_a_help_text():
    for kind in TRAINING_KINDS:
        for key, _, text in config_keys(KINDS[kind]):
            assert text, key
            assert f"--{key} (" in help_text(kind)


def test_relative_paths_start_at_the_repository_root(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert resolve("configs/demo.yaml").is_file()
    assert resolve(str(tmp_path)) == tmp_path
    assert load_config("grpo", "configs/demo.yaml").rollout.group_size == 8


def test_nothing_heavy_is_imported():
    code = (
        "import sys; from writer_rl.config import load_config; load_config('grpo', 'configs/demo.yaml');"
        "import writer_rl.grpo.advantages;"
        "print([m for m in ('torch', 'transformers', 'deepspeed', 'scipy', 'wandb', 'vllm') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
