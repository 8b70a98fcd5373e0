"use strict";

document.documentElement.classList.add("with-script");

const data = JSON.parse(document.getElementById("data").textContent);
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

function asRows(values) {
  const columns = Object.entries(values ?? {});
  return (columns[0]?.[1] ?? []).map((_, at) => Object.fromEntries(columns.map(([name, column]) => [name, column[at]])));
}

const numbered = (values) => asRows(values).map((row, id) => ({ id, ...row }));
const rows = numbered(data.rows);
const figures = new Map(Object.entries(data.figures ?? {}).map(([kind, { rows: own, ...figure }]) => [kind, { ...figure, own: own && asRows(own) }]));

// What is shown: the implementations of the legend, a view (a series, or every point), some of its points, one point for
// the charts that have one, and the rows of the table.

const state = { shown: [...data.names], view: data.first ?? -1, chosen: [], at: 0, kept: rows.map((row) => row.id) };
const charts = new Map();

const STYLE = { ...data.config, background: "transparent", font: getComputedStyle(document.body).fontFamily };

const series = () => data.series?.[state.view];
const inView = (row) => !series() || row.point in series().at;
const viewed = () => rows.filter(inView).map((row) => ({ ...row, x: series()?.at[row.point] }));
const pointsInView = () => [...new Set(rows.filter(inView).map((row) => row.point))];
const several = data.machines?.length > 1;

// A chart with a row for each point, or a map, is as high as it has rows.
function heightOf({ height, layer }, values) {
  if (!height.step) return height;
  const field = layer.map((each) => each.encoding?.y?.field).find(Boolean);
  const number = new Set(values.map((row) => row[field])).size;
  return number * height.step * (height.for === "offset" ? data.names.length + 1 : 1);
}

async function draw(place, spec, values, { signals = {}, onClick = null, description = spec.description } = {}) {
  const node = place.appendChild(make("div", "", { class: "chart" }));
  const narrow = place.clientWidth < 640;
  const config = { ...STYLE, axisY: { labelLimit: narrow ? 126 : 300 } };
  const params = spec.params.map((each) => (each.name in signals ? { ...each, value: signals[each.name] } : each));
  const whole = { ...spec, description, params, height: heightOf(spec, values), datasets: { ...spec.datasets, rows: values } };
  const { view } = await vegaEmbed(node, whole, { actions: false, renderer: "svg", ast: true, config, tooltip: { theme: "custom" } });
  if (onClick) view.addEventListener("click", (_, item) => item?.datum && onClick(item.datum));
  return view;
}

function forget(kind) {
  (charts.get(kind) ?? []).forEach((view) => view.finalize());
  charts.set(kind, []);
}

// The charts of a section: its parts, or one for each machine, with the rows that it draws now; none without rows.

function partsOf({ parts, charts: specs, own, needs, at }) {
  if (parts) return parts.map((part) => ({ ...part, title: parts.length > 1 && part.title }));
  const chart = specs.any ?? specs[series()?.axis ?? "points"];
  const values = (own?.filter((row) => (row.series ?? state.view) === state.view) ?? viewed()).filter((row) => !needs || row[needs] !== null);
  if (!chart || !values.length) return [];
  // a chart of one point is of one machine
  const machines = at || !several ? [0] : [...new Set(values.map((row) => row.machine))];
  if (machines.length === 1) return [{ chart, machine: machines[0], rows: values }];
  return machines.map((machine) => ({ chart, machine, title: data.machines[machine], rows: values.filter((row) => row.machine === machine) }));
}

async function show(kind, figure) {
  const place = one(`.charts[data-kind="${kind}"]`);
  forget(kind);
  place.replaceChildren();
  const parts = partsOf(figure);
  place.classList.toggle("several", !figure.parts && parts.length > 1);
  for (const { chart, title, machine, rows: values } of parts) {
    const box = place.appendChild(make("div"));
    if (title) box.appendChild(make("h3", title));
    const xs = [...new Set(values.flatMap((row) => (row.x === undefined ? [row.start, row.end] : [row.x])))].filter((x) => x !== undefined);
    const view = await draw(box, chart, values, { signals: { ...state, xs, ...figure.ticks?.at(state.view) }, onClick: openSamples });
    charts.get(kind).push(view);
    if (chart.params.some((each) => each.select)) listen(view, machine);
  }
  fillTable(kind, figure, parts.flatMap((part) => part.rows));
}

// Marking points on the speed-up chart: Vega's own selection says which.

