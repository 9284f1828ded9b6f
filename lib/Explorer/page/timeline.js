// The timeline: which launch, zoom, legend, tooltips, and the line of a bar.

function zoom(factor, at = (chart.from + chart.to) / 2) {
  const length = Math.min(chart.end, Math.max(4, (chart.to - chart.from) * factor));
  const from = at - (at - chart.from) * length / (chart.to - chart.from);
  chart.from = Math.max(0, Math.min(chart.end - length, from));
  chart.to = chart.from + length;
  redraw();
}

function pan(time) {
  const length = chart.to - chart.from;
  chart.from = Math.max(0, Math.min(chart.end - length, chart.from + time));
  chart.to = chart.from + length;
  redraw();
}

function fit() {
  chart.from = 0;
  chart.to = chart.end;
  redraw();
}

function redraw() {
  if (chart.asked) return;
  chart.asked = true;
  requestAnimationFrame(() => {
    chart.asked = false;
    drawTimeline();
    remember("from", Math.round(chart.from));
    remember("to", Math.round(chart.to));
  });
}

function openAll(open) {
  const visit = row => { if (row.children) { chart.open.set(row, open); row.children.forEach(visit); } };
  chart.tree.forEach(visit);
  drawTimeline();
}

/** The bar or mark under the pointer: { row, span } or { row, mark }. */
function hit(event) {
  const x = event.offsetX, y = event.offsetY, shown = chart.rows.find(each => y >= each.top && y < each.top + each.height);
  if (!shown) return null;
  if (x < LABEL || (shown.row.children && isOpen(shown.row))) return { row: shown.row };
  const leaves = leavesOf(shown.row), row = leaves[Math.min(leaves.length - 1, Math.floor((y - shown.top) / shown.height * leaves.length))];
  const time = timeAt(x), near = (chart.to - chart.from) / (chart.width - LABEL) * 3;
  const lane = Math.floor((y - shown.top - 2) / ((shown.height - 4) / row.lanes));
  const mark = !shown.row.children && y > shown.top + shown.height - 9 ? row.marks.find(each => Math.abs(each.at - time) < near) : null;
  const spans = row.spans.filter(each => each.from - near <= time && time <= each.to + near && (row.lanes === 1 || each.lane === lane));
  const span = spans.find(each => each.from <= time && time <= each.to) || spans[0];
  return mark ? { row, mark } : { row, span };
}

function textOfSpan(span) {
  const length = `${timeText(span.from)} to ${timeText(span.to)}: ${chart.unit === "ns" ? timeText(span.to - span.from) : span.to - span.from + " events"}`;
  if (span.name === "running") return `running, ${length}\nissues ${span.issue} % of it; most of it: ${span.most}\nPTX lines ${span.line} to ${span.last}`;
  if (span.kind) return `${span.name}, issued by warp ${span.warp}, ${length}`;
  if (span.name === "warp") return `warp, ${length}`;
  if (span.name === "does not end") return `the warp does not go on, from ${timeText(span.from)}`;
  return `waits: ${span.name}, ${length}`;
}

const textOfMark = mark => `${mark.name}${mark.object ? " " + mark.object : ""} at ${timeText(mark.at)}`;

function ptxLine(line) {
  const text = findText("ptx", chart.launch.program);
  return text && line ? (text.lines[line - 1] || "").trim() : "";
}

function showTip(event) {
  const found = hit(event), tip = byId("tip"), item = found && (found.span || found.mark);
  tip.style.display = item ? "block" : "none";
  byId("timeline").style.cursor = found && found.row.children && event.offsetX < LABEL ? "pointer" : "default";
  if (!item) return;
  const text = found.mark ? textOfMark(found.mark) : textOfSpan(found.span);
  tip.textContent = `${found.row.label}: ${text}\n${ptxLine(item.line)}`;
  tip.style.left = Math.min(window.innerWidth - 540, event.clientX + 14) + "px";
  tip.style.top = Math.min(window.innerHeight - 90, event.clientY + 14) + "px";
}

/** Says what a bar is, with links to its line of PTX and of the source. */
function showEvent(found) {
  const item = found.span || found.mark, box = byId("event"), text = findText("ptx", chart.launch.program);
  chart.hot = found.span || null;
  box.textContent = `${found.row.label}: ${found.mark ? textOfMark(found.mark) : textOfSpan(found.span)} `;
  if (!item.line || !text) return;
  make("button", { className: "place", textContent: `PTX line ${item.line}`, onclick: () => showPtx(text.module, item.line) }, box);
  const source = sourceOf(text, item.line);
  box.append(" ", make("code", { textContent: ptxLine(item.line) }), source ? ` from ${shortName(source.text.name)}:${source.line}` : "");
}

function clickTimeline(event) {
  const found = hit(event);
  if (!found) return;
  if (event.offsetX < LABEL && found.row.children) chart.open.set(found.row, !isOpen(found.row));
  else if (found.span || found.mark) showEvent(found);
  drawTimeline();
}

