// The views of the page by name, in the order of their tabs.
function figure(name, value) {
  return element("div", {}, name, element("b", {}, value));
}

function boundKey(parent) {
  parent.append(element("p", { class: "key" }, "limited by", ...Object.entries(boundColours).flatMap(([name, value]) =>
    [element("i", { style: `background: var(${value})` }), name])));
}

function timelineKey(parent) {
  boundKey(parent);
  if (onCpu.length > 0) {
    parent.append(element("p", { class: "key" }, "on the CPU", element("i", { style: "background: var(--cpu)" }), "kernels",
      element("i", { style: "background: var(--latency)" }), "calls, with copies to and from the NPU's arena"));
  }
}

function overview(parent) {
  // As printed by the commands: the whole inference, then what would make it faster.
  const [line, ...advice] = data.inference || [];
  if (line) parent.append(element("p", { id: "inference" }, line));
  for (const text of advice) parent.append(element("p", { class: "advice", style: "margin: 3px 0" }, "faster: " + text));
  const total = (name) => profile.parts.reduce((s, part) => s + part.bytes[name], 0);
  parent.append(element("div", { class: "figures" },
    figure("NPU cycles", count(totalCycles)), figure("NPU time", milliseconds(totalCycles)),
    figure("multipliers used", percent(totalMacs, totalCycles * machine.macs)),
    figure("arena", bytes(Math.max(...profile.parts.map((part) => part.bytes.arena)))),
    total("cache") > 0 ? figure("cache", bytes(Math.max(...profile.parts.map((part) => part.bytes.cache)))) : null,
    figure("constants", bytes(total("constants"))), figure("commands", bytes(total("commands")))));
  const byBound = new Map();
  for (const layer of layers) byBound.set(layer.bound, (byBound.get(layer.bound) || 0) + layer.cycles);
  parent.append(element("h2", {}, "What limits it"));
  const limits = [...byBound].sort((a, b) => b[1] - a[1]);
  parent.append(element("div", { class: "bar" }, ...limits.map(([name, cycles]) =>
    element("span", { style: `flex: ${cycles} 1 0; background: var(${boundColours[name] || "--latency"})`, title: `${name}: ${count(cycles)} cycles` },
      element("b", {}, `${name} ${percent(cycles, totalCycles)}`)))));
  // Narrow segments are too small for their labels.
  parent.append(element("p", { class: "key" }, ...limits.flatMap(([name, cycles]) =>
    [element("i", { style: `background: var(${boundColours[name] || "--latency"})` }), `${name} ${percent(cycles, totalCycles)}`])));
  const advised = layers.filter((layer) => layer.advice).sort((a, b) => b.possible_gain - a.possible_gain).slice(0, 8);
  if (advised.length > 0) parent.append(element("h2", {}, "What would help most"));
  for (const layer of advised) {
    parent.append(element("p", { class: "row", style: "cursor: pointer; margin: 3px 0", onclick: () => select(layer.index) },
      element("b", {}, count(layer.possible_gain)), ` cycles at ${layer.name}${layer.module ? ` (${layer.module})` : ""}: ${layer.advice}`));
  }
  const onCpu = graphNodes.filter((node) => node.place === "cpu");
  if (onCpu.length > 0) parent.append(element("h2", {}, `On the CPU: ${onCpu.length} operator${onCpu.length > 1 ? "s" : ""}`));
  for (const node of onCpu.slice(0, 50)) {
    parent.append(element("p", { style: "margin: 3px 0" }, element("b", {}, node.name), ` ${node.op}: ${node.reason || "no reason recorded"}${node.remedy ? " → " + node.remedy : ""}`));
  }
  for (const warning of data.warnings) parent.append(element("p", { class: "worse" }, "warning: " + warning));
}

