"""The two errors that a user sees as one line and an exit status, never as a traceback.

Invariant: the status belongs to the class, so that ./demo may rely on 3 meaning "namespaces are forbidden".
"""


class UserError(Exception):
    """What was asked for cannot be done; the message says what to do instead."""

    exit_status = 2


class ForbiddenError(Exception):
    """The kernel or a container's policy does not let this user make namespaces."""

    exit_status = 3