/** Names of the activities, with their parts of the time of the warps that are drawn. */
function drawLegend() {
  const sums = new Map(), asyncKinds = new Set();
  let total = 0;
  for (const leaf of chart.tree.flatMap(leavesOf))
    for (const span of leaf.spans) {
      if (span.kind) { asyncKinds.add(span.kind); continue; }
      sums.set(span.name, (sums.get(span.name) || 0) + span.to - span.from);
      total += span.to - span.from;
    }
  const box = byId("legend");
  box.replaceChildren();
  const key = (name, text) => {
    const button = make("button", { className: "key" + (chart.only && chart.only !== name ? " off" : ""), title: "show this alone", onclick: () => { chart.only = chart.only === name ? "" : name; drawLegend(); drawTimeline(); } }, box);
    make("i", {}, button).style.background = colourOf(name);
    button.append(text);
  };
  for (const [name, sum] of [...sums].sort((a, b) => b[1] - a[1])) key(name, `${LABELS[name] || name} ${(100 * sum / total).toFixed(sum < total / 100 ? 1 : 0)} %`);
  if (asyncKinds.size) make("span", { className: "hint", textContent: "operations:" }, box);
  for (const name of [...asyncKinds].sort()) key(name, name);
}
const LABELS = { running: "running", arithmetic: "waits: result", "global load": "waits: global load", "shared memory": "waits: shared memory", "busy unit": "waits: busy unit", "other warps": "waits: its turn", barrier: "waits: barrier", mbarrier: "waits: mbarrier", "async work": "waits: async work", fence: "waits: fence", branch: "waits: branch" };

function explainUnit(launch) {
  const known = launch.unit === "ns" ? "Predicted nanoseconds of the time model." :
    "The time of an event is its number in this schedule of the simulation: lengths say nothing about a device.";
  const time = timeOf(launch), why = time && time.unknown ? ` No prediction: ${time.unknown.join("; ")}.` : "";
  return known + why + (launch.cut ? " The launch is too long for a page: it shows the beginning, --timeline writes all." : "") +
    (launch.unit === "ns" ? " Tracks are those of CTAs on the first SMs." : "");
}

function showLaunch() {
  const launch = data.launches[Number(byId("launch").value)];
  if (!launch) return;
  Object.assign(chart, { launch, unit: launch.unit, end: Math.max(1, launch.end), only: "", hot: null, tree: treeOf(launch) });
  chart.from = 0;
  chart.to = chart.end;
  byId("unit").textContent = explainUnit(launch);
  openFirst();
  drawLegend();
  drawTimeline();
  showRoles(launch);
  showBarriers(launch);
}

function dragTimeline(event) {
  if (event.offsetX < LABEL || event.button !== 0) return;
  const start = event.clientX, from = chart.from, perPixel = (chart.to - chart.from) / (chart.width - LABEL - 8);
  const move = moved => pan(from - (moved.clientX - start) * perPixel - chart.from);
  const stop = () => { window.removeEventListener("mousemove", move); window.removeEventListener("mouseup", stop); };
  window.addEventListener("mousemove", move);
  window.addEventListener("mouseup", stop);
}

function startTimeline() {
  data.launches.forEach((launch, i) => make("option", { value: i, textContent: `${i + 1}: ${launch.kernel === "kernel" ? launch.program : launch.label}` }, byId("launch")));
  const canvas = byId("timeline");
  canvas.onmousemove = showTip;
  canvas.onmouseleave = () => { byId("tip").style.display = "none"; };
  canvas.onclick = clickTimeline;
  canvas.onmousedown = dragTimeline;
  canvas.addEventListener("wheel", event => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.25 : .8, timeAt(event.offsetX));
  }, { passive: false });
  for (const [id, action] of [["zoom-in", () => zoom(.6)], ["zoom-out", () => zoom(1.6)], ["zoom-fit", fit], ["open-all", () => openAll(true)], ["close-all", () => openAll(false)]]) byId(id).onclick = action;
  window.addEventListener("resize", () => { if (byId("time").classList.contains("on")) drawTimeline(); });
  byId("launch").onchange = () => {
    const launch = data.launches[Number(byId("launch").value)];
    remember("launch", byId("launch").value);
    const kernel = kernels.find(each => each.module === launch.program && each.name === launch.kernel);
    if (kernel && kernel !== chosen.kernel) chooseKernel(kernel);
    else showLaunch();
  };
}

/** The launch of the address, if it is of the chosen kernel, else that kernel's first. */
function launchOfKernel() {
  const fits = launch => launch && chosen.kernel && launch.program === chosen.kernel.module && launch.kernel === chosen.kernel.name;
  const shown = data.launches[Number(byId("launch").value)], named = data.launches[Number(place.launch)];
  const launch = fits(named) ? named : fits(shown) ? shown : data.launches.find(fits) || data.launches[0];
  if (launch) byId("launch").value = data.launches.indexOf(launch);
  showLaunch();
}
