// Looks at the page as someone with weak eyes or a screen reader would. Returns a list of problems.
const problems = [];
const parse = (text) => {
  const context = parse.canvas ??= Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true });
  context.clearRect(0, 0, 1, 1);
  context.fillStyle = text;
  context.fillRect(0, 0, 1, 1);
  const [r, g, b, a] = context.getImageData(0, 0, 1, 1).data;
  return [r, g, b, a / 255];
};
const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
const luminance = (colour) => {
  const [r, g, b] = colour.map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const contrast = (a, b) => {
  const [light, dark] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return (light + 0.05) / (dark + 0.05);
};
const background = (element) => {
  const layers = [];
  for (let e = element; e; e = e.parentElement) layers.push(parse(getComputedStyle(e).backgroundColor));
  return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]);
};
const isShown = (element) => element.checkVisibility({ opacityProperty: true, visibilityProperty: true }) && !element.closest(".sr, .skip");

const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let node; (node = walker.nextNode()); ) {
  const element = node.parentElement;
  if (!node.data.trim() || element.closest("svg, script, template, [disabled], [aria-disabled=true]") || !isShown(element)) continue;
  const style = getComputedStyle(element);
  const size = parseFloat(style.fontSize);
  const needed = size >= 24 || (size >= 18.66 && style.fontWeight >= 700) ? 3 : 4.5;
  const below = background(element);
  const ratio = contrast(over(parse(style.color), below), below);
  if (ratio < needed) problems.push(`contrast ${ratio.toFixed(2)} of "${node.data.trim().slice(0, 40)}"`);
}
for (const field of document.querySelectorAll("input:not([type=hidden]), select, textarea")) {
  if (isShown(field) && !field.labels?.length && !field.getAttribute("aria-label")) problems.push(`no label for ${field.name}`);
  const described = field.getAttribute("aria-describedby")?.split(" ") ?? [];
  for (const id of described) if (!document.getElementById(id)) problems.push(`${field.name} points to missing ${id}`);
}
for (const control of document.querySelectorAll("a[href], button, summary")) {
  if (!isShown(control)) continue;
  const name = (control.getAttribute("aria-label") ?? control.textContent).trim();
  if (!name) problems.push(`a ${control.localName} without a name`);
  const box = control.getBoundingClientRect();
  const isInline = control.localName === "a" && getComputedStyle(control).display === "inline";
  // Fingers need more than a mouse.
  const needed = innerWidth < 500 && control.matches(".btn, .btn-icon, main summary") ? 44 : 24;
  if (!isInline && (box.width < 24 || box.height < needed)) problems.push(`"${name.slice(0, 40)}" is only ${box.width}×${box.height}`);
}
let level = 1;
for (const heading of document.querySelectorAll("main :is(h1, h2, h3, h4)")) {
  if (!isShown(heading)) continue;
  const now = Number(heading.localName[1]);
  if (now > level + 1) problems.push(`"${heading.textContent.slice(0, 40)}" is an h${now} after an h${level}`);
  level = now;
}
for (const list of document.querySelectorAll(".steps")) {
  if (list.querySelectorAll(":scope > [aria-current=step]").length > 1) problems.push("two steps are the next one");
}
const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
for (const id of new Set(ids.filter((id, i) => ids.indexOf(id) !== i))) problems.push(`id ${id} is there twice`);
if (document.querySelectorAll("h1").length !== 1) problems.push("not exactly one h1");
if (!document.querySelector("main") || !document.documentElement.lang) problems.push("no main or no language");
if (document.documentElement.scrollWidth > innerWidth) problems.push(`scrolls sideways: ${document.documentElement.scrollWidth} > ${innerWidth}`);
return problems;
