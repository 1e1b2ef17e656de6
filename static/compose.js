// The form of a job: questions that come and go, problems at their fields, and the script beside it. The server decides;
// this only shows what it said (see templates/compose/panel.html).
(() => {
  "use strict";

  const form = document.querySelector("form[data-compose]");
  if (!form) return;
  const touched = new Set(); // questions that were answered since the page was opened
  let lastChanged = ""; // what the last preview was asked for
  let tookOver = false;

  const panel = () => document.getElementById("composed");
  const question = (key) => form.querySelector(`[data-question="${CSS.escape(key)}"]`);

  // ---- Questions that are asked, and problems at their fields ----

  function showQuestions() {
    const hidden = new Set(panel().dataset.hidden.split(" "));
    for (const one of form.querySelectorAll("[data-question]")) one.hidden = hidden.has(one.dataset.question);
    for (const part of form.querySelectorAll("[data-part]")) {
      part.hidden = !part.querySelector("[data-question]:not([hidden])");
    }
    const sweep = form.querySelector("[data-sweep]");
    if (sweep) sweep.hidden = panel().dataset.swept !== "true";
  }

  function showProblems() {
    const problems = new Map();
    for (const one of panel().querySelectorAll("[data-problem]")) {
      if (!problems.has(one.dataset.problem)) problems.set(one.dataset.problem, one.dataset.sentence);
    }
    for (const one of form.querySelectorAll("[data-question]")) {
      const key = one.dataset.question;
      const line = one.querySelector("[data-error]");
      if (!line || !touched.has(key)) continue;
      const sentence = problems.get(key) ?? "";
      line.hidden = sentence === "";
      line.querySelector("[data-error-text]").textContent = sentence;
      line.closest(".field").classList.toggle("has-error", sentence !== "");
      const input = document.getElementById(`f-a.${key}`);
      if (sentence === "") input?.removeAttribute("aria-invalid");
      else input?.setAttribute("aria-invalid", "true");
    }
  }

  // What is worth a second look: from the form itself, and from the cluster.
  function showWarnings() {
    const warnings = new Map();
    for (const one of document.querySelectorAll("#composed [data-warning], #checks [data-warning]")) {
      const before = warnings.get(one.dataset.warning) ?? [];
      warnings.set(one.dataset.warning, [...before, one.dataset.sentence]);
    }
    for (const line of form.querySelectorAll("[data-field-warning]")) {
      const sentences = warnings.get(line.closest("[data-question]").dataset.question) ?? [];
      line.hidden = sentences.length === 0;
      line.querySelector("[data-warning-text]").textContent = sentences.join(" ");
    }
  }

  // ---- A script that is edited by hand: what changed in the form goes into it ----

  function followForm() {
    const own = document.getElementById("own");
    const merged = panel().querySelector("[data-merged]");
    if (!own || !merged || lastChanged === "own") return;
    const at = own.selectionStart;
    own.value = merged.value;
    own.setSelectionRange(at, at);
    form.elements.base.value = panel().querySelector("[data-generated]").value;
  }

  // ---- Lines and their questions show each other ----

  function mark(key) {
    for (const line of panel()?.querySelectorAll("[data-keys]") ?? []) {
      const isOne = key !== "" && line.dataset.keys.split(" ").includes(key);
      line.classList.toggle("is-marked", isOne);
    }
  }

  function goTo(event) {
    const link = event.target.closest("a[href^='#f-a.']");
    if (!link) return;
    const field = document.getElementById(link.getAttribute("href").slice(1));
    if (!field) return;
    event.preventDefault();
    for (let fold = field.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    field.focus();
    field.scrollIntoView({ block: "center" });
  }

  function note(event) {
    const key = event.target.closest("[data-question]")?.dataset.question;
    if (key) touched.add(key);
    lastChanged = event.target.id === "own" ? "own" : "form";
  }

  document.addEventListener("input", note);
  document.addEventListener("change", note);
  document.addEventListener("click", goTo);
  form.addEventListener("focusin", (event) => {
    mark(event.target.closest("[data-question]")?.dataset.question ?? "");
  });
  document.addEventListener("htmx:afterSettle", (event) => {
    if (event.target.id === "checks") showWarnings();
    if (event.target.id !== "composed" && !event.target.closest?.("#composed")) return;
    showQuestions();
    showProblems();
    showWarnings();
    followForm();
    mark(document.activeElement?.closest?.("[data-question]")?.dataset.question ?? "");
  });

  // ---- What is pressed must not be replaced under the finger: the preview comes a moment later ----

  let isPressing = false;
  let isOwed = false;
  document.addEventListener("pointerdown", () => { isPressing = true; });
  for (const end of ["pointerup", "pointercancel"]) {
    document.addEventListener(end, () => {
      isPressing = false;
      if (!isOwed) return;
      isOwed = false;
      setTimeout(() => form.dispatchEvent(new Event("change", { bubbles: true })), 300);
    });
  }
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (!["composed", "checks"].includes(event.detail.target?.id) || !isPressing) return;
    event.detail.shouldSwap = false;
    isOwed = true;
  });

  // Leaving with something typed and not sent is asked about once.
  form.addEventListener("submit", () => { tookOver = true; });
  window.addEventListener("beforeunload", (event) => {
    if (touched.size > 0 && !tookOver) event.preventDefault();
  });
})();
