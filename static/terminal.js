// A terminal's page: xterm.js on one side, a WebSocket on the other. Binary frames are what is typed and printed, text
// frames are JSON. The server keeps the screen; this page can come and go.
(() => {
  "use strict";

  const root = document.querySelector("[data-terminal]");
  if (!root || !window.Terminal) return;
  const part = (name) => root.querySelector(`[data-terminal-${name}]`);
  const screen = part("screen");
  const FRAME = 32 * 1024; // the server takes at most twice this at once
  const FRAMES = 2; // how many may be on their way; more could block the reports of what is shown
  const REPORT = 64 * 1024; // bytes shown between two reports
  const PAUSES = [500, 1000, 2000, 5000, 10_000];

  // ---- Colours ----

  const LIGHT = {
    black: "#13222d", red: "#a1271b", green: "#1a6538", yellow: "#7d4b00", blue: "#0b5488", magenta: "#57479b",
    cyan: "#0c5b6d", white: "#5d6a74", brightBlack: "#4a5660", brightRed: "#bb3a2d", brightGreen: "#237a46",
    brightYellow: "#8f5a08", brightBlue: "#1a66c9", brightMagenta: "#7058c0", brightCyan: "#0f7186",
    brightWhite: "#13222d", selectionBackground: "#1a66c944",
  };
  const DARK = { selectionBackground: "#8fc4ff55" };

  function colours() {
    const { backgroundColor, color } = getComputedStyle(screen);
    const [red, green, blue] = backgroundColor.match(/[\d.]+/g).map(Number);
    const palette = red + green + blue > 380 ? LIGHT : DARK;
    return { ...palette, background: backgroundColor, foreground: color, cursor: color, cursorAccent: backgroundColor };
  }

  // ---- The terminal ----

  const term = new Terminal({
    fontFamily: getComputedStyle(document.documentElement).getPropertyValue("--mono"),
    fontSize: 14,
    scrollback: 5000,
    macOptionIsMeta: true,
    minimumContrastRatio: 4.5,
    theme: colours(),
    // A program chooses both the words and the address of a link: show where it leads first.
    linkHandler: {
      activate: (_, address) => {
        if (confirm(`A program in the terminal links to this address. Open it?\n\n${address}`)) {
          window.open(address, "_blank", "noopener,noreferrer");
        }
      },
    },
  });
  const fit = new FitAddon.FitAddon();
  term.loadAddon(fit);
  term.open(screen);
  fit.fit();

  const recolour = () => { term.options.theme = colours(); };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
  new MutationObserver(recolour).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  let fitting = 0;
  new ResizeObserver(() => {
    clearTimeout(fitting);
    fitting = setTimeout(() => fit.fit(), 100);
  }).observe(screen);

  // ---- The socket ----

  let socket = null;
  let isOver = false;
  let failures = 0;
  let received = 0;
  let reported = 0;
  let typed = []; // what waits to be sent
  let onTheWay = 0;
  let sentFrames = 0;

  function say(text) { part("status").textContent = text; }

  function send(data) {
    if (socket?.readyState === WebSocket.OPEN) socket.send(data);
  }

  function sendTyped() {
    while (onTheWay < FRAMES && typed.length && socket?.readyState === WebSocket.OPEN) {
      const next = typed.shift();
      while (typed.length && next.length + typed[0].length <= FRAME) next.push(...typed.shift());
      socket.send(new Uint8Array(next));
      onTheWay += 1;
      sentFrames += 1;
    }
  }

  function finish(text, offer) {
    isOver = true;
    say(text);
    part(offer).hidden = false;
    screen.classList.add("is-over");
    term.options.cursorBlink = false;
    term.options.disableStdin = true;
  }

  function show(mine, bytes) {
    term.write(bytes, () => {
      if (mine !== socket) return;
      received += bytes.length;
      if (received - reported >= REPORT) {
        reported = received;
        send(JSON.stringify({ shown: received }));
      }
    });
  }

  function handle(words) {
    if (words.taken) {
      onTheWay = sentFrames - words.taken;
      sendTyped();
    }
    if (words.ended) finish(`The terminal has ended. ${words.ended}`, "ended");
    if (words.moved) finish("This terminal is now shown in another window.", "moved");
    if (words.signed_out) location.reload();
  }

  function connect() {
    const address = `${location.origin.replace(/^http/, "ws")}${root.dataset.socket}`;
    const mine = new WebSocket(`${address}?cols=${term.cols}&rows=${term.rows}`);
    socket = mine;
    received = reported = onTheWay = sentFrames = 0;
    typed = [];
    mine.binaryType = "arraybuffer";
    mine.addEventListener("open", () => {
      failures = 0;
      say("Connected.");
      root.dataset.state = "connected";
      send(JSON.stringify({ cols: term.cols, rows: term.rows }));
    });
    mine.addEventListener("message", ({ data }) => {
      if (typeof data === "string") handle(JSON.parse(data));
      else show(mine, new Uint8Array(data));
    });
    mine.addEventListener("close", () => {
      root.dataset.state = "closed";
      if (!isOver && mine === socket) retry();
    });
  }

  // A socket doesn't tell why it was refused: the page does.
  async function retry() {
    say("The connection to the portal was lost. Trying again.");
    await new Promise((resolve) => setTimeout(resolve, PAUSES[Math.min(failures, PAUSES.length - 1)]));
    failures += 1;
    try {
      const page = await fetch(root.dataset.page, { redirect: "manual" });
      if (page.type === "opaqueredirect") return location.reload();
      if (page.status === 404) {
        return finish("The terminal has ended: the connection to the cluster was lost, or the portal was restarted.",
          "ended");
      }
    } catch {
      return retry();
    }
    connect();
  }

  // ---- Input ----

  const encoder = new TextEncoder();
  let isControl = false;

  function setControl(on) {
    isControl = on;
    root.querySelector('[data-key="control"]').setAttribute("aria-pressed", String(on));
  }

  function type(text) {
    if (isControl && text.length === 1) {
      const code = text.toUpperCase().charCodeAt(0);
      if (code >= 63 && code <= 95) text = String.fromCharCode(code === 63 ? 127 : code & 31);
      setControl(false);
    }
    enter(encoder.encode(text));
  }

  function enter(bytes) {
    if (isOver || socket?.readyState !== WebSocket.OPEN) return;
    for (let at = 0; at < bytes.length; at += FRAME) typed.push([...bytes.subarray(at, at + FRAME)]);
    sendTyped();
  }

  term.onData(type);
  term.onBinary((text) => enter(Uint8Array.from(text, (letter) => letter.charCodeAt(0))));
  term.onResize(({ cols, rows }) => send(JSON.stringify({ cols, rows })));

  term.attachCustomKeyEventHandler((event) => {
    if (event.type !== "keydown" || !event.ctrlKey) return true;
    if (event.key === "F6") {
      event.preventDefault();
      part("reader").focus();
      return false;
    }
    if (event.shiftKey && event.code === "KeyC") {
      event.preventDefault();
      const text = term.getSelection();
      if (text && navigator.clipboard) navigator.clipboard.writeText(text);
      else if (text) document.execCommand("copy");
      return false;
    }
    // The browser pastes, and xterm.js takes it from there.
    return !(event.shiftKey && event.code === "KeyV");
  });

  const KEYS = { escape: "\x1b", tab: "\t", up: "A", down: "B", right: "C", left: "D" };
  for (const button of root.querySelectorAll("[data-key]")) {
    // The keyboard of a phone stays open.
    button.addEventListener("pointerdown", (event) => event.preventDefault());
    button.addEventListener("click", () => {
      const key = KEYS[button.dataset.key];
      if (!key) setControl(!isControl);
      else if (key.length === 1 && key >= "A" && key <= "D") {
        type((term.modes.applicationCursorKeysMode ? "\x1bO" : "\x1b[") + key);
      } else type(key);
      term.focus();
    });
  }

  part("reader").addEventListener("click", ({ currentTarget }) => {
    const on = currentTarget.getAttribute("aria-pressed") !== "true";
    currentTarget.setAttribute("aria-pressed", String(on));
    term.options.screenReaderMode = on;
    term.focus();
  });
  part("here").addEventListener("click", () => {
    isOver = false;
    part("moved").hidden = true;
    screen.classList.remove("is-over");
    term.options.disableStdin = false;
    connect();
    term.focus();
  });

  connect();
  term.focus();
})();
