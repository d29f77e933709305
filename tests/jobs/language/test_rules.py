"""Rules of addresses as they are written down and as the index of links applies them."""

from __future__ import annotations

from string import ascii_lowercase

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.index.link_storage import empty_segment
from letopis.index.url_table import IGNORED, UrlTable, apply_url_rules
from letopis.urls.rules import RedirectRule, UrlRules, Variable, VarList, rules_from_xml, rules_to_xml

WORDS = st.text(ascii_lowercase + "á&<", min_size=1, max_size=5).map(str.strip)
PAGES = st.text(ascii_lowercase, min_size=1, max_size=5).map(lambda name: f"x.example/{name}")
VARIABLES = st.builds(Variable, WORDS, st.lists(WORDS, max_size=2).map(tuple), st.booleans())
RULES = st.builds(
    UrlRules,
    st.lists(st.builds(RedirectRule, PAGES, PAGES), max_size=3).map(tuple),
    st.lists(st.builds(VarList, PAGES, st.lists(VARIABLES, max_size=3).map(tuple)), max_size=3).map(tuple),
)


@given(RULES)
@settings(max_examples=100, deadline=None)
def test_rules_survive_being_written_down(rules: UrlRules) -> None:
    assert rules_from_xml(rules_to_xml(rules).encode()) == rules


def test_only_addresses_of_hosts_with_rules_are_judged() -> None:
    addresses = UrlTable.of(empty_segment())
    urls = ["http://x.example/a?x=1&y=2", "http://x.example/a", "http://x.example/b", "http://z.example/a?x=1&y=2"]
    numbers = addresses.numbers(urls)
    rules = rules_to_xml(UrlRules((), (VarList("x.example/a", (Variable("x"),)),)))
    ruled = apply_url_rules(addresses, (("x.example", rules), ("nowhere.example", rules)))
    assert dict(zip(ruled.urls.tolist(), ruled.targets.tolist(), strict=True)) == {
        numbers[0]: addresses.find("http://x.example/a?x=1"),
        numbers[1]: IGNORED,
    }
    kind, redirect = np.zeros(len(addresses), np.uint8), np.full(len(addresses), -1, np.int32)
    ruled.settle(kind, redirect)
    assert redirect[numbers[0]] == addresses.find("http://x.example/a?x=1")
    assert redirect[numbers[2]] == -1
