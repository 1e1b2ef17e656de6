// The editor of text files: line numbers, highlighting, indenting, finding, and a warning before changes are lost. It is
// still the form's textarea: a layer behind it shows the same text in colour, and only the lines that are seen.
(() => {
  "use strict";

  const CHUNK = 100_000; // longer texts are read from a little above the lines that are seen
  const LINES_ABOVE = 300;
  const words = (list) => list.split(" ").join("|");

  // ---- Highlighting: each rule is a kind and what it looks like; the first that fits wins ----

  const NUMBER = ["number", /\b(?:0x[\da-fA-F]+|\d[\d_]*\.?\d*(?:[eE][+-]?\d+)?)\b/];
  const HASH = ["comment", /#[^\n]*/];
  const STRING = ["string", /"(?:\\[\s\S]|[^"\\\n])*"?|'(?:\\[\s\S]|[^'\\\n])*'?/];
  const names = (list) => ["keyword", new RegExp(`\\b(?:${words(list)})\\b`)];
  const LANGUAGES = {
    python: [
      ["string", /"""[\s\S]*?(?:"""|$)|'''[\s\S]*?(?:'''|$)/], HASH, STRING,
      names("False None True and as assert async await break class continue def del elif else except finally for from "
        + "global if import in is lambda match nonlocal not or pass raise return try while with yield"),
      ["name", /@[\w.]+/], NUMBER,
    ],
    shell: [
      ["directive", /^#SBATCH[^\n]*/m], ["comment", /(?<![$\w{])#[^\n]*/],
      ["string", /"(?:\\[\s\S]|[^"\\])*"?|'[^']*'?/], ["name", /\$\{[^}\n]*\}?|\$\w+|\$[@#?*!-]/],
      names("case do done elif else esac exit export fi for function if in local module return select set source srun "
        + "then until while"), NUMBER,
    ],
    r: [
      HASH, STRING,
      names("FALSE Inf NA NULL NaN TRUE break else for function if in library next repeat require return source while"),
      ["name", /<-|->|%\w*%/], NUMBER,
    ],
    json: [["name", /"(?:\\.|[^"\\\n])*"(?=\s*:)/], STRING, names("true false null"), NUMBER],
    yaml: [
      ["comment", /(?<!\S)#[^\n]*/], ["name", /^[ \t-]*[\w."'/ -]+?(?=:(?:\s|$))/m], STRING,
      names("true false null yes no on off"), ["name", /[&*][\w-]+/], NUMBER,
    ],
    toml: [
      HASH, ["keyword", /^[ \t]*\[\[?[^\]\n]*\]?\]?/m],
      ["string", /"""[\s\S]*?(?:"""|(?![\s\S]))|'''[\s\S]*?(?:'''|(?![\s\S]))/],
      ["name", /^[ \t]*[\w."-]+(?=\s*=)/m], STRING, names("true false"), NUMBER,
    ],
  };

  function compile(rules) {
    const flags = `g${rules.some(([, rule]) => rule.flags.includes("m")) ? "m" : ""}`;
    const source = rules.map(([kind, rule], at) => `(?<${kind}${at}>${rule.source})`).join("|");
    return new RegExp(source, flags);
  }

  // The text as pieces of one kind each.
  function* pieces(text, pattern) {
    let from = 0;
    for (const found of text.matchAll(pattern)) {
      if (found[0] === "") continue;
      if (found.index > from) yield ["", text.slice(from, found.index)];
      const [group] = Object.entries(found.groups).find(([, value]) => value !== undefined);
      yield [group.replace(/\d+$/, ""), found[0]];
      from = found.index + found[0].length;
    }
    if (from < text.length) yield ["", text.slice(from)];
  }

  // ---- One editor ----

  function start(form) {
    if (form.dataset.armed) return;
    form.dataset.armed = "yes";
    const area = form.querySelector("[data-editor-area]");
    const input = area.querySelector("textarea");
    const find = (name) => form.querySelector(`[data-editor-${name}]`);
    const pattern = LANGUAGES[form.dataset.language] && compile(LANGUAGES[form.dataset.language]);
    let saved = input.value;
    let sent = saved;
    let isLeaving = false; // whether the next Tab leaves the text

    const gutter = layer("editor-lines");
    const colours = layer("editor-colours");
    function layer(name) {
      const element = document.createElement("pre");
      element.className = name;
      element.setAttribute("aria-hidden", "true");
      area.prepend(element);
      return element;
    }
    area.classList.add("is-armed");
    find("keys").hidden = false;

    let lines = [];
    let starts = [];
    function measure() {
      lines = input.value.split("\n");
      let at = 0;
      starts = lines.map((line) => { const here = at; at += line.length + 1; return here; });
      area.style.setProperty("--digits", String(Math.max(2, String(lines.length).length)));
    }

    function paint() {
      const style = getComputedStyle(input);
      const height = Number.parseFloat(style.lineHeight);
      const first = Math.min(Math.max(0, Math.floor(input.scrollTop / height) - 1), lines.length - 1);
      const last = Math.min(lines.length, first + Math.ceil(input.clientHeight / height) + 3);
      const top = first * height - input.scrollTop;
      gutter.textContent = lines.slice(first, last).map((_, at) => first + at + 1).join("\n");
      gutter.style.transform = `translateY(${top}px)`;
      colours.style.transform = `translate(${-input.scrollLeft}px, ${top}px)`;
      colours.replaceChildren(...coloured(first, last));
    }

    function* coloured(first, last) {
      const from = starts[first];
      const to = last < lines.length ? starts[last] : input.value.length;
      if (!pattern) { yield input.value.slice(from, to); return; }
      const begin = input.value.length > CHUNK ? starts[Math.max(0, first - LINES_ABOVE)] : 0;
      let at = begin;
      for (const [kind, text] of pieces(input.value.slice(begin, to), pattern)) {
        const shown = text.slice(Math.max(0, from - at));
        at += text.length;
        if (at <= from || shown === "") continue;
        if (kind === "") { yield shown; continue; }
        const span = document.createElement("span");
        span.className = `is-${kind}`;
        span.textContent = shown;
        yield span;
      }
    }

    let isPlanned = false;
    function repaint() {
      if (isPlanned) return;
      isPlanned = true;
      requestAnimationFrame(() => { isPlanned = false; paint(); });
    }

    const isDirty = () => input.value !== saved;
    function changed() {
      measure();
      repaint();
      find("dirty").hidden = !isDirty();
    }

    // ---- Indenting; what is typed this way can be undone ----

    const unit = () => (/^\t/m.test(input.value) ? "\t" : /^ {2}\S/m.test(input.value) ? "  " : "    ");

    function indent(isBack) {
      const { selectionStart: from, selectionEnd: to, value } = input;
      if (from === to && !isBack) { document.execCommand("insertText", false, unit()); return; }
      const begin = value.lastIndexOf("\n", from - 1) + 1;
      const block = value.slice(begin, to);
      const step = unit();
      const back = new RegExp(`^(?:\\t| {1,${Math.max(2, step.length)}})`, "gm");
      const moved = isBack ? block.replace(back, "") : block.replace(/^(?=[^\n])/gm, step);
      if (moved === block) return;
      input.setSelectionRange(begin, to);
      document.execCommand(moved === "" ? "delete" : "insertText", false, moved);
      if (from !== to) input.setSelectionRange(begin, begin + moved.length);
    }

    function breakLine() {
      const { selectionStart: from, value } = input;
      const line = value.slice(value.lastIndexOf("\n", from - 1) + 1, from);
      const space = line.match(/^[ \t]*/)[0];
      if (space === "") return false;
      return document.execCommand("insertText", false, `\n${space}`);
    }

    input.addEventListener("keydown", (event) => {
      const hasModifier = event.ctrlKey || event.metaKey || event.altKey;
      if (event.key === "Tab" && !hasModifier && !isLeaving && !input.readOnly) {
        event.preventDefault();
        indent(event.shiftKey);
      } else if (event.key === "Enter" && !hasModifier && !event.shiftKey && !event.isComposing && breakLine()) {
        event.preventDefault();
      }
      if (event.key !== "Shift" && event.key !== "Tab") isLeaving = event.key === "Escape";
    });
    input.addEventListener("blur", () => { isLeaving = false; });
    input.addEventListener("input", changed);
    input.addEventListener("scroll", repaint);
    new ResizeObserver(repaint).observe(input);

    // ---- Finding ----

    const box = find("find");
    const wanted = box.querySelector("input");
    function seek(step) {
      const what = wanted.value.toLowerCase();
      const text = input.value.toLowerCase();
      const all = [];
      for (let at = what && text.indexOf(what); at !== "" && at >= 0; at = text.indexOf(what, at + what.length)) all.push(at);
      if (all.length === 0) { find("found").textContent = what ? "No matches" : ""; return; }
      const { selectionStart: here } = input;
      const ahead = step > 0 ? all.findIndex((at) => at > here) : all.findLastIndex((at) => at < here);
      const index = ahead >= 0 ? ahead : step > 0 ? 0 : all.length - 1;
      const at = all[index];
      find("found").textContent = `${index + 1} of ${all.length}`;
      input.setSelectionRange(at, at + what.length);
      const line = input.value.slice(0, at).split("\n").length - 1;
      input.scrollTop = line * Number.parseFloat(getComputedStyle(input).lineHeight) - input.clientHeight / 2;
      input.focus();
    }
    wanted.addEventListener("keydown", (event) => {
      if (event.key === "Enter") { event.preventDefault(); seek(event.shiftKey ? -1 : 1); }
      else if (event.key === "Escape") { box.hidden = true; input.focus(); }
    });
    find("next").addEventListener("click", () => seek(1));
    find("previous").addEventListener("click", () => seek(-1));

    // ---- Saving ----

    form.addEventListener("keydown", (event) => {
      if (!(event.ctrlKey || event.metaKey) || event.altKey) return;
      if (event.key === "s") {
        event.preventDefault();
        form.requestSubmit(find("save"));
      } else if (event.key === "f" && event.target !== wanted) {
        event.preventDefault();
        box.hidden = false;
        const chosen = input.value.slice(input.selectionStart, input.selectionEnd);
        if (chosen && !chosen.includes("\n")) wanted.value = chosen;
        wanted.select();
      }
    });
    const isOurs = (event) => event.detail.elt === form || event.detail.requestConfig?.elt === form;
    form.addEventListener("htmx:beforeRequest", (event) => { if (isOurs(event)) sent = input.value; });
    form.addEventListener("htmx:beforeOnLoad", (event) => {
      // The server leads to another page: the text is in a file by then.
      if (isOurs(event) && event.detail.xhr.getResponseHeader("HX-Redirect")) saved = input.value;
    });
    form.addEventListener("htmx:afterSettle", () => {
      if (form.querySelector("#editor-status[data-saved]")) saved = sent;
      find("dirty").hidden = !isDirty();
    });
    let isSubmitted = false; // without htmx, the form itself is sent
    form.addEventListener("submit", () => { isSubmitted = !window.htmx; });
    window.addEventListener("beforeunload", (event) => {
      if (form.isConnected && isDirty() && !isSubmitted) event.preventDefault();
    });

    changed();
  }

  const startAll = () => document.querySelectorAll("form[data-editor]").forEach(start);
  document.addEventListener("htmx:load", startAll);
  startAll();
})();
