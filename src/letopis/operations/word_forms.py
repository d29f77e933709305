"""The words of the archive: completions, and base forms that people set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from letopis.archive import READ, WRITE
from letopis.archive.index_facts import word_forms
from letopis.errors import UsageError
from letopis.index.page_text import lowered, nfc
from letopis.index.vocabulary import KnownWord, completions
from letopis.index.word_index import derive_base_forms, lock_base_form, release_base_form
from letopis.operations.context import Context
from letopis.operations.operation import Rows, operation
from letopis.operations.parameters import NoParameters, Parameters, parameter
from letopis.operations.words import anew_if_damaged, current_words, word_index
from letopis.tuples import NamedTuple

_MAX_WORDS = 100


class CompletionQuery(Parameters):
    """The first letters of a word."""

    beginning: str = parameter(
        "First letters of a word, at least two; accents do not matter.", named="q", attribute="q", argument=True,
        metavar="LETTERS", longest=80,
    )  # fmt: skip
    limit: int = parameter("Maximum number of words.", default=10, at_least=1, at_most=100)

    def __post_init__(self) -> None:
        """Half the archive begins with one letter."""
        if len(self.beginning.strip()) < 2:
            raise UsageError("give at least two letters of the word")


@operation(
    "complete", right=READ, verb="complete", route=("GET", "/search/words"), listed="words", about={"query": str},
    examples=("letopis complete kate", "letopis complete arch --limit 5 --json"),
)  # fmt: skip
@anew_if_damaged
def complete(context: Context, asked: CompletionQuery) -> Rows[KnownWord]:
    """List words of the archive that begin with these letters, the most frequent first."""
    found = completions(current_words(context).snapshot(), lowered(nfc(asked.beginning.strip())), asked.limit)
    return Rows(found, {"query": asked.beginning}, remark="" if found else "no page has such a word")


class BaseFormsCommand(Parameters):
    """Which words, and what replaces their ending."""

    extension: str = parameter("The ending of the words.", longest=80)
    basicextension: str = parameter("The ending of their base forms.", default="", longest=80)


class SettledForm(NamedTuple):
    """A word and its base form."""

    form: str
    base: str


@operation(
    "wordfigure", right=WRITE, step="wordfigure", element="word", about={"extension": str, "basicextension": str}
)
@anew_if_damaged
def settle_base_forms(context: Context, asked: BaseFormsCommand) -> Rows[SettledForm]:
    """Join words with an ending to the word without it as their base form; lists the words joined."""
    pairs = derive_base_forms(current_words(context), asked.extension, asked.basicextension)
    about = {"extension": asked.extension, "basicextension": asked.basicextension}
    return Rows([SettledForm(form, base) for form, base in pairs], about)


class WordsCommand(Parameters):
    """Which words."""

    words: tuple[str, ...] = parameter(
        "Words.", argument=True, metavar="WORD...", attribute="words", at_least=1, at_most=_MAX_WORDS
    )


class WordForm(NamedTuple):
    """A word whose base form was set by a person; a `locked` one is its own base form, whatever rules and
    dictionaries say.
    """

    form: str
    base: str
    locked: bool


def _settled_words(context: Context, words: Iterable[str] | None = None) -> Iterator[WordForm]:
    chosen = None if words is None else set(words)
    for row in word_forms(context.archive):
        if chosen is None or row.form in chosen:
            yield WordForm(row.form, row.base, row.locked)


@operation(
    "list_words", right=READ, verb="words list", route=("GET", "/words"), step="wordlist", listed="words",
    element="word", examples=("letopis words list", "letopis words list --json"),
)  # fmt: skip
def list_words(context: Context, asked: NoParameters) -> Rows[WordForm]:
    """List the words whose base forms were set or locked by hand."""
    return Rows(list(_settled_words(context)))


@operation(
    "lock_words", right=WRITE, verb="words lock", route=("POST", "/words/lock"), step="wordlock", listed="words",
    element="word", audited="words locked", sentence=lambda row: f"{row.form} is its own base form from now on",
    examples=("letopis words lock Windows", "letopis words lock axes data"),
)  # fmt: skip
def lock_words(context: Context, asked: WordsCommand) -> Rows[WordForm]:
    """Lock words: each is its own base form and is found only as written."""
    index = word_index(context.archive)
    return Rows(list(_settled_words(context, [lock_base_form(index, word) for word in asked.words])))


@operation(
    "release_words", right=WRITE, verb="words release", route=("POST", "/words/release"), step="wordrelease",
    listed="words", element="word", audited="words released",
    sentence=lambda row: f"{row.form} follows rules and dictionaries again",
    examples=("letopis words release Windows",),
)  # fmt: skip
def release_words(context: Context, asked: WordsCommand) -> Rows[WordForm]:
    """Release words that were locked or joined; lists those that were."""
    index = word_index(context.archive)
    before = {row.form: row for row in _settled_words(context)}
    released = [release_base_form(index, word) for word in asked.words]
    return Rows([before[form] for form in released if form in before])