function memory(parent) {
  const areas = memoryAreas();
  if (areas.length === 0) {
    parent.append(element("p", {}, "A finished program does not record its memory layout. Create the page from the network to see it."));
    return null;
  }
  let shown = null;
  const bar = element("p");
  const box = element("div", { class: "fills" });
  parent.append(bar, box);
  const show = (area, button) => {
    [...bar.children].forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
    box.replaceChildren(element("p", { class: "key" }, `${bytes(area.bytes)}; addresses increase downwards, steps of the schedule to the right; below: live bytes`));
    shown = makeCanvas(box, 0, "xy", memoryView(area));
  };
  for (const area of areas) {
    const button = element("button", { class: "choice", onclick: () => show(area, button) }, `${area.name} ${bytes(area.bytes)}`);
    bar.append(button);
  }
  show(areas[0], bar.children[0]);
  return { redraw: () => shown.redraw(), key: (name) => shown.key(name) };
}

function graph(parent) {
  const bar = element("p");
  parent.append(bar);
  const view = makeCanvas(parent, 0, "xy", graphView());
  const choices = [["place", "where it runs"], ["cycles", "cycles"], ["bound", "what limits it"]];
  if (graphNodes.some((node) => node.sqnr_db !== undefined)) choices.push(["sqnr", "SQNR"]);
  for (const [key, text] of choices) {
    const button = element("button", { class: "choice", "aria-pressed": String(key === graphColour), onclick: () => {
      graphColour = key;
      [...bar.children].forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
      view.redraw();
    } }, text);
    bar.append(button);
  }
  return view;
}

function comparison(parent) {
  const other = data.against;
  const before = new Map();
  for (const part of other.parts) for (const layer of part.layers) before.set(layer.name, layer);
  const rows = layers.map((layer) => ({ name: layer.name, index: layer.index, now: layer.cycles, then: (before.get(layer.name) || {}).cycles }));
  for (const [name, layer] of before) if (!layerByName.has(name)) rows.push({ name, now: undefined, then: layer.cycles });
  const thenCycles = other.parts.reduce((s, part) => s + part.cycles, 0);
  parent.append(element("p", {}, `${other.file}, ${other.target}, ${other.memory_mode}: ${count(thenCycles)} cycles before, ${count(totalCycles)} here (${(totalCycles / thenCycles).toFixed(3)}×)`));
  const change = (row) => (row.now || 0) - (row.then || 0);
  return makeTable(parent, rows, [
    { head: "layer", text: (row) => row.name },
    { head: "before", number: true, key: (row) => row.then || 0, text: (row) => (row.then === undefined ? "—" : count(row.then)) },
    { head: "here", number: true, key: (row) => row.now || 0, text: (row) => (row.now === undefined ? "—" : count(row.now)) },
    { head: "change", number: true, key: (row) => Math.abs(change(row)), text: change,
      cell: (row) => element("span", { class: change(row) > 0 ? "worse" : "better" }, (change(row) > 0 ? "+" : "") + count(change(row))) },
  ], { column: 3, down: true });
}

function targets(parent) {
  const rows = (data.sweep.rows || data.sweep).filter((row) => row.cycles !== undefined);
  return makeTable(parent, rows, [
    { head: "target", text: (row) => row.target },
    { head: "system", text: (row) => row.system_config },
    { head: "memory mode", text: (row) => row.memory_mode },
    { head: "cycles", number: true, key: (row) => row.cycles, text: (row) => count(row.cycles) },
    { head: "arena", number: true, key: (row) => row.bytes.arena, text: (row) => bytes(row.bytes.arena) },
    { head: "cache", number: true, key: (row) => row.bytes.cache, text: (row) => bytes(row.bytes.cache) },
    { head: "constants", number: true, key: (row) => row.bytes.constants, text: (row) => bytes(row.bytes.constants) },
    { head: "commands", number: true, key: (row) => row.bytes.commands, text: (row) => bytes(row.bytes.commands) },
  ], { column: 3, down: false });
}

const views = [
  ["overview", (parent) => (overview(parent), null)],
  ["timeline", (parent) => (timelineKey(parent), makeCanvas(parent, kLaneTop + lanes.length * (kLaneHeight + 10) + 10, "x", timelineView()))],
  ["memory", memory],
  ["layers", (parent) => makeTable(parent, layers, layerColumns, { column: 4, down: true })],
  ["roofline", (parent) => (boundKey(parent), makeCanvas(parent, 0, "xy", rooflineView()))],
];
if (graphNodes.length > 0) views.push(["graph", graph]);
if (data.sweep) views.push(["targets", targets]);
if (data.against) views.push(["comparison", comparison]);
