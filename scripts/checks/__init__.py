"""The rules of scripts/check, one module for each subject, in the order in which they run."""
from .atomics import ATOMICS, MEMORY_MODEL, SYNC
from .documents import COMMANDS, LINKS
from .formatting import FORMAT
from .layers import FOLDERS, LAYERS, VENDORS
from .programs import PYTHON, SHELL
from .size import CLASS_SIZE, FILE_SIZE, FUNCTION_SIZE, PARAMETERS
from .text import HEADERS, QUESTIONS, SUPPRESSIONS, TABLES
from .tidy import TIDY
from .tree import Finding, Rule, Tree

RULES = [LAYERS, VENDORS, FOLDERS, ATOMICS, SYNC, MEMORY_MODEL, FILE_SIZE, FUNCTION_SIZE, PARAMETERS, CLASS_SIZE, HEADERS, TABLES, QUESTIONS,
         SUPPRESSIONS, LINKS, COMMANDS, PYTHON, SHELL, FORMAT]
SLOW_RULES = [TIDY]

__all__ = ["RULES", "SLOW_RULES", "Finding", "Rule", "Tree"]
