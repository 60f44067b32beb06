"""What a judge found: counts and shares of verdicts, or means of grades, with intervals from a bootstrap over pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from prunus_evals import stats
from prunus_evals.judging.judge import Compared, Graded, Verdict
from prunus_evals.judging.pairs import Group, Pairs
from prunus_evals.records import Reading

VERDICTS: tuple[Verdict, ...] = ("win", "tie", "lose", "biased", "unreadable", "open")
POINTS: Mapping[Verdict, float] = {"win": 1.0, "lose": -1.0}
T = TypeVar("T", Compared, Graded)


def of_pairs(pairs: Pairs, found: Sequence[Compared], about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the verdicts of each group, ready for JSON.

    Shares and ``win_minus_lose`` are of the pairs with a verdict: those that people left open are counted and left out;
    those that a judge contradicted itself on, or could not be read, count as neither won nor lost.

    :param about: who judged, and whatever else a table says.
    """
    groups = [_verdicts(group, own) for group, own in _grouped(found).items()]
    return {"kind": "verdicts", **_about(pairs, found, about), "groups": groups}


def _verdicts(group: Group, own: Sequence[Compared]) -> dict[str, Any]:
    numbers: dict[str, Any] = _name(group, own)
    numbers |= {verdict: sum(one.verdict == verdict for one in own) for verdict in VERDICTS}
    numbers["same_answers"] = sum(one.pair.equal for one in own)
    judged = [one for one in own if one.verdict != "open"]
    numbers["a_in_both_orders"] = sum(one.orders == ("A", "A") for one in judged)
    numbers["b_in_both_orders"] = sum(one.orders == ("B", "B") for one in judged)
    if judged:
        numbers["win_share"] = _estimate(judged, lambda one: float(one.verdict == "win"))
        numbers["lose_share"] = _estimate(judged, lambda one: float(one.verdict == "lose"))
        numbers["win_minus_lose"] = _estimate(judged, lambda one: POINTS.get(one.verdict, 0.0))
    return numbers


