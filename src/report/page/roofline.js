// Layers by arithmetic intensity: their performance compared with the limits of multipliers and memory.
const roofPoints = layers
  .map((layer) => ({ layer, intensity: layer.macs / Math.max(bytesOf(layer), 1), rate: layer.macs / Math.max(layer.cycles, 1) }))
  .filter((point) => point.layer.macs > 0);

for (const point of roofPoints) point.radius = 3 + 12 * Math.sqrt(point.layer.cycles / totalCycles);
// Beyond this number of points, the small ones are squares: 10,000 discs take longer than a frame.
const kMostDiscs = 2000;

function rooflineView() {
  const left = 50, bottom = 34;
  const least = (of) => roofPoints.reduce((low, point) => Math.min(low, point[of]), 0.1);
  const lowX = least("intensity") / 2, highX = roofPoints.reduce((high, point) => Math.max(high, point.intensity), 1000) * 2;
  const lowY = least("rate") / 2, highY = machine.macs * 2;
  const scale = (value, low, high) => Math.log(value / low) / Math.log(high / low);
  const place = (point, width, height, camera) => [
    left + (scale(point.intensity, lowX, highX) - camera.x) * camera.zoom * (width - left),
    (1 - scale(point.rate, lowY, highY) - camera.y) * camera.zoom * (height - bottom),
  ];
  return {
    label: "MACs per cycle over MACs per byte",
    draw(context, width, height, camera) {
      const x = (value) => place({ intensity: value, rate: 1 }, width, height, camera)[0];
      const y = (value) => place({ intensity: 1, rate: value }, width, height, camera)[1];
      context.strokeStyle = colour("--line");
      context.fillStyle = colour("--faint");
      for (let power = -3; power <= 8; ++power) {
        const value = Math.pow(10, power);
        if (value > lowX && value < highX && x(value) > left) {
          context.strokeRect(x(value), 0, 0.5, height - bottom);
          context.fillText(String(value), x(value) + 2, height - bottom + 14);
        }
        if (value > lowY && value < highY && y(value) < height - bottom) {
          context.strokeRect(left, y(value), width - left, 0.5);
          context.fillText(String(value), 4, y(value) - 3);
        }
      }
      context.fillText("MACs per byte moved", width - 150, height - 6);
      context.fillText("MACs per cycle", 4, 12);
      machine.ports.forEach((port, index) => {
        context.strokeStyle = colour(index === 0 ? "--memory" : "--dma");
        context.beginPath();
        const knee = machine.macs / port.bytes_per_cycle;
        context.moveTo(x(lowX), y(lowX * port.bytes_per_cycle));
        context.lineTo(x(knee), y(machine.macs));
        context.lineTo(x(highX), y(machine.macs));
        context.stroke();
        context.fillStyle = context.strokeStyle;
        context.fillText(`${port.name} ${port.bytes_per_cycle.toFixed(1)} B/cycle`, x(knee) + 6, y(machine.macs) - 6 - 14 * index);
      });
      let chosen = null;
      for (const point of roofPoints) {
        const [px, py] = place(point, width, height, camera), { radius, layer } = point;
        if (px < left || px - radius > width || py + radius < 0 || py - radius > height) continue;
        context.globalAlpha = found && !found.has(layer.index) ? 0.15 : 0.85;
        context.fillStyle = colour(boundColours[layer.bound] || "--latency");
        if (radius < 6 && roofPoints.length > kMostDiscs) {
          const side = Math.round(1.8 * radius);
          context.fillRect(Math.round(px - side / 2), Math.round(py - side / 2), side, side);
        } else {
          context.beginPath();
          context.arc(px, py, radius, 0, 7);
          context.fill();
        }
        if (selected === layer.index) chosen = [px, py, radius];
      }
      if (chosen) {
        context.strokeStyle = colour("--text");
        context.beginPath();
        context.arc(...chosen, 0, 7);
        context.stroke();
      }
      context.globalAlpha = 1;
    },
    at(x, y, width, height, camera) {
      let best = null, least = 225;
      for (const point of roofPoints) {
        const [px, py] = place(point, width, height, camera);
        const far = (px - x) ** 2 + (py - y) ** 2;
        if (far < least) [least, best] = [far, point];
      }
      if (!best) return null;
      const { layer } = best;
      return {
        text: `${layer.name}  ${layer.kind}\n${best.rate.toFixed(1)} MACs per cycle of ${machine.macs}, ${best.intensity.toFixed(1)} per byte\n${count(layer.cycles)} cycles, limited by ${layer.bound}`,
        select: layer.index,
      };
    },
  };
}
