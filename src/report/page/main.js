// The view, selection and search: kept in the address, so that they can be linked to.
let selected = null, found = null, current = null, shown = "";
const main = document.getElementById("view"), details = document.getElementById("details"), search = document.getElementById("search");

function matches(text) {
  return text.toLowerCase().includes(search.value.trim().toLowerCase());
}

function describe(layer) {
  const operation = operations[layer.spans.reduce((a, b) => (operations[b].end - operations[b].start > operations[a].end - operations[a].start ? b : a), layer.spans[0])];
  const entries = [
    ["module", layer.module], ["source", layer.source], ["kind", layer.kind], ["limited by", layer.bound],
    ["cycles", `${count(layer.cycles)} (${percent(layer.cycles, totalCycles)}), ${milliseconds(layer.cycles)}`],
    ["compute", count(layer.compute_cycles)], ["MACs", layer.macs > 0 ? `${count(layer.macs)}, ${percent(layer.macs, layer.cycles * machine.macs)} of the multipliers` : ""],
    ["read", bytes(sum(layer.read_bytes))], ["written", bytes(sum(layer.written_bytes))],
    ["SQNR", layer.sqnr_db === undefined ? "" : `${layer.sqnr_db.toFixed(1)} dB against float`],
    ["operations", String(layer.operations)], ["heaviest", operation ? operation.what : ""],
    ["would help", layer.advice ? `${layer.advice} (up to ${count(layer.possible_gain)} cycles)` : ""],
  ].filter((entry) => entry[1]);
  const list = element("dl");
  for (const [name, value] of entries) list.append(element("dt", {}, name), element("dd", {}, value));
  const names = layer.spans.slice(0, 200).map((i) => element("div", { title: operations[i].what }, `${count(operations[i].start)}  ${operations[i].name} ${operations[i].kind}`));
  return [element("h2", { style: "margin-top: 0" }, layer.name || layer.kind), list, element("h2", {}, "Commands"), ...names];
}

function select(index) {
  selected = index;
  details.hidden = index === null;
  if (index !== null) details.replaceChildren(...describe(layers[index]));
  if (current) current.redraw();
  remember();
}

function show(name) {
  const view = views.find((v) => v[0] === name) || views[0];
  shown = view[0];
  showTip("");
  main.replaceChildren();
  current = view[1](main);
  [...document.getElementById("tabs").children].forEach((tab) => tab.setAttribute("aria-selected", String(tab.textContent === shown)));
  remember();
}

function find() {
  found = search.value.trim() ? new Set(layers.filter((l) => matches(`${l.name} ${l.module} ${l.kind} ${l.source}`)).map((l) => l.index)) : null;
  if (current) current.redraw();
  remember();
}

function remember() {
  const parts = [["view", shown], ["layer", selected === null ? "" : layers[selected].name], ["search", search.value]];
  history.replaceState(null, "", "#" + parts.filter((p) => p[1]).map((p) => p[0] + "=" + encodeURIComponent(p[1])).join("&"));
}

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  palette = {};
  if (current) current.redraw();
}

document.title = `${profile.file} — ${profile.target}`;
document.getElementById("title").textContent = profile.file;
document.getElementById("headline").textContent =
  `${profile.target}, ${profile.system_config}, ${profile.memory_mode}: ${count(totalCycles)} cycles, ${milliseconds(totalCycles)} at ${(profile.clock_hz / 1e6).toFixed(0)} MHz`;
for (const [name] of views) document.getElementById("tabs").append(element("button", { role: "tab", onclick: () => show(name) }, name));
document.getElementById("theme").addEventListener("click", () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
search.addEventListener("input", find);
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.key === "Escape") {
    search.value = "";
    search.blur();
    find();
    select(null);
  } else if (event.target === search) {
    return;
  } else if (event.key === "/") {
    search.focus();
  } else if (event.key === "t") {
    setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  } else if (/^[1-9]$/.test(event.key) && views[Number(event.key) - 1]) {
    show(views[Number(event.key) - 1][0]);
  } else if (!(current && current.key(event.key))) {
    return;
  }
  event.preventDefault();
});

const asked = new Map(location.hash.slice(1).split("&").filter(Boolean).map((part) => [part.split("=")[0], decodeURIComponent(part.slice(part.indexOf("=") + 1))]));
setTheme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
search.value = asked.get("search") || "";
find();
if (layerByName.has(asked.get("layer"))) select(layerByName.get(asked.get("layer")).index);
show(asked.get("view") || "overview");