def of_grades(pairs: Pairs, found: Sequence[Graded], about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the means of the grades of each group, and their paired difference, ready for JSON.

    A pair with a grade that cannot be read is counted (``unreadable``) and in no mean.
    """
    groups = []
    for group, own in _grouped(found).items():
        numbers = _name(group, own)
        both = [one for one in own if None not in one.grades]
        numbers["unreadable"] = len(own) - len(both)
        if both:
            numbers["first"] = _estimate(both, lambda one: one.grades[0] or 0.0)
            numbers["second"] = _estimate(both, lambda one: one.grades[1] or 0.0)
            numbers["first_minus_second"] = _estimate(both, lambda one: (one.grades[0] or 0) - (one.grades[1] or 0))
        groups.append(numbers)
    return {"kind": "grades", **_about(pairs, found, about), "groups": groups}


def _about(pairs: Pairs, found: Sequence[Compared] | Sequence[Graded], about: Mapping[str, Any]) -> dict[str, Any]:
    readings = [reading for one in found for reading in one.readings]
    return {
        "between": list(pairs.names),
        **about,
        "alone": pairs.alone,
        "replies": len(readings),
        **_unread(found),
        "judge_tokens": _tokens(readings),
    }


def _unread(found: Sequence[Compared] | Sequence[Graded]) -> dict[str, Any]:
    """Return how many prompts the judge did not answer so that it can be read, and an example of each way."""
    nonsense = [words for one in found for words in one.nonsense]
    failed = [words for one in found for words in one.failed]
    return {
        "nonsense": {"prompts": len(nonsense), "last": " ".join(nonsense[-1].split())[:80] if nonsense else ""},
        "failed": {"prompts": len(failed), "last": failed[-1] if failed else ""},
    }


def unread(result: Mapping[str, Any]) -> list[str]:
    """Return what a table says of the prompts that a judge did not answer, one line for each way."""
    lines = []
    if result["nonsense"]["prompts"]:
        number, last = result["nonsense"]["prompts"], result["nonsense"]["last"]
        lines.append(f"the judge's answers to {number} prompts cannot be read, even when asked again, as {last!r}")
    if result["failed"]["prompts"]:
        lines.append(f"the judge failed at {result['failed']['prompts']} prompts: {result['failed']['last']}")
    return lines


def _tokens(readings: Sequence[Reading]) -> dict[str, int] | None:
    """Return the tokens of a judge's replies; None where its server counted none of one."""
    if not all(reading.prompt_tokens for reading in readings) or not readings:
        return None
    return {
        name: sum(getattr(reading, name) for reading in readings) for name in ("prompt_tokens", "completion_tokens")
    }


def _name(group: Group, own: Sequence[Compared] | Sequence[Graded]) -> dict[str, Any]:
    caveats = dict.fromkeys(caveat for one in own for caveat in one.pair.caveats)
    return {
        "task": group[0],
        "budget": group[1],
        "reader": group[2],
        "prompt": group[3],
        "caveats": list(caveats),
        "pairs": len(own),
        "pages": len({one.pair.page for one in own}),
    }


def _grouped(found: Sequence[T]) -> dict[Group, list[T]]:
    groups: dict[Group, list[T]] = {}
    for one in sorted(found, key=lambda one: one.pair.group):
        groups.setdefault(one.pair.group, []).append(one)
    return groups


def _estimate(own: Sequence[T], value: Callable[[T], float]) -> list[float | None]:
    by_page: dict[str, list[float]] = {}
    for one in own:
        by_page.setdefault(one.pair.page, []).append(value(one))
    return stats.mean(by_page).numbers()


def table(result: Mapping[str, Any]) -> str:
    """Return a summary as text."""
    first, second = result["between"]
    judge = result["judge"] + (f" ({result['caveat']})" if result.get("caveat") else "")
    lines = [f"{first} against {second}, judged by {judge}; 95 % intervals over pages, {stats.NONE_BELOW}"]
    for group in result["groups"]:
        half = result.get("halves", {}).get(group["task"], "unknown")
        where = f"{group['task']}, {'both halves' if half == 'all' else f'{half} half'}"
        reader = f", reader {group['reader']}" if group["reader"] else ""
        reader += f", prompt {group['prompt']}" if group["prompt"] else ""
        caveats = f" ({', '.join(group['caveats'])})" if group["caveats"] else ""
        size = f"{stats.counted(group['pairs'], 'pair')}, {stats.counted(group['pages'], 'page')}"
        lines += ["", f"{where}, {group['budget']} tokens{reader}{caveats}: {size}"]
        lines += _counts(group) if result["kind"] == "verdicts" else _grades(group, first, second)
    if result["alone"]:
        lines += ["", f"{result['alone']} answers have no partner: the other system did not answer the question"]
    if result.get("ties_unseen"):
        lines += ["", f"ties that nobody had to judge, as both answers are the same: {result['ties_unseen']}"]
    lines += ["", *told] if (told := unread(result)) else []
    tokens = result["judge_tokens"]
    if tokens:
        lines.append(f"the judge read {tokens['prompt_tokens']} tokens and wrote {tokens['completion_tokens']}")
    return "\n".join(lines)


def _counts(group: Mapping[str, Any]) -> list[str]:
    words = {"biased": "position-biased"}
    shown = [f"{words.get(name, name)} {group[name]}" for name in VERDICTS if name not in ("unreadable", "open")]
    shown += [f"{name} {group[name]}" for name in ("unreadable", "open") if group[name]]
    lines = ["  " + ", ".join(shown)]
    if group["same_answers"]:
        lines.append(f"  both answers are the same in {stats.counted(group['same_answers'], 'pair')}")
    if group["biased"]:
        same = f"the first shown won in both orders of {stats.counted(group['a_in_both_orders'], 'pair')}"
        lines.append(f"  {same}, the second shown of {group['b_in_both_orders']}")
    if "win_share" in group:
        wins, loses = stats.shown(group["win_share"]), stats.shown(group["lose_share"])
        more = stats.shown(group["win_minus_lose"], signed=True)
        lines.append(f"  wins {wins}, loses {loses}, difference {more}")
    return lines


def _grades(group: Mapping[str, Any], first: str, second: str) -> list[str]:
    if "first" not in group:
        return ["  no pair has two grades that can be read"]
    lines = [
        f"  {name}: {stats.shown(group[side], digits=2)} of 10" for name, side in ((first, "first"), (second, "second"))
    ]
    lines.append(f"  difference {stats.shown(group['first_minus_second'], digits=2, signed=True)}")
    return lines + ([f"  unreadable: {group['unreadable']} pairs"] if group["unreadable"] else [])
