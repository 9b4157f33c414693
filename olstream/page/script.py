"""The script of the status page: fetch the page again, take its numbers over, keep what the reader has opened."""

from __future__ import annotations

from typing import Final

SCRIPT: Final = """
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
    if (page.querySelector("script").textContent !== script.textContent) { location.reload(); return; }
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
