"use strict";

const every = (selector, inside = document) => [...inside.querySelectorAll(selector)];

// Tables are sorted by a column; what has no number stays below.

function sort(heading) {
  const column = heading.cellIndex;
  const body = heading.closest("table").tBodies[0];
  const isNumber = heading.classList.contains("n");
  const next = { none: isNumber ? "descending" : "ascending", ascending: "descending", descending: "ascending" };
  const order = next[heading.getAttribute("aria-sort")];
  every("th[aria-sort]", heading.parentNode).forEach((other) => other.setAttribute("aria-sort", "none"));
  heading.setAttribute("aria-sort", order);
  const sign = order === "ascending" ? 1 : -1;
  const value = (line) => line.children[column].dataset.v;
  const text = (line) => line.children[column].textContent;
  const byNumber = (a, b) => (value(a) === undefined) - (value(b) === undefined) || sign * (value(a) - value(b)) || 0;
  const byText = (a, b) => sign * text(a).localeCompare(text(b), "en", { numeric: true });
  body.append(...[...body.rows].sort(isNumber ? byNumber : byText));
}

every(".sortable th[aria-sort] button").forEach((button) => button.addEventListener("click", () => sort(button.parentNode)));

// The table of all cases has the lines with all of the reader's words.

document.getElementById("words")?.addEventListener("input", (event) => {
  const words = event.target.value.toLowerCase().split(/\s+/);
  every("#table tbody tr").forEach((line) => (line.hidden = !words.every((word) => line.textContent.toLowerCase().includes(word))));
});

// The implementation stays beside the point while the table scrolls.

const point = document.querySelector("#table th");
if (point) point.closest("table").style.setProperty("--first", `${point.offsetWidth}px`);
