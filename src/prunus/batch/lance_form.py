"""The records of a batch as one Lance dataset, ``OUT/pages.lance``.

Each part is written as data files that no version of the dataset names yet; what they are is noted with the part. At
the end of a run one commit makes the dataset of exactly the noted files, in the order of the parts. So a part that was
killed before its note is not in the dataset, and a part that was written twice is there once.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl

from ..core.errors import BadInput, MissingExtra, OutsideFailed, one_line
from ..core.installation import pip_install
from .remote import Remote, is_remote

NAME: Final = "pages.lance"
_STORES: Final = frozenset({"s3", "gs", "az", "abfss", "file"})
"""Schemes that Lance reaches itself."""
_OPTIONS: Final = {"endpoint_override": "aws_endpoint", "region": "aws_region"}


def write_fragments(folder: Path | str, table: Any) -> list[dict[str, Any]]:
    """Write the data files of a part; return what a commit needs to know of them.

    :param table: the records, as an Arrow table.
    :raises OutsideFailed: they cannot be written.
    """
    lance = _package()
    uri, options = _uri(folder)
    try:
        mode = "create" if _files(lance, uri, options) is None else "overwrite"  # Lance warns of the other one
        fragments = lance.fragment.write_fragments(table, uri, mode=mode, storage_options=options)
    except (OSError, ValueError, RuntimeError) as error:
        raise OutsideFailed(f"{folder}: cannot be written ({one_line(str(error))})", subject=str(folder)) from error
    return [fragment.to_json() for fragment in fragments]


def commit(folder: Path | str, schema: Any, fragments: Sequence[dict[str, Any]]) -> None:
    """Make the dataset of these data files; do nothing where it consists of them already.

    :raises OutsideFailed: it cannot be written.
    """
    lance = _package()
    uri, options = _uri(folder)
    wanted = [file["path"] for fragment in fragments for file in fragment["files"]]
    try:
        if _files(lance, uri, options) == wanted:
            return
        made = [lance.fragment.FragmentMetadata.from_json(json.dumps(fragment)) for fragment in fragments]
        lance.LanceDataset.commit(uri, lance.LanceOperation.Overwrite(schema, made), storage_options=options)
    except (OSError, ValueError, RuntimeError) as error:
        raise OutsideFailed(f"{folder}: cannot be written ({one_line(str(error))})", subject=str(folder)) from error


def check(folder: Path | str) -> None:
    """Check that Lance can write there.

    :raises MissingExtra: Lance is not installed.
    :raises BadInput: it reaches no such address.
    """
    _package()
    _uri(folder)


def _files(lance: Any, uri: str, options: dict[str, str] | None) -> list[str] | None:
    """Return the data files of the dataset; None where there is no dataset."""
    try:
        dataset = lance.dataset(uri, storage_options=options)
    except (ValueError, FileNotFoundError):
        return None
    return [file.path for fragment in dataset.get_fragments() for file in fragment.data_files()]


def _uri(folder: Path | str) -> tuple[str, dict[str, str] | None]:
    """Return the address of the dataset as Lance takes it, and the options of its client."""
    if not is_remote(str(folder)):
        return str(Path(folder) / NAME), None
    remote = Remote.of(str(folder))
    if remote.scheme not in _STORES:
        stores = ", ".join(sorted(_STORES))
        raise BadInput(f"{folder}: Lance writes to this machine and to {stores}; give another -o", subject="-o")
    given = dict(parse_qsl(remote.query.lstrip("?")))
    options = {_OPTIONS[name]: value for name, value in given.items() if name in _OPTIONS}
    if given.get("scheme") == "http":
        options["allow_http"] = "true"
    if "aws_endpoint" in options and "://" not in options["aws_endpoint"]:
        options["aws_endpoint"] = f"{given.get('scheme', 'https')}://{options['aws_endpoint']}"
    return f"{remote.scheme}://{remote.path}/{NAME}", options


def _package() -> Any:
    try:
        import lance
        import lance.fragment
    except ImportError as error:
        raise MissingExtra(f"--to lance needs Lance; run: {pip_install('lance')}", subject="lance") from error
    return lance
