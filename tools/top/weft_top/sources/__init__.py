"""Where the figures come from, one module for each source. A source that fails says so once in a Notice and
never stops the others (collector.py)."""
