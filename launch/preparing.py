"""The work behind launch/prepare.py: what each of its commands reads and writes."""

from __future__ import annotations

import hashlib
import re
import shutil
import sys
import threading
from argparse import Namespace
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from launch.cli import UsageError, empty_output
from memory_env.datafile import DataError, read_json
from memory_env.files import new_folder, write_text
from memory_env.ingest import read_source, socialmem
from memory_env.ingest.formats import as_networks
from memory_env.ingest.handwritten import document_of, read_actions, trajectory_document, transition
from memory_env.ingest.inventory import take_inventory
from memory_env.loader import load_network, load_networks
from memory_env.network import Network
from memory_env.text import json_utf8
from memory_env.trajectory import TeacherTrajectory, load_trajectory
from writer_rl.memory.cli_reading import read_options

if TYPE_CHECKING:  # teach brings the endpoint's client
    from memory_env.ingest.teach import TaughtPosition


class BudgetSpent(RuntimeError):
    """The token budget of `teach` is used up; what was answered is kept."""


def file_stem(network_id: str) -> str:
    """The name of a network's files: its id where that can be a file's name, which leads into no other folder.

    Example:
        file_stem("grp_1") == "grp_1"; file_stem("../x") == "%2E.%2Fx"; a very long id is cut, with a digest of the whole
    """
    unsafe = re.compile(r'[/\\:*?"<>|%\x00-\x1f\x7f]|^[.~-]')
    stem = unsafe.sub(lambda match: f"%{ord(match.group()):02X}", network_id)
    if len(stem.encode(errors="replace")) <= 200:
        return stem
    return f"{stem[:50]}-{hashlib.sha256(network_id.encode(errors='replace')).hexdigest()[:16]}"


def read(chosen: Namespace) -> None:
    """Read a source and write its networks, teacher files and inventory into a new folder."""
    from rewards.tokens import unseen_text_share

    output = empty_output(chosen.output)
    if chosen.max_messages < 1:
        raise UsageError(f"--max-messages {chosen.max_messages}: must be at least 1")
    source = read_source(chosen.source, chosen.format, read_options(chosen))
    networks = as_networks(source, chosen.gap_hours, chosen.max_messages)
    parts = _parts(networks, chosen)
    trajectories = _trajectories(source.trajectories, {network.network_id: network for network in networks})
    inventory = take_inventory(parts, [trajectory for _, trajectory in trajectories], unseen_text_share)
    with new_folder(output) as folder:
        for part, members in parts.items():
            (folder / part).mkdir()
            for network in members:
                _write_json(folder / part / f"{file_stem(network.network_id)}.json", network.to_dict())
        for file, trajectory in trajectories:
            (folder / "trajectories").mkdir(exist_ok=True)
            shutil.copyfile(file, folder / "trajectories" / f"{file_stem(trajectory.network_id)}.json")
        _write_json(folder / "inventory.json", {"format": source.format, **inventory.to_dict()})
        (folder / "inventory.txt").write_text(inventory.to_text() + "\n", encoding="utf-8")
    print(inventory.to_text())
    print(f"written to {output} ({source.format})")


def _parts(networks: list[Network], chosen: Namespace) -> dict[str, Sequence[Network]]:
    if chosen.split == "paper":
        train, heldout = socialmem.split(networks)
        return {"train": train, "heldout": heldout}
    wanted = {name for name in chosen.heldout.split(",") if name}
    if not wanted:
        return {"networks": networks}
    unknown = sorted(wanted - {network.network_id for network in networks})
    if unknown:
        raise UsageError(f"--heldout: {unknown[0]} is not among the networks read")
    return {
        "train": [network for network in networks if network.network_id not in wanted],
        "heldout": [network for network in networks if network.network_id in wanted],
    }


def _trajectories(files: list[Path], networks: dict[str, Network]) -> list[tuple[Path, TeacherTrajectory]]:
    found: dict[str, tuple[Path, TeacherTrajectory]] = {}
    for file in files:
        network_id = str(read_json(file).get("network_id", ""))
        if network_id not in networks:
            print(f"note: {file.name} is about {network_id!r}, whose messages are not here: left out", file=sys.stderr)
            continue
        if network_id in found:
            raise DataError(f"{file}: network {network_id!r} has a second teacher file; keep one of them")
        found[network_id] = (file, load_trajectory(file, networks[network_id]))
    return list(found.values())


def handwritten(chosen: Namespace) -> None:
    """Hand-written actions to a native trajectory file."""
    output = Path(chosen.output)
    if output.exists():
        raise UsageError(f"--output {output}: exists; name a new file, or remove it first")
    network = load_network(chosen.network)
    actions = read_actions(chosen.actions, network)
    document = trajectory_document(network, actions, {"model": "handwritten"}, chosen.window, chosen.actions)
    _write_json(output, document)
    count = sum(len(output["actions"]) for output in document["transitions"])
    print(f"{output}: {len(document['transitions'])} positions, {count} actions, all accepted")


