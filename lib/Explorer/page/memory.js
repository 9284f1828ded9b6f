// Who has which bytes of shared memory and which columns of tensor memory. Every colour is a row.

const extentColour = i => `hsl(${(i * 137.5 + 200) % 360} 55% ${i % 2 ? 46 : 58}%)`;

function drawMap(parent, extents, total, unit, light) {
  const width = 1160, svg = svgNode("svg", { viewBox: `0 0 ${width} 52`, width, height: 52, class: "map" }, parent);
  svgNode("rect", { x: 0, y: 2, width, height: 30, fill: "none", stroke: "var(--line)", "stroke-dasharray": "4 3" }, svg);
  extents.forEach((extent, i) => {
    for (let stage = 0; stage < extent.stages; ++stage) {
      const first = extent.first + stage * extent.stride, rect = svgNode("rect", { x: first / total * width, y: 2, height: 30, width: Math.max(2, extent.size / total * width - 1), fill: extentColour(i) }, svg);
      svgNode("title", {}, rect).textContent = `${extent.what}, stage ${stage}: ${unit} ${first} to ${first + extent.size - 1}`;
      rect.onmouseenter = () => light(i, true);
      rect.onmouseleave = () => light(i, false);
    }
  });
  for (let part = 0; part <= 4; ++part)
    svgNode("text", { x: part / 4 * width, y: 46, "text-anchor": ["start", "middle", "middle", "middle", "end"][part] }, svg).textContent = Math.round(total * part / 4);
}

function mapTable(parent, extents, total, unit) {
  const table = make("table", {}, parent), rows = [], head = make("tr", {}, table);
  for (const name of ["", "what", "stages", unit, "from", "to"]) make("th", { textContent: name }, head);
  const add = (colour, cells) => {
    const row = make("tr", {}, table);
    const swatch = make("span", { className: "swatch" }, make("td", {}, row));
    Object.assign(swatch.style, colour ? { background: colour } : { border: "1px dashed var(--faint)" });
    cells.forEach((text, i) => make("td", { textContent: text, className: i ? "n" : "" }, row));
    return row;
  };
  extents.forEach((extent, i) => rows.push(add(extentColour(i), [extent.what, extent.stages, `${extent.stages} × ${extent.size}`, extent.first, extent.first + (extent.stages - 1) * extent.stride + extent.size - 1])));
  const used = extents.reduce((sum, extent) => sum + extent.stages * extent.size, 0);
  if (used < total) add(null, ["nobody's", "", total - used, "", ""]);
  return rows;
}

function showMemory() {
  const box = byId("memory");
  box.replaceChildren();
  const kernel = (data.memory || []).find(each => chosen.kernel && each.module === chosen.kernel.module);
  if (!kernel || !kernel.extents.length) {
    make("p", { className: "hint", textContent: "The compiler placed nothing in shared or tensor memory for this kernel." }, box);
    return;
  }
  make("p", { textContent: kernel.channels.map(channel => `${channel.name}: ${channel.from} to ${channel.to.join(", ")}, ${channel.depth} stages`).join("; ") }, box);
  for (const [space, total, unit] of [["shared", kernel.shared_bytes, "bytes"], ["tensor", kernel.tensor_columns, "columns"]]) {
    const extents = kernel.extents.filter(extent => extent.space === space);
    if (!extents.length) continue;
    make("h2", { textContent: `${space} memory, ${total} ${unit}` }, box);
    const rows = [];
    drawMap(box, extents, total, unit, (i, lit) => rows[i].classList.toggle("lit", lit));
    rows.push(...mapTable(box, extents, total, unit));
  }
}
