// Tables that sort by their headings and create only the visible rows: 10,000 layers scroll as fast as ten.
const kRowHeight = 26;

function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "class") made.className = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

// columns: {head, number, text(row), key(row), cell(row)}; rows have `index` if they are layers.
function makeTable(parent, rows, columns, order) {
  let sorted = rows.slice();
  let by = order.column, down = order.down;
  const head = element("tr");
  const body = element("tbody");
  columns.forEach((column, i) => {
    head.append(element("th", {
      class: column.number ? "number" : "", tabindex: "0",
      onclick: () => sortBy(i),
      onkeydown: (event) => event.key === "Enter" && sortBy(i),
    }, column.head));
  });
  const table = element("table", {}, element("thead", {}, head), body);
  const box = element("div", { class: "fills scrolls" }, table);
  parent.append(box);

  function sortBy(i) {
    if (i === by) down = !down;
    else [by, down] = [i, Boolean(columns[i].number)];
    arrange();
  }
  function arrange() {
    const shown = rows.filter((row) => !found || row.index === undefined || found.has(row.index));
    const key = columns[by].key || columns[by].text;
    sorted = shown.sort((a, b) => {
      const x = key(a), y = key(b);
      return (x < y ? -1 : x > y ? 1 : 0) * (down ? -1 : 1);
    });
    [...head.children].forEach((th, i) => th.setAttribute("aria-sort", i === by ? (down ? "descending" : "ascending") : "none"));
    fill();
  }
  function fill() {
    const first = Math.max(0, Math.floor(box.scrollTop / kRowHeight) - 5);
    const last = Math.min(sorted.length, first + Math.ceil(box.clientHeight / kRowHeight) + 12);
    const space = (n) => element("tr", { style: `height: ${n * kRowHeight}px` });
    body.replaceChildren(space(first), ...sorted.slice(first, last).map((row) =>
      element("tr", {
        class: "row" + (row.index !== undefined && row.index === selected ? " selected" : ""),
        onclick: () => select(row.index === undefined ? null : row.index),
      }, ...columns.map((column) => element("td", { class: column.number ? "number" : "" }, column.cell ? column.cell(row) : column.text(row))))),
      space(sorted.length - last));
  }
  box.addEventListener("scroll", fill);
  new ResizeObserver(fill).observe(box);
  arrange();
  return { redraw: arrange, key: () => false };
}

const layerColumns = [
  { head: "layer", text: (l) => l.name },
  { head: "module", text: (l) => l.module },
  { head: "kind", text: (l) => l.kind + (l.operations > 1 ? ` ×${l.operations}` : "") },
  { head: "limited by", text: (l) => l.bound },
  { head: "cycles", number: true, key: (l) => l.cycles, text: (l) => count(l.cycles) },
  { head: "share", number: true, key: (l) => l.cycles, text: (l) => percent(l.cycles, totalCycles) },
  { head: "MAC use", number: true, key: (l) => l.macs / Math.max(l.cycles, 1), text: (l) => percent(l.macs, l.cycles * machine.macs) },
  { head: "bytes", number: true, key: bytesOf, text: (l) => bytes(bytesOf(l)) },
  { head: "could save", number: true, key: (l) => l.possible_gain, text: (l) => (l.possible_gain > 0 ? count(l.possible_gain) : "") },
];
