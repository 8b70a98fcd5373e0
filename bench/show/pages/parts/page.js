"use strict";

document.documentElement.classList.add("with-script");

const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const one = (selector, inside = document) => inside.querySelector(selector);
const every = (selector, inside = document) => [...inside.querySelectorAll(selector)];

function make(tag, content = "", attributes = {}) {
  const element = document.createElement(tag);
  element.append(...[content].flat());
  Object.entries(attributes).forEach(([name, value]) => element.setAttribute(name, value));
  return element;
}

async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
}

// The rows come as columns.
function rowsOf(columns = {}) {
  const names = Object.keys(columns);
  return (columns[names[0]] ?? []).map((_, n) => Object.fromEntries(names.map((name) => [name, columns[name][n]])));
}

// The table of all cases has a line for each row; what stands in a line is shown on pointing at its mark.

const lines = every("#table tbody tr");
const headings = every("#table thead th");
const texts = lines.map((line) => line.textContent.toLowerCase());
const rows = rowsOf(data.rows).map((row, id) => ({ ...Object.fromEntries(headings.map(({ dataset }, n) => [`${dataset.key}_text`, lines[id].children[n].textContent])), label: data.points[row.point], ...row, id }));
const figures = Object.entries(data.figures).map(([kind, figure]) => [kind, { ...figure, own: figure.rows && rowsOf(figure.rows) }]);

// What the reader chose: a series or every point (-1), marked points, implementations of the legend, and words. Rows
// that have the words are found; they are kept if their point is marked too, or if none is.

const state = { view: data.first ?? -1, marked: [], shown: [], found: new Set(), kept: new Set(), points: new Set() };
const charts = new Map();

const series = () => data.series?.[state.view];
const inView = (row) => !series() || row.point in series().at;

function choose() {
  const words = byId("words").value.toLowerCase().split(/\s+/).filter(Boolean);
  state.shown = every(".legend input:checked").map((box) => box.dataset.name);
  const found = rows.filter(({ id, implementation }) => state.shown.includes(implementation) && words.every((word) => texts[id].includes(word)));
  const kept = found.filter(({ point }) => !state.marked.length || state.marked.includes(point));
  [state.found, state.kept] = [found, kept].map((some) => new Set(some.map(({ id }) => id)));
  state.points = new Set(kept.map(({ point }) => point));
}

// Whether a chart has a row; where points are marked, all of them stay.
function isWanted(row, isMarked) {
  if (row.id !== undefined) return (isMarked ? state.found : state.kept).has(row.id);
  const names = row.names ?? [row.implementation];
  return (!names.length || names.some((name) => state.shown.includes(name))) && (row.point === undefined || state.points.has(row.point));
}

function update() {
  choose();
  for (const { view, values, isMarked } of [...charts.values()].flat()) view.data("rows", values.filter((row) => isWanted(row, isMarked))).runAsync();
  lines.forEach((line, id) => (line.hidden = !state.kept.has(id)));
  every("#point-by-point tbody tr").forEach((line, point) => (line.hidden = !state.points.has(point)));
  const points = state.marked.length ? `; ${state.marked.length} of ${data.points.length} points: ${state.marked.map((point) => data.points[point]).join(", ")}` : "";
  byId("shown").textContent = state.kept.size < rows.length ? `Shown: ${state.kept.size} of ${rows.length} rows${points}` : "";
}

// A chart with a row for each point is as high as it has rows.
function heightOf({ height, layer }, values) {
  if (!height.step) return height;
  const field = layer.map((each) => each.encoding?.y?.field).find(Boolean);
  return new Set(values.map((row) => row[field])).size * height.step;
}

async function draw(place, spec, values, { signals = {}, onClick = null } = {}) {
  const node = place.appendChild(make("div", "", { class: "chart" }));
  const font = getComputedStyle(document.body).fontFamily;
  const config = { ...data.config, background: "transparent", font, axisY: { labelLimit: place.clientWidth < 640 ? 126 : 300 } };
  const params = spec.params.map((each) => (each.name in signals ? { ...each, value: signals[each.name] } : each));
  const whole = { ...spec, params, height: heightOf(spec, values), datasets: { ...spec.datasets, rows: values } };
  const { view } = await vegaEmbed(node, whole, { actions: false, renderer: "svg", ast: true, config, tooltip: { theme: "custom" } });
  if (onClick) view.addEventListener("click", (_, item) => item?.datum && onClick(item.datum));
  return view;
}

