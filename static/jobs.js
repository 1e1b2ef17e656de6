// The pages about jobs: what was chosen in the list stays chosen when it renews itself, the time of running jobs goes on,
// and an action is asked about in place. The pages work without it.
(() => {
  "use strict";

  const all = (selector, root = document) => [
    ...(root.matches?.(selector) ? [root] : []),
    ...root.querySelectorAll(selector),
  ];

  // ---- The list: what was chosen stays chosen, and a changed row says so gently ----

  const BOX = "[data-picks] input[name=job]";
  let before = new Map();
  let chosen = new Set();
  let focused = null;

  function rememberRows(root) {
    before = new Map(all("[data-mark]", root).map((row) => [row.id, row.dataset.mark]));
    chosen = new Set(all(`${BOX}:checked`, root).map((box) => box.value));
    focused = document.activeElement?.matches(BOX) ? document.activeElement.value : null;
  }

  // Called in the swap itself: htmx:load only comes when the new rows have settled. Until then a chosen box would be
  // empty, and a click on one would be undone.
  function restorePicks(root) {
    for (const box of all(BOX, root)) {
      box.checked = chosen.has(box.value);
      if (box.value === focused) box.focus({ preventScroll: true });
    }
    countPicks();
  }

  // Called on htmx:load: settling sets the classes of rows anew.
  function markChanges(root) {
    if (before.size > 0) {
      for (const row of all("[data-mark]", root)) {
        if (before.get(row.id) !== row.dataset.mark) row.classList.add("is-changed");
      }
    }
    countPicks();
  }

  function countPicks() {
    const form = document.querySelector("[data-picks]");
    if (!form) return;
    const boxes = all("input[name=job]", form);
    const count = boxes.filter((box) => box.checked).length;
    const bar = form.querySelector("[data-pick-bar]");
    if (bar) {
      bar.classList.toggle("is-empty", count === 0);
      bar.querySelector("[data-pick-count]").textContent =
        count === 0 ? "For selected jobs" : count === 1 ? "1 job selected" : `${count} jobs selected`;
      for (const button of all("button", bar)) button.disabled = count === 0;
    }
    const every = form.querySelector("[data-pick-all]");
    if (every) {
      every.hidden = boxes.length === 0;
      every.checked = count > 0 && count === boxes.length;
      every.indeterminate = count > 0 && count < boxes.length;
    }
  }

  document.addEventListener("change", (event) => {
    const form = event.target.closest?.("[data-picks]");
    if (!form) return;
    if (event.target.matches("[data-pick-all]")) {
      for (const box of all("input[name=job]", form)) box.checked = event.target.checked;
    }
    countPicks();
  });

  // Whoever is pressing something in the list presses what they saw: new rows wait for the release. A swap in between
  // would take the pressed box away, and the browser would make no click of the two halves.
  const PRESS_MS = 5000; // a press whose end nobody heard of must not stop the list for ever
  let pressedAt = -Infinity;
  let hasWaiting = false;
  const isPressing = () => performance.now() - pressedAt < PRESS_MS;

  function release() {
    pressedAt = -Infinity;
    if (!hasWaiting) return;
    hasWaiting = false;
    // After the click that belongs to this release.
    setTimeout(() => {
      const list = document.querySelector("[data-queue]");
      if (list && window.htmx) window.htmx.trigger(list, "seen");
    });
  }

  document.addEventListener("pointerdown", (event) => {
    if (event.button === 0 && event.target.closest?.("[data-queue]")) pressedAt = performance.now();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === " " && !event.repeat && event.target.matches?.(BOX)) pressedAt = performance.now();
  });
  for (const name of ["pointerup", "pointercancel", "keyup"]) document.addEventListener(name, release);
  window.addEventListener("blur", release);

  document.addEventListener("htmx:beforeSwap", (event) => {
    if (!event.detail.target?.matches?.("[data-queue]")) return;
    if (isPressing() && event.detail.shouldSwap) {
      event.detail.shouldSwap = false;
      hasWaiting = true;
    } else {
      rememberRows(event.detail.target);
    }
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.target.matches?.("[data-queue]")) restorePicks(event.target);
  });

  // ---- Running jobs: <span data-elapsed="125"> counts on from the server's figure, whatever this clock shows ----

  const DAY = 86400;
  const begun = new WeakMap();
  let timer = null;

  // As src/format.rs writes durations.
  function durationText(seconds) {
    const two = (first, name, second, small) => (second === 0 ? `${first} ${name}` : `${first} ${name} ${second} ${small}`);
    const whole = (size) => Math.floor(seconds / size);
    if (seconds < 60) return `${seconds} s`;
    if (seconds < 600) return two(whole(60), "min", seconds % 60, "s");
    if (seconds < 3600) return `${whole(60)} min`;
    if (seconds < DAY) return two(whole(3600), "h", whole(60) % 60, "min");
    return two(whole(DAY), seconds < 2 * DAY ? "day" : "days", whole(3600) % 24, "h");
  }

  function tick() {
    for (const one of all("[data-elapsed]")) {
      if (!begun.has(one)) begun.set(one, Date.now() - Number(one.dataset.elapsed) * 1000);
      const seconds = Math.floor((Date.now() - begun.get(one)) / 1000);
      const text = durationText(seconds);
      if (one.textContent !== text) one.textContent = text;
      const bar = one.closest("[data-elapsed-box]")?.querySelector("progress");
      if (bar) bar.value = Math.min(seconds, bar.max);
    }
  }

  // One timer for all of them, and none while nobody sees the page.
  function keepTicking() {
    clearInterval(timer);
    if (document.hidden) return;
    tick();
    timer = setInterval(tick, 1000);
  }
  document.addEventListener("visibilitychange", keepTicking);

  // ---- Actions: asked about in place ----

  let opener = null;

  // isAsked: whether the person closed it; otherwise the focus moves only if it was in it.
  function closeAction(isAsked) {
    const place = document.getElementById("job-action");
    if (!place || place.childElementCount === 0) return;
    const isLeft = !isAsked && !place.contains(document.activeElement);
    place.replaceChildren();
    if (isLeft) return;
    const back = opener?.isConnected ? opener : document.querySelector("[data-picks] button, #main");
    back?.focus({ preventScroll: true });
  }

  // What an action was sent for, as it looked then: once all of it looks different, the new state is shown, and the
  // outcome need not announce it any more. On the page of one job or array, all of it is that page.
  let awaited = new Map();
  const markOf = (id) => (document.getElementById("job-live") ?? document.getElementById(id))?.dataset.mark;

  function awaitChange(form) {
    const ids = all("input[name=job]", form).map((pick) => `job-${pick.value.replace("/", "-")}`);
    // Moving a job to the top changes no row: the next list has it.
    const isMoved = form.querySelector("input[name=verb]")?.value === "top";
    awaited = new Map(ids.map((id) => [id, isMoved ? null : markOf(id)]));
  }

  function settleAction(isRenewed) {
    const card = document.querySelector("#job-action [data-action-done]");
    const isShown = ([id, mark]) => (mark === null ? isRenewed : markOf(id) !== mark);
    if (!card || ![...awaited].every(isShown)) return;
    // What can be undone stays until it is closed.
    if (card.querySelector("form")) card.querySelector("[data-action-note]")?.remove();
    else closeAction(false);
  }

  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.target.matches?.("[data-queue], #job-live")) settleAction(true);
    else if (event.target.closest?.("#job-action")) settleAction(false);
  });

  document.addEventListener("submit", (event) => {
    if (event.target.closest?.("#job-action")) {
      awaitChange(event.target);
      return;
    }
    if (event.target.matches?.("[hx-target='#job-action']")) opener = event.submitter;
  });
  document.addEventListener("click", (event) => {
    if (event.target.closest?.("[data-action-close]")) closeAction(true);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && event.target.closest?.("#job-action")) closeAction(true);
  });

  document.addEventListener("htmx:load", (event) => {
    const root = event.detail.elt;
    if (root === document.body) return;
    if (all("[data-queue]", root).length > 0) markChanges(root);
    tick();
  });
  // Where there is room, the filters need no unfolding; app.css hides what would fold them.
  const filters = document.getElementById("jobs-filters");
  if (filters && matchMedia("(min-width: 52rem)").matches) filters.open = true;

  countPicks();
  keepTicking();
})();
