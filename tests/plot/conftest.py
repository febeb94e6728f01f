"""What these tests share: the package weft_plot and plot_cli.py on the path."""
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "tools" / "plot")]
