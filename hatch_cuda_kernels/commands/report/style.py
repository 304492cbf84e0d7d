# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The look of the page. Every pair of colours that carries text has a contrast of at least 4.5 in both schemes."""

from __future__ import annotations

__all__ = ["FILLS", "STYLE"]

FILLS = ("#2f6db3", "#2f7d4f", "#a4560f", "#8a4fb0", "#b23a5b", "#2f7480", "#6a6a1c", "#5b6472")
"""Colours of architectures, under white text."""

STYLE = """
:root {
  color-scheme: light dark;
  --page: #ffffff; --panel: #f4f6f9; --ink: #1b2330; --muted: #566070; --line: #d6dce4; --accent: #0b5cad;
  --bar: #2f6db3; --track: #dfe5ec;
  --cubin: #d9f0df; --cubin-ink: #0d4a20; --ptx: #d9e8fa; --ptx-ink: #0c3f75;
  --jit: #fbeecd; --jit-ink: #5a4100; --none: #fbdcda; --none-ink: #7c1613;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #10151c; --panel: #19202a; --ink: #e4e9f0; --muted: #a0abba; --line: #303a47; --accent: #7fb7f5;
    --bar: #5d9be3; --track: #2b3542;
    --cubin: #12361f; --cubin-ink: #a9e5b9; --ptx: #122f4e; --ptx-ink: #aed3fa;
    --jit: #3d310c; --jit-ink: #f2d58c; --none: #4a1817; --none-ink: #ffb9b3;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main, header, footer { max-width: 78rem; margin: 0 auto; padding: 0 1.25rem; }
header { padding-top: 1.5rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 2.25rem 0 .5rem; padding-top: .5rem; border-top: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.25rem 0 .5rem; }
p { margin: .4rem 0; max-width: 60rem; }
.muted, caption, small { color: var(--muted); }
a { color: var(--accent); }
a:focus-visible, summary:focus-visible, .scroll:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
.skip { position: absolute; left: -100rem; }
.skip:focus { left: 1rem; top: .5rem; background: var(--page); padding: .5rem 1rem; z-index: 2; }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; list-style: none; padding: 0; margin: .75rem 0 0; }
dl.glance { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .75rem; margin: 1rem 0; }
dl.glance div { background: var(--panel); border: 1px solid var(--line); border-radius: 6px; padding: .6rem .8rem; }
dl.glance dt { color: var(--muted); font-size: .85rem; }
dl.glance dd { margin: 0; font-size: 1.2rem; font-weight: 600; overflow-wrap: anywhere; }
dl.glance dd small { display: block; font-size: .8rem; font-weight: 400; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding: .25rem 0; }
th, td { padding: .3rem .6rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
thead th { color: var(--muted); font-weight: 600; white-space: nowrap; }
tbody th { font-weight: 500; min-width: 14rem; max-width: 24rem; overflow-wrap: anywhere; }
td.n, th.n { text-align: right; white-space: nowrap; }
td.cell { text-align: center; padding: .3rem; white-space: nowrap; border-left: 2px solid var(--page); }
td.cell { font-weight: 600; } table:has(td.cell) thead th:not(:first-child) { text-align: center; }
td.cell small { display: block; font-weight: 400; font-size: .75rem; color: inherit; }
.cubin { background: var(--cubin); color: var(--cubin-ink); } .ptx { background: var(--ptx); color: var(--ptx-ink); }
.jit { background: var(--jit); color: var(--jit-ink); } .none { background: var(--none); color: var(--none-ink); }
.mark { border-radius: 4px; padding: 0 .4rem; font-weight: 600; }
.bar { display: block; height: 5px; min-width: 4.5rem; margin-top: 2px; border-radius: 3px; background: var(--track); }
.bar i { display: block; height: 100%; border-radius: 3px; background: var(--bar); }
details { margin: .5rem 0; } summary { cursor: pointer; }
svg { display: block; width: 100%; min-width: 40rem; height: auto; font-family: system-ui, sans-serif; }
svg .frame { fill: var(--panel); stroke: var(--line); } svg .name { fill: var(--ink); }
svg .tile { stroke: var(--page); } svg .on { fill: #ffffff; } svg .axis { stroke: var(--line); }
svg .tick { fill: var(--muted); }
ul.legend { display: flex; flex-wrap: wrap; gap: .25rem 1rem; list-style: none; padding: 0; margin: .5rem 0; }
ul.legend i { display: inline-block; width: .8rem; height: .8rem; border-radius: 2px; margin-right: .35rem; }
pre { background: var(--panel); border: 1px solid var(--line); padding: .6rem; overflow-x: auto; margin: .4rem 0; }
footer { margin-top: 2.5rem; padding-bottom: 2rem; border-top: 1px solid var(--line); color: var(--muted); }
@media print { nav, .skip { display: none; } .scroll { overflow: visible; } }
"""
