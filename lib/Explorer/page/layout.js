// Places of an element and its scale: tables of lib/ISA, looked up.

function grid(parent, rows, columns, isMarked, onpick, label) {
  const size = Math.max(2, Math.min(6, Math.floor(520 / Math.max(rows, columns)))), box = make("div", { className: "grid", title: label }, parent);
  const canvas = make("canvas", { width: columns * size, height: rows * size }, box), context = canvas.getContext("2d");
  for (let r = 0; r < rows; ++r)
    for (let c = 0; c < columns; ++c) {
      context.fillStyle = isMarked(r, c) ? "#e8590c" : (r + c) % 2 ? "#9994" : "#9992";
      context.fillRect(c * size, r * size, size, size);
    }
  canvas.onclick = event => onpick && onpick(Math.floor(event.offsetY / size), Math.floor(event.offsetX / size));
  make("p", { textContent: label, className: "hint" }, box);
}

const within = (id, limit) => Math.min(limit - 1, Math.max(0, Number(byId(id).value)));

function factsOf(scales, accumulator, row, k, n) {
  const { operand } = data.layout, block = scales.block_of[k], tileRow = row % operand.rows;
  const [linear, tiled, shared, lane, column, byte, step, id] = scales.places[row * scales.blocks + block];
  const at = operand.shared[tileRow * operand.pitch + operand.byte_of[k]];
  const [resultLane, resultColumn] = accumulator.places[tileRow * accumulator.columns + n];
  const facts = [
    ["element", `(${row}, ${k}) of a ${scales.rows} x ${scales.depth} matrix`],
    ["its data in a 128 x 256 tile of shared memory, swizzle_128B", `byte ${at}, ${operand.nibble_of[k] ? "high" : "low"} half`],
    ["its scale", `row ${row}, block ${block} of ${scales.blocks}`],
    ["scale in global memory, linear", `offset ${linear}`], ["scale in global memory, tiled_128x4", `offset ${tiled}`],
    ["scale in shared memory", `byte ${shared} of the 512-byte tile`],
    ["scale in tensor memory", `TMEM lane ${lane} (and its copies for the other warps), column +${column}, byte ${byte}`],
    ["read by", `K step ${step}, scale id ${id}`],
    [`result (${row}, ${n}) in the accumulator of a 128 x ${accumulator.columns} tile`, `TMEM lane ${resultLane}, column +${resultColumn}`]];
  return { facts, block, tileRow, shared, resultLane, resultColumn };
}

function drawLayout() {
  const scales = data.layout.scales.find(each => each.format === byId("format").value), accumulator = data.layout.accumulator;
  const found = factsOf(scales, accumulator, within("row", scales.rows), within("k", scales.depth), within("n", accumulator.columns));
  byId("places").replaceChildren();
  const table = make("table", { id: "answer" }, byId("places"));
  for (const [name, value] of found.facts) {
    const line = make("tr", {}, table);
    make("th", { textContent: name }, line);
    make("td", { textContent: value }, line);
  }
  byId("maps").replaceChildren();
  const choosePlace = (r, b) => { byId("row").value = r; byId("k").value = scales.block_of.indexOf(b); drawLayout(); };
  grid(byId("maps"), 128, scales.blocks, (r, c) => r === found.tileRow && c === found.block, choosePlace, `scales of 128 rows by ${scales.blocks} blocks: click one`);
  grid(byId("maps"), 32, 16, (r, c) => r * 16 + c === found.shared, null, "the 512 bytes of a scale tile in shared memory, 16 in a line");
  grid(byId("maps"), 128, accumulator.columns, (r, c) => r === found.resultLane && c === found.resultColumn, null, "128 TMEM lanes by the columns of the accumulator");
}

function startLayout() {
  if (!data.layout) return;
  for (const scales of data.layout.scales) make("option", { textContent: scales.format }, byId("format"));
  for (const id of ["format", "row", "k", "n"]) byId(id).oninput = drawLayout;
  drawLayout();
}
