"""The documents as pages for a browser: make docs. The same Markdown, by Sphinx and MyST."""

project = "Leiden Zipper"
author = "the Leiden Zipper's authors"
extensions = ["myst_parser"]
root_doc = "README"
include_patterns = ["*.md", "docs/*.md", "docs/*/*.md"]
exclude_patterns = ["build"]
myst_heading_anchors = 3
html_theme = "sphinx_rtd_theme"
html_theme_options = {"collapse_navigation": False, "navigation_depth": 2}
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_show_search_summary = False  # it would be fetched, which browsers refuse for files
html_title = "Leiden Zipper"
html_show_sourcelink = False
html_show_sphinx = False
# Links to folders and sources of the tree are for readers of the tree; docgen's tests check them.
# MyST of Debian 12 reports them under the first name, newer releases under the second.
suppress_warnings = ["ref.myst", "myst.xref_missing"]

# MENU lists the entries of the menu in order: a caption and its pages. Code hosts have no menu, so
# it is not in the documents themselves.
MENU = [
    ("First steps", ["docs/tutorial/*"]),
    ("How to", ["docs/howto/*"]),
    ("Look up", ["docs/performance", "docs/performance/*", "docs/reference/*", "COMPATIBILITY", "SECURITY",
                 "CHANGELOG"]),
    ("How it works", ["ARCHITECTURE", "docs/design/*"]),
    ("Reasons", ["docs/decisions/*"]),
    ("Helping", ["CONTRIBUTING", "CODE_OF_CONDUCT", "docs/README"]),
]


def menu(app, name, source):
    """Adds the menu to the first page."""
    if name == root_doc:
        for caption, pages in MENU:
            source[0] += f"\n```{{toctree}}\n:hidden:\n:glob:\n:caption: {caption}\n\n"
            source[0] += "\n".join(pages) + "\n```\n"


def setup(app):
    app.connect("source-read", menu)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
