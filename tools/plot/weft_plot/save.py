"""Writes a figure as PNG or SVG. The bytes depend on the figure alone: no date, no name of a program, and
the same ids in an SVG each time.
"""
import os
import pathlib

METADATA = {"svg": {"Date": None, "Creator": None}, "png": {"Software": None}}
FORMATS = tuple(METADATA)


def save(figure, path):
    """Writes `path`, whose ending says the format, by way of a temporary file beside it. Raises OSError."""
    from . import style  # needs matplotlib, which those who ask for FORMATS do not
    path = pathlib.Path(path)
    kind = path.suffix[1:].lower()
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with style.settings():
            figure.savefig(temporary, format=kind, metadata=METADATA[kind], facecolor="white")
        if kind == "svg":
            lines = temporary.read_text(encoding="utf-8").splitlines()
            temporary.write_text("".join(f"{line.rstrip()}\n" for line in lines), encoding="utf-8")
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
