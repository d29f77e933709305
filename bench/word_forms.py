"""Word forms that a search joins, judged by the hunspell dictionaries of Debian: recall and precision by language.

For each language an archive is made of the 50,000 words that are most frequent in running text (wordfreq, in an
environment of its own), spread over pages. The judge is `hunspell -m` over the dictionaries of the system (apt install
hunspell hunspell-cs hunspell-sk hunspell-ru hunspell-pl hunspell-de-de hunspell-en-us), of which Letopis sees nothing
here. Of the words that it knows, 500 pairs are forms of one word by suffix rules, drawn plainly; 500 more begin alike,
at least 60 % of the longer one, and share no stem, both of paradigms with three and more forms. Prefixed forms (Czech
ne-, nej-) and derivations (German -ung, -bar, English -er, -ly, -ness ...) are neither.

    recall = joined of the first 500; precision = share of the first among all that were joined

Three ways: simplemma alone, with the endings of Letopis, and with what it learned from the archive, as a question
asks. `python bench/word_forms.py --misses` lists every pair that went wrong.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import subprocess
import sys
import tempfile
import venv
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from letopis import Archive, Put
from letopis.index.base_forms import simplemma_source
from letopis.index.word_index import WordIndex
from letopis.index.word_snapshot import WordSnapshot

GOALS = {"recall": 0.95, "precision": 0.98}
DICTIONARIES = {"cs": "cs_CZ", "sk": "sk_SK", "ru": "ru_RU", "pl": "pl_PL", "de": "de_DE", "en": "en_US"}
DERIVATIONS = {"de": dict.fromkeys("FLMJB", "derived"), "en": dict.fromkeys("RZYPVNXJBLH", "derived")}
"""Flags of suffixes that make other words."""
SHORTEST, NEIGHBOURS, ALIKE, PARADIGM = 4, 20, 0.6, 3
PEERS = Path(tempfile.gettempdir()) / "letopis-bench-words"
START = datetime(2026, 1, 1, tzinfo=UTC)
WORDS_A_PAGE = 400
Pair = tuple[str, str]
Stem = tuple[str, str]


class Judged(NamedTuple):
    """Pairs that belong together, and pairs that do not."""

    same: list[Pair]
    other: list[Pair]


def frequent_words(language: str, count: int) -> list[str]:
    """The most frequent words of a language that are written with letters alone, most frequent first."""
    python = PEERS / "bin" / "python"
    if not python.exists():
        venv.create(PEERS, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "wordfreq"], check=True)
    ask = f"import json, wordfreq; print(json.dumps(wordfreq.top_n_list({language!r}, {2 * count})))"
    words = json.loads(subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True).stdout)
    return [word for word in words if word.isalpha()][:count]


def stems_of(language: str, words: Sequence[str]) -> dict[str, set[Stem]]:
    """Stems of each word by suffix rules alone; a stem is marked by the kind of derivation, if it is one."""
    asked = "".join(f"{word}\n{word.capitalize()}\n" for word in words)
    command = ["hunspell", "-d", DICTIONARIES[language], "-i", "utf-8", "-m"]
    told = subprocess.run(command, input=asked.encode(), capture_output=True, check=True).stdout
    kinds, found = DERIVATIONS.get(language, {}), defaultdict[str, set[Stem]](set)
    for line in told.decode("utf-8", "replace").splitlines():
        word, *parts = line.split() or [""]
        # A prefix stands before the stem.
        if parts and parts[0].startswith("st:"):
            flags = [part[3:] for part in parts[1:] if part.startswith("fl:")]
            kind = next((f"{kinds[flag]} {flag}" for flag in flags if flag in kinds), "")
            found[word.lower()].add((parts[0][3:].lower(), kind))
    return {word: found[word] for word in words if word in found and len(word) >= SHORTEST}


def judged_pairs(stems: dict[str, set[Stem]], count: int, seed: int) -> Judged:
    """Equally many pairs of both kinds, the same for the same seed."""
    chance = random.Random(seed)
    members: defaultdict[Stem, set[str]] = defaultdict(set)
    for word, found in stems.items():
        for stem in found:
            members[stem].add(word)
    words = sorted(stems)
    same: set[Pair] = set()
    while len(same) < count:
        word = chance.choice(words)
        forms = sorted(set().union(*(members[stem] for stem in stems[word])) - {word})
        if forms:
            same.add(_pair(word, chance.choice(forms)))
    return Judged(sorted(same), sorted(_unlike(stems, members, count, chance)))


def _unlike(stems: dict[str, set[Stem]], members: dict[Stem, set[str]], count: int, chance: random.Random) -> set[Pair]:
    roots = {word: {stem for stem, _ in found} for word, found in stems.items()}
    words = sorted(word for word, found in stems.items() if all(len(members[stem]) >= PARADIGM for stem in found))
    other: set[Pair] = set()
    while len(other) < count:
        at = chance.randrange(len(words))
        near = words[max(0, at - NEIGHBOURS) : at + NEIGHBOURS + 1]
        apart = [word for word in near if not roots[word] & roots[words[at]] and _alike(word, words[at])]
        if apart:
            other.add(_pair(words[at], chance.choice(apart)))
    return other


def _alike(first: str, second: str) -> bool:
    needed = math.ceil(max(3, ALIKE * max(len(first), len(second))))
    return first[:needed] == second[:needed] and len(first) >= needed


def _pair(first: str, second: str) -> Pair:
    return (first, second) if first < second else (second, first)


def made_index(folder: Path, language: str, words: list[str]) -> WordIndex:
    """The index of an archive that has these words and no others."""
    shuffled = random.Random(3).sample(words, len(words))
    texts = [" ".join(shuffled[at : at + WORDS_A_PAGE]) for at in range(0, len(shuffled), WORDS_A_PAGE)]
    page = '<html lang="{}"><meta charset="utf-8"><title>-</title><p>{}</p></html>'
    archive = Archive(folder)
    puts = (Put(f"http://w.example/{n}", page.format(language, text).encode(), START) for n, text in enumerate(texts))
    list(archive.put_many(puts))
    return WordIndex(archive)


def ways(index: WordIndex, language: str) -> dict[str, Callable[[Pair], bool]]:
    """Ways to tell whether two words belong together."""
    bases, snapshot, source = index.bases().of(language), index.snapshot(), simplemma_source()

    def simplemma(pair: Pair) -> bool:
        first, second = (source.lemmatize(word, language).lower().replace("ё", "е") for word in pair)
        return first == second

    return {
        "simplemma": simplemma,
        "endings": lambda pair: bases[pair[0]] == bases[pair[1]],
        "ours": lambda pair: finds(snapshot, *pair) or finds(snapshot, *reversed(pair)),
    }


def finds(snapshot: WordSnapshot, asked: str, there: str) -> bool:
    """Whether a question for one word finds the other."""
    bases = {*snapshot.bases_of(asked), *snapshot.further_bases(asked)}
    return there in snapshot.further_forms(asked) or not bases.isdisjoint(snapshot.find_bases(there))


def table_rows(language: str, count: int, pairs: int, seed: int, folder: Path) -> list[dict[str, Any]]:
    """One row a way, with the pairs that went wrong."""
    words = frequent_words(language, count)
    judged = judged_pairs(stems_of(language, words), pairs, seed)
    rows = []
    for name, joins in ways(made_index(folder / language, language, words), language).items():
        missed = [pair for pair in judged.same if not joins(pair)]
        wrong = [pair for pair in judged.other if joins(pair)]
        right = pairs - len(missed)
        precision = right / max(1, right + len(wrong))
        row = {"language": language, "way": name, "recall": round(right / pairs, 3), "precision": round(precision, 3)}
        rows.append({**row, "missed": missed, "wrong": wrong})
    return rows


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--languages", default=",".join(DICTIONARIES))
    parser.add_argument("--words", type=int, default=50_000)
    parser.add_argument("--pairs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--misses", action="store_true", help="list the pairs that went wrong")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as name:
        rows = [
            row
            for language in args.languages.split(",")
            for row in table_rows(language, args.words, args.pairs, args.seed, Path(name))
        ]
    if args.json:
        print(json.dumps({"rows": rows, "goals": GOALS}, ensure_ascii=False))
        return 0
    print(f"{'language':10}{'way':12}{'recall':>8}{'precision':>11}   goals {GOALS['recall']} and {GOALS['precision']}")
    for row in rows:
        print(f"{row['language']:10}{row['way']:12}{row['recall']:8.3f}{row['precision']:11.3f}")
    if args.misses:
        for row in rows:
            if row["way"] == "ours":
                for kind in ("missed", "wrong"):
                    print(f"{row['language']} {kind}: {', '.join('/'.join(pair) for pair in row[kind])}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
