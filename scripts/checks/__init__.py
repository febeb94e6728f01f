"""The rules of scripts/check, one module for each subject, in the order in which they run."""
from .atomics import ATOMICS, MEMORY_MODEL, SYNC
from .commits import COMMITS
from .documents import COMMANDS, LINKS, ROWS
from .evidence import DIARIES, EVIDENCE, PAGES
from .formatting import FORMAT
from .layers import CIRCLES, FOLDERS, LAYERS, VENDORS
from .names import TYPES
from .programs import MODULES, PYTHON, SHELL
from .size import CLASS_SIZE, FILE_SIZE, FUNCTION_SIZE, PARAMETERS
from .text import HEADERS, QUESTIONS, SUPPRESSIONS, TABLES, WIDTH
from .tidy import TIDY
from .tree import Finding, Rule, Tree

RULES = [LAYERS, VENDORS, FOLDERS, CIRCLES, ATOMICS, SYNC, MEMORY_MODEL, FILE_SIZE, FUNCTION_SIZE, PARAMETERS, CLASS_SIZE, TYPES, HEADERS, WIDTH,
         TABLES, QUESTIONS, SUPPRESSIONS, LINKS, ROWS, COMMANDS, COMMITS, EVIDENCE, PAGES, DIARIES, PYTHON, MODULES, SHELL, FORMAT]
SLOW_RULES = [TIDY]

__all__ = ["RULES", "SLOW_RULES", "Finding", "Rule", "Tree"]
