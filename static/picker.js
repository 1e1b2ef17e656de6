// Choosing a file or folder of a cluster: a button beside a field opens the dialog of templates/folders/dialog.html,
// which is filled by the server. What is chosen goes into the field, as if it had been typed.
(() => {
  "use strict";

  const dialog = document.querySelector("dialog[data-picker]");
  if (!dialog?.showModal || !window.htmx) return;

  const TITLES = { file: "Choose a file", folder: "Choose a folder", any: "Choose a file or folder" };
  const title = dialog.querySelector("h2");
  let opener = null; // the button that was pressed
  let isFirst = true; // whether this is the first folder since the dialog opened
  let showsHidden = false;

  const inside = () => dialog.querySelector("#folders");
  const put = (template) => inside().replaceWith(dialog.querySelector(template).content.cloneNode(true));

  // ---- Opening, and asking the cluster once it is open ----

  function ask() {
    const { pick, pickKind = "any", pickClusterField } = opener.dataset;
    const pickCluster = pickClusterField ? document.getElementById(pickClusterField).value : opener.dataset.pickCluster;
    const path = document.getElementById(pick)?.value.trim() || (opener.dataset.pickStart ?? "");
    const query = new URLSearchParams({ path, pick: pickKind, field: pick, near: "true" });
    put("[data-picker-loading]");
    isFirst = true;
    window.htmx.ajax("GET", `/clusters/${encodeURIComponent(pickCluster)}/folders?${query}`, {
      source: inside(), target: "#folders", swap: "outerHTML",
    });
  }

  function open(button) {
    opener = button;
    title.textContent = TITLES[button.dataset.pickKind] ?? TITLES.any;
    dialog.showModal();
    ask();
  }

  function choose(value) {
    const input = document.getElementById(opener.dataset.pick);
    dialog.close();
    if (!input) return;
    input.value = value;
    for (const kind of ["input", "change"]) input.dispatchEvent(new Event(kind, { bubbles: true }));
  }

  dialog.addEventListener("close", () => {
    window.htmx.trigger(inside(), "htmx:abort");
    inside().replaceChildren();
    opener?.focus();
  });

  // ---- What a folder's names look like: filtered, and without those that begin with a dot ----

  const names = () => [...dialog.querySelectorAll("[data-folders-list] > [data-name]")];

  function sift() {
    const words = (dialog.querySelector("[data-folders-filter]")?.value ?? "").trim().toLowerCase();
    const all = names();
    let shown = 0;
    for (const one of all) {
      const name = one.querySelector(".folders-name").textContent.toLowerCase();
      const isMeant = words === "" || name.includes(words);
      one.hidden = !isMeant || (!showsHidden && "dot" in one.dataset);
      if (!one.hidden) shown += 1;
    }
    const none = dialog.querySelector("[data-folders-none]");
    if (!none) return;
    none.hidden = all.length === 0 || shown > 0;
    none.textContent = none.hidden ? "" : words === "" ? "This folder contains only hidden files." : "No matches.";
  }

  function paint() {
    const tools = dialog.querySelector("[data-folders-tools]");
    if (tools) tools.hidden = false;
    const hidden = dialog.querySelector("[data-folders-hidden]");
    if (hidden) {
      hidden.hidden = !names().some((one) => "dot" in one.dataset);
      hidden.setAttribute("aria-pressed", String(showsHidden));
    }
    sift();
  }

  function move(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const row = event.target.closest(".folders-row, [data-folders-filter]");
    if (!step || !row) return;
    const rows = [...dialog.querySelectorAll(".folders-row:not(.is-plain)")].filter((one) => one.checkVisibility());
    const next = rows[rows.indexOf(row) + step] ?? (step < 0 ? dialog.querySelector("[data-folders-filter]") : null);
    if (!next) return;
    event.preventDefault();
    next.focus();
  }

  // ---- Events ----

  document.addEventListener("click", (event) => {
    const at = (selector) => event.target.closest?.(selector);
    let hit;
    if ((hit = at("[data-pick]"))) open(hit);
    else if (!dialog.contains(event.target)) return;
    else if ((hit = at("[data-picked]"))) choose(hit.dataset.picked);
    else if (at("[data-picker-again]")) ask();
    else if ((hit = at("[data-folders-hidden]"))) {
      showsHidden = !showsHidden;
      hit.setAttribute("aria-pressed", String(showsHidden));
      sift();
    }
  });
  dialog.addEventListener("input", (event) => { if (event.target.matches("[data-folders-filter]")) sift(); });
  dialog.addEventListener("keydown", move);

  dialog.addEventListener("htmx:load", (event) => {
    if (event.target.id !== "folders") return;
    paint();
    const problem = dialog.querySelector("[aria-invalid=true]");
    const here = problem ?? (isFirst ? dialog.querySelector("[data-keep-focus]") : null);
    isFirst = false;
    here?.focus({ preventScroll: true });
  });

  // Toasts are behind an open dialog: what goes wrong is said in it.
  const requestPath = ({ detail }) => detail.requestConfig?.path ?? detail.pathInfo?.requestPath ?? "";
  const isOurs = (event) => dialog.open && /^\/clusters\/[^/]+\/folders/.test(requestPath(event));
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (!isOurs(event) || event.detail.xhr.status < 400 || event.detail.xhr.status === 422) return;
    event.detail.shouldSwap = false;
    put("[data-picker-failed]");
  });
  for (const kind of ["htmx:sendError", "htmx:timeout"]) {
    document.addEventListener(kind, (event) => { if (isOurs(event)) put("[data-picker-failed]"); });
  }

  function unhide(root) {
    for (const button of root.querySelectorAll("[data-pick][hidden]")) button.hidden = false;
  }
  document.addEventListener("htmx:load", (event) => unhide(event.detail.elt.parentElement ?? document));
  unhide(document);
})();
