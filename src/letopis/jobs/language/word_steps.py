"""Steps that answer from words: search, wordprefix, wordfigure."""

from __future__ import annotations

from lxml import etree

from letopis.jobs.language.documents import attributes
from letopis.jobs.language.markup import rows
from letopis.jobs.language.running import Run, number, text_of
from letopis.search import Question, hit_row, near, parse_question, project_resources, search, wordfigure

_LIMIT, _DISTANCE, _WORDS = 10, 5, 50


def search_step(step: etree._Element, run: Run) -> bytes:
    """The best pages of a question, as `letopis search` finds them."""
    project = step.get("project")
    question = parse_question(
        text_of(step),
        sites=_words(step, "site"),
        languages=_words(step, "lang"),
        blocks=_words(step, "block"),
        at=run.moment(step),
        since=run.moment(step, "from"),
        until=run.moment(step, "to"),
        resources=project_resources(run.archive, project) if project else None,
    )
    found = search(run.fresh_words(), question, number(step, "limit") or _LIMIT, number(step, "offset") or 0)
    return rows("search", {"query": text_of(step), **attributes(step)}, "hit", map(hit_row, found))


def wordprefix_step(step: etree._Element, run: Run) -> bytes:
    """The words that stand near a word, as `letopis near` lists them."""
    word, distance = text_of(step), number(step, "between") or _DISTANCE
    asked = parse_question(word, sites=_words(step, "site"), languages=_words(step, "lang"), at=run.moment(step))
    place = Question(limits=asked.limits, at=asked.at)
    found = near(run.fresh_words(), word, distance, place, number(step, "limit") or _WORDS)
    about = {"between": distance, "of": word}
    return rows("wordprefix", about, "near", (row._asdict() for row in found))


def wordfigure_step(step: etree._Element, run: Run) -> bytes:
    """Gives words with an ending their base forms; lists those that were settled now."""
    pairs = wordfigure(run.fresh_words(), step.get("extension", ""), step.get("basicextension", ""))
    return rows("wordfigure", attributes(step), "word", ({"form": form, "base": base} for form, base in pairs))


def _words(step: etree._Element, name: str) -> tuple[str, ...]:
    return tuple(step.get(name, "").split())
