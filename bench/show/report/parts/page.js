"use strict";

document.documentElement.classList.add("with-script");

const every = (selector, inside = document) => [...inside.querySelectorAll(selector)];
const cases = every("details.case");

// Tables: a heading's button sorts by its column, the largest number first, and turns the order at the next click.

function sort(heading) {
  const table = heading.closest("table");
  const column = [...heading.parentNode.children].indexOf(heading);
  const numeric = heading.classList.contains("n");
  const before = heading.getAttribute("aria-sort");
  const order = before === "none" ? (numeric ? "descending" : "ascending") : before === "ascending" ? "descending" : "ascending";
  every("th[aria-sort]", table).forEach((other) => other.setAttribute("aria-sort", "none"));
  heading.setAttribute("aria-sort", order);
  const key = (row) => {
    const cell = row.children[column];
    return (cell.dataset.v ?? cell.style.getPropertyValue("--w")) || cell.textContent;
  };
  const compare = numeric ? (a, b) => key(a) - key(b) : (a, b) => key(a).localeCompare(key(b));
  const sign = order === "ascending" ? 1 : -1;
  const body = table.tBodies[0];
  body.append(...[...body.rows].sort((a, b) => sign * compare(a, b)));
}

every(".sortable th[aria-sort] button").forEach((button) => {
  button.addEventListener("click", () => sort(button.closest("th")));
});

// Timelines: a span is chosen by pointing at it, or by the arrow keys while the timeline has the focus.

const start = (box) => box.x.baseVal.valueInSpecifiedUnits;
const end = (box) => start(box) + box.width.baseVal.valueInSpecifiedUnits;
const row = (box) => box.y.baseVal.value;

function neighbour(boxes, box, key) {
  const beside = boxes.filter((other) => row(other) === row(box));
  const place = beside.indexOf(box);
  if (key === "ArrowLeft") return beside[place - 1];
  if (key === "ArrowRight") return beside[place + 1];
  if (key === "Home") return beside[0];
  if (key === "End") return beside.at(-1);
  const up = key === "ArrowUp";
  const rows = boxes.map(row).filter((y) => (up ? y < row(box) : y > row(box)));
  const next = up ? Math.max(...rows) : Math.min(...rows);
  const middle = (start(box) + end(box)) / 2;
  const distance = (other) => (up ? Math.max(start(other) - middle, middle - end(other), 0) : Math.abs(start(other) - start(box)));
  return boxes.filter((other) => row(other) === next).sort((a, b) => distance(a) - distance(b))[0];
}

function explore(area) {
  const boxes = every("rect", area).sort((a, b) => row(a) - row(b) || start(a) - start(b));
  const readout = document.getElementById(area.getAttribute("aria-describedby"));
  let chosen = null;
  const choose = (box) => {
    if (!box) return;
    chosen?.classList.remove("chosen");
    chosen = box;
    chosen.classList.add("chosen");
    readout.textContent = box.querySelector("title").textContent;
  };
  area.addEventListener("focus", () => choose(chosen ?? boxes[0]));
  area.addEventListener("pointerover", (event) => choose(event.target.closest("rect")));
  area.addEventListener("keydown", (event) => {
    if (!["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"].includes(event.key)) return;
    event.preventDefault();
    choose(neighbour(boxes, chosen ?? boxes[0], event.key));
  });
}

every(".explore").forEach(explore);

// Labels in boxes: only those that fit, on the screen or on paper.

const PAPER_PX = 560;

function fit(inside, figurePx) {
  const labels = every("svg.label, svg.letter", inside);
  const room = (label) => (label.width.baseVal.valueInSpecifiedUnits / 100) * (figurePx ?? label.parentNode.clientWidth);
  const tight = labels.map((label) => label.firstElementChild.getComputedTextLength() + 7 > room(label));
  labels.forEach((label, place) => label.classList.toggle("unfit", tight[place]));
}

const fitOpen = () => cases.filter((details) => details.open).forEach((details) => fit(details));

// A closed case has no widths yet, so its labels are looked at when it opens.
cases.forEach((details) => details.addEventListener("toggle", () => details.open && fit(details)));
addEventListener("resize", fitOpen);
fitOpen();

// Names that are shown shortened say all when pointed at.

every("a.long").forEach((link) => {
  link.title = document.getElementById(link.hash.slice(1)).textContent;
});

// The list of cases: a link opens its case, and the field leaves only cases that have all its words.

function openTarget() {
  const target = document.getElementById(location.hash.slice(1));
  if (target?.matches("details.case")) target.open = true;
}

addEventListener("hashchange", openTarget);
openTarget();
every("nav a").forEach((link) => link.addEventListener("click", () => (document.getElementById(link.hash.slice(1)).open = true)));

const field = document.getElementById("filter");

field.addEventListener("input", () => {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  const items = every("nav li");
  items.forEach((item) => {
    const hidden = !words.every((word) => item.dataset.words.toLowerCase().includes(word));
    item.hidden = hidden;
    document.getElementById(item.firstElementChild.hash.slice(1)).hidden = hidden;
  });
  every("nav section").forEach((section) => (section.hidden = !section.querySelector("li:not([hidden])")));
  every(".point").forEach((section) => (section.hidden = !section.querySelector("details.case:not([hidden])")));
  const left = items.filter((item) => !item.hidden).length;
  document.getElementById("found").textContent = words.length ? `${left} of ${items.length} cases` : "";
});

document.getElementById("open-all").addEventListener("click", () => cases.forEach((details) => (details.open = true)));
document.getElementById("close-all").addEventListener("click", () => cases.forEach((details) => (details.open = false)));

// On paper everything is open; afterwards the screen is as it was.

let closed = [];

addEventListener("beforeprint", () => {
  closed = every("details:not([open])");
  closed.forEach((details) => (details.open = true));
  cases.forEach((details) => fit(details, PAPER_PX));
});
addEventListener("afterprint", () => {
  closed.forEach((details) => (details.open = false));
  fitOpen();
});
