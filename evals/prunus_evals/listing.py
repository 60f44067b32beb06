"""What ``prunus eval list`` prints: tasks, systems, metrics, prompts, studies and suites, with what each lacks."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from prunus_evals import data, metrics, prompts, studies, suites, systems, tasks

KINDS = ("tasks", "systems", "metrics", "prompts", "studies", "suites")


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that can be named.

    :param missing: what is missing to use it, in one line; '' where it can be used.
    :param needs: what it needs, in one line, whether that is here or not; '' where it needs nothing.
    """

    name: str
    title: str
    missing: str = ""
    variants: tuple[str, ...] = ()
    needs: str = ""


def entries(kind: str) -> list[Entry]:
    """Return everything of a kind."""
    makers = {"tasks": _tasks, "systems": _systems, "metrics": _metrics, "prompts": _prompts}
    return {**makers, "studies": _studies, "suites": _suites}[kind]()


def _tasks() -> list[Entry]:
    found = []
    for name in tasks.names():
        about = tasks.about(name)
        missing = data.missing_files(about.files, about.source)
        files = ", ".join(file.replace("|", " or ") for file in about.files)
        needs = f"{files} in the folder that {data.VARIABLE} names; source: {about.source}" if files else ""
        found.append(Entry(f"{name}:{about.path}" if about.path else name, about.title, missing, about.variants, needs))
    return found


def _systems() -> list[Entry]:
    found = []
    for name in systems.files():
        module = importlib.import_module(f"{systems.__name__}.{name}")
        title = (module.__doc__ or "").strip().splitlines()[0].replace("``", "").rstrip(".")
        variants = tuple(getattr(module, "VARIANTS", ()))
        found.append(Entry(name, title, _lacking(name, variants), variants, getattr(module, "NEEDS", "")))
    return found


def _lacking(name: str, variants: Sequence[str]) -> str:
    """Return what the variants of a system lack: once where all lack the same, else by variant."""
    by_variant = {variant: systems.missing(f"{name}:{variant}".rstrip(":")) for variant in variants or ("",)}
    if len({*by_variant.values()}) == 1:
        return next(iter(by_variant.values()))
    return "; ".join(f"{variant}: {said}" for variant, said in by_variant.items() if said)


def _metrics() -> list[Entry]:
    found = []
    for metric in metrics.known().values():
        needs = f"{', '.join(metric.packages)}: {metrics.INSTALL}" if metric.packages else ""
        found.append(Entry(metric.name, f"{metric.title} ({metric.of})", metric.missing(), needs=needs))
    return found


def _prompts() -> list[Entry]:
    return [Entry(name, _last_words(prompts.template(name))) for name in prompts.names()]


def _last_words(prompt: str) -> str:
    """Return the last line of a prompt that is neither a placeholder nor a mark: what the model is told to do."""
    lines = (line.strip() for line in reversed(prompt.splitlines()))
    return next(line for line in lines if " " in line and not line.startswith(("{", "[", "`")))


def _studies() -> list[Entry]:
    found = []
    for study in studies.known().values():
        own = studies.Choice(readers=("any",))
        gone = dict.fromkeys(name.partition(":")[0] for name in studies.missing_tasks(study, own))
        needs = [study.lacks(own), f"the sets of {', '.join(gone)} (see tasks)" if gone else ""]
        lacking = "; ".join(filter(None, needs))
        if lacking and study.stand_ins and not studies.missing(study, replace(own, stand_ins=True)):
            lacking += "; its stand-ins are here: --stand-ins"
        sets = ", ".join(study.paper_tasks)
        wants = [study.lacks(studies.Choice()), f"the sets of {sets}" if sets else ""]
        if study.stand_ins:
            wants.append(f"with --stand-ins the sets of {', '.join(study.stand_ins)}")
        found.append(Entry(study.name, study.title, lacking, needs="; ".join(filter(None, wants))))
    return found


def _suites() -> list[Entry]:
    return [Entry(name, suite.title) for name, suite in suites.SUITES.items()]


def table() -> str:
    """Return everything as text."""
    lines: list[str] = []
    for kind in KINDS:
        lines += ["", f"{kind}:"]
        found = entries(kind)
        most = next((said for said, number in Counter(entry.missing for entry in found).items()
                     if said and 2 * number > len(found)), "")  # fmt: skip
        if most:
            others = [entry.name for entry in found if entry.missing != most]
            lines.append(f"  missing for all{' but ' if others else ''}{', '.join(others)}: {most}")
        for entry in found:
            name = entry.name + (f":{{{','.join(entry.variants)}}}" if entry.variants else "")
            lines.append(f"  {name:34} {entry.title}")
            if entry.missing not in ("", most):
                lines.append(f"  {'':34} missing: {entry.missing}")
    return "\n".join(lines).lstrip("\n")


def facts() -> dict[str, list[dict[str, Any]]]:
    """Return everything, ready for JSON."""
    return {kind: [asdict(entry) for entry in entries(kind)] for kind in KINDS}
