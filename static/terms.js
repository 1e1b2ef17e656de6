// Explanations of terms: the title of <a class="term"> appears beside the word at once, for mouse, keyboard and finger.
// Without this script, the browser shows the title on hover, and the link leads to the help page.
(() => {
  "use strict";

  if (!HTMLElement.prototype.showPopover) return;

  const MARGIN = 8; // between the explanation and the edge of the window
  const GRACE_MS = 200; // to move the pointer from the word to its explanation

  const tip = document.createElement("div");
  tip.id = "term-tip";
  tip.className = "term-tip";
  tip.popover = "manual";
  tip.setAttribute("role", "tooltip");
  document.body.append(tip);

  let shown = null; // the word that is being explained
  let tapped = null; // the word that a finger has just touched for the first time
  let leaving;

  const termAt = (target) => (target instanceof Element ? target.closest(".term") : null);

  function place() {
    const word = shown.getBoundingClientRect();
    const { width, height } = tip.getBoundingClientRect();
    const left = Math.min(word.left, document.documentElement.clientWidth - width - MARGIN);
    const below = word.bottom + height + MARGIN <= innerHeight;
    tip.style.left = `${Math.max(MARGIN, left)}px`;
    tip.style.top = `${below ? word.bottom : Math.max(MARGIN, word.top - height)}px`;
  }

  function show(term) {
    clearTimeout(leaving);
    if (shown === term) return;
    hide();
    shown = term;
    tip.textContent = term.title;
    // Otherwise the browser would show it a second time.
    term.removeAttribute("title");
    term.setAttribute("aria-describedby", tip.id);
    tip.showPopover();
    place();
  }

  function hide() {
    clearTimeout(leaving);
    if (!shown) return;
    shown.title = tip.textContent;
    shown.removeAttribute("aria-describedby");
    shown = null;
    tip.hidePopover();
  }

  document.addEventListener("pointerover", (event) => {
    if (event.pointerType === "touch") return;
    const term = termAt(event.target);
    if (term) show(term);
    else if (tip.contains(event.target)) clearTimeout(leaving);
    else if (shown && shown !== document.activeElement) {
      clearTimeout(leaving);
      leaving = setTimeout(hide, GRACE_MS);
    }
  });

  document.addEventListener("focusin", (event) => {
    const term = termAt(event.target);
    if (term) show(term);
    else hide();
  });
  document.addEventListener("focusout", hide);

  // A finger can't hover: the first tap explains, the second one follows the link.
  document.addEventListener("pointerdown", (event) => {
    const term = termAt(event.target);
    tapped = event.pointerType === "touch" && term !== shown ? term : null;
    if (!term && !tip.contains(event.target)) hide();
  });
  document.addEventListener("click", (event) => {
    const term = termAt(event.target);
    if (!term || term !== tapped) return;
    tapped = null;
    event.preventDefault();
    show(term);
  });

  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
  document.addEventListener("scroll", () => { if (shown) place(); }, { capture: true, passive: true });
  addEventListener("resize", hide);
  document.addEventListener("htmx:afterSwap", () => { if (shown && !shown.isConnected) hide(); });
})();
