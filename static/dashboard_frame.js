// The bar around a dashboard: tells the time left, notices when the dashboard has gone or come back, and keeps the
// place inside the dashboard in the address, so that a reload or a bookmark finds it again.
"use strict";
(() => {
  const ASK_EVERY = 15000;
  const bar = document.querySelector("[data-dashboard]");
  const frame = document.querySelector(".dashboard-frame");

  for (const time of document.querySelectorAll("time[data-clock]")) {
    const at = new Date(time.dateTime);
    const format = { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" };
    time.textContent = at.toLocaleString("en-GB", format);
  }

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

  if (frame) {
    // What the frame says of its place counts once it is there: before, it would wipe out where one wants to go.
    let isThere = false;
    const enter = () => {
      const place = frame.src.split("#")[0] + location.hash;
      try {
        if (isThere) return frame.contentWindow.location.replace(place);
      } catch {
        isThere = false; // It shows something that is not of this origin; it is loaded anew.
      }
      frame.src = place;
    };
    if (location.hash) enter();
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
      isThere = true;
      follow();
    });
    setInterval(follow, 1000);
  }
})();
