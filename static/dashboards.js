// A dashboard's page: what was unfolded stays so when the state is renewed, and once the dashboard can be opened, the
// button for it is in focus, unless someone is doing something else on the page.
(() => {
  "use strict";

  const PART = "[data-dashboard-live]";
  const READY = "[data-dashboard-ready]";
  let open = [];
  let wasReady = Boolean(document.querySelector(READY));

  document.addEventListener("htmx:beforeSwap", (event) => {
    const part = event.detail.target;
    if (part?.matches?.(PART)) open = [...part.querySelectorAll("details[open][id]")].map((one) => one.id);
  });

  document.addEventListener("htmx:load", (event) => {
    if (!event.detail.elt.matches?.(PART)) return;
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    const button = event.detail.elt.querySelector(READY);
    if (button && !wasReady && document.activeElement === document.body) button.focus({ preventScroll: true });
    wasReady = Boolean(button);
  });
})();