function listen(view, machine) {
  view.addSignalListener("brush", (_, value) => {
    const range = value?.x;
    const labels = value?.label;
    const own = rows.filter((row) => inView(row) && (row.machine ?? 0) === machine);
    const marked = range ? own.filter((row) => series().at[row.point] >= range[0] && series().at[row.point] <= range[1])
      : labels ? own.filter((row) => labels.includes(row.label)) : [];
    choose([...new Set(marked.map((row) => row.point))]);
  });
}

let waiting;
function choose(points) {
  state.chosen = points;
  clearTimeout(waiting);
  waiting = setTimeout(update, 30);
}

function update() {
  filterTable();
  for (const view of [...charts.values()].flat()) {
    ["shown", "chosen", "kept", "at"].forEach((name) => view.signal(name, state[name]));
    view.runAsync();
  }
  every("tr[data-point]").forEach((line) => {
    line.hidden = state.chosen.length > 0 && !state.chosen.includes(Number(line.dataset.point));
  });
  const hidden = data.names.length - state.shown.length;
  const words = [
    hidden ? `${state.shown.length} of ${data.names.length} implementations` : "",
    state.chosen.length ? `${state.chosen.length} of ${data.points.length} points: ${state.chosen.map((point) => data.points[point]).join(", ")}` : "",
  ].filter(Boolean);
  const status = document.getElementById("shown");
  if (status) status.textContent = words.length ? `Shown: ${words.join("; ")}` : "";
}

// Tables: of the cases, and beside each chart the same cells.

const body = one("#table tbody");
const lines = body ? [...body.rows] : [];
lines.forEach((line, id) => (line.dataset.id = id));
const headings = every("#table thead th");
const placeOf = (name) => headings.findIndex((heading) => heading.dataset.key === name);

function sort(heading) {
  const column = heading.cellIndex;
  const inside = heading.closest("table").tBodies[0];
  const numeric = heading.classList.contains("n");
  const before = heading.getAttribute("aria-sort");
  const order = before === "none" ? (numeric ? "descending" : "ascending") : before === "ascending" ? "descending" : "ascending";
  every("th[aria-sort]", heading.parentNode).forEach((other) => other.setAttribute("aria-sort", "none"));
  heading.setAttribute("aria-sort", order);
  const sign = order === "ascending" ? 1 : -1;
  const value = (line) => line.children[column].dataset.v;
  const compare = (a, b) => {
    if (!numeric) return sign * a.children[column].textContent.localeCompare(b.children[column].textContent, "en", { numeric: true });
    // what has no number stays below
    return (value(a) === undefined) - (value(b) === undefined) || sign * (value(a) - value(b)) || 0;
  };
  inside.append(...[...inside.rows].sort(compare));
}

// the first two columns of the table of all cases stay when it is scrolled: the second one right of the first
const corner = one("#table th");
if (corner) new ResizeObserver(() => document.getElementById("table").style.setProperty("--first", `${corner.getBoundingClientRect().width}px`)).observe(corner);
every(".sortable th[aria-sort]").forEach((heading) => one("button", heading).addEventListener("click", () => sort(heading)));

