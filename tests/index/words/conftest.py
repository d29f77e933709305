"""Makes the archived web of `word_chronicle` a fixture of these tests."""

from word_chronicle import chronicle, small  # noqa: F401
