"""A Sphinx extension: links from the documents to other files of the repository lead to pages that show those files
(or, with a URL of the repository, there). Links between documents are Sphinx's own business."""
import html
import pathlib
import re

from sphinx.util import logging

LOG = logging.getLogger(__name__)
LINK = re.compile(r"(\[[^\]]*\]\()([^)\s]+)(\))")
FENCE = re.compile(r"^\s*```")
SCHEME = "source"
FOLDERS = {"docs/decisions": "docs/decisions/index.md", "include": "api/index.rst"}  # which have pages of their own
PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{name}</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark"><style>
body {{ font: 14px/1.5 system-ui, sans-serif; margin: 1.5em; }} pre {{ font: 13px/1.5 ui-monospace, monospace; }}
a.n {{ display: inline-block; width: 3.5em; color: #888; text-decoration: none; }} span:target {{ background: #fc64; }}
</style></head><body><p><a href="{home}">Weft</a> / {name}</p><pre>{body}</pre></body></html>
"""


def rewritten(root, source, page, target):
    """The target of a link on `page`, as Sphinx should see it."""
    name, _, anchor = target.partition("#")
    if "://" in target or not name or name.startswith("mailto:"):
        return target
    path = (root / page).parent.joinpath(name).resolve()
    if not path.is_relative_to(root):
        return target
    inside = path.relative_to(root).as_posix()
    if (source / inside).is_file():
        return target
    if not path.exists():
        LOG.warning("%s does not exist", inside, location=page)
    if page_of := FOLDERS.get(inside):
        return f"/{page_of}"
    return f"{SCHEME}:/{inside}" + (f"#{anchor}" if anchor else "")


def read_source(app, page, content):
    root, source = pathlib.Path(app.config.weft_root), pathlib.Path(app.srcdir)
    lines, fenced = content[0].split("\n"), False
    for number, line in enumerate(lines):
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            lines[number] = LINK.sub(lambda m: m[1] + rewritten(root, source, f"{page}.md", m[2]) + m[3], line)
    content[0] = "\n".join(lines)


def resolve(app, document, page):
    """Gives each source link its address, seen from this page."""
    from docutils import nodes
    for node in document.findall(nodes.reference):
        uri = node.get("refuri", "")
        if not uri.startswith(f"{SCHEME}:"):
            continue
        inside, _, anchor = uri.removeprefix(f"{SCHEME}:").lstrip("/").partition("#")
        fragment = f"#{anchor}" if anchor else ""
        if app.config.weft_source_url:
            node["refuri"] = f"{app.config.weft_source_url.rstrip('/')}/{inside}{fragment}"
        else:
            app.env.weft_shown.add(inside)
            node["refuri"] = f"{'../' * page.count('/')}source/{inside}.html{fragment}"


def shown(root, inside):
    """The body of the page of a file or of a folder."""
    path = root / inside
    if path.is_dir():
        return html.escape("\n".join(sorted(entry.name + "/" * entry.is_dir() for entry in path.iterdir())))
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join(f'<span id="L{n}"><a class="n" href="#L{n}">{n}</a>{html.escape(line)}</span>' for n, line in enumerate(lines, 1))


def write_sources(app, failure):
    if failure:
        return
    root, out = pathlib.Path(app.config.weft_root), pathlib.Path(app.outdir)
    for inside in app.env.weft_shown:
        target = out / "source" / f"{inside}.html"
        target.parent.mkdir(parents=True, exist_ok=True)
        home = "../" * (inside.count("/") + 1) + "index.html"
        target.write_text(PAGE.format(name=html.escape(inside), home=home, body=shown(root, inside)), encoding="utf-8")


def setup(app):
    app.add_config_value("weft_root", "", "env")
    app.add_config_value("weft_source_url", "", "env")
    app.connect("builder-inited", lambda app: setattr(app.env, "weft_shown", set()))
    app.connect("source-read", read_source)
    app.connect("doctree-resolved", resolve)
    app.connect("build-finished", write_sources)
    return {"parallel_read_safe": True, "parallel_write_safe": False}