function filterTable() {
  const words = (document.getElementById("words")?.value ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  lines.forEach((line, id) => {
    const row = rows[id];
    const text = line.textContent.toLowerCase();
    line.hidden = !state.shown.includes(row.implementation)
      || (state.chosen.length > 0 && !state.chosen.includes(row.point))
      || !words.every((word) => text.includes(word));
  });
  state.kept = lines.flatMap((line, id) => (line.hidden ? [] : [id]));
  const status = document.getElementById("found");
  if (status) status.textContent = state.kept.length < lines.length ? `${state.kept.length} of ${lines.length} rows` : "";
}

document.getElementById("words")?.addEventListener("input", update);

function table(names, values) {
  const head = make("tr", names.map((name) => make("th", name, { scope: "col" })));
  const body = values.map((row) => make("tr", row.map((text) => make("td", String(text)))));
  return make("table", [make("thead", head), make("tbody", body)]);
}

function fillTable(kind, { headings: own, columns }, values) {
  const place = one(`[data-table="${kind}"]`);
  if (!place) return;
  if (own) {
    const fields = Object.keys(own);
    place.replaceChildren(table(Object.values(own), values.map((row) => fields.map((field) => row[field]))));
    return;
  }
  const numbers = ["point", "implementation", ...columns].map(placeOf).filter((number) => number >= 0);
  const shown = lines.filter((_, id) => inView(rows[id]) && rows[id].status === "ok");
  place.replaceChildren(table(numbers.map((n) => headings[n].textContent.trim()), shown.map((line) => numbers.map((n) => line.children[n].textContent))));
}

// A case: its samples, process by process.

let samples;
const GAP = 2;

function strip(row, processes) {
  const values = [];
  let at = 0;
  processes.forEach(([process, rounds, ratios, disturbed, median]) => {
    const first = at;
    ratios.forEach((ratio, place) => {
      const value_s = (ratio / data.steps) * row.latency_s;
      const round = Array.isArray(rounds) ? rounds[place] : rounds + place;
      values.push({ kind: "sample", x: at, value_s, process: process + 1, round: round + 1, flagged: disturbed.includes(place) });
      at += 1;
    });
    values.push({ kind: "process", x: (first + at - 1) / 2, first: first - 0.4, last: at - 0.6, value_s: (median / data.steps) * row.latency_s, process: `process ${process + 1}` });
    at += GAP;
  });
  values.push({ kind: "interval", x: at + 1, value_s: row.latency_s, low_s: row.latency_low_s ?? row.latency_s, high_s: row.latency_high_s ?? row.latency_s, text: row.latency_text });
  return values;
}

function inFull(cell) {
  const short = one("summary", cell)?.textContent;
  return short ? `${short}: ${cell.textContent.slice(short.length)}` : cell.textContent;
}

// The command that measures a case again: one click chooses all of it, another copies it.

let commands;
const again = document.getElementById("case-command");

async function showCommand(row) {
  again.hidden = !data.commands;
  if (again.hidden) return;
  commands ??= JSON.parse(await unpack(data.commands));
  one("code", again).textContent = commands[row.id];
  one("button", again).textContent = "Copy";
}

again?.querySelector("button").addEventListener("click", (event) => {
  const words = one("code", again);
  getSelection().selectAllChildren(words);
  navigator.clipboard?.writeText(words.textContent).then(() => (event.target.textContent = "Copied"), () => {});
});

const dialog = document.getElementById("case");

async function openSamples(datum) {
  const row = rows[datum.id];
  if (!row || datum.id === undefined || !data.samples) return;
  forget("case");
  samples ??= JSON.parse(await unpack(data.samples));
  const line = lines[row.id];
  document.getElementById("case-title").textContent = data.sides ? row.label : `${row.implementation} · ${data.points?.[row.point] ?? row.label}`;
  const facts = headings.map((heading, n) => [heading.textContent.trim(), inFull(line.children[n])]).slice(2).filter(([, text]) => text);
  document.getElementById("case-facts").replaceChildren(...facts.map(([name, text]) => make("div", [make("dt", name), make("dd", text)])));
  await showCommand(row);
  const place = document.getElementById("case-charts");
  place.replaceChildren();
  dialog.showModal();
  const sides = (data.sides ?? [""]).map((side, n) => [side, samples[n][row.id], { ...row, ...row.sides?.[n] }]);
  dialog.style.setProperty("--series", `var(--i${data.names.indexOf(row.implementation)})`);
  const all = [];
  for (const [side, processes, own] of sides) {
    const box = place.appendChild(make("div"));
    if (side) box.appendChild(make("h3", side));
    if (!processes || !own.latency_s) {
      box.appendChild(make("p", "No samples: the case has no time, or the journal isn't there.", { class: "none" }));
      continue;
    }
    charts.get("case").push(await draw(box, data.strip, strip(own, processes)));
    processes.forEach(([process, , ratios, disturbed, , median]) => {
      all.push([side, process + 1, ratios.length, median, disturbed.length].slice(side ? 0 : 1));
    });
  }
  const names = [...(data.sides ? ["run"] : []), "process", data.every > 1 ? `samples (one of ${data.every} is here)` : "samples", "median", "disturbed"];
  document.getElementById("case-table").replaceChildren(all.length ? table(names, all) : "");
}

lines.forEach((line, id) => {
  const cell = line.children[placeOf("implementation")];
  if (!cell || !data.samples) return;
  const button = make("button", cell.textContent, { type: "button", title: "the samples of this case, and the command that measures it again" });
  button.addEventListener("click", () => openSamples(rows[id]));
  cell.replaceChildren(button);
});

// The legend, the view, the range.

every(".legend input").forEach((box) => box.addEventListener("change", () => {
  state.shown = every(".legend input:checked").map((each) => each.dataset.name);
  update();
}));

const viewChoice = document.getElementById("view");

function fillRange() {
  const [from, to] = ["from", "to"].map((id) => document.getElementById(id));
  if (!from) return;
  const xs = series()?.xs ?? [];
  document.getElementById("range").hidden = xs.length < 2;
  [from, to].forEach((list) => list.replaceChildren(...xs.map((x) => make("option", `${series().symbol}=${x}`, { value: x }))));
  if (xs.length) to.value = xs.at(-1);
}

const pointChoice = document.getElementById("at");

// The points that the charts of one point can have: those with a value in a column.
function fillPoints() {
  const points = pointsInView().filter((point) => rows.some((row) => row.point === point && row[pointChoice.dataset.column]));
  if (!points.length) return;
  state.at = points[points.length >> 1];
  pointChoice.replaceChildren(...points.map((point) => make("option", data.points[point], { value: point })));
  pointChoice.value = state.at;
}

async function showAll() {
  state.chosen = [];
  fillRange();
  if (pointChoice) fillPoints();
  // first who is there, because a chart takes the width that its neighbours leave
  for (const [kind, figure] of figures) document.getElementById(`figure-${kind}`).hidden = !partsOf(figure).length;
  filterTable();
  for (const [kind, figure] of figures) await show(kind, figure);
  update();
}

pointChoice?.addEventListener("change", () => {
  state.at = Number(pointChoice.value);
  update();
});

if (viewChoice) {
  viewChoice.append(...data.series.map((each, number) => make("option", each.label, { value: number })), make("option", "every point", { value: -1 }));
  viewChoice.value = state.view;
  viewChoice.addEventListener("change", () => {
    state.view = Number(viewChoice.value);
    showAll();
  });
  for (const id of ["from", "to"]) document.getElementById(id).addEventListener("change", () => {
    const [low, high] = ["from", "to"].map((name) => Number(document.getElementById(name).value));
    const chosen = pointsInView().filter((point) => series().at[point] >= low && series().at[point] <= high);
    choose(chosen.length === pointsInView().length ? [] : chosen);
  });
  document.getElementById("reset").addEventListener("click", () => {
    every(".legend input").forEach((box) => (box.checked = true));
    state.shown = [...data.names];
    document.getElementById("words").value = "";
    showAll();
  });
}

// results.csv is in the page.

document.getElementById("download")?.addEventListener("click", async (event) => {
  const text = await unpack(event.target.dataset.packed);
  const link = make("a", "", { href: URL.createObjectURL(new Blob([text], { type: "text/csv" })), download: "results.csv" });
  link.click();
  URL.revokeObjectURL(link.href);
});

// Profiles: the list of cases. A link opens its case, and the field leaves only cases that have all its words.

const cases = every("details.case");

function openTarget() {
  const target = document.getElementById(location.hash.slice(1));
  if (target?.matches("details.case")) target.open = true;
}

addEventListener("hashchange", openTarget);
openTarget();
every("nav a").forEach((link) => link.addEventListener("click", () => (document.getElementById(link.hash.slice(1)).open = true)));

document.getElementById("filter")?.addEventListener("input", (event) => {
  const words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
  const items = every("nav li");
  items.forEach((item) => {
    item.hidden = !words.every((word) => item.dataset.words.toLowerCase().includes(word));
    document.getElementById(item.firstElementChild.hash.slice(1)).hidden = item.hidden;
  });
  every("nav section").forEach((section) => (section.hidden = !one("li:not([hidden])", section)));
  every(".point").forEach((point) => (point.hidden = !one("details.case:not([hidden])", point)));
  const left = items.filter((item) => !item.hidden).length;
  document.getElementById("found").textContent = words.length ? `${left} of ${items.length} cases` : "";
});

for (const [id, open] of [["open-all", true], ["close-all", false]]) {
  document.getElementById(id)?.addEventListener("click", () => cases.forEach((details) => (details.open = open)));
}

// On paper everything is open; charts take the width of the paper.

let closed = [];
addEventListener("beforeprint", () => {
  closed = every("section > details:not([open]):not(.numbers), details.case:not([open])");
  closed.forEach((details) => (details.open = true));
});
addEventListener("afterprint", () => closed.forEach((details) => (details.open = false)));

// A page says when it is drawn, so that a test can wait.

(async () => {
  await showAll();
  document.documentElement.dataset.drawn = "yes";
})();
