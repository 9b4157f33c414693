"""The scripts: one tells what curves say below the pointer, one renews the status page and keeps what is unfolded."""

from __future__ import annotations

from typing import Final

RENEW: Final = """
(() => {
  "use strict";
  const script = document.currentScript, lost = document.getElementById("lost");
  const every = 1000 * Number(script.dataset.every);
  let answered = new Date(), opened = new Map();
  const main = () => document.querySelector("main");
  const reading = () => {
    const selected = document.getSelection();
    return selected && !selected.isCollapsed && main().contains(selected.anchorNode);
  };
  const unfold = () => {
    const there = location.hash && document.getElementById(location.hash.slice(1));
    const fold = there && there.closest("details");
    if (fold && !fold.open) { fold.open = true; there.scrollIntoView(); }
  };
  const take = (page) => {
    const fresh = page.querySelector("main"), old = main();
    if (!fresh) throw new Error("not the status page");
    if (page.getElementById("renew").textContent !== script.textContent) { location.reload(); return; }
    old.querySelectorAll("details[id]").forEach((each) => opened.set(each.id, each.open));
    fresh.querySelectorAll("details[id]").forEach((each) => {
      if (opened.has(each.id)) each.open = opened.get(each.id);
    });
    const moved = [...old.querySelectorAll(".scroll")].map((each) => each.scrollLeft);
    const focused = document.activeElement && old.contains(document.activeElement) && document.activeElement.id;
    const [x, y] = [scrollX, scrollY];
    old.replaceWith(document.adoptNode(fresh));
    fresh.querySelectorAll(".scroll").forEach((each, i) => { each.scrollLeft = moved[i] || 0; });
    if (focused && document.getElementById(focused)) document.getElementById(focused).focus({ preventScroll: true });
    scrollTo(x, y);
    document.title = page.title;
  };
  const ask = async () => {
    if (document.hidden || reading()) return;
    try {
      const patience = AbortSignal.timeout(10000);
      const answer = await fetch(location.pathname + location.search, { cache: "no-store", signal: patience });
      if (!answer.ok) throw new Error("it answered " + answer.status);
      take(new DOMParser().parseFromString(await answer.text(), "text/html"));
      answered = new Date();
      lost.hidden = true;
    } catch (error) {
      const since = answered.toLocaleTimeString();
      lost.textContent = "No answer from the service since " + since + ". What you see is from then.";
      lost.hidden = false;
      main().classList.add("stale");
    }
  };
  const turn = () => ask().finally(() => setTimeout(turn, every));
  addEventListener("hashchange", unfold);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) ask(); });
  unfold();
  setTimeout(turn, every);
})();
"""

READ: Final = """
(() => {
  "use strict";
  const box = document.createElement("div");
  box.id = "reading";
  box.hidden = true;
  document.body.append(box);
  const at = (line, place) => line.getAttribute("points").split(" ").map((point) => point.split(",").map(Number))
    .reduce((best, point) => Math.abs(point[0] - place) < Math.abs(best[0] - place) ? point : best)[1];
  const told = (value, ratio) => ratio ? (100 * value).toPrecision(3) + "%" : String(Number(value.toPrecision(3)));
  const say = (chart, place) => {
    const data = chart.dataset, height = Number(chart.querySelector("svg").getAttribute("height"));
    const row = Math.round(Number(data.start) + place * (data.end - data.start));
    const lines = [...chart.querySelectorAll("polyline")].reverse().map((line) => {
      const down = at(line, 1000 * place), value = data.top * (height - Math.max(down, 0)) / height;
      const name = line.querySelector("title").textContent;
      return (name.length > 40 ? name.slice(0, 39) + "…" : name) + (down < 0 ? " over " : " ") +
        told(value, "ratio" in data);
    });
    return ["row " + row.toLocaleString("en-US"), ...lines];
  };
  document.addEventListener("pointermove", (event) => {
    const chart = event.target.closest && event.target.closest("svg.chart");
    box.hidden = !chart;
    if (!chart) return;
    const area = chart.getBoundingClientRect();
    const place = Math.min(Math.max((event.clientX - area.left) / area.width, 0), 1);
    box.replaceChildren(...say(chart, place).map((text) => {
      const line = document.createElement("p");
      line.textContent = text;
      return line;
    }));
    box.style.left = Math.max(0, Math.min(event.pageX + 14, scrollX + innerWidth - box.offsetWidth - 8)) + "px";
    box.style.top = event.pageY + 14 + "px";
  });
})();
"""
