// Small comforts on top of pages that work without them. No dependencies; htmx is used when it is there.
// Everything is found by data-attributes, so content that htmx swaps in later works as well.
(() => {
  "use strict";

  const all = (selector, root = document) => [
    ...(root.matches?.(selector) ? [root] : []),
    ...root.querySelectorAll(selector),
  ];
  const byId = (id) => document.getElementById(id);

  // ---- Times: <time datetime data-relative> reads "3 minutes ago"; "exact" counts seconds too, "clock" reads "09:12" ----

  const STEPS = [
    ["year", 31536000], ["month", 2592000], ["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1],
  ];
  const NEAR_SECONDS = 10; // anything nearer is "just now", which also hides small clock differences
  const STALE_SECONDS = 120; // figures older than this get the stale mark
  const words = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

  function relativeText(seconds, isExact) {
    const ago = Math.abs(seconds);
    const isCounted = isExact && seconds >= 1;
    if (!isCounted && ago < NEAR_SECONDS) return "just now";
    const [unit, size] = STEPS.find(([, size]) => ago >= size);
    const count = Math.floor(ago / size);
    return words.format(seconds < 0 ? count : -count, unit);
  }

  const hours = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
  const days = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

  function clockText(then) {
    const isToday = new Date(then).toDateString() === new Date().toDateString();
    return isToday ? hours.format(then) : `${days.format(then)}, ${hours.format(then)}`;
  }

  function refreshTimes(root = document) {
    for (const time of all("time[data-relative]", root)) {
      const then = Date.parse(time.dateTime);
      if (Number.isNaN(then)) continue;
      const seconds = (Date.now() - then) / 1000;
      const form = time.dataset.relative;
      const text = form === "clock" ? clockText(then) : relativeText(seconds, form === "exact");
      if (time.textContent !== text) time.textContent = text;
      time.closest(".fresh")?.classList.toggle("is-stale", seconds > STALE_SECONDS);
    }
  }

  // ---- Saying things: a polite line for screen readers, and toasts ----

  function announce(text) {
    const line = byId("announcer");
    if (!line || !text) return;
    line.textContent = "";
    setTimeout(() => { line.textContent = text; }, 50);
  }

  const TOAST_MS = 6000;

  function armToast(toast) {
    if (toast.dataset.armed) return;
    toast.dataset.armed = "yes";
    const close = toast.querySelector("[data-toast-close]");
    if (close) close.hidden = false;
    if (toast.dataset.toast === "danger") return; // errors stay until they are dismissed
    let timer;
    const leave = () => {
      toast.classList.add("is-leaving");
      setTimeout(() => toast.remove(), 250);
    };
    const start = () => { clearTimeout(timer); timer = setTimeout(leave, TOAST_MS); };
    const pause = () => clearTimeout(timer);
    toast.addEventListener("pointerenter", pause);
    toast.addEventListener("pointerleave", start);
    toast.addEventListener("focusin", pause);
    toast.addEventListener("focusout", start);
    start();
  }

  function showProblem(text) {
    const toast = byId("toast-problem")?.content.firstElementChild?.cloneNode(true);
    if (!toast) return;
    const same = all("#toasts .toast-text").some((shown) => shown.textContent === text);
    if (same) return;
    toast.querySelector(".toast-text").textContent = text;
    byId("toasts").append(toast);
    armToast(toast);
  }

  // ---- Copying ----

  async function copyText(text) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch { // not a secure context, or not allowed: the old way
      const area = document.createElement("textarea");
      area.value = text;
      area.className = "sr";
      document.body.append(area);
      area.select();
      const done = document.execCommand("copy");
      area.remove();
      return done;
    }
  }

  async function copyFrom(button) {
    const label = button.querySelector("[data-copy-label]") || button;
    const before = button.dataset.copyBefore ||= label.textContent;
    const done = await copyText(button.dataset.copy);
    label.textContent = done ? "Copied" : "Select the text and copy it";
    announce(label.textContent);
    button.focus();
    setTimeout(() => { label.textContent = before; }, 2500);
  }

  // ---- Passwords ----

  function toggleReveal(button) {
    const input = byId(button.dataset.reveal);
    const shown = input.type === "text";
    input.type = shown ? "password" : "text";
    button.firstChild.textContent = shown ? "Show" : "Hide";
  }

  // ---- Dialogs: a link with data-dialog-open="id" opens <dialog id> instead of leaving the page ----

  function openDialog(event, opener) {
    const dialog = byId(opener.dataset.dialogOpen);
    if (!dialog?.showModal) return;
    event.preventDefault();
    dialog.showModal();
  }

  // ---- Menus: <details data-menu> ----

  function closeMenus(except, refocus = false) {
    for (const menu of all("details[data-menu][open]")) {
      if (menu === except) continue;
      menu.open = false;
      if (refocus) menu.querySelector("summary").focus();
    }
  }

  // ---- Theme: at once, and remembered by the server's cookie ----

  function switchTheme(event, form) {
    const theme = event.submitter?.value;
    if (!theme) return;
    event.preventDefault();
    document.documentElement.dataset.theme = theme;
    document.querySelector("meta[name=color-scheme]").content = theme === "auto" ? "light dark" : theme;
    for (const button of all("[data-theme-switch] button")) {
      button.setAttribute("aria-pressed", String(button.value === theme));
    }
    fetch(form.action, { method: "POST", body: new URLSearchParams({ theme }), redirect: "manual" })
      .catch(() => showProblem("Couldn't save the theme. Check your internet connection."));
  }

  // ---- Forms: one click, one submission ----

  function guardSubmit(event, form) {
    if (event.defaultPrevented || form.method === "dialog") return;
    if (form.getAttribute("aria-busy") === "true") {
      event.preventDefault();
      return;
    }
    if (form.target === "_blank" || form.matches("[hx-get], [hx-post], [hx-put], [hx-patch], [hx-delete]")) return;
    for (const busy of [form, event.submitter]) {
      busy?.setAttribute("aria-busy", "true");
      if (busy) busy.dataset.sent = "";
    }
  }

  function releaseForms() {
    for (const busy of all("[data-sent]")) {
      busy.removeAttribute("aria-busy");
      delete busy.dataset.sent;
    }
  }

  // ---- Parts that renew themselves ----

  // Parts marked so ask for nothing while nobody sees the page, and once when it is seen again.
  document.addEventListener("htmx:beforeRequest", (event) => {
    const { elt, requestConfig } = event.detail;
    if (document.hidden && requestConfig?.verb === "get" && elt.matches("[data-when-seen]")) event.preventDefault();
    // What was done before no longer matters once the next thing is done.
    if (requestConfig?.verb === "post") document.querySelector("[data-flash]")?.remove();
  });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden || !window.htmx) return;
    for (const part of all("[data-when-seen]")) window.htmx.trigger(part, "seen");
  });

  // ---- Notifications of the browser: only where someone has asked for them, while the page is not seen, by one tab ----

  const NOTIFY = "portolan.notify"; // "on": this browser is to show them
  const NOTIFIED = "portolan.notified"; // the last notice that a tab has shown, or that was seen in one
  const WAIT_MS = 700; // a tab that is seen comes first
  const canNotify = "Notification" in window && window.isSecureContext;
  const recall = (key) => { try { return localStorage.getItem(key); } catch { return null; } };
  const keep = (key, value) => { try { localStorage.setItem(key, value); return true; } catch { return false; } };

  function claim(last) {
    if (Number(recall(NOTIFIED)) >= last) return false;
    return keep(NOTIFIED, String(last));
  }

  let waiting = []; // toasts that came together are one notification

  function notifyOf(toasts) {
    if (!canNotify || toasts.length === 0) return;
    const last = Math.max(...toasts.map((toast) => Number(toast.dataset.notice)));
    if (!document.hidden) { claim(last); return; }
    if (Notification.permission !== "granted" || recall(NOTIFY) !== "on") return;
    if (waiting.length === 0) {
      setTimeout(() => (navigator.locks ? navigator.locks.request(NOTIFY, notify) : notify()), WAIT_MS);
    }
    waiting.push(...toasts.map((toast) => ({ last, text: toast.dataset.noticeText, href: toast.dataset.noticeHref })));
  }

  function notify() {
    const told = waiting;
    waiting = [];
    const last = Math.max(...told.map((one) => one.last));
    if (!claim(last)) return;
    try {
      const body = told.map((one) => one.text).join("\n");
      const note = new Notification("Portolan", { body, tag: `portolan-${last}` });
      note.onclick = () => { window.focus(); location.assign(told[0].href); note.close(); };
    } catch { /* some phones know the word, but allow no page to do it */ }
  }

  function showNotifyState(root) {
    const card = all("[data-notify-card]", root)[0];
    if (!card) return;
    const allowed = canNotify && Notification.permission === "granted";
    const isOn = allowed && recall(NOTIFY) === "on";
    const refused = canNotify && Notification.permission === "denied";
    card.querySelector("[data-notify-state]").textContent = !canNotify
      ? "This browser doesn't support notifications for this page."
      : isOn ? "On in this browser."
      : refused ? "Notifications are blocked. Allow them in your browser's settings for this site."
      : "Off in this browser.";
    card.querySelector("[data-notify-on]").hidden = isOn || refused || !canNotify;
    card.querySelector("[data-notify-off]").hidden = !isOn;
  }

  async function switchNotify(isOn) {
    if (isOn && Notification.permission !== "granted") await Notification.requestPermission();
    keep(NOTIFY, isOn ? "on" : "off");
    showNotifyState(document);
  }

  // ---- What each new piece of page needs ----

  function enhance(root) {
    for (const button of all("[data-copy], [data-reveal]", root)) button.hidden = false;
    all("[data-toast]", root).forEach(armToast);
    notifyOf(all("[data-notice]", root));
    showNotifyState(root);
    refreshTimes(root);
    all(".error-summary", root)[0]?.focus();
  }

  document.addEventListener("click", (event) => {
    const at = (selector) => event.target.closest?.(selector);
    let hit;
    if ((hit = at("[data-copy]"))) copyFrom(hit);
    else if ((hit = at("[data-reveal]"))) toggleReveal(hit);
    else if ((hit = at("[data-dialog-open]"))) openDialog(event, hit);
    else if ((hit = at("[data-dialog-close]"))) hit.closest("dialog")?.close();
    else if (at("[data-notify-on]")) switchNotify(true);
    else if (at("[data-notify-off]")) switchNotify(false);
    else if ((hit = at("[data-toast-close]"))) hit.closest("[data-toast]").remove();
    else if (event.target.matches?.("dialog[open]")) event.target.close(); // the backdrop
    closeMenus(at("details[data-menu]"));
  });

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") closeMenus(null, true);
  });

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.matches("[data-theme-switch]")) switchTheme(event, form);
    else guardSubmit(event, form);
  });

  // Passwords must not be left readable in a form that is sent or restored.
  document.addEventListener("submit", (event) => {
    for (const button of all("[data-reveal]", event.target)) {
      if (byId(button.dataset.reveal)?.type === "text") toggleReveal(button);
    }
  }, true);

  window.addEventListener("pageshow", releaseForms);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) refreshTimes(); });
  setInterval(() => { if (!document.hidden) refreshTimes(); }, 1000);

  // ---- htmx ----

  // A server error is shown only if the server says where; a stranger's error page never replaces content.
  document.addEventListener("htmx:beforeSwap", (event) => {
    const { xhr } = event.detail;
    if (xhr.status < 500) return;
    if (xhr.getResponseHeader("HX-Retarget")) event.detail.shouldSwap = true;
    else showProblem("Something went wrong. Try again in a moment.");
  });
  document.addEventListener("htmx:sendError", () =>
    showProblem("Couldn't reach the portal. Check your internet connection and try again."));
  document.addEventListener("htmx:timeout", () =>
    showProblem("The portal took too long to respond. Try again."));

  // The button that was pressed is busy, not its neighbours.
  const pressed = (event) => event.detail.requestConfig?.triggeringEvent?.submitter;
  document.addEventListener("htmx:beforeRequest", (event) => pressed(event)?.setAttribute("aria-busy", "true"));
  document.addEventListener("htmx:afterRequest", (event) => pressed(event)?.removeAttribute("aria-busy"));

  // Whoever works in a part that is renewed stays in it, and is not thrown back to the top of the page.
  let wasInside = false;
  document.addEventListener("htmx:beforeSwap", (event) => {
    wasInside = Boolean(event.detail.target?.contains(document.activeElement));
  });
  function keepFocus(root) {
    if (!wasInside || document.activeElement !== document.body) return;
    all("[data-keep-focus]", root)[0]?.focus({ preventScroll: true });
  }

  // A new name usually keeps its ending: only what is before it is selected.
  function selectStem(field) {
    if (!field?.matches?.("[data-select-stem]:not([data-is-selected])")) return;
    field.dataset.isSelected = "";
    const dot = field.value.lastIndexOf(".");
    field.setSelectionRange(0, dot > 0 ? dot : field.value.length);
  }
  document.addEventListener("focusin", (event) => selectStem(event.target));
  selectStem(document.activeElement);

  // htmx:load comes for every piece of new content, out-of-band ones included.
  // What has been said is not said again when only figures beside it are new.
  let lastSaid = all("[data-announce]")[0]?.dataset.announce;
  document.addEventListener("htmx:load", (event) => {
    const root = event.detail.elt;
    if (root === document.body) return;
    enhance(root);
    keepFocus(root);
    const said = all("[data-announce]", root)[0];
    if (!said || said.dataset.announce === lastSaid) return;
    lastSaid = said.dataset.announce;
    announce(lastSaid || said.textContent.trim());
  });

  // Only a table that is wider than its place is said to have more columns.
  const measureWide = new ResizeObserver((entries) => {
    for (const { target } of entries) target.classList.toggle("is-fitting", target.scrollWidth <= target.clientWidth);
  });
  for (const wide of all(".report-wide")) measureWide.observe(wide);

  // A browser may keep a page as it was left: what has just happened is old news when one comes back.
  addEventListener("pagehide", () => all("[data-until-left]").forEach((news) => news.remove()));

  // ---- What was unfolded in a part stays so when it is renewed ----

  let unfolded = [];
  document.addEventListener("htmx:beforeSwap", (event) => {
    const { target } = event.detail;
    if (target?.matches?.("[data-keep-open]")) {
      unfolded = [...target.querySelectorAll("details[open][id]")].map((one) => one.id);
    }
  });
  document.addEventListener("htmx:afterSwap", () => {
    for (const id of unfolded) byId(id)?.setAttribute("open", "");
    unfolded = [];
  });

  // The stream of events ends a session everywhere at once.
  const known = new WeakSet();
  let wasOpen = false;
  document.addEventListener("htmx:sseOpen", (event) => {
    const { source } = event.detail;
    if (event.target !== document.body) return;
    // What was told while the stream was down is fetched now.
    if (wasOpen && byId("bell")) window.htmx.trigger("#bell", "ring");
    wasOpen = true;
    if (known.has(source)) return;
    known.add(source);
    source.addEventListener("signed-out", () => {
      source.close();
      // Whoever has just pressed "Sign out" is on the way already: do not overtake that answer.
      const isLeaving = document.querySelector("form[aria-busy=true]");
      setTimeout(() => location.assign("/sign-in"), isLeaving ? 5000 : 0);
    });
  });

  enhance(document);
})();
