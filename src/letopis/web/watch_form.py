"""The form of a watch: what its fields say, as an operation takes it, and a watch as its fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from letopis.model import written_duration
from letopis.monitor.watch import AlertKind, AlertRule, WatchSpec
from letopis.schedule.policies import format_span
from letopis.web.languages import current_language, translatable, translate

SPANS = {
    "": translatable("as usual: {rhythm}"),
    "5m": translatable("every 5 minutes"),
    "10m": translatable("every 10 minutes"),
    "15m": translatable("every 15 minutes"),
    "1h": translatable("every hour"),
    "6h": translatable("every 6 hours"),
    "1d": translatable("every day"),
    "7d": translatable("every week"),
}

_OTHER = "other"
"""What the list of spans says for one that is written beside it."""
PLAIN_FIELDS = ("every", "cron", "jitter", "tag", "zone", "hours", "quiet_hours", "summary")
SUBJECTS = {
    "page": translatable("the whole page"),
    "part": translatable("a part of it"),
    "price": translatable("its price"),
    "stock": translatable("its stock status"),
}
"""What of a page is watched; a part, a price or a stock may be looked for in what a CSS selector chooses."""
CONDITION_NAMES = {
    "contains": translatable("the change contains this text"),
    "adds": translatable("this text appears"),
    "removes": translatable("this text disappears"),
    "more-than": translatable("more than this percentage of the page changed"),
    "below": translatable("the new number is below"),
    "above": translatable("the new number is above"),
}
ALERT_NAMES = {
    "changed": translatable("it changes"),
    "unavailable": translatable("it is unavailable this many times in a row"),
    "recovered": translatable("it is available again"),
    "status": translatable("its status changes"),
    "redirect": translatable("it redirects elsewhere"),
    "unchanged": translatable("it does not change for"),
}
_AMOUNTS = {"unavailable": "3", "unchanged": "7d"}
_ANYWHERE = "html"
_OWN_INPUTS = ("xpath", "jsonpath", "ignore", "remove")


def every_words(seconds: float) -> str:
    """How often something is checked, as the list of the form says it."""
    known = SPANS.get(written_duration(seconds) or "-")
    span = format_span(seconds).replace(".", current_language().decimal)
    return translate(known) if known else translate("every {span}", span=span)


def said_in_form(form: Mapping[str, str], fields: Mapping[str, list[str]]) -> dict[str, Any]:
    """What the form says; a field that was left empty says nothing."""
    lists = {
        "filters": _filters(form),
        "notify": form.get("notify", "").split(),
        "headers": _lines(form.get("headers", "")),
        "step": _lines(form.get("steps", "")),
        "conditions": [
            *({"kind": kind, "value": form[kind]} for kind in CONDITION_NAMES if form.get(kind)),
            *_lines_of(form.get("conditions", ""), "value"),
        ],
    }
    plain = {name: form.get(name) for name in PLAIN_FIELDS}
    if plain["every"] == _OTHER:
        plain["every"] = form.get("span")
    flags = {name: form.get(name) == "yes" for name in ("browser", "requisites", "private")}
    values = {**plain, **lists, **flags, "when": _when(form, fields)}
    return {name: value for name, value in values.items() if value}


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _when(form: Mapping[str, str], fields: Mapping[str, list[str]]) -> str:
    """The causes that are ticked, each with its amount; the usual one says nothing, so that the tag may say more."""
    ticked = [kind for kind in fields.get("alert", []) if kind in ALERT_NAMES]
    rules = [f"{kind}:{form.get(kind) or _AMOUNTS[kind]}" if kind in _AMOUNTS else kind for kind in ticked]
    return form.get("when") or ("" if form.get("usual") and rules == ["changed"] else ",".join(rules))


def _filters(form: Mapping[str, str]) -> list[dict[str, str]]:
    css, subject = form.get("css", ""), form.get("subject", "part")
    chosen = []
    if subject in ("price", "stock"):
        chosen = [{"kind": subject, "expression": css or _ANYWHERE}]
    elif css and subject != "page":
        chosen = [{"kind": "css", "expression": css}]
    chosen += [{"kind": kind, "expression": form[kind]} for kind in _OWN_INPUTS if form.get(kind)]
    return chosen + _lines_of(form.get("filters", ""), "expression")


def _lines_of(text: str, name: str) -> list[dict[str, str]]:
    """Lines such as `ignore [0-9]+ visitors` as objects: a kind, and what stands behind it."""
    lines = [line.partition(" ") for line in _lines(text)]
    return [{"kind": kind, name: rest.strip()} for kind, _, rest in lines]


def form_of_spec(spec: WatchSpec, tag: str, name: str) -> dict[str, str]:
    """The fields that say what a watch says of itself."""
    form = {
        "name": name,
        "tag": tag,
        "every": written_duration(spec.every),
        "cron": spec.cron,
        "jitter": written_duration(spec.jitter),
        "zone": spec.zone,
        "hours": spec.hours,
        "quiet_hours": spec.quiet,
        "summary": spec.summary,
        "notify": "\n".join(spec.notify),
        "headers": "\n".join(": ".join(one) for one in spec.headers),
        "browser": "yes" if spec.browser else "",
        "requisites": "yes" if spec.requisites else "",
        "steps": "\n".join(spec.steps),
        "private": "yes" if spec.origin == "cli" else "",
        **{f"alert-{rule.kind}": "yes" for rule in spec.when},
        **{str(rule.kind): _amount(rule) for rule in spec.when if rule.kind in _AMOUNTS},
    }
    conditions, more_conditions = _first_of_each(
        ((str(one.kind), one.value) for one in spec.conditions), CONDITION_NAMES
    )  # fmt: skip
    inputs = ("css", *_OWN_INPUTS, "price", "stock")
    filters, more_filters = _first_of_each(spec.filters, inputs)
    subject = next((kind for kind in ("price", "stock") if kind in filters), "part" if "css" in filters else "page")
    place = filters.pop(subject, "") if subject in ("price", "stock") else filters.get("css", "")
    kept = {kind: text for kind, text in filters.items() if kind in _OWN_INPUTS}
    texts = {"subject": subject, "css": "" if place == _ANYWHERE else place}
    return form | conditions | kept | texts | {"conditions": more_conditions, "filters": more_filters}


def _amount(rule: AlertRule) -> str:
    return f"{rule.amount:g}" if rule.kind is AlertKind.UNAVAILABLE else written_duration(rule.amount)


def _first_of_each(pairs: Iterable[tuple[str, str]], inputs: Iterable[str]) -> tuple[dict[str, str], str]:
    """The first of each kind that has an input of its own, and all others as lines."""
    first: dict[str, str] = {}
    others = []
    for kind, text in pairs:
        if kind in inputs and kind not in first:
            first[kind] = text
        else:
            others.append(f"{kind} {text}")
    return first, "\n".join(others)
