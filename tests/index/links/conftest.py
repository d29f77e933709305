"""Makes the archived web of `chronicle` a fixture of these tests."""

from chronicle import archived  # noqa: F401
