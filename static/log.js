// The viewer of a job's output: following, searching, wrapping. What is shown comes from the server as it is; nothing
// of it is read as markup here. Works on whatever htmx swaps in.
(() => {
  "use strict";

  const viewer = () => document.querySelector("[data-log]");
  const view = (root = document) => root.querySelector("[data-log-view]");
  const choice = { follow: true, wrap: localStorage.getItem("log-wrap") !== "no" };
  const NEAR = 24; // so close to the end counts as being there, in pixels

  const isAtEnd = (box) => box.scrollHeight - box.scrollTop - box.clientHeight < NEAR;
  // Moves the lines, not the page: whoever presses a button again finds it where it was.
  const bring = (box, line) => {
    const off = line.getBoundingClientRect().top - box.getBoundingClientRect().top;
    box.scrollTop += off - box.clientHeight / 2;
  };
  const toEnd = (box) => { box.scrollTop = box.scrollHeight; };

  // ---- Following: new lines come while the button is pressed; the view moves only for those who are at its end ----

  let wasAtEnd = true;
  let heightBefore = 0;

  function paint(root) {
    const box = view(root);
    if (!box) return;
    const buttons = root.querySelectorAll("[data-log-follow], [data-log-wrap], [data-log-search]");
    for (const button of buttons) button.hidden = false;
    const follow = root.querySelector("[data-log-follow]");
    follow?.setAttribute("aria-pressed", String(choice.follow));
    root.querySelector("[data-log-wrap]")?.setAttribute("aria-pressed", String(choice.wrap));
    box.classList.toggle("is-wrapped", choice.wrap);
    root.querySelector("[data-log-reload]")?.toggleAttribute("hidden", Boolean(follow));
  }

  document.addEventListener("htmx:beforeRequest", (event) => {
    if (event.target.id !== "log-live") return;
    const selection = document.getSelection();
    const isMarking = selection && !selection.isCollapsed && view()?.contains(selection.anchorNode);
    if (!choice.follow || isMarking || document.hidden) event.preventDefault();
  });

  document.addEventListener("htmx:beforeSwap", (event) => {
    const box = view();
    if (!box) return;
    const { target } = event.detail;
    wasAtEnd = isAtEnd(box);
    heightBefore = target?.id === "log-before" ? box.scrollHeight - box.scrollTop : 0;
  });

  document.addEventListener("htmx:afterSettle", (event) => {
    const root = viewer();
    const box = root && view(root);
    if (!box) return;
    if (event.target.matches?.("[data-log]") || event.target.querySelector?.("[data-log-view]")) {
      paint(root);
      toEnd(box);
    } else if (heightBefore) {
      box.scrollTop = box.scrollHeight - heightBefore; // the reader's line stays where it is
    } else if (wasAtEnd && choice.follow && box.contains(event.target)) {
      toEnd(box);
    }
    heightBefore = 0;
    if (find.words && box.contains(event.target)) look(false);
  });

  // ---- Searching in what is shown ----

  const find = { words: "", at: -1, hits: [] };
  const canMark = typeof Highlight === "function" && CSS.highlights;
  const MOST = 5000;

  function ranges(box, words) {
    const hits = [];
    const root = box.querySelector("[data-log-lines]").parentNode;
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_ELEMENT, {
      acceptNode: (node) => node.matches("[data-log-lines] div[id], [data-log-earlier] > div") && node.id !== "log-live"
        ? NodeFilter.FILTER_ACCEPT : NodeFilter.FILTER_SKIP,
    });
    while (walker.nextNode() && hits.length < MOST) {
      const line = walker.currentNode;
      const text = line.textContent.toLowerCase();
      for (let at = text.indexOf(words); at >= 0 && hits.length < MOST; at = text.indexOf(words, at + words.length)) {
        hits.push({ line, at });
      }
    }
    return hits;
  }

  // The stretch of a line that holds a match, across its coloured pieces.
  function rangeOf({ line, at }, length) {
    const range = document.createRange();
    const walker = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
    let before = 0;
    let isOpen = false;
    while (walker.nextNode()) {
      const node = walker.currentNode;
      const end = before + node.length;
      if (!isOpen && at < end) { range.setStart(node, at - before); isOpen = true; }
      if (isOpen && at + length <= end) { range.setEnd(node, at + length - before); return range; }
      before = end;
    }
    return null;
  }

  function look(jump = true) {
    const root = viewer();
    const box = root && view(root);
    if (!box) return;
    find.hits = find.words ? ranges(box, find.words) : [];
    if (jump) find.at = find.hits.length ? find.hits.length - 1 : -1; // the latest first: it is what one sees
    else find.at = Math.min(find.at, find.hits.length - 1);
    mark(root, jump);
  }

  function mark(root, jump) {
    const count = root.querySelector("[data-log-count]");
    const all = find.hits.length;
    const many = all === MOST ? `${MOST}+` : all;
    if (count) count.textContent = !find.words ? "" : all ? `${find.at + 1} of ${many}` : "No matches";
    for (const line of root.querySelectorAll(".is-found")) line.classList.remove("is-found");
    const hit = find.hits[find.at];
    if (canMark) {
      const made = find.hits.map((one) => rangeOf(one, find.words.length)).filter(Boolean);
      CSS.highlights.set("log-found", new Highlight(...made));
    }
    if (!hit) return;
    hit.line.classList.add("is-found");
    if (jump) bring(view(root), hit.line);
  }

  function step(by) {
    if (!find.hits.length) return;
    find.at = (find.at + by + find.hits.length) % find.hits.length;
    mark(viewer(), true);
  }

  let timer;
  document.addEventListener("input", (event) => {
    if (!event.target.matches?.("[data-log-find]")) return;
    clearTimeout(timer);
    timer = setTimeout(() => {
      find.words = event.target.value.trim().toLowerCase();
      look();
    }, 150);
  });
  document.addEventListener("keydown", (event) => {
    if (!event.target.matches?.("[data-log-find]") || event.key !== "Enter") return;
    event.preventDefault();
    step(event.shiftKey ? 1 : -1);
  });

  // ---- Buttons ----

  document.addEventListener("click", (event) => {
    const root = viewer();
    const box = root && view(root);
    const at = (selector) => event.target.closest?.(selector);
    if (!box) return;
    let hit;
    if (at("[data-log-follow]")) {
      choice.follow = !choice.follow;
      paint(root);
      if (choice.follow) toEnd(box);
    } else if (at("[data-log-wrap]")) {
      choice.wrap = !choice.wrap;
      localStorage.setItem("log-wrap", choice.wrap ? "yes" : "no");
      paint(root);
    } else if ((hit = at("[data-log-step]"))) {
      step(Number(hit.dataset.logStep));
    } else if ((hit = at("[data-log-jump]"))) {
      const line = document.getElementById(hit.hash.slice(1));
      if (!line) return;
      event.preventDefault();
      for (const other of root.querySelectorAll(".is-found")) other.classList.remove("is-found");
      line.classList.add("is-found");
      bring(box, line);
      box.focus({ preventScroll: true });
    }
  });

  const root = viewer();
  if (root && view(root)) { paint(root); toEnd(view(root)); }
})();
