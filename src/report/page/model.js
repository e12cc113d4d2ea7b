// The data of the page as written by the C++ side, indexed once.
const data = JSON.parse(document.getElementById("data").textContent);
const profile = data.profile;
const machine = data.machine;

// The alternating steps of CPU and NPU; if they are unknown, parts follow each other.
const steps = (profile.inference && profile.inference.steps) || [];
const stepOfPart = new Map();
for (const step of steps) if (step.kind === "npu" && !stepOfPart.has(step.part)) stepOfPart.set(step.part, step);
const operations = [];
const layers = [];
const layerByName = new Map();
let totalCycles = 0;
let totalMacs = 0;
profile.parts.forEach((part, index) => {
  const first = layers.length;
  part.offset = stepOfPart.has(index) ? stepOfPart.get(index).start : totalCycles;
  for (const layer of part.layers) {
    layer.index = layers.length;
    layer.spans = [];
    layers.push(layer);
    if (layer.name && !layerByName.has(layer.name)) layerByName.set(layer.name, layer);
  }
  for (const operation of part.operations) {
    operation.layerIndex = first + operation.layer_index;
    operation.start += part.offset;
    operation.end += part.offset;
    operation.dma = operation.kind.startsWith("DMA");
    layers[operation.layerIndex].spans.push(operations.length);
    operations.push(operation);
  }
  totalCycles += part.cycles;
  totalMacs += part.macs;
});
const timelineCycles = steps.length > 0 ? profile.inference.cycles : totalCycles;

const sum = (pair) => pair[0] + pair[1];
const bytesOf = (item) => sum(item.read_bytes) + sum(item.written_bytes);
const count = (n) => Math.round(n).toString().replace(/\B(?=(\d{3})+$)/g, ",");
const bytes = (n) => (n < 1024 ? n + " B" : n < 1048576 ? (n / 1024).toFixed(1) + " KiB" : (n / 1048576).toFixed(2) + " MiB");
const milliseconds = (cycles) => ((1e3 * cycles) / profile.clock_hz).toFixed(3) + " ms";
const percent = (part, whole) => (whole > 0 ? ((100 * part) / whole).toFixed(1) + " %" : "");

const boundColours = { MAC: "--mac", weights: "--weights", output: "--output", memory: "--memory", latency: "--latency", DMA: "--dma" };
const placeColours = { npu: "--mac", cpu: "--cpu", folded: "--latency" };
let palette = {};
function colour(name) {
  if (!(name in palette)) palette[name] = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  return palette[name];
}
// A colour on the scale from little to much, for a share of 0 to 1.
function heat(share) {
  const hue = 210 - 200 * Math.min(1, Math.max(0, share));
  return `hsl(${hue} 70% ${document.documentElement.dataset.theme === "dark" ? 55 : 50}%)`;
}
