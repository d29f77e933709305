"""One table for all lists: what is chosen stands in the address, and what is seen can be taken along."""

from __future__ import annotations

import csv
import io
import json
import re

from served_archive import WebClient

from letopis_demo import World


def test_a_table_is_sorted_both_ways_filtered_and_keeps_what_else_was_asked(
    pages: WebClient, little_world: World
) -> None:
    site = f"/site/{little_world.hosts[0]}"
    shown = pages.get(f"{site}?view=ranks&sort=rank").text
    ranks = [float(text) for text in re.findall(r'data-label="Rank">([0-9.]+)<', shown)]
    assert ranks == sorted(ranks)
    assert 'aria-sort="ascending"' in shown
    assert "sort=-rank" in shown
    turned = pages.get(f"{site}?view=ranks&sort=-rank").text
    assert [float(text) for text in re.findall(r'data-label="Rank">([0-9.]+)<', turned)] == ranks[::-1]
    few = pages.get(f"{site}?view=ranks&filter=no-such-page").text
    assert "Nothing fits." in few
    assert '<input type="hidden" name="view" value="ranks">' in few


def test_what_is_seen_is_taken_along_as_csv_and_json(pages: WebClient, little_world: World) -> None:
    site = f"/site/{little_world.hosts[0]}"
    answer = pages.get(f"{site}?view=ranks&sort=rank&as=csv")
    assert answer.headers["content-type"].startswith("text/csv")
    assert "attachment" in answer.headers["content-disposition"]
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert len(rows) > 2
    assert [float(row["rank"]) for row in rows] == sorted(float(row["rank"]) for row in rows)
    found = json.loads(pages.get(f"{site}?view=ranks&sort=rank&as=json").text)
    assert [row["url"] for row in found] == [row["url"] for row in rows]
    alone = json.loads(pages.get(f"{site}?view=ranks&hide=rank&as=json").text)
    assert set(alone[0]) == {"url"}


def test_wrong_choices_are_left_out(pages: WebClient, little_world: World) -> None:
    site = f"/site/{little_world.hosts[0]}"
    for query in ("sort=nothing", "hide=url,rank", "page=999999", "sort=-", "as=exe"):
        assert pages.get(f"{site}?view=ranks&{query}").status == 200, query
