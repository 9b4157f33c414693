"""The style of our pages: two sets of colours by what the reader's device prefers, and one accent."""

from __future__ import annotations

from typing import Final

STYLE: Final = """
:root { color-scheme: light dark; --page: #f6f6f4; --card: #ffffff; --ink: #1a1d21; --soft: #5b616a; --line: #dfdfdb;
  --faint: #ecece9; --accent: #0068a3; --alarm: #a84600; --grey: #6d6d6d; --pale: #8f8f8f; --c0: #0072b2; --c1:
  #d55e00; --c2: #009e73; --c3: #cc79a7; --c4: #e69f00; --c5: #56b4e9; --c6: #000000; --heat: 0, 104, 163; }
@media (prefers-color-scheme: dark) { :root { --page: #121417; --card: #1a1d21; --ink: #e4e6e9; --soft: #a0a7b0;
  --line: #33383f; --faint: #262a30; --accent: #6cbcf0; --alarm: #f29a55; --grey: #9a9a9a; --pale: #7d7d7d; --c0:
  #56b4e9; --c1: #e8742a; --c2: #1fb58b; --c3: #cc79a7; --c4: #e69f00; --c5: #3d93cc; --c6: #e4e6e9; --heat: 108, 188,
  240; } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--page); color: var(--ink); font: 14px/1.45 system-ui, "Segoe UI", Roboto,
  "Helvetica Neue", Arial, sans-serif; font-variant-numeric: tabular-nums; }
main { max-width: 1280px; margin: 0 auto; padding: 20px 20px 48px; }
main.stale { opacity: .6; }
a { color: var(--accent); text-decoration-thickness: 1px; text-underline-offset: 2px; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 2px; }
bdi { overflow-wrap: anywhere; }
h1 { font-size: 22px; line-height: 1.2; margin: 0; letter-spacing: -.01em; }
h2 { font-size: 13px; margin: 28px 0 8px; color: var(--soft); font-weight: 600; }
h3 { font-size: 16px; margin: 0; display: inline; }
h4 { font-size: 13px; margin: 16px 0 4px; font-weight: 600; }
p { margin: 4px 0; }
.soft, .none, caption, figcaption { color: var(--soft); }
.alarm { color: var(--alarm); font-weight: 600; }
.good::before { content: "●"; color: var(--accent); margin-right: .4em; font-size: .8em; }
.alarm.flag::before { content: "▲"; margin-right: .4em; font-size: .8em; }
.top { display: flex; flex-wrap: wrap; gap: 4px 24px; align-items: baseline; justify-content: space-between; }
.state { display: flex; flex-wrap: wrap; gap: 2px 18px; margin: 6px 0 0; padding: 0; list-style: none; }
nav { display: flex; gap: 14px; }
#lost { margin: 0; padding: 10px 20px; background: var(--alarm); color: var(--page); font-weight: 600; position:
  sticky; top: 0; z-index: 1; }
#lost[hidden] { display: none; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 6px; padding: 14px 16px; margin: 0 0
  12px; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); background: var(--card); border:
  1px solid var(--line); border-radius: 6px; margin: 16px 0 0; overflow: hidden; }
.tiles > div { padding: 10px 14px; border-right: 1px solid var(--line); border-bottom: 1px solid var(--line); margin:
  0 -1px -1px 0; }
dl { margin: 0; }
dt { color: var(--soft); font-size: 12px; }
dd { margin: 0; }
.tiles dd { font-size: 20px; line-height: 1.3; }
.tiles dd small { display: block; font-size: 12px; color: var(--soft); }
.facts { display: grid; grid-template-columns: repeat(auto-fill, minmax(120px, 1fr)); gap: 10px 16px; margin-top:
  12px; }
.scroll { overflow-x: auto; }
.scroll.card { padding: 4px 16px; }
table { border-collapse: collapse; width: 100%; }
caption { text-align: left; padding: 4px 0; font-size: 12px; }
th, td { padding: 6px 0 6px 14px; text-align: left; border-top: 1px solid var(--faint); vertical-align: middle; }
th:first-child, td:first-child { padding-left: 0; }
thead th { border-top: 0; color: var(--soft); font-weight: 500; font-size: 12px; vertical-align: bottom;
  padding-bottom: 4px; }
tbody th { font-weight: 500; min-width: 9em; position: sticky; left: 0; background: var(--card); }
tbody th small { display: block; color: var(--soft); font-weight: 400; }
.num { text-align: right; white-space: nowrap; }
.group { text-align: center; border-bottom: 1px solid var(--line); }
.tight { width: auto; }
.tight caption { white-space: nowrap; }
.tight tbody th { min-width: 5em; }
.tight th, .tight td { padding: 4px 0 4px 18px; }
.tight th:first-child, .tight td:first-child { padding-left: 0; }
details.card:not([open]) { margin-bottom: 4px; }
.apart > * + * { margin-top: 16px; }
.apart > details + details { margin-top: 4px; }
details.card .scroll, details.card details { margin-top: 16px; }
details details .scroll { margin-top: 4px; }
.card > .scroll:first-child { margin-top: -6px; }
.columns { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 380px), 1fr)); gap: 12px 28px; }
.columns > * { min-width: 0; }
figure { margin: 8px 0 0; }
figcaption { font-size: 12px; margin-bottom: 2px; }
figcaption b { color: var(--ink); font-weight: 600; }
svg { display: block; overflow: visible; }
svg svg { overflow: hidden; }
svg text { font-size: 11px; fill: var(--soft); }
svg .scale { paint-order: stroke; stroke: var(--card); stroke-width: 3px; stroke-linejoin: round; }
.chart line, .spark line { stroke-width: 1; }
.grid { stroke: var(--faint); }
.axis { stroke: var(--pale); }
polyline { fill: none; stroke-width: 1.6; stroke-linejoin: round; vector-effect: non-scaling-stroke; }
.chart polyline { pointer-events: none; }
#reading { position: absolute; z-index: 1; background: var(--card); border: 1px solid var(--line); border-radius: 4px;
  padding: 5px 9px; font-size: 12px; pointer-events: none; }
#reading p { margin: 0; white-space: nowrap; }
#reading p:first-child { color: var(--soft); }
#reading[hidden] { display: none; }
.key line { stroke-width: 2; }
.own { stroke: var(--c0); }
.majority { stroke: var(--grey); }
.no-change { stroke: var(--pale); }
.c0 { stroke: var(--c0); }
.c1 { stroke: var(--c1); }
.c2 { stroke: var(--c2); }
.c3 { stroke: var(--c3); }
.c4 { stroke: var(--c4); }
.c5 { stroke: var(--c5); }
.c6 { stroke: var(--c6); }
.mark line { stroke: var(--alarm); stroke-opacity: .55; }
.mark.stroke line { stroke-opacity: 1; }
.mark text { fill: var(--alarm); font-size: 9px; }
.bar { fill: var(--c0); }
.bar.other { fill: var(--pale); }
.legend { display: flex; flex-wrap: wrap; gap: 2px 18px; font-size: 13px; margin: 8px 0 0; }
.entry { display: inline-flex; align-items: center; gap: 6px; }
.flagged { color: var(--alarm); font-size: 10px; width: 22px; text-align: center; }
summary { cursor: pointer; }
summary > * { vertical-align: baseline; }
summary .soft { margin-left: 8px; }
.right > span { margin-left: 12px; }
details.card > summary { margin: -14px -16px; padding: 12px 16px; }
details.card[open] > summary { margin-bottom: 0; }
.right { float: right; margin-left: 12px; }
.heat td { min-width: 3.5em; padding: 4px 10px; }
.heat tbody th { min-width: 0; padding-right: 10px; }
.heat .h1 { background: rgba(var(--heat), .10); }
.heat .h2 { background: rgba(var(--heat), .22); }
.heat .h3 { background: rgba(var(--heat), .36); }
.heat .h4 { background: rgba(var(--heat), .52); }
.heat .right-one { outline: 1px solid var(--pale); outline-offset: -2px; }
.partitions { display: grid; grid-template-columns: repeat(auto-fill, minmax(110px, 1fr)); gap: 0 22px; margin-top:
  6px; }
.partitions > div { display: flex; justify-content: space-between; border-top: 1px solid var(--faint); padding: 2px 0;
  }
.partitions dt { font-size: 13px; }
pre { margin: 10px 0 0; overflow-x: auto; font: 12px/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
footer { color: var(--soft); font-size: 12px; margin-top: 24px; }
@media (max-width: 560px) { main { padding: 14px 12px 32px; } .card, .scroll.card { padding-left: 12px; padding-right:
  12px; } details.card > summary { margin-left: -12px; margin-right: -12px; padding-left: 12px; padding-right: 12px; }
  .tiles { grid-template-columns: 1fr 1fr; } .right { float: none; margin-left: 0; display: block; } }
@media print { :root { --page: #ffffff; } body { font-size: 11px; } main { max-width: none; padding: 0; } nav {
  display: none; } .card, figure, tr { break-inside: avoid; } #lost { display: none; } }
"""
