// A file's content: colours for code, tables that sort. The server sends text; nothing of it is read as markup here.
// Works on whatever htmx swaps in.
(() => {
  "use strict";

  // ---- Code ----

  function highlight(root) {
    for (const code of root.querySelectorAll("code[data-language]")) {
      const language = code.dataset.language;
      // A program's own colours (spans) stay.
      if (!window.hljs?.getLanguage(language) || code.childElementCount) continue;
      code.removeAttribute("data-language");
      code.classList.add(`language-${language}`);
      window.hljs.highlightElement(code);
    }
  }

  // ---- Tables ----

  const collator = new Intl.Collator(undefined, { numeric: true });

  function armTable(table) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort-link";
      button.textContent = head.textContent || `Column ${column + 1}`;
      button.addEventListener("click", () => sort(table, heads, column));
      head.replaceChildren(button);
    });
    table.removeAttribute("data-sortable");
  }

  function sort(table, heads, column) {
    const isDown = heads[column].getAttribute("aria-sort") === "ascending";
    const isNumber = heads[column].classList.contains("num");
    const value = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent.trim();
    const compare = (a, b) => {
      const [left, right] = [value(a), value(b)];
      // Empty cells come last either way.
      if (left === "" || right === "") return (left === "") - (right === "");
      const order = isNumber ? Number(left) - Number(right) : collator.compare(left, right);
      return isDown ? -order : order;
    };
    const body = table.tBodies[0];
    body.append(...[...body.rows].sort(compare));
    for (const head of heads) head.removeAttribute("aria-sort");
    heads[column].setAttribute("aria-sort", isDown ? "descending" : "ascending");
  }

  function enhance(root) {
    highlight(root);
    root.querySelectorAll("table[data-sortable]").forEach(armTable);
  }

  document.addEventListener("htmx:load", (event) => enhance(event.detail.elt));
  enhance(document);
})();
