"""Text from files and devices, made fit for a terminal. Names come from strangers: a page's job, an interface's
name may hold escape sequences, line breaks or bytes that are no text."""

_SAFE = bytes(range(0x20, 0x7F))


def printable(data):
    """`data` (bytes or str), up to its first NUL, with what cannot be printed shown as "?"."""
    if isinstance(data, bytes):
        data = data.partition(b"\0")[0]
        if not data.translate(None, _SAFE):
            return data.decode("ascii")
        data = data.decode("utf-8", errors="replace")
    return data if data.isprintable() else "".join(letter if letter.isprintable() else "?" for letter in data)


def identifier(data):
    """Like printable(), but different names stay different: what cannot be printed is escaped."""
    text = data.decode("utf-8", errors="surrogateescape") if isinstance(data, bytes) else data
    return text if text.isprintable() else ascii(text)[1:-1]
