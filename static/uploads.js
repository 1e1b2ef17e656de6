// Uploading to the folder that is shown: by drag and drop or with the buttons, several at once, each with its progress.
// What is sent and how is in upload_tasks.js.
(() => {
  "use strict";

  const root = document.querySelector("[data-uploads]");
  if (!root || !window.tus || !window.uploadTasks) return;
  const part = (name) => root.querySelector(`[data-upload-${name}]`);
  const { cluster, folder } = root.dataset;

  const PARALLEL = 3;
  const SMALL_BYTES = 1024 * 1024; // the server takes no larger file in a batch
  const BATCH_BYTES = 6 * 1024 * 1024;
  const BATCH_FILES = 1500;
  const MAX_FILES = 100000; // of one folder: each takes memory in this page
  const SAME_NAME = "A file or folder with this name already exists.";

  const { FileTask, BatchTask, FinishTask, send, nextName, readFile, readFolder } =
    window.uploadTasks({ root, cluster, folder, enqueue, refreshUnfinished, maxFiles: MAX_FILES });

  // ---- Words ----

  const units = ["bytes", "kB", "MB", "GB", "TB"];
  function sizeText(bytes) {
    if (bytes === 1) return "1 byte";
    let at = 0;
    let amount = bytes;
    while (amount >= 1024 && at < units.length - 1) { amount /= 1024; at += 1; }
    return `${at > 0 && amount < 10 ? amount.toFixed(1) : Math.round(amount)} ${units[at]}`;
  }
  function timeText(seconds) {
    if (seconds < 60) return `${Math.max(1, Math.round(seconds))} s`;
    if (seconds < 3600) return `${Math.round(seconds / 60)} min`;
    return `${Math.floor(seconds / 3600)} h ${Math.round((seconds % 3600) / 60)} min`;
  }
  const countText = (count) => (count === 1 ? "1 file" : `${count.toLocaleString("en")} files`);

  // ---- The queue: a few requests at a time, whatever was dropped ----

  const queue = [];
  let running = 0;

  function enqueue(tasks) {
    queue.push(...tasks);
    work();
  }

  function work() {
    while (running < PARALLEL && queue.length > 0) {
      const task = queue.shift();
      if (task.line.isStopped()) {
        task.line.waiting.push(task);
        continue;
      }
      running += 1;
      task.line.running.add(task);
      task.run().catch((error) => task.line.fail(error?.message)).finally(() => {
        running -= 1;
        task.line.running.delete(task);
        task.line.update();
        work();
      });
    }
  }

  // ---- One line of the panel: a file, or a folder with all that is in it ----

  class UploadLine {
    constructor(name, items) {
      this.name = name;
      this.items = items;
      this.files = items.filter((item) => !item.isFolder).length; // the others are empty folders
      this.total = items.reduce((sum, item) => sum + item.file.size, 0);
      this.state = "running"; // running, paused, cancelled, failed
      this.waiting = []; // tasks that go on after a pause
      this.running = new Set();
      this.doneBytes = 0;
      this.doneFiles = 0;
      this.taken = []; // items whose name is taken
      this.skipped = 0;
      this.problem = "";
      this.note = ""; // why it waits
      this.speed = 0;
      this.lastBytes = 0;
      this.lastAt = performance.now();
      this.isOver = false;
      this.build();
      enqueue(this.tasks(items));
    }

    build() {
      this.row = part("row").content.firstElementChild.cloneNode(true);
      this.row.querySelector("[data-line-name]").textContent = this.name;
      this.row.querySelector("progress").setAttribute("aria-label", this.name);
      for (const button of this.row.querySelectorAll("[data-line]")) {
        button.setAttribute("aria-label", `${button.textContent} ${this.name}`);
        button.addEventListener("click", () => this.press(button.dataset.line));
      }
      part("list").append(this.row);
      part("panel").hidden = false;
    }

    /** Large files each on their own, small ones together. A single file can always be paused. */
    tasks(items) {
      const tasks = [];
      let batch = [];
      let bytes = 0;
      const close = () => {
        if (batch.length > 0) tasks.push(new BatchTask(this, batch));
        batch = [];
        bytes = 0;
      };
      for (const item of items) {
        if (!item.isFolder && (this.items.length === 1 || item.file.size > SMALL_BYTES)) {
          tasks.push(new FileTask(this, item));
          continue;
        }
        if (batch.length === BATCH_FILES || bytes + item.file.size > BATCH_BYTES) close();
        batch.push(item);
        bytes += item.file.size + item.path.length * 3 + 12;
      }
      close();
      return tasks;
    }

    isStopped() { return this.state !== "running"; }

    press(action) {
      if (action === "pause") {
        this.state = "paused";
        for (const task of this.running) task.pause();
      } else if (action === "resume") {
        this.state = "running";
        this.problem = "";
        enqueue(this.waiting.splice(0));
      } else if (action === "cancel") {
        this.state = "cancelled";
        for (const task of [...this.running, ...this.waiting]) task.cancel();
        this.waiting = [];
        this.remove();
      } else if (action === "dismiss") {
        this.remove();
      } else {
        this.decide(action);
      }
      this.update();
    }

    /** What to do with the names that are taken. */
    decide(action) {
      const taken = this.taken.splice(0);
      if (action === "skip") {
        for (const item of taken) {
          if (item.uploadId) send("DELETE", `/uploads/${item.uploadId}`).finally(refreshUnfinished);
        }
        this.skipped += taken.length;
        return;
      }
      for (const item of taken) item.decision = action;
      const arrived = taken.filter((item) => item.uploadId);
      const others = taken.filter((item) => !item.uploadId);
      for (const item of others) {
        if (action === "replace") item.replace = true;
        else item.path = nextName(item.path);
      }
      enqueue([...this.tasks(others), ...arrived.map((item) => new FinishTask(this, item))]);
    }

    done(item) {
      if (item.isDone) return;
      item.isDone = true;
      if (!item.isFolder) this.doneFiles += 1;
      this.doneBytes += item.file.size;
      scheduleRefresh();
    }

    fail(problem) {
      if (this.state === "cancelled") return;
      this.problem = problem || "The upload failed.";
      this.state = "failed";
      for (const task of this.running) task.pause();
      this.update();
    }

    remove() {
      this.row.remove();
      lines.delete(this);
      part("panel").hidden = part("list").children.length === 0;
      scheduleRefresh();
    }

    loaded() {
      let bytes = this.doneBytes;
      for (const task of this.running) bytes += task.loaded ?? 0;
      for (const task of this.waiting) bytes += task.loaded ?? 0;
      return Math.min(bytes, this.total);
    }

    measure(now) {
      const bytes = this.loaded();
      const seconds = (now - this.lastAt) / 1000;
      if (seconds < 0.4) return;
      const current = Math.max(0, (bytes - this.lastBytes) / seconds);
      this.speed = this.speed === 0 ? current : this.speed * 0.7 + current * 0.3;
      [this.lastBytes, this.lastAt] = [bytes, now];
    }

    text() {
      const files = this.files;
      const parts = [];
      if (this.isOver && files === 0) return "Folder created";
      if (this.isOver) {
        parts.push(this.doneFiles === 0 ? "Skipped" : files > 1 ? `${countText(this.doneFiles)} uploaded` : "Uploaded");
        if (this.doneFiles > 0) parts.push(sizeText(this.total));
        if (this.skipped > 0 && this.doneFiles > 0) parts.push(`${countText(this.skipped)} skipped`);
        return parts.join(" · ");
      }
      if (this.problem) return this.problem;
      if (this.taken.length > 0 && this.running.size === 0) {
        return files === 1 ? SAME_NAME : `${countText(this.taken.length)} already ${this.taken.length === 1 ? "exists" : "exist"}.`;
      }
      if (this.note) return this.note;
      const bytes = this.loaded();
      parts.push(`${sizeText(bytes)} of ${sizeText(this.total)}`);
      if (files > 1) parts.push(`${this.doneFiles.toLocaleString("en")} of ${countText(files)}`);
      if (this.state === "paused") parts.push("paused");
      else if (this.running.size === 0) parts.push("waiting");
      else if (bytes === this.total) parts.push("checking");
      else if (this.speed > 0) {
        parts.push(`${sizeText(this.speed)}/s`, `${timeText((this.total - bytes) / this.speed)} left`);
      }
      return parts.join(" · ");
    }

    update() {
      const isIdle = this.running.size === 0 && this.waiting.length === 0 && !queue.some((task) => task.line === this);
      this.isOver = this.state === "running" && isIdle && this.taken.length === 0;
      const line = this.row.querySelector("[data-line-text]");
      const text = this.text();
      if (line.textContent !== text) line.textContent = text;
      this.row.querySelector("progress").value = this.total === 0 ? Number(this.isOver) : this.loaded() / this.total;
      const state = this.isOver ? "done" : this.taken.length > 0 && isIdle ? "taken" : this.state;
      // Progress is for the eyes; screen readers hear how it ends.
      const isNews = state !== this.row.dataset.state && ["done", "failed", "taken"].includes(state);
      if (isNews) document.getElementById("announcer").textContent = `${this.name}: ${text}`;
      this.row.dataset.state = state;
      const isAsked = this.taken.length > 0 && isIdle && this.state === "running";
      const shown = {
        replace: isAsked, "keep-both": isAsked, skip: isAsked,
        pause: this.state === "running" && !isIdle,
        resume: this.state === "paused" || (this.state === "failed" && this.waiting.length > 0),
        cancel: !this.isOver && !isAsked,
        dismiss: this.isOver,
      };
      for (const button of this.row.querySelectorAll("[data-line]")) button.hidden = !shown[button.dataset.line];
    }
  }

  const lines = new Set();
  setInterval(() => {
    const now = performance.now();
    for (const line of lines) {
      if (line.isOver || line.isStopped()) continue;
      line.measure(now);
      line.update();
    }
  }, 500);

  function add(name, items) {
    if (items.length > 0) lines.add(new UploadLine(name, items));
  }

  // ---- What others are told, and the uploads that were begun before ----

  function tell(name) { document.body.dispatchEvent(new CustomEvent(name)); }
  function refreshUnfinished() { tell("uploads-changed"); }

  /** What this page is uploading isn't unfinished. */
  function hideOwn() {
    const own = new Set([...lines].flatMap((line) => line.items.map((item) => item.uploadId)));
    const rows = [...root.querySelectorAll("[data-unfinished]")];
    for (const row of rows) row.hidden = own.has(row.dataset.unfinished);
    const count = rows.filter((row) => !row.hidden).length;
    const list = root.querySelector("[data-unfinished-list]");
    if (!list) return;
    list.hidden = count === 0;
    list.querySelector("summary").textContent = count === 1 ? "1 unfinished upload" : `${count} unfinished uploads`;
  }
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.target === part("unfinished")) hideOwn();
  });

  let refreshTimer = null;
  /** The folder's rows show what has arrived, but not more often than someone can read. */
  function scheduleRefresh() {
    refreshTimer ??= setTimeout(() => {
      refreshTimer = null;
      tell("files-changed");
    }, 1000);
  }

  root.addEventListener("click", async (event) => {
    const row = event.target.closest("[data-unfinished]");
    const button = event.target.closest("button");
    if (!row || !button) return;
    button.disabled = true;
    const url = `/uploads/${row.dataset.unfinished}`;
    const decision = button.dataset.uploadFinish;
    const answer = decision
      ? await send("POST", `${url}/finish`, new URLSearchParams({ decision }))
      : await send("DELETE", url);
    button.disabled = false;
    if (answer.status >= 200 && answer.status < 300) {
      scheduleRefresh();
      refreshUnfinished();
    } else {
      const problem = document.createElement("span");
      problem.className = "hint";
      problem.setAttribute("role", "alert");
      problem.textContent = answer.text || "Couldn't reach the portal. Check your internet connection and try again.";
      row.querySelector(".upload-text").append(problem);
    }
  });

  // ---- Choosing and dropping ----

  function addFiles(files) {
    const folders = new Map();
    for (const file of files) {
      const path = file.webkitRelativePath || file.name;
      const top = path.includes("/") ? path.slice(0, path.indexOf("/")) : null;
      if (top === null) add(file.name, [{ file, path }]);
      else if (folders.has(top)) folders.get(top).push({ file, path });
      else folders.set(top, [{ file, path }]);
    }
    for (const [name, items] of folders) addFolder(name, items);
  }

  function addFolder(name, items) {
    if (items.length > MAX_FILES) {
      window.alert(`${name} has more than ${countText(MAX_FILES)}. Upload its folders one by one, or upload it as an archive.`);
    } else {
      add(name, items);
    }
  }

  async function addDropped(transfer) {
    // Entries must be taken before the event is over.
    const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
    if (entries.length === 0) return addFiles(transfer.files);
    for (const entry of entries) {
      try {
        if (entry.isDirectory) addFolder(entry.name, await readFolder(entry, entry.name, []));
        else add(entry.name, [{ file: await readFile(entry), path: entry.name }]);
      } catch {
        window.alert(`${entry.name} can't be read on this computer.`);
      }
    }
  }

  const isUsable = () => !part("buttons").querySelector("button").disabled;
  const hasFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  let depth = 0; // enter and leave come for each element on the way
  const showDrop = (is) => { part("drop").hidden = !is; };

  document.addEventListener("dragenter", (event) => {
    if (hasFiles(event) && isUsable()) { depth += 1; showDrop(true); }
  });
  document.addEventListener("dragleave", (event) => {
    if (hasFiles(event)) { depth = Math.max(0, depth - 1); showDrop(depth > 0); }
  });
  document.addEventListener("dragover", (event) => {
    if (hasFiles(event)) event.preventDefault();
  });
  document.addEventListener("drop", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault(); // the browser would open the file
    depth = 0;
    showDrop(false);
    if (isUsable()) addDropped(event.dataTransfer);
  });

  for (const button of root.querySelectorAll("[data-upload-choose]")) {
    const input = root.querySelector(`[data-upload-input=${button.dataset.uploadChoose}]`);
    button.addEventListener("click", () => input.click());
    input.addEventListener("change", () => {
      addFiles([...input.files]);
      input.value = "";
    });
  }

  const hurry = () => {
    for (const line of lines) for (const task of line.running) task.hurry?.();
  };
  window.addEventListener("online", hurry);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) hurry(); });
  window.addEventListener("beforeunload", (event) => {
    if ([...lines].some((line) => !line.isOver)) event.preventDefault();
  });

  part("buttons").hidden = false;
})();
