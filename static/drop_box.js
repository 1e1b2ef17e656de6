// A drop-box: sends files by tus (vendor/tus.min.js), a few at a time. Each goes on by itself after an interruption.
"use strict";
(() => {
  const root = document.querySelector("[data-drop-box]");
  const target = root?.querySelector("[data-drop-target]");
  if (!target || !window.tus) return;
  const endpoint = new URL(root.dataset.dropBox, location.href).href;
  const input = root.querySelector("[data-drop-input]");
  const list = root.querySelector("[data-drop-list]");
  const template = root.querySelector("[data-drop-row]");
  const AT_ONCE = 3;
  const RETRY_MS = [1000, 2000, 5000, ...Array(2000).fill(8000)];
  const WAITING = "Waiting for the connection. The upload continues automatically.";
  const waiting = [];
  let running = 0;

  const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

  /** Never throws: status 0 means that there was no answer. */
  async function send(method, url) {
    try {
      const answer = await fetch(url, { method, headers: { "Tus-Resumable": "1.0.0" } });
      return { status: answer.status, text: answer.status === 200 ? "" : await answer.text() };
    } catch {
      return { status: 0, text: "" };
    }
  }

  class DropLine {
    constructor(file) {
      this.file = file;
      const row = template.content.cloneNode(true).firstElementChild;
      this.row = row;
      row.querySelector("[data-line-name]").textContent = file.name;
      this.again = row.querySelector("[data-line-again]");
      this.stop = row.querySelector("[data-line-cancel]");
      this.again.addEventListener("click", () => this.queue());
      this.stop.addEventListener("click", () => this.cancel());
      list.append(row);
      this.queue();
    }

    say(text) { this.row.querySelector("[data-line-text]").textContent = text; }

    queue() {
      this.again.hidden = true;
      this.say("Waiting");
      waiting.push(this);
      startNext();
    }

    run() {
      return new Promise((resolve) => {
        const end = (text, canRetry) => {
          this.end = null;
          this.say(text);
          this.again.hidden = !canRetry;
          resolve();
        };
        this.end = end;
        this.upload = new window.tus.Upload(this.file, {
          endpoint,
          uploadUrl: this.upload?.url ?? null,
          retryDelays: RETRY_MS,
          storeFingerprintForResuming: false,
          metadata: { filename: this.file.name, modified: String(Math.floor(this.file.lastModified / 1000)) },
          onShouldRetry: (error) => {
            const status = error.originalResponse?.getStatus() ?? 0;
            const again = [0, 409, 423, 429, 460, 500, 502, 503, 504].includes(status);
            if (again) this.say((status === 503 && error.originalResponse.getBody()) || WAITING);
            return again && !this.isCancelled;
          },
          onProgress: (sent, all) => {
            this.row.querySelector("[data-line-progress]").value = all > 0 ? sent / all : 1;
            this.say(sent < all ? `${Math.floor((100 * sent) / all)}%` : "Checking");
          },
          onSuccess: () => this.finish(end),
          onError: (error) => {
            const text = error.originalResponse?.getBody() ?? "";
            const said = text.length > 0 && text.length < 500 ? text : "The upload failed.";
            if (!this.isCancelled) end(said, error.originalResponse?.getStatus() !== 413);
          },
        });
        this.upload.start();
      });
    }

    /** All bytes are there: waits until the file has been checked and has its name. */
    async finish(end) {
      for (let tries = 0; !this.isCancelled; tries += 1) {
        const answer = await send("POST", `${this.upload.url}/finish`);
        if (answer.status === 200) {
          this.stop.hidden = true;
          this.row.querySelector("[data-line-progress]").value = 1;
          end("Uploaded", false);
          return;
        }
        if (![0, 202, 423, 503].includes(answer.status)) {
          end(answer.text || "The upload failed.", true);
          return;
        }
        this.say(answer.status === 202 ? "Checking" : answer.text || WAITING);
        await sleep(RETRY_MS[Math.min(tries, RETRY_MS.length - 1)]);
      }
    }

    cancel() {
      this.isCancelled = true;
      const at = waiting.indexOf(this);
      if (at >= 0) waiting.splice(at, 1);
      Promise.resolve(this.upload?.abort()).finally(() => {
        if (this.upload?.url) send("DELETE", this.upload.url);
        this.end?.("Cancelled", false);
        this.row.remove();
      });
    }
  }

  function startNext() {
    while (running < AT_ONCE && waiting.length > 0) {
      running += 1;
      waiting.shift().run().finally(() => {
        running -= 1;
        startNext();
      });
    }
  }

  const add = (files) => { for (const file of files) new DropLine(file); };
  root.querySelector("[data-drop-choose]").addEventListener("click", () => input.click());
  input.addEventListener("change", () => {
    add([...input.files]);
    input.value = "";
  });
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    add([...(event.dataTransfer?.files ?? [])]);
  });
  window.addEventListener("beforeunload", (event) => { if (running > 0) event.preventDefault(); });
  target.hidden = false;
})();
