# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The site: `sphinx-build -W -n docs docs/_build/html`."""

from __future__ import annotations

import sys
from pathlib import Path

import hatch_cuda_kernels

sys.path.insert(0, str(Path(__file__).parent / "_extension"))

project = "hatch-cuda-kernels"
author = "hatch-cuda-kernels contributors"
project_copyright = f"2026, {author}"
release = hatch_cuda_kernels.__version__
version = release

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "command_help"]
exclude_patterns = ["_build", "projects"]
nitpicky = True
nitpick_ignore_regex = [
    ("py:.*", r"(cuda|os|pathlib|collections)\..*"),  # other projects' names: their inventories are not at hand offline
    ("py:.*", r"(Device|Kernel|ObjectCode)"),
    ("py:class", r"hatch_cuda_kernels\.manifest\..*"),  # what stands behind a candidate is no public type
]

myst_enable_extensions = ["deflist", "fieldlist"]
myst_heading_anchors = 4

default_role = "literal"  # docstrings write names in single backticks
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
python_display_short_literal_types = True
add_module_names = False

html_theme = "furo"
html_title = f"hatch-cuda-kernels {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
pygments_style = "friendly"
pygments_dark_style = "github-dark"