// The charts of a section: its parts, or one for each machine, with the rows that they may draw; none without rows.
function partsOf({ parts, charts: specs, own, column }) {
  if (parts) return parts.map((part) => ({ ...part, title: parts.length > 1 && part.title }));
  const chart = specs.any ?? specs[series()?.axis ?? "points"];
  const values = own?.filter((row) => (row.series ?? state.view) === state.view) ?? rows.filter((row) => inView(row) && row[column] !== null);
  if (!chart || !values.length) return [];
  const machines = [...new Set(values.map((row) => row.machine))];
  if (machines.length < 2) return [{ chart, machine: machines[0], rows: values }];
  return machines.map((machine) => ({ chart, machine, title: data.machines[machine], rows: values.filter((row) => row.machine === machine) }));
}

async function show(kind, figure) {
  const place = one(`#figure-${kind} .charts`);
  (charts.get(kind) ?? []).forEach(({ view }) => view.finalize());
  place.replaceChildren();
  const parts = partsOf(figure);
  place.classList.toggle("several", !figure.parts && parts.length > 1);
  const drawn = [];
  const boxes = parts.map(({ title }) => place.appendChild(make("div", title ? make("h3", title) : "")));
  for (const [n, { chart, machine, rows: values }] of parts.entries()) {
    const isMarked = chart.params.some((each) => each.select);
    const signals = { places: series()?.xs ?? [], ...figure.ticks?.at(state.view) };
    const view = await draw(boxes[n], chart, values.filter((row) => isWanted(row, isMarked)), { signals, onClick: openSamples });
    if (isMarked) view.addSignalListener("brush", (_, range) => mark(range, machine));
    drawn.push({ view, values, isMarked });
  }
  charts.set(kind, drawn);
}

async function showAll() {
  state.marked = [];
  choose();
  // first who is there, because a chart takes the width that its neighbours leave
  for (const [kind, figure] of figures) byId(`figure-${kind}`).hidden = !partsOf(figure).length;
  for (const [kind, figure] of figures) await show(kind, figure);
  update();
}

// Marking points of a machine: Vega's own selection says where.
let waiting;
function mark(range, machine) {
  const own = rows.filter((row) => inView(row) && row.machine === machine);
  const [[field, ends] = []] = Object.entries(range ?? {});
  const isInside = (value) => (field === "label" ? ends.includes(value) : value >= ends[0] && value <= ends[1]);
  state.marked = field ? [...new Set(own.filter((row) => isInside(row[field])).map((row) => row.point))] : [];
  clearTimeout(waiting);
  waiting = setTimeout(update, 30);
}

every(".legend input").forEach((box) => box.addEventListener("change", update));
byId("words")?.addEventListener("input", update);
byId("reset")?.addEventListener("click", () => {
  every(".legend input").forEach((box) => (box.checked = true));
  byId("words").value = "";
  showAll();
});

if (data.series) {
  const viewChoice = byId("view");
  viewChoice.parentNode.hidden = false;
  viewChoice.append(...data.series.map((each, number) => make("option", each.label, { value: number })), make("option", "every point", { value: -1 }));
  viewChoice.value = state.view;
  viewChoice.addEventListener("change", () => {
    state.view = Number(viewChoice.value);
    showAll();
  });
}

// Tables are sorted by a column.

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
  // what has no number stays below
  const byNumber = (a, b) => (value(a) === undefined) - (value(b) === undefined) || sign * (value(a) - value(b)) || 0;
  const byText = (a, b) => sign * text(a).localeCompare(text(b), "en", { numeric: true });
  body.append(...[...body.rows].sort(isNumber ? byNumber : byText));
}

every(".sortable th[aria-sort]").forEach((heading) => one("button", heading).addEventListener("click", () => sort(heading)));

