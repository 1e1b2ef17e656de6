// A folder's page: the keyboard, ticks that stay when the rows are renewed, and what to say when they can't be had. The
// page works without it.
(() => {
  "use strict";

  const form = document.getElementById("files-form");
  if (!form) return;

  const ROW = "tr[data-name]";
  const rows = () => [...form.querySelectorAll(ROW)];
  const boxes = () => [...form.querySelectorAll(`${ROW} input[name=name]`)];
  const filter = document.querySelector("[data-files-filter]");
  const find = document.getElementById("files-find");
  const count = document.querySelector("[data-files-count]");

  // ---- Ticks ----

  let ticked = new Set();

  function countTicks() {
    const all = boxes();
    const chosen = all.filter((box) => box.checked).length;
    const words = chosen === 0 ? "" : chosen === 1 ? "1 selected" : `${chosen.toLocaleString("en")} selected`;
    if (count && count.textContent !== words) count.textContent = words;
    const extract = document.querySelector("[data-files-extract]");
    if (extract) extract.hidden = !(chosen === 1 && form.querySelector("tr[data-archive] input[name=name]:checked"));
    const every = form.querySelector("[data-files-all]");
    if (!every) return;
    every.hidden = all.length === 0;
    every.checked = chosen > 0 && chosen === all.length;
    every.indeterminate = chosen > 0 && chosen < all.length;
  }

  form.addEventListener("change", (event) => {
    if (event.target.matches("[data-files-all]")) {
      for (const box of boxes()) box.checked = event.target.checked;
    }
    countTicks();
  });

  document.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.target?.id !== "files-rows") return;
    ticked = new Set(boxes().filter((box) => box.checked).map((box) => box.value));
  });
  document.addEventListener("htmx:afterSwap", () => {
    for (const box of boxes()) if (ticked.has(box.value)) box.checked = true;
    ticked.clear();
    // The connection may have been opened meanwhile.
    if (form.querySelector("table")) document.querySelector("[data-files-tools]").hidden = false;
    countTicks();
    showSelected();
  });

  // ---- The entry that someone came for ----

  let hasShown = false;

  function showSelected() {
    const row = form.querySelector("tr[data-selected]");
    if (!row || hasShown) return;
    hasShown = true;
    row.scrollIntoView({ block: "center" });
    row.querySelector("[data-open]").focus({ preventScroll: true });
  }

  // ---- The keyboard ----

  function focusRow(row) {
    row?.querySelector("[data-open]").focus();
    row?.scrollIntoView({ block: "nearest" });
  }

  // On a phone the filter is folded away.
  function focusFilter() {
    if (find) find.open = true;
    filter?.focus();
  }

  function move(step) {
    const all = rows();
    const at = all.indexOf(document.activeElement.closest?.(ROW));
    if (at < 0) focusRow(all[0]);
    else if (at + step < 0) focusFilter();
    else focusRow(all[at + step]);
  }

  document.addEventListener("keydown", (event) => {
    const { key, target } = event;
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey || event.defaultPrevented) return;
    if (document.querySelector("dialog[open]")) return;
    const isTyping = target.matches?.("input:not([type=checkbox]), textarea, select, [contenteditable]");
    const isFree = target === document.body || target.id === "main";
    const row = target.closest?.(ROW);
    let handled = true;
    if (key === "ArrowDown" && target === filter) move(1);
    else if (isTyping) return;
    else if (key === "/" && filter) { focusFilter(); filter.select(); }
    else if (key === "ArrowDown" && (row || isFree)) move(1);
    else if (key === "ArrowUp" && row) move(-1);
    else if (key === " " && row && target.matches("[data-open]")) row.querySelector("input[name=name]").click();
    else if (key === "Backspace") document.querySelector("[data-files-up]")?.click();
    else handled = false;
    if (handled) event.preventDefault();
  });

  // Enter in the form would post it: nothing in it is typed.
  form.addEventListener("submit", (event) => { if (!event.submitter?.hasAttribute("formaction")) event.preventDefault(); });

  // ---- Rows that didn't come ----

  function showFailure(event) {
    const loading = form.querySelector("[data-files-loading]");
    if (event.detail.target?.id !== "files-rows" || !loading) return;
    loading.replaceWith(document.querySelector("template[data-files-failed]").content.cloneNode(true));
    form.querySelector("#files-rows").removeAttribute("aria-busy");
  }
  for (const kind of ["htmx:sendError", "htmx:timeout", "htmx:responseError"]) {
    document.addEventListener(kind, showFailure);
  }

  if (find && matchMedia("(min-width: 52rem)").matches) find.open = true;
  countTicks();
  showSelected();
})();
