"""Words of the archived web as of any date: an index that follows the log, and the questions it answers."""

from letopis.search.alike import Duplicate, duplicates_in, duplicates_of
from letopis.search.bases import Bases
from letopis.search.categories import Category, categories
from letopis.search.follower import WordIndex
from letopis.search.hits import Hit, hit_row
from letopis.search.nearby import Near, near
from letopis.search.phrases import Stood, when
from letopis.search.projects import project_resources
from letopis.search.query import Question, parse_question
from letopis.search.searching import Facet, count, facets, search
from letopis.search.wordfigure import lock, release, wordfigure

__all__ = [
    "Bases",
    "Category",
    "Duplicate",
    "Facet",
    "Hit",
    "Near",
    "Question",
    "Stood",
    "WordIndex",
    "categories",
    "count",
    "duplicates_in",
    "duplicates_of",
    "facets",
    "hit_row",
    "lock",
    "near",
    "parse_question",
    "project_resources",
    "release",
    "search",
    "when",
    "wordfigure",
]