// the first two columns of the table of all cases stay when it is scrolled: the second one right of the first
if (headings.length) new ResizeObserver(() => byId("table").style.setProperty("--first", `${headings[0].getBoundingClientRect().width}px`)).observe(headings[0]);

// A case: its samples, process by process, and the command that measures it again.

let packed;
const dialog = byId("case");

function strip(row, processes) {
  const seconds = (ratio) => (ratio / data.steps) * row.latency_s;
  const values = [];
  const middles = [];
  let x = 0;
  for (const [process, rounds, ratios, disturbed, median] of processes) {
    const first = x;
    ratios.forEach((ratio, place) => {
      const remark = disturbed.includes(place) ? "disturbed by other processes" : "undisturbed";
      values.push({ kind: "sample", remark, x: x++, value_s: seconds(ratio), process: process + 1, round: rounds[place] + 1 });
    });
    values.push({ kind: "process", first: first - 0.4, last: x - 0.6, value_s: seconds(median) });
    middles.push((first + x - 1) / 2);
    x += 2;
  }
  values.push({ kind: "interval", x: x + 1, value_s: row.latency_s, low_s: row.latency_low_s ?? row.latency_s, high_s: row.latency_high_s ?? row.latency_s });
  return [values, { values: middles, labels: processes.map(([process]) => `process ${process + 1}`) }];
}

function table(names, values) {
  const head = make("tr", names.map((name) => make("th", name, { scope: "col" })));
  const body = values.map((row) => make("tr", row.map((text) => make("td", String(text)))));
  return make("table", [make("thead", head), make("tbody", body)]);
}

function inFull(cell) {
  const short = one("summary", cell)?.textContent;
  return short ? `${short}: ${cell.textContent.slice(short.length)}` : cell.textContent;
}

one("#case-command button")?.addEventListener("click", (event) => {
  const words = one("#case-command code");
  getSelection().selectAllChildren(words);
  navigator.clipboard?.writeText(words.textContent).then(() => (event.target.textContent = "Copied"), () => {});
});

async function openSamples({ id }) {
  const row = rows[id];
  if (!row) return;
  packed ??= JSON.parse(await unpack(data.packed));
  byId("case-title").textContent = data.sides ? row.label : `${row.implementation} · ${data.points[row.point]}`;
  const facts = headings.map((heading, n) => [heading.textContent.trim(), inFull(lines[id].children[n])]).slice(2).filter(([, text]) => text);
  byId("case-facts").replaceChildren(...facts.map(([name, text]) => make("div", [make("dt", name), make("dd", text)])));
  one("#case-command code").textContent = packed.commands[id];
  one("#case-command button").textContent = "Copy";
  const place = byId("case-charts");
  place.replaceChildren();
  dialog.showModal();
  dialog.style.setProperty("--series", `var(--i${data.names.indexOf(row.implementation)})`);
  const all = [];
  for (const [n, side] of (data.sides ?? [""]).entries()) {
    const [processes, own] = [packed.samples[n][id], { ...row, ...row.sides?.[n] }];
    const box = place.appendChild(make("div", side ? make("h3", side) : ""));
    if (!processes || !own.latency_s) {
      box.appendChild(make("p", "No samples: the case has no time, or the journal isn't there.", { class: "none" }));
      continue;
    }
    const [values, signals] = strip(own, processes);
    await draw(box, data.strip, values, { signals });
    processes.forEach(([process, , ratios, disturbed, , median]) => all.push([side, process + 1, ratios.length, median, disturbed.length].slice(side ? 0 : 1)));
  }
  const names = [...(data.sides ? ["run"] : []), "process", data.every > 1 ? `samples (one of ${data.every} is here)` : "samples", "median", "disturbed"];
  byId("case-table").replaceChildren(all.length ? table(names, all) : "");
}

lines.forEach((line, id) => {
  const cell = line.children[headings.findIndex((heading) => heading.dataset.key === "implementation")];
  const button = make("button", cell.textContent, { type: "button", title: "the samples of this case, and the command that measures it again" });
  button.addEventListener("click", () => openSamples({ id }));
  cell.replaceChildren(button);
});

// A page says when it is drawn, so that a test can wait.

(async () => {
  if (rows.length) await showAll();
  document.documentElement.dataset.drawn = "yes";
})();
