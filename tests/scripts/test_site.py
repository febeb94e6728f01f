"""The site builds without a warning, its reference has every function of the library and no other, and the messages that it
explains are those of the sources. One build for all tests."""
import re
import subprocess
import sys
import zlib

import pytest

STRING = re.compile(r'"((?:\\.|[^"\\\n])*)"')
LITERALS = re.compile(r'(?:"(?:\\.|[^"\\\n])*"\s*)+')


@pytest.fixture(scope="module")
def site(project, tmp_path_factory):
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, project / "scripts" / "build_site", "--no-install", "--out", out]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if "missing; install" in built.stderr:
        pytest.skip(built.stderr.strip())
    assert built.returncode == 0, built.stdout + built.stderr
    return out / "html"


def exported(library):
    listed = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    kinds_and_names = (line.split()[-2:] for line in listed.splitlines())
    return {name.partition("@")[0] for kind, name in kinds_and_names if kind in "TW"}


def entries(site):
    """The functions that the site's index of objects names."""
    head = b"# The remainder of this file is compressed using zlib.\n"
    lines = zlib.decompress((site / "objects.inv").read_bytes().partition(head)[2]).decode().splitlines()
    return {line.split()[0] for line in lines if line.split()[1] in ("c:function", "std:typed")}


def test_every_exported_function_has_an_entry_and_every_entry_a_function(site, build_dir):
    libraries = [build_dir / "lib" / name for name in ("libweft.so", "libweft_moe.so")]
    for library in libraries:
        if not library.exists():
            pytest.skip(f"{library} is not built")
    functions, named = set().union(*map(exported, libraries)), entries(site)
    assert len(functions) > 4000
    assert named == functions


def test_every_function_of_an_entry_has_its_anchor(site):
    pages = "".join(page.read_text() for page in (site / "api").glob("*.html"))
    anchors = set(re.findall(r'id="(?:c\.)?(\w+)"', pages))
    assert not entries(site) - anchors


def test_links_lead_to_pages_and_anchors_that_are_there(site):
    anchors = {page: set(re.findall(r'\bid="([^"]+)"', page.read_text())) for page in site.rglob("*.html")}
    broken = []
    for page in anchors:
        for target in re.findall(r'href="([^":]*)"', page.read_text()):
            name, _, anchor = target.partition("#")
            name = name.partition("?")[0]
            to = (page.parent / name).resolve() if name else page
            if not to.exists() or (anchor and to in anchors and anchor not in anchors[to] | {"furo-main-content"}):
                broken.append(f"{page.relative_to(site)}: {target}")
    assert not broken


def test_messages_that_the_site_explains_are_in_the_sources(project):
    texts = []
    for path in [*(project / "src").rglob("*.?pp"), *(project / "moe" / "src").rglob("*.?pp"), *(project / "tools" / "run").rglob("*.?pp")]:
        for found in LITERALS.finditer(path.read_text()):
            texts.append("".join(STRING.findall(found[0])))
    everything = "\n".join(texts)
    rows = [line for line in (project / "docs" / "site" / "messages.md").read_text().splitlines() if line.startswith("| `")]
    assert len(rows) > 30
    for row in rows:
        message = row.split("`")[1]
        fragments = [part.strip(" ;,.:()") for part in message.split("...")]
        unknown = [part for part in fragments if part and part not in everything]
        assert not unknown, f"docs/site/messages.md: {message}"


@pytest.fixture
def pages_of_the_site(project, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(project / "scripts"), *sys.path])
    from site_pages import headers, operations
    return headers, operations


@pytest.mark.parametrize(("name", "family"), [
    ("weft_ctx_int32_p", "weft_TYPE_p"), ("weft_ctx_put", "weft_put"), ("weft_ctx_create", "weft_ctx_create"),
    ("shmem_ctx_longdouble_put_nbi", "shmem_TYPE_put_nbi"), ("shmem_put64_signal", "shmem_putSIZE_signal"),
    ("pshmem_getmem", "pshmem_getSIZE"), ("shmem_int32_atomic_fetch_add", "shmem_TYPE_atomic_fetch_add")])
def test_functions_that_differ_in_type_size_or_context_are_one_family(pages_of_the_site, name, family):
    headers, _ = pages_of_the_site
    assert headers.family(name, {"weft_put", "weft_ctx_put", "weft_ctx_create"}) == family


def test_a_function_that_nothing_describes_is_an_error(pages_of_the_site):
    _, operations = pages_of_the_site
    assert "adds" in operations.described("shmem_TYPE_atomic_fetch_add").lower()
    with pytest.raises(SystemExit, match="nothing says what shmem_new_thing does"):
        operations.described("shmem_new_thing")
