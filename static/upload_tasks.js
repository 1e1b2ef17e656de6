"use strict";

// How files are sent: a large one by tus (vendor/tus.min.js), which goes on from where it stopped, small ones of a folder
// many at a time. Each task belongs to a line of the panel in uploads.js, which queues and counts them.
window.uploadTasks = ({ root, cluster, folder, enqueue, refreshUnfinished, maxFiles }) => {
  const RETRY_MS = [500, 1000, 2000, 5000, ...Array(2000).fill(8000)];

  // ---- One file by tus ----

  class FileTask {
    constructor(line, item) {
      Object.assign(this, { line, item, loaded: 0 });
    }

    run() {
      if (this.item.isDone) return Promise.resolve();
      return new Promise((resolve) => {
        this.isSettled = false;
        this.settle = () => {
          this.isSettled = true;
          resolve();
        };
        const { file, path } = this.item;
        const previous = this.item.uploadId ?? findUnfinished(this.item);
        this.upload = new window.tus.Upload(file, {
          endpoint: uploadUrl(),
          uploadUrl: previous ? uploadUrl(previous) : null,
          retryDelays: RETRY_MS,
          storeFingerprintForResuming: false, // the server lists what is unfinished
          metadata: {
            cluster, folder, relativePath: path,
            modified: String(Math.floor(file.lastModified / 1000)),
            ...(this.item.replace ? { replace: "yes" } : {}),
          },
          onShouldRetry: (error) => this.shouldRetry(error),
          onAfterResponse: (request, response) => this.hearProblem(request, response),
          onProgress: (bytes) => {
            this.isRetrying = false;
            this.line.note = "";
            this.loaded = bytes;
          },
          onUploadUrlAvailable: () => { this.item.uploadId = this.upload.url.split("/").pop(); },
          onSuccess: () => {
            this.loaded = file.size;
            this.item.uploadId ??= this.upload.url?.split("/").pop();
            new FinishTask(this.line, this.item).run().then(this.settle);
          },
          onError: (error) => this.stop(error),
        });
        this.upload.start();
      });
    }

    shouldRetry(error) {
      const status = error.originalResponse?.getStatus() ?? 0;
      const method = error.originalRequest?.getMethod();
      if (this.line.isStopped()) return false;
      // A name that is taken can't be tried again; a wrong position can.
      const again = [0, 423, 429, 460, 500, 502, 503, 504].includes(status) || (status === 409 && method !== "POST");
      this.isRetrying = again;
      const said = status === 503 ? error.originalResponse.getBody() : "";
      this.line.note = again ? said || "Waiting for the connection. The upload continues automatically." : "";
      return again;
    }

    /** A refusal may get lost while a large file is being sent: then the next look at the upload tells it. */
    hearProblem(request, response) {
      if (request.getMethod() !== "HEAD" || !this.isRetrying) return;
      const problem = response.getHeader("Portolan-Upload-Problem");
      if (!problem) return;
      this.upload.abort();
      this.settle();
      this.line.waiting.push(this);
      this.line.fail(problem);
    }

    stop(error) {
      const status = error.originalResponse?.getStatus() ?? 0;
      const text = error.originalResponse?.getBody() ?? "";
      this.settle();
      if (status === 409) {
        this.takeName();
        return;
      }
      this.line.waiting.push(this);
      if (!this.line.isStopped()) {
        this.line.fail(text.length > 0 && text.length < 500 ? text : "The upload failed. Select Resume to try again.");
      }
    }

    /** Before anything was sent: a second copy tries the next name, otherwise the person decides. */
    takeName() {
      this.item.uploadId = undefined;
      if (this.item.decision === "keep-both" && (this.item.tries = (this.item.tries ?? 0) + 1) < 50) {
        this.item.path = nextName(this.item.path);
        enqueue([new FileTask(this.line, this.item)]);
      } else {
        this.line.taken.push(this.item);
      }
    }

    pause() {
      if (!this.upload || this.isSettled) return;
      Promise.resolve(this.upload.abort()).finally(() => {
        if (this.isSettled) return;
        this.settle();
        if (this.line.state === "running") enqueue([this]);
        else if (this.line.state !== "cancelled") this.line.waiting.push(this);
      });
    }

    cancel() {
      const end = () => {
        const id = this.item.uploadId;
        if (id) send("DELETE", `/uploads/${id}`).finally(refreshUnfinished);
        this.settle?.();
      };
      Promise.resolve(this.upload?.abort()).finally(end);
    }

    /** The network is back: no need to wait for the next try. */
    hurry() {
      if (!this.isRetrying || this.line.isStopped()) return;
      this.isRetrying = false;
      Promise.resolve(this.upload.abort()).finally(() => this.upload.start());
    }
  }

  // ---- What has arrived gets its name ----

  class FinishTask {
    constructor(line, item) {
      Object.assign(this, { line, item, loaded: item.file.size });
    }

    async run() {
      const decision = this.item.decision ?? "";
      for (let tries = 0; !this.line.isStopped() || this.line.state === "paused"; tries += 1) {
        const answer = await send("POST", `/uploads/${this.item.uploadId}/finish`, new URLSearchParams({ decision }));
        if (answer.status === 200) {
          this.line.done(this.item);
          refreshUnfinished();
          return;
        }
        if (answer.status === 409) {
          this.line.taken.push(this.item);
          refreshUnfinished();
          return;
        }
        const isPassing = [0, 202, 423, 503].includes(answer.status);
        if (!isPassing) {
          this.line.fail(answer.text);
          refreshUnfinished();
          return;
        }
        await sleep(RETRY_MS[Math.min(tries, RETRY_MS.length - 1)]);
      }
    }

    pause() {}

    cancel() {
      send("DELETE", `/uploads/${this.item.uploadId}`).finally(refreshUnfinished);
    }
  }

  // ---- Many small files in one request ----

  class BatchTask {
    constructor(line, items) {
      Object.assign(this, { line, items, loaded: 0 });
    }

    async run() {
      const encoder = new TextEncoder();
      const parts = this.items.flatMap(({ path, file }) => {
        const name = encoder.encode(path);
        const head = new DataView(new ArrayBuffer(4));
        head.setUint32(0, name.length);
        const size = new DataView(new ArrayBuffer(8));
        size.setBigUint64(0, BigInt(file.size));
        return [head, name, size, file];
      });
      const replace = this.items[0].replace ? "yes" : "";
      const query = new URLSearchParams({ path: folder, replace });
      for (let tries = 0; ; tries += 1) {
        if (this.line.isStopped()) {
          this.line.waiting.push(this);
          return;
        }
        this.abort = new AbortController();
        const body = new Blob(parts);
        const answer = await send("POST", `/files/${cluster}/upload-batch?${query}`, body, this.abort.signal);
        if (answer.status === 200 && answer.json) return this.sort(answer.json.files);
        if (![0, 423, 429, 502, 503, 504].includes(answer.status)) {
          this.line.waiting.push(this);
          return this.line.fail(answer.text);
        }
        this.line.note = answer.text || "Waiting for the connection. The upload continues automatically.";
        await sleep(RETRY_MS[Math.min(tries, RETRY_MS.length - 1)]);
      }
    }

    sort(outcomes) {
      this.line.note = "";
      const again = [];
      outcomes.forEach(({ outcome, problem }, at) => {
        const item = this.items[at];
        if (outcome === "done") this.line.done(item);
        else if (outcome === "failed") this.line.fail(`${item.path}: ${problem}`);
        else if (item.decision === "keep-both" && (item.tries = (item.tries ?? 0) + 1) < 50) {
          item.path = nextName(item.path);
          again.push(item);
        } else this.line.taken.push(item);
      });
      if (again.length > 0) enqueue(this.line.tasks(again));
    }

    pause() { this.abort?.abort(); }

    cancel() { this.abort?.abort(); }
  }

  // ---- Requests ----

  const uploadUrl = (id) => new URL(id ? `/uploads/${id}` : "/uploads", window.location.href).href;
  const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

  /** Never throws: status 0 means that there was no answer. */
  async function send(method, url, body, signal) {
    try {
      const headers = { "Tus-Resumable": "1.0.0" };
      const response = await fetch(url, { method, body, signal, headers, redirect: "manual" });
      if (response.type === "opaqueredirect") {
        return { status: 401, text: "You're signed out. Sign in again in another tab, then select Resume." };
      }
      const isJson = response.headers.get("content-type")?.startsWith("application/json");
      if (isJson) return { status: response.status, json: await response.json(), text: "" };
      const text = await response.text();
      return { status: response.status, text: text.length < 500 ? text : "The upload failed. Try again." };
    } catch {
      return { status: 0, text: "" };
    }
  }

  /** `name (2).txt` after `name.txt`, `name (3).txt` after that. */
  function nextName(path) {
    const at = path.lastIndexOf("/") + 1;
    const name = path.slice(at);
    const dot = name.lastIndexOf(".") > 0 ? name.lastIndexOf(".") : name.length;
    const [, stem, number] = name.slice(0, dot).match(/^(.*?)(?: \((\d+)\))?$/s);
    return `${path.slice(0, at)}${stem} (${Number(number ?? 1) + 1})${name.slice(dot)}`;
  }

  // ---- Uploads that were begun before: another page, another day ----

  function readMetadata(text) {
    const decode = (value) => new TextDecoder().decode(Uint8Array.from(atob(value), (c) => c.charCodeAt(0)));
    const pairs = text.split(",").map((pair) => pair.trim().split(" "));
    try {
      return Object.fromEntries(pairs.map(([key, value]) => [key, decode(value ?? "")]));
    } catch {
      return {};
    }
  }

  function findUnfinished({ file, path }) {
    for (const row of root.querySelectorAll("[data-unfinished][data-state=receiving]")) {
      const known = readMetadata(row.dataset.metadata);
      const isSame = known.folder === folder && known.relativePath === path && Number(row.dataset.size) === file.size
        && known.modified === String(Math.floor(file.lastModified / 1000));
      if (isSame) return row.dataset.unfinished;
    }
    return undefined;
  }

  // ---- What was dropped ----

  const readFile = (entry) => new Promise((resolve, reject) => { entry.file(resolve, reject); });
  const readSome = (reader) => new Promise((resolve, reject) => { reader.readEntries(resolve, reject); });

  /** All files and empty folders below a dropped folder. The browser hands out a hundred names at a time. */
  async function readFolder(entry, path, items) {
    const reader = entry.createReader();
    let isEmpty = true;
    for (let some = await readSome(reader); some.length > 0; some = await readSome(reader)) {
      isEmpty = false;
      const files = some.filter((one) => one.isFile);
      items.push(...await Promise.all(files.map(async (one) => ({ file: await readFile(one), path: `${path}/${one.name}` }))));
      for (const one of some.filter((one) => one.isDirectory)) await readFolder(one, `${path}/${one.name}`, items);
      if (items.length > maxFiles) return items;
    }
    // For the server, a path that ends with a slash is an empty folder.
    if (isEmpty) items.push({ file: new File([], entry.name), path: `${path}/`, isFolder: true });
    return items;
  }

  return { FileTask, BatchTask, FinishTask, send, nextName, readFile, readFolder };
};
