"""How Sphinx builds the site; scripts/build_site says where things are, by WEFT_SITE_ variables."""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

project = "Weft"
author = "the authors of Weft"
copyright = author
html_title = "Weft"
html_theme = "furo"
html_show_sphinx = False
html_show_copyright = False
html_show_sourcelink = False
html_copy_source = False
html_static_path = [str(pathlib.Path(__file__).resolve().parent / "static")]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
root_doc = "docs/site/index"
extensions = ["myst_parser", "breathe", "site_pages.families", "site_pages.links"]

weft_root = os.environ["WEFT_SITE_ROOT"]
weft_source_url = os.environ.get("WEFT_SITE_SOURCE_URL", "")

myst_heading_anchors = 4
myst_url_schemes = {"http": None, "https": None, "mailto": None, "source": None}
highlight_language = "none"

breathe_projects = {"weft": os.environ["WEFT_SITE_XML"]}
breathe_default_project = "weft"
breathe_domain_by_extension = {"h": "c", "hpp": "cpp"}
breathe_show_include = False
breathe_order_parameters_first = True

# Types of the language, of CUDA, and handles whose contents are nobody's business.
nitpick_ignore = [("c:identifier", name) for name in (
    "size_t", "ptrdiff_t", "CUstream_st", "weft_ctx", "weft_team", "weft_moe", "weft_moe_plan", "weft_watch", "va_list",
    *(f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)))]
nitpick_ignore_regex = [("cpp:identifier", r"(std|uint\d+_t|size_t|T|weft_\w+|Transferable|weft::detail)(::.*)?")]

# Functions are found by search and by subject; hundreds of them in the navigation would slow every
# page.
toc_object_entries = False
