"""weft-plot: figures from what weft-perf, scripts/bench and weft-top recorded.

lines.py reads files, forms.py turns lines into records.py's values, series.py groups them into lines of a
figure, catalogue.py says which figures there are, the draw_*.py modules draw one kind each in the manner
of style.py, save.py writes files whose bytes depend on the data alone, cli.py is the command.
"""

import pathlib

__version__ = "0.1.0"
# What tools share lies beside them, in the tree and where they are installed.
__path__.append(str(pathlib.Path(__file__).resolve().parents[2] / "balance"))
