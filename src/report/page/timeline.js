// Operations over time: the CPU's kernels and calls, what computes on the NPU and what transfers.
const onCpu = steps.filter((step) => step.kind !== "npu").map((step) => ({
  name: step.name, kind: step.kind + (step.turns > 1 ? ` ×${step.turns}` : ""), what: step.what, start: step.start, end: step.start + step.cycles, colour: step.kind === "call" ? "--latency" : "--cpu",
}));
// The first iteration of a loop is drawn operation by operation, the others as one.
const laterTurns = steps.filter((step) => step.kind === "npu" && step.turns > 1).map((step) => ({
  name: `iterations 2 to ${step.turns}`, kind: step.name, what: "", start: step.start + step.cycles / step.turns, end: step.start + step.cycles, colour: "--latency",
}));
const lanes = [
  { name: "CPU", of: onCpu },
  { name: "NPU", of: operations.filter((o) => !o.dma).concat(laterTurns) },
  { name: "DMA", of: operations.filter((o) => o.dma) },
].filter((lane) => lane.of.length > 0);
// The longest operation of each lane tells a binary search over starts how far back it has to look.
for (const lane of lanes) {
  lane.of.sort((a, b) => a.start - b.start);
  let longest = 0;
  for (const o of lane.of) longest = Math.max(longest, o.end - o.start);
  lane.longest = longest;
}
const kLaneHeight = 46, kLaneTop = 34;

function firstFrom(list, start) {
  let low = 0, high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle].start < start) low = middle + 1;
    else high = middle;
  }
  return low;
}

function operationTip(o) {
  return `${o.name}  ${o.kind}${o.what ? "\n" + o.what : ""}\n${count(o.start)} to ${count(o.end)}: ${count(o.end - o.start)} cycles, ${milliseconds(o.end - o.start)}` +
    (o.bound ? `\nlimited by ${o.bound}; ${bytes(bytesOf(o))} moved` : "");
}

function timelineView() {
  return {
    label: "operations over time",
    draw(context, width, height, camera) {
      const from = camera.x * timelineCycles, span = timelineCycles / camera.zoom;
      const toX = (cycle) => ((cycle - from) / span) * width;
      context.strokeStyle = colour("--line");
      context.fillStyle = colour("--faint");
      const step = niceStep(span, width / 110);
      for (let at = Math.ceil(from / step) * step; at <= from + span; at += step) {
        context.beginPath();
        context.moveTo(toX(at), 18);
        context.lineTo(toX(at), height);
        context.stroke();
        context.fillText(count(at), toX(at) + 3, 13);
      }
      lanes.forEach((lane, index) => {
        const top = kLaneTop + index * (kLaneHeight + 10);
        let drawnTo = -1, mostIdle = 0;
        for (let i = firstFrom(lane.of, from - lane.longest); i < lane.of.length && lane.of[i].start <= from + span; ++i) {
          const o = lane.of[i];
          const x = toX(o.start), w = Math.max(toX(o.end) - x, 0.5);
          // Operations on the same pixel are drawn once.
          if (x + w < drawnTo + 0.5 && w < 1) continue;
          drawnTo = x + w;
          const chosen = selected !== null && o.layerIndex === selected;
          context.globalAlpha = found && !found.has(o.layerIndex) ? 0.2 : 1;
          context.fillStyle = colour(o.colour || boundColours[o.bound] || "--latency");
          context.fillRect(x, top, w > 3 ? w - 1 : w, kLaneHeight);  // keeps neighbours of the same colour apart
          if (chosen) {
            context.strokeStyle = colour("--text");
            context.lineWidth = 2;
            context.strokeRect(x + 1, top + 1, Math.max(w - 2, 1), kLaneHeight - 2);
            context.lineWidth = 1;
          }
          context.fillStyle = "#fff";
          const seen = Math.max(x, 0), room = Math.min(x + w, width) - seen - 8;
          label(context, o.name, seen + 4, top + 18, room);
          label(context, o.kind, seen + 4, top + 34, room);
        }
        context.globalAlpha = 1;
        context.fillStyle = colour("--faint");
        context.fillText(lane.name, 2, top - 3);
      });
    },
    at(x, y, width, height, camera) {
      const index = Math.floor((y - kLaneTop) / (kLaneHeight + 10));
      const lane = lanes[index];
      if (!lane || y - kLaneTop - index * (kLaneHeight + 10) > kLaneHeight) return null;
      const span = timelineCycles / camera.zoom, cycle = camera.x * timelineCycles + (x / width) * span;
      const slack = span / width;
      for (let i = firstFrom(lane.of, cycle + slack) - 1; i >= 0 && lane.of[i].start >= cycle - lane.longest - slack; --i) {
        const o = lane.of[i];
        if (o.start <= cycle + slack && o.end >= cycle - slack) return { text: operationTip(o), select: o.layerIndex === undefined ? null : o.layerIndex };
      }
      return null;
    },
  };
}
