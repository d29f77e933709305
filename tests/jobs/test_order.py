"""The order of the queue: one rule, in Python and in SQL."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from letopis.archive import Archive
from letopis.archive.jobs import claims_of
from letopis.catalog.jobs import JobRow, Jobs, NewJob

FACTS = st.tuples(st.integers(0, 1), st.integers(-3, 3), st.integers(0, 1), st.integers(0, 4))


def queue_position(job: JobRow) -> tuple[int, int, int, int, int]:
    """Sorts the jobs of a package: user before system, higher priority, asked for before automatic, older first."""
    return job.system, -job.priority, job.automatic, job.submitted, job.id


def new(package: str, system: int = 0, priority: int = 0, automatic: int = 0, submitted: int = 0) -> NewJob:
    return NewJob(None, package, "", "anna", "cli", 7, system, priority, automatic, 1, submitted, b"<query/>")


def queued(archive: Archive, package: str, facts: list[tuple[int, int, int, int]]) -> list[JobRow]:
    jobs = Jobs(archive.catalog.database)
    jobs.ensure()
    with archive.catalog.transaction() as cursor:
        numbers = [jobs.add(cursor, new(package, *one)) for one in facts]
    rows = [jobs.find(number) for number in numbers]
    return [row for row in rows if row is not None]


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(facts=st.lists(FACTS, min_size=1, max_size=12), number=st.integers(0, 2**60))
def test_sql_takes_jobs_in_the_order_of_the_pure_rule(
    archive: Archive, facts: list[tuple[int, int, int, int]], number: int
) -> None:
    package = f"p{number}"
    rows = queued(archive, package, facts)
    wanted = [row.id for row in sorted(rows, key=queue_position)]
    turns, taken = claims_of(archive), []
    while (claim := turns.take(package, "w", 0, 1)) is not None:
        taken.append(claim.job)
        turns.put_back(claim, 0, "")
        with archive.catalog.transaction() as cursor:
            Jobs(archive.catalog.database).cancel(cursor, claim.job, 0)
    assert taken == wanted


def test_the_four_rules_in_their_rank(archive: Archive) -> None:
    # (system, priority, automatic, submitted)
    rows = queued(archive, "p", [(1, 9, 0, 0), (0, 0, 1, 0), (0, 0, 0, 2), (0, 0, 0, 1), (0, 5, 1, 9), (1, 9, 1, 0)])
    assert [rows.index(row) for row in sorted(rows, key=queue_position)] == [4, 3, 2, 1, 0, 5]
