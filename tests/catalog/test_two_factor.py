"""Codes of authenticator apps: as RFC 6238 says, each once, with bounded tries."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from letopis.archive import Archive
from letopis.archive.accounts import SecondFactors, accounts_of, code_at, second_factors_of
from letopis.catalog.sessions import RECOVERY_CODES, STEP, TRIES, TRY_WINDOW, authenticator_uri, step_of
from letopis.errors import QuotaUsedUp, UsageError

NOW = 1_700_000_010
SECRET = b"12345678901234567890"


@pytest.fixture
def factors(tmp_path: Path) -> Iterator[SecondFactors]:
    with Archive(tmp_path / "archive") as archive:
        accounts_of(archive).add("olga", "owner", None, 0)
        yield second_factors_of(archive)


def switched_on(factors: SecondFactors) -> tuple[bytes, list[str]]:
    secret = factors.begin(1)
    return secret, factors.confirm(1, code_at(secret, NOW // STEP), NOW)


@pytest.mark.parametrize(
    ("moment", "code"),
    [(59, "287082"), (1111111109, "081804"), (1111111111, "050471"), (1234567890, "005924"), (2000000000, "279037"),
     (20000000000, "353130")],
)  # fmt: skip
def test_codes_are_those_of_the_rfc(moment: int, code: str) -> None:
    assert code_at(SECRET, moment // STEP) == code


def test_a_clock_that_is_half_a_minute_off_is_forgiven_and_no_more() -> None:
    step = NOW // STEP
    for off, fits in ((-2, False), (-1, True), (0, True), (1, True), (2, False)):
        found = step_of(SECRET, code_at(SECRET, step + off), NOW, 0)
        assert found == (step + off if fits else None)


def test_an_app_gets_the_secret_with_the_names_of_service_and_user() -> None:
    assert authenticator_uri(SECRET, "olga@x", "Letopis") == (
        "otpauth://totp/Letopis:olga%40x?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=Letopis"
    )


def test_a_secret_counts_after_a_first_code_of_it(factors: SecondFactors) -> None:
    earlier = factors.begin(1)
    secret = factors.begin(1)
    assert (earlier != secret, factors.pending(1), factors.is_on(1)) == (True, secret, False)
    with pytest.raises(UsageError, match="code is wrong"):
        factors.confirm(1, code_at(earlier, NOW // STEP), NOW)
    codes = factors.confirm(1, code_at(secret, NOW // STEP), NOW)
    assert (len(set(codes)), factors.is_on(1), factors.left(1)) == (RECOVERY_CODES, True, RECOVERY_CODES)
    with pytest.raises(UsageError, match="on already"):
        factors.begin(1)


def test_a_code_lets_in_once(factors: SecondFactors) -> None:
    secret, _ = switched_on(factors)
    with pytest.raises(UsageError, match="used already"):
        factors.check(1, code_at(secret, NOW // STEP), NOW)
    later = NOW + STEP
    assert factors.check(1, f" {code_at(secret, later // STEP)} ", later) == "code"
    for step in (later // STEP, later // STEP - 1):
        with pytest.raises(UsageError, match="used already"):
            factors.check(1, code_at(secret, step), later)


def test_a_recovery_code_lets_in_once_however_it_is_written(factors: SecondFactors) -> None:
    _, codes = switched_on(factors)
    assert factors.check(1, codes[3].upper().replace("-", " "), NOW) == "recovery code"
    assert factors.left(1) == RECOVERY_CODES - 1
    with pytest.raises(UsageError):
        factors.check(1, codes[3], NOW)
    assert factors.check(1, codes[4], NOW) == "recovery code"


def test_tries_are_counted_whoever_makes_them_and_a_right_code_waits_too(factors: SecondFactors) -> None:
    secret, codes = switched_on(factors)
    for _ in range(TRIES):
        with pytest.raises(UsageError):
            factors.check(1, "nothing", NOW)
    right = code_at(secret, (NOW + STEP) // STEP)
    with pytest.raises(QuotaUsedUp) as refused:
        SecondFactors(factors._database).check(1, right, NOW + STEP)
    assert refused.value.seconds == TRY_WINDOW - STEP
    with pytest.raises(QuotaUsedUp):
        factors.check(1, codes[0], NOW + STEP)
    after = NOW + TRY_WINDOW
    assert factors.check(1, code_at(secret, after // STEP), after) == "code"


def test_of_many_who_show_one_code_at_once_one_is_let_in(factors: SecondFactors) -> None:
    secret, _ = switched_on(factors)
    code, told = code_at(secret, NOW // STEP + 1), []
    ready = threading.Barrier(4)

    def show() -> None:
        ready.wait()
        try:
            told.append(factors.check(1, code, NOW))
        except UsageError:
            told.append("refused")

    threads = [threading.Thread(target=show) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(told) == ["code", "refused", "refused", "refused"]


def test_switched_off_nothing_of_it_is_left(factors: SecondFactors) -> None:
    switched_on(factors)
    assert factors.off(1)
    assert (factors.is_on(1), factors.left(1), factors.pending(1), factors.off(1)) == (False, 0, None, False)
