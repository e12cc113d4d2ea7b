// Buffers over the steps of the schedule: what is where, and when.
function memoryAreas() {
  const areas = [];
  profile.parts.forEach((part, index) => {
    for (const area of ["arena", "cache"]) {
      const of = part.memory.filter((record) => record.area === area && record.bytes > 0);
      if (of.length === 0) continue;
      const steps = Math.max(part.steps.length, ...of.map((record) => record.last_step + 1));
      areas.push({
        name: (profile.parts.length > 1 ? `part ${index}: ` : "") + area,
        of, part, steps,
        bytes: of.reduce((most, record) => Math.max(most, record.address + record.bytes), 0),
      });
    }
  });
  return areas;
}

function liveBytes(area) {
  const change = new Float64Array(area.steps + 3);
  for (const record of area.of) {
    if (record.what === "in place") continue;
    change[record.first_step + 1] += record.bytes;
    change[record.last_step + 2] -= record.bytes;
  }
  let live = 0;
  return Array.from(change, (c) => (live += c));
}

function memoryView(area) {
  const live = liveBytes(area);
  const peak = live.reduce((most, bytes) => Math.max(most, bytes), 1);
  const colours = { input: "--output", output: "--output", "feature map": "--mac", "in place": "--memory", "staged weights": "--weights" };
  const box = (record, width, height, camera) => {
    const span = (area.steps + 1) / camera.zoom, from = camera.x * (area.steps + 1);
    const rows = area.bytes / camera.zoom, low = camera.y * area.bytes;
    const x = ((record.first_step + 1 - from) / span) * width;
    const w = ((record.last_step - record.first_step + 1) / span) * width;
    const bottom = height - 20;
    const y = ((record.address - low) / rows) * bottom, h = (record.bytes / rows) * bottom;
    return [x, y, Math.max(w, 1), Math.max(h, 1)];
  };
  return {
    label: "memory over time",
    mostZoom: 2000,
    draw(context, width, height, camera) {
      context.strokeStyle = colour("--back");
      const drawn = new Set();
      for (const record of area.of) {
        const [x, y, w, h] = box(record, width, height, camera);
        if (x > width || x + w < 0 || y > height || y + h < 0) continue;
        const layer = layerByName.get(record.name);
        const chosen = layer && selected === layer.index;
        // Slivers on the same pixels are drawn once, and are too narrow for a border.
        const sliver = w < 3;
        if (sliver && !chosen) {
          const pixels = (Math.round(x) * 4096 + Math.round(y)) * 4096 + Math.round(h);
          if (drawn.has(pixels)) continue;
          drawn.add(pixels);
        }
        context.globalAlpha = found && !(layer && found.has(layer.index)) ? 0.2 : 1;
        context.fillStyle = colour(colours[record.what] || "--latency");
        context.fillRect(x, y, w, h);
        if (!sliver) context.strokeRect(x, y, w, h);
        if (chosen) {
          context.strokeStyle = colour("--text");
          context.strokeRect(x + 1, y + 1, w - 2, h - 2);
          context.strokeStyle = colour("--back");
        }
        context.fillStyle = "#fff";
        if (h > 14) label(context, record.name || record.what, Math.max(x, 0) + 4, y + 13, w - 8);
      }
      context.globalAlpha = 1;
      // Below: the live bytes at each step.
      const span = (area.steps + 1) / camera.zoom, from = camera.x * (area.steps + 1);
      context.fillStyle = colour("--faint");
      // Steps that share a pixel form one column, as high as the highest.
      const each = Math.max(1, Math.floor(span / width));
      for (let step = Math.floor(from / each) * each; step <= Math.min(from + span, live.length - 1); step += each) {
        let most = 0;
        for (let i = step; i < Math.min(step + each, live.length); ++i) most = Math.max(most, live[i]);
        const h = (most / peak) * 18;
        context.fillRect(((step - from) / span) * width, height - h, Math.max((each * width) / span - 1, 0.5), h);
      }
    },
    at(x, y, width, height, camera) {
      if (y > height - 20) {
        const step = Math.floor(camera.x * (area.steps + 1) + (x / width) * ((area.steps + 1) / camera.zoom));
        return step < live.length ? { text: `${area.part.steps[step - 1] || "start"}: ${bytes(live[step])} live`, select: null } : null;
      }
      for (let i = area.of.length - 1; i >= 0; --i) {
        const record = area.of[i];
        const [bx, by, w, h] = box(record, width, height, camera);
        if (x < bx || x > bx + w || y < by || y > by + h) continue;
        const layer = layerByName.get(record.name);
        const name = (step) => area.part.steps[step] || (step < 0 ? "the start" : "the end");
        return {
          text: `${record.name || "(network)"}: ${record.what}, ${bytes(record.bytes)} at 0x${record.address.toString(16)}` +
            `\nfrom ${name(record.first_step)} to ${name(record.last_step)}`,
          select: layer ? layer.index : null,
        };
      }
      return null;
    },
  };
}
