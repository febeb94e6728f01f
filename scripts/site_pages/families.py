"""A Sphinx extension: the directive `family` lists the declarations of functions that differ only in a type or a size,
folded. Each is found by search and has an anchor of its own. 4,000 declarations as objects of Sphinx's C domain would
take 20 s of the build; in this form they take none."""
import html
import re

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

KIND = "typed"
NAME = re.compile(r"(\w+)\(")


class Family(SphinxDirective):
    has_content = True

    def run(self):
        objects, rows = self.env.get_domain("std"), []
        for signature in self.content:
            name = NAME.search(signature)[1]
            objects.note_object(KIND, name, name, location=self.get_location())
            rows.append(f'<span id="{name}">{html.escape(signature).replace(name, f"<b>{name}</b>", 1)}</span>')
        summary = f"<summary>{len(rows)} functions</summary>"
        folded = f'<details class="signatures">{summary}<pre>{"<br>".join(rows)}</pre></details>'
        return [nodes.raw("", folded, format="html")]


def setup(app):
    app.add_object_type(KIND, KIND, objname="C function")
    app.add_directive("family", Family)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
