// The canvas of the timeline.
const chart = { tree: [], rows: [], from: 0, to: 1, end: 1, only: "", hot: null, open: new Map() };
const ROW = 18, LABEL = 230, AXIS = 22;

function leavesOf(row) { return row.children ? row.children.flatMap(leavesOf) : [row]; }
const isOpen = row => chart.open.get(row) === true;

/** Rows that are visible, with their depth. */
function layRows() {
  chart.rows = [];
  const visit = (list, depth) => {
    for (const row of list) {
      const shown = { row, depth, height: row.lanes > 1 ? Math.max(ROW, row.lanes * 8) : ROW };
      chart.rows.push(shown);
      if (row.children && isOpen(row)) visit(row.children, depth + 1);
    }
  };
  visit(chart.tree, 0);
  let top = AXIS;
  for (const shown of chart.rows) {
    shown.top = top;
    top += shown.height;
  }
  chart.height = Math.min(16000, top + 4);
}

/** At first the first CTA is open down to its warps. */
function openFirst() {
  chart.open = new Map();
  let list = chart.tree;
  while (list.length && list[0].children) {
    chart.open.set(list[0], true);
    const roles = list[0].children.filter(row => row.isRole);
    for (const row of roles) chart.open.set(row, row.children.length <= 8);
    if (roles.length) break;
    list = list[0].children;
  }
}

const xOf = time => LABEL + (time - chart.from) / (chart.to - chart.from) * (chart.width - LABEL - 8);
const timeAt = x => chart.from + (x - LABEL) / (chart.width - LABEL - 8) * (chart.to - chart.from);

/** A step of 1, 2 or 5 times a power of ten for about `count` ticks. */
function stepOf(length, count) {
  const raw = length / count, power = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 5, 10].map(factor => factor * power).find(step => step >= raw);
}

function timeText(time) {
  if (chart.unit !== "ns") return String(Math.round(time));
  return time >= 10000 ? `${(time / 1000).toFixed(2)} us` : `${Math.round(time)} ns`;
}

function drawAxis(context, style) {
  const step = Math.max(1, stepOf(chart.to - chart.from, Math.max(2, (chart.width - LABEL) / 110)));
  context.font = "11px system-ui, sans-serif";
  for (let time = Math.ceil(chart.from / step) * step; time <= chart.to; time += step) {
    const x = Math.round(xOf(time)) + .5;
    context.fillStyle = style.line;
    context.fillRect(x, AXIS - 5, 1, chart.height);
    context.fillStyle = style.faint;
    context.fillText(timeText(time), x + 3, 13);
  }
}

const keyOfSpan = span => span.kind || span.name;
const isFaded = span => chart.only && keyOfSpan(span) !== chart.only;

function drawSpans(context, spans, top, height, lanes) {
  const each = height / lanes;
  let lastEnd = -1, lastColour = "";
  for (const span of spans) {
    if (span.to < chart.from || span.from > chart.to) continue;
    const left = Math.max(LABEL, xOf(span.from)), right = Math.min(chart.width - 8, xOf(span.to)), colour = colourOf(keyOfSpan(span));
    if (right < lastEnd + .3 && colour === lastColour && lanes === 1) continue;
    context.globalAlpha = isFaded(span) ? .12 : span.odd ? .55 : 1;
    context.fillStyle = colour;
    context.fillRect(left, top + (span.lane || 0) * each, Math.max(.7, right - left), Math.max(.7, each - (lanes > 1 ? 1 : 0)));
    if (span === chart.hot) outline(context, left, top, Math.max(2, right - left), height);
    lastEnd = right;
    lastColour = colour;
  }
  context.globalAlpha = 1;
}

function outline(context, left, top, width, height) {
  context.strokeStyle = chart.style.text;
  context.lineWidth = 2;
  context.strokeRect(left, top, width, height);
}

/** Marks are drawn where there is room for them. */
function drawMarks(context, row, top, height) {
  const seen = row.marks.filter(mark => mark.at >= chart.from && mark.at <= chart.to);
  if (seen.length > (chart.width - LABEL) / 6) return;
  context.fillStyle = chart.style.text;
  for (const mark of seen) context.fillRect(Math.round(xOf(mark.at)), top + height - 6, 1.5, 6);
}

function drawRow(context, shown) {
  const { row, depth, top, height } = shown, leaves = leavesOf(row);
  context.fillStyle = row.children ? chart.style.text : chart.style.faint;
  context.font = row.children ? "600 12px system-ui, sans-serif" : "12px system-ui, sans-serif";
  const sign = row.children ? (isOpen(row) ? "▾ " : "▸ ") : "";
  context.save();
  context.beginPath();
  context.rect(0, top, LABEL - 6, height);
  context.clip();
  context.fillText(sign + row.label, 6 + depth * 12, top + 13);
  context.restore();
  if (!row.children) {
    drawSpans(context, row.spans, top + 2, height - 4, row.lanes);
    return drawMarks(context, row, top + 2, height - 4);
  }
  if (isOpen(row)) return;
  const part = (height - 4) / leaves.length;
  leaves.forEach((leaf, i) => drawSpans(context, leaf.spans, top + 2 + i * part, part, 1));
}

function drawTimeline() {
  const canvas = byId("timeline"), box = byId("chart"), scale = window.devicePixelRatio || 1, css = getComputedStyle(document.documentElement);
  chart.style = Object.fromEntries(["text", "faint", "line", "back", "panel"].map(name => [name, css.getPropertyValue("--" + name).trim()]));
  chart.width = Math.max(500, box.clientWidth);
  layRows();
  canvas.width = chart.width * scale;
  canvas.height = chart.height * scale;
  canvas.style.width = chart.width + "px";
  canvas.style.height = chart.height + "px";
  const context = canvas.getContext("2d");
  context.scale(scale, scale);
  context.fillStyle = chart.style.back;
  context.fillRect(0, 0, chart.width, chart.height);
  drawAxis(context, chart.style);
  for (const shown of chart.rows) drawRow(context, shown);
}
