// The bar around a dashboard: tells the time left, notices when the dashboard has gone or come back, and keeps the
// place inside the dashboard in the address, so that a reload or a bookmark finds it again.
"use strict";
(() => {
  const ASK_EVERY = 15000;
  const FIND_WITHIN = 5000;
  const bar = document.querySelector("[data-dashboard]");
  const frame = document.querySelector(".dashboard-frame");

  for (const time of document.querySelectorAll("time[data-clock]")) {
    const at = new Date(time.dateTime);
    const format = { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" };
    time.textContent = at.toLocaleString("en-GB", format);
  }

  // Only a table that is wider than its place is said to have more columns.
  const measureWide = new ResizeObserver((entries) => {
    for (const { target } of entries) target.classList.toggle("is-fitting", target.scrollWidth <= target.clientWidth);
  });
  for (const wide of document.querySelectorAll(".report-wide")) measureWide.observe(wide);

  const tellTime = () => {
    const time = document.querySelector("time[data-left]");
    if (!time) return;
    const at = new Date(time.dateTime);
    const minutes = Math.max(0, Math.round((at - Date.now()) / 60000));
    const clock = at.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
    const left = minutes >= 120 ? `${Math.floor(minutes / 60)} h left` : `${minutes} min left`;
    time.textContent = `${clock} (${left})`;
  };
  tellTime();
  setInterval(tellTime, 10000);

  const ask = async () => {
    if (document.hidden) return;
    let answer;
    try {
      answer = await fetch(bar.dataset.dashboard, { headers: { accept: "application/json" } });
    } catch {
      return; // The portal is away for a moment.
    }
    if (answer.status === 404) return location.reload();
    if (!answer.ok) return;
    const news = await answer.json();
    if (news.key !== bar.dataset.key) return location.reload();
    const time = document.querySelector("time[data-left]");
    if (time && news.ends) time.dateTime = new Date(news.ends * 1000).toISOString();
    const words = document.querySelector("[data-followed]");
    if (words) words.textContent = news.followed ? "Continues after" : "Runs until";
    tellTime();
  };
  if (bar) {
    setInterval(ask, ASK_EVERY);
    document.addEventListener("visibilitychange", ask);
  }

  // Both programs keep what someone has chosen in the browser. This sets only what nobody has chosen yet.
  const PHONE = "(max-width: 640px)";
  const prepare = {
    // On a phone, its panels would leave no room for the curves.
    tensorboard() {
      if (!matchMedia(PHONE).matches) return;
      const key = "_tb_global_settings";
      const chosen = JSON.parse(localStorage.getItem(key) || "{}");
      const closed = { sideBarWidthInPercent: 0, timeSeriesSettingsPaneOpened: false };
      localStorage.setItem(key, JSON.stringify({ ...closed, ...chosen }));
    },
    // Its hints for newcomers and its assistant count as seen.
    mlflow() {
      for (const hint of [
        "mlflow.assistant.fab.autoOpenedOnFirstLoad",
        "mlflow.detectIssues.guidanceShown",
        "mlflow.flagForReview.guidanceShown",
        "_mlflow_model_registry_promo_modal_dismissed",
      ]) {
        if (localStorage.getItem(`${hint}_v1`) === null) localStorage.setItem(`${hint}_v1`, "true");
      }
    },
  };

  // The runs of the experiment with MLflow's latest run.
  const findRuns = async (app) => {
    const ask = async (what, body) => {
      const answer = await fetch(`${app}ajax-api/2.0/mlflow/${what}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(FIND_WITHIN),
      });
      return answer.ok ? answer.json() : {};
    };
    const newest = { max_results: 100, order_by: ["last_update_time DESC"] };
    const ids = ((await ask("experiments/search", newest)).experiments || []).map((one) => one.experiment_id);
    if (!ids.length) return "";
    const last = { experiment_ids: ids, max_results: 1, order_by: ["attributes.start_time DESC"] };
    const id = (await ask("runs/search", last)).runs?.[0]?.info?.experiment_id;
    return id ? `#/experiments/${encodeURIComponent(id)}/runs?workflowType=machine_learning` : "";
  };

  if (frame) {
    const app = frame.dataset.src;
    const open = async () => {
      try {
        prepare[frame.dataset.program]?.();
      } catch {
        // The browser keeps nothing; the program opens as it does by itself.
      }
      if (location.hash) return enter();
      const place = frame.dataset.program === "mlflow" ? await findRuns(app).catch(() => "") : "";
      // Someone may have chosen a place meanwhile.
      if (!frame.hasAttribute("src")) frame.src = app + (place || frame.dataset.hash);
    };
    // What the frame says of its place counts once it is there: before, it would wipe out where one wants to go.
    let isThere = false;
    const enter = () => {
      const place = app + location.hash;
      try {
        if (isThere) return frame.contentWindow.location.replace(place);
      } catch {
        isThere = false; // It shows something that is not of this origin; it is loaded anew.
      }
      frame.src = place;
    };
    open();
    window.addEventListener("hashchange", enter);
    const follow = () => {
      if (!isThere) return;
      try {
        const hash = frame.contentWindow.location.hash;
        if (hash !== location.hash) history.replaceState(null, "", hash || location.pathname);
      } catch {
        // It shows something that is not of this origin; nothing to keep.
      }
    };
    // Some programs change their address without an event that could be heard.
    frame.addEventListener("load", () => {
      if (!frame.hasAttribute("src")) return;
      isThere = true;
      follow();
    });
    setInterval(follow, 1000);
  }
})();