def teach(chosen: Namespace) -> None:
    """Teacher trajectories from an endpoint. Answers are cached in the output folder, so a rerun goes on for free."""
    from memory_env.ingest.teach import Teacher
    from memory_env.prompts import PromptTemplate
    from memory_env.query.answer.endpoint_client import EndpointClient, EndpointSettings
    from memory_env.query.answer.response_cache import ResponseCache
    from memory_env.query.answer.token_usage import TokenLedger

    if chosen.retries < 0 or chosen.concurrency < 1:
        raise UsageError("--retries must be at least 0 and --concurrency at least 1")
    networks, output = load_networks(chosen.networks), Path(chosen.output)
    template = PromptTemplate.load(chosen.prompt)
    settings = EndpointSettings(
        chosen.model,
        chosen.base_url,
        concurrency=chosen.concurrency,
        max_tokens=chosen.max_tokens,
        request_timeout_s=300,
    )
    _same_job(output / "teach.json", {"model": chosen.model, "prompt": template.sha256, "window": chosen.window})
    ledger = TokenLedger()
    client = EndpointClient(settings, ResponseCache(output / "responses.sqlite"), ledger)
    teacher = Teacher(client, template, chosen.retries)
    stop = threading.Event()
    total = sum(len(network.segments(chosen.window)) for network in networks)

    with tqdm(total=total, unit="position", disable=None) as bar:

        def one(network: Network) -> dict[str, Any]:
            def on_position(_taught: object) -> None:
                bar.update()
                used = sum(usage.input_tokens + usage.output_tokens for usage in ledger.stages().values())
                if stop.is_set() or (chosen.token_budget is not None and used > chosen.token_budget):
                    stop.set()
                    raise BudgetSpent(f"{used} tokens are used, more than --token-budget; raise it and run again")

            positions = teacher.teach(network, chosen.window, on_position)
            _write_taught(output, network, positions, chosen)
            return {
                "network": network.network_id,
                "positions": len(positions),
                "actions": sum(len(taught.actions) for taught in positions),
                "refused": sum(len(taught.refused) for taught in positions),
                "repaired": sum(taught.tries > 1 for taught in positions),
            }

        with ThreadPoolExecutor(chosen.concurrency) as pool:
            futures = [pool.submit(one, network) for network in networks]
            try:
                done = [future.result() for future in futures]
            except BaseException:
                stop.set()
                pool.shutdown(wait=True, cancel_futures=True)
                raise
    used = {stage: vars_of(usage) for stage, usage in ledger.stages().items()}
    _write_json(
        output / "teach.json",
        {"model": chosen.model, "prompt": template.sha256, "window": chosen.window, "tokens": used, "networks": done},
    )
    for row in done:
        print("{network}: {positions} positions, {actions} actions, {repaired} repaired, {refused} refused".format(**row))
    write = used.get("write", {"input_tokens": 0, "output_tokens": 0, "calls": 0})
    print(f"{write['calls']} calls, {write['input_tokens']} tokens in, {write['output_tokens']} out")
    print(f"trajectories in {output / 'trajectories'}, for reading: {output / 'review'}")


def _same_job(path: Path, job: dict[str, Any]) -> None:
    """Refuse to mix two jobs in one folder; note the job in a new one."""
    if path.is_file():
        before = read_json(path)
        for key, value in job.items():
            if before.get(key) != value:
                raise UsageError(f"--output {path.parent}: was begun with another {key} ({before.get(key)}); name a new folder")
    else:
        empty_output(path.parent)
        _write_json(path, job)


def _write_taught(output: Path, network: Network, positions: Sequence[TaughtPosition], chosen: Namespace) -> None:
    from memory_env.ingest.teach import review

    transitions = [transition(taught.segment, taught.actions, taught.report, taught.state) for taught in positions]
    document = document_of(network, transitions, {"model": chosen.model, "temperature": 0.0}, chosen.window)
    _write_json(output / "trajectories" / f"{file_stem(network.network_id)}.json", document)
    write_text(output / "review" / f"{file_stem(network.network_id)}.md", review(network, positions))


def vars_of(usage: Any) -> dict[str, int]:
    """A StageUsage as JSON values."""
    return {key: getattr(usage, key) for key in ("calls", "cached", "input_tokens", "output_tokens")}


def _write_json(path: Path, value: object) -> None:
    write_text(path, json_utf8(value, indent=1).decode() + "\n")
