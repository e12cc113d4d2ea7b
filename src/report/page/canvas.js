// Canvases with zoom and pan. A view provides draw(context, width, height, camera) and at(x, y, camera): what is there.
const tip = document.getElementById("tip");

function showTip(text, x, y) {
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  tip.style.left = Math.min(x + 14, innerWidth - tip.offsetWidth - 8) + "px";
  tip.style.top = Math.min(y + 14, innerHeight - tip.offsetHeight - 8) + "px";
}

// height: in pixels, 0 fills the rest of the page. axes: "x" zooms and pans along x only, "xy" in both directions. The camera maps [0, 1] of the whole canvas:
// screen = (world - x) * zoom * size.
function makeCanvas(parent, height, axes, view) {
  const canvas = document.createElement("canvas");
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", view.label);
  if (height) canvas.style.height = height + "px";
  else canvas.className = "fills";
  parent.append(canvas);
  const camera = { x: 0, y: 0, zoom: 1 };
  let queued = false;

  function size() {
    return [canvas.clientWidth, canvas.clientHeight];
  }
  function clamp() {
    camera.zoom = Math.min(Math.max(camera.zoom, 1), view.mostZoom || 1e5);
    const most = 1 - 1 / camera.zoom;
    camera.x = Math.min(Math.max(camera.x, 0), most);
    camera.y = axes === "xy" ? Math.min(Math.max(camera.y, 0), most) : 0;
  }
  function draw() {
    queued = false;
    const [width, h] = size();
    const ratio = devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(h * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(h * ratio);
    }
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, h);
    context.font = "12px system-ui, sans-serif";
    view.draw(context, width, h, camera);
  }
  function redraw() {
    if (queued) return;
    queued = true;
    requestAnimationFrame(draw);
  }
  function zoomAt(factor, fx, fy) {
    const before = { x: camera.x + fx / camera.zoom, y: camera.y + fy / camera.zoom };
    camera.zoom *= factor;
    clamp();
    camera.x = before.x - fx / camera.zoom;
    camera.y = before.y - fy / camera.zoom;
    clamp();
    redraw();
  }
  function place(event) {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  let dragged = null;
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const [x, y] = place(event);
    const [width, h] = size();
    showTip("");
    zoomAt(Math.exp(-event.deltaY * 0.002), x / width, y / h);
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => {
    dragged = { at: place(event), moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    const [x, y] = place(event);
    const [width, h] = size();
    if (dragged) {
      if (Math.abs(x - dragged.at[0]) + Math.abs(y - dragged.at[1]) > 3) dragged.moved = true;
      if (!dragged.moved) return;
      camera.x -= (x - dragged.at[0]) / width / camera.zoom;
      camera.y -= (y - dragged.at[1]) / h / camera.zoom;
      dragged.at = [x, y];
      clamp();
      redraw();
      return;
    }
    const hit = view.at(x, y, width, h, camera);
    showTip(hit ? hit.text : "", event.clientX, event.clientY);
  });
  canvas.addEventListener("pointerup", (event) => {
    const click = dragged && !dragged.moved;
    dragged = null;
    if (!click) return;
    const [x, y] = place(event);
    const hit = view.at(x, y, ...size(), camera);
    select(hit ? hit.select : null);
  });
  canvas.addEventListener("pointerleave", () => showTip(""));
  new ResizeObserver(redraw).observe(canvas);

  return {
    redraw,
    camera,
    key(name) {
      const step = 0.15 / camera.zoom;
      if (name === "+" || name === "=") zoomAt(1.5, 0.5, 0.5);
      else if (name === "-") zoomAt(1 / 1.5, 0.5, 0.5);
      else if (name === "0") Object.assign(camera, { x: 0, y: 0, zoom: 1 });
      else if (name === "ArrowLeft") camera.x -= step;
      else if (name === "ArrowRight") camera.x += step;
      else if (name === "ArrowUp") camera.y -= step;
      else if (name === "ArrowDown") camera.y += step;
      else return false;
      clamp();
      redraw();
      return true;
    },
  };
}

// Steps of 1, 2 or 5 times a power of ten for about `wanted` lines over `span`.
function niceStep(span, wanted) {
  const rough = span / wanted;
  const power = Math.pow(10, Math.floor(Math.log10(rough)));
  const digit = [1, 2, 5, 10].find((d) => d * power >= rough);
  return digit * power;
}

function label(context, text, x, y, most) {
  if (most < 14) return;
  if (context.measureText(text).width <= most) return context.fillText(text, x, y);
  let shown = text;
  while (shown.length > 1 && context.measureText(shown + "…").width > most) shown = shown.slice(0, Math.max(1, Math.floor(shown.length * 0.8)));
  context.fillText(shown + "…", x, y);
}
