"""What a person can put right before anything runs."""


class UsageError(Exception):
    """A run cannot start as asked: the message says why, and what would do."""
