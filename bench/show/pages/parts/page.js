"use strict";

const table = document.getElementById("rows");
const lines = table ? [...table.tBodies[0].rows] : [];

// The table of all rows is sorted by a column; a row without a number stays below.

table?.querySelectorAll("thead button").forEach((button) => button.addEventListener("click", () => {
  const heading = button.parentNode;
  const column = heading.cellIndex;
  const isNumber = heading.classList.contains("n");
  const ascends = heading.ariaSort ? heading.ariaSort === "descending" : !isNumber;
  for (const other of heading.parentNode.cells) other.ariaSort = null;
  heading.ariaSort = ascends ? "ascending" : "descending";
  const sign = ascends ? 1 : -1;
  const value = (line) => line.cells[column].dataset.v;
  const text = (line) => line.cells[column].textContent;
  const byNumber = (a, b) => (value(a) === undefined) - (value(b) === undefined) || sign * (value(a) - value(b)) || 0;
  const byText = (a, b) => sign * text(a).localeCompare(text(b), "en", { numeric: true });
  table.tBodies[0].append(...lines.sort(isNumber ? byNumber : byText));
}));

// It has the rows with all of the reader's words.

document.getElementById("words")?.addEventListener("input", (event) => {
  const words = event.target.value.toLowerCase().split(/\s+/);
  for (const line of lines) line.hidden = !words.every((word) => line.textContent.toLowerCase().includes(word));
});
