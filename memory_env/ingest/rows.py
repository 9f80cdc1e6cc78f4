"""Tables of rows as benchmarks publish them: JSONL, JSON lists, parquet, or a Hugging Face dataset."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from memory_env.datafile import DataError
from memory_env.ingest.sources import ForeignFields, read_chat_json, read_jsonl

SUFFIXES = (".jsonl", ".json", ".parquet")


def find_table(folder: Path, name: str) -> list[Path]:
    """The files of one table: NAME.jsonl, NAME.json, NAME.parquet, NAME-00000-of-00002.parquet, NAME/*.parquet."""
    found = sorted(file for file in folder.rglob("*") if file.suffix in SUFFIXES and file.is_file())
    return [file for file in found if file.stem == name or file.stem.startswith(f"{name}-") or file.parent.name == name]


def read_rows(files: Iterable[Path]) -> Iterator[ForeignFields]:
    """The rows of a table's files, each with its place for errors."""
    for file in files:
        rows: Iterable[tuple[int, Any]]
        if file.suffix == ".parquet":
            rows = enumerate(_parquet(file), 1)
        elif file.suffix == ".jsonl":
            rows = read_jsonl(file)
        else:
            document = read_chat_json(file)
            if not isinstance(document, list):
                raise DataError(f"{file}: is no list of rows")
            rows = enumerate(document, 1)
        for number, row in rows:
            where = f"{file}: {'line' if file.suffix == '.jsonl' else 'row'} {number}"
            yield ForeignFields.of(row, where)


def hub_rows(dataset: str, table: str) -> Iterator[ForeignFields]:
    """The rows of one configuration of a Hugging Face dataset (needs `datasets` and the network)."""
    try:
        import datasets
    except ImportError:
        raise DataError(f"{dataset}: reading from the Hugging Face Hub needs the package datasets; make setup") from None
    try:
        splits = datasets.load_dataset(dataset, table)
    except Exception as error:  # the Hub's failures have no common type: offline, missing, gated, malformed
        reason = str(error).strip().split("\n")[0]
        raise DataError(f"{dataset} ({table}): cannot be loaded ({reason}); download it and give the folder") from None
    for split in splits.values():
        for number, row in enumerate(split, 1):
            yield ForeignFields.of(dict(row), f"{dataset} ({table}): row {number}")


def _parquet(file: Path) -> Iterator[dict[str, Any]]:
    try:
        import pyarrow.parquet
    except ImportError:
        raise DataError(f"{file}: reading parquet needs the package pyarrow; make setup, or export JSONL") from None
    try:
        table = pyarrow.parquet.ParquetFile(file)
        for batch in table.iter_batches():
            yield from batch.to_pylist()
    except (OSError, ValueError) as error:
        raise DataError(f"{file}: is no usable parquet file ({error})") from None
