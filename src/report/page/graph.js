// The network: operators layered by depth, coloured by placement, cost or accuracy.
const graphNodes = data.graph || [];
let graphColour = "place";

// Depth of a node: one more than the deepest of its inputs. Within a depth, nodes are sorted by the mean position of their inputs.
function layOut() {
  const rows = [];
  for (const node of graphNodes) {
    node.depth = node.inputs.length === 0 ? 0 : 1 + Math.max(...node.inputs.map((i) => graphNodes[i].depth));
    node.layer = layerByName.get(node.name);
    (rows[node.depth] = rows[node.depth] || []).push(node);
  }
  let widest = 1;
  for (const row of rows) {
    for (const node of row) node.at = node.inputs.length === 0 ? 0.5 : node.inputs.reduce((s, i) => s + graphNodes[i].x, 0) / node.inputs.length;
    row.sort((a, b) => a.at - b.at);
    row.forEach((node, i) => (node.x = (i + 0.5) / row.length));
    widest = Math.max(widest, row.length);
  }
  return { depth: rows.length, widest };
}
const graphSize = layOut();

// From 60 dB, where a float network and its integer form look the same, down to 10.
function sqnrHeat(decibels) {
  return heat((60 - decibels) / 50);
}

const mostCycles = layers.reduce((most, layer) => Math.max(most, layer.cycles), 1);

function nodeColour(node) {
  if (graphColour === "sqnr") return node.sqnr_db === undefined ? colour("--latency") : sqnrHeat(node.sqnr_db);
  if (graphColour === "cycles") return node.layer ? heat(Math.sqrt(node.layer.cycles / mostCycles)) : colour("--latency");
  if (graphColour === "bound") return colour(node.layer ? boundColours[node.layer.bound] || "--latency" : "--latency");
  return colour(placeColours[node.place] || "--latency");
}

function graphView() {
  const place = (node, width, height, camera) => {
    const x = ((node.depth + 0.5) / graphSize.depth - camera.x) * camera.zoom * width;
    const y = (node.x - camera.y) * camera.zoom * height;
    const w = Math.min(((camera.zoom * width) / graphSize.depth) * 0.8, 150);
    const h = Math.min(((camera.zoom * height) / graphSize.widest) * 0.7, 34);
    return [x - w / 2, y - h / 2, Math.max(w, 2), Math.max(h, 2)];
  };
  return {
    label: "graph of the network",
    mostZoom: 4000,
    draw(context, width, height, camera) {
      context.strokeStyle = colour("--line");
      context.beginPath();
      for (const node of graphNodes) {
        const [x, y, , h] = place(node, width, height, camera);
        for (const input of node.inputs) {
          const [ix, iy, iw, ih] = place(graphNodes[input], width, height, camera);
          if (x < 0 || ix > width) continue;
          context.moveTo(ix + iw, iy + ih / 2);
          if (x - ix - iw < 3) context.lineTo(x, y + h / 2);
          else context.bezierCurveTo((ix + iw + x) / 2, iy + ih / 2, (ix + iw + x) / 2, y + h / 2, x, y + h / 2);
        }
      }
      context.stroke();
      for (const node of graphNodes) {
        const [x, y, w, h] = place(node, width, height, camera);
        if (x > width || x + w < 0 || y > height || y + h < 0) continue;
        const chosen = node.layer && selected === node.layer.index;
        context.globalAlpha = found && !(node.layer ? found.has(node.layer.index) : matches(node.name + " " + node.op)) ? 0.15 : 1;
        context.fillStyle = nodeColour(node);
        context.fillRect(x, y, w, h);
        if (chosen) {
          context.strokeStyle = colour("--text");
          context.strokeRect(x, y, w, h);
        }
        context.fillStyle = "#fff";
        if (h > 13) label(context, node.name, x + 4, y + Math.min(h / 2 + 4, 14), w - 8);
        if (h > 28) label(context, node.op, x + 4, y + 28, w - 8);
      }
      context.globalAlpha = 1;
    },
    at(x, y, width, height, camera) {
      for (const node of graphNodes) {
        const [nx, ny, w, h] = place(node, width, height, camera);
        if (x < nx - 2 || x > nx + w + 2 || y < ny - 2 || y > ny + h + 2) continue;
        const cost = node.layer ? `\n${count(node.layer.cycles)} cycles, limited by ${node.layer.bound}` : "";
        const exact = node.sqnr_db === undefined ? "" : `\n${node.sqnr_db.toFixed(1)} dB against float`;
        const where = { npu: "on the NPU", cpu: "on the CPU", folded: "folded into another operator" }[node.place];
        return {
          text: `${node.name}: ${node.op}\n${where}${cost}${exact}${node.reason ? "\n" + node.reason : ""}${node.source ? "\n" + node.source : ""}`,
          select: node.layer ? node.layer.index : null,
        };
      }
      return null;
    },
  };
}
