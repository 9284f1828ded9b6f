// Views, the theme, and the start.
const found = data.hazards.length + data.faults.length;
const views = { code: "Code", time: "Timeline", barriers: "Barriers", memory: "Memory", layout: "Layouts", hazards: `Hazards (${found})`, run: "Verdict" };
if (!data.memory) delete views.memory;
if (!data.layout) delete views.layout;
const viewNames = Object.keys(views);

function showView(view) {
  for (const name of viewNames) {
    byId(name).classList.toggle("on", name === view);
    byId("tab-" + name).classList.toggle("on", name === view);
  }
  remember("view", view);
  if (view === "code") for (const pane of panes) pane.cm.refresh();
  if (view === "time") drawTimeline();
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  if (byId("time").classList.contains("on")) drawTimeline();
}

const systemTheme = () => matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";

function switchTheme() {
  const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  setTheme(theme);
  remember("theme", theme === systemTheme() ? "" : theme);
}

function startHeader() {
  for (const [id, label] of Object.entries(views)) make("button", { id: "tab-" + id, textContent: label, onclick: () => showView(id) }, byId("tabs"));
  byId("title").textContent = byId("title").title = `${data.file} for ${data.target}`;
  document.title = `${data.file}: fp4 explorer`;
  byId("outcome").textContent = byId("outcome").className = data.passed ? "passed" : "failed";
  byId("verdict").textContent = data.verdict;
  for (const kernel of kernels) make("option", { value: kernel.key, textContent: kernel.label + (kernel.launched ? "" : " (not launched)") }, byId("kernel"));
  byId("kernel").onchange = () => chooseKernel(kernels.find(kernel => kernel.key === byId("kernel").value));
  byId("theme").onclick = switchTheme;
  byId("help-button").onclick = showHelp;
}

/** The kernel of the address, else the one that took longest, which is what people look for. */
function firstKernel() {
  const named = kernels.find(kernel => kernel.key === place.kernel);
  if (named) return named;
  const costs = kernels.map(kernel => data.launches.reduce((cost, launch) => launch.program === kernel.module && launch.kernel === kernel.name ? Math.max(cost, launch.end) : cost, -1));
  return kernels[costs.indexOf(Math.max(...costs))] || null;
}

/** The line of the address, "ptx:120". */
function showNamedLine(named) {
  const at = named.lastIndexOf(":"), text = findText(named.slice(0, at), chosen.kernel ? chosen.kernel.module : "");
  const line = Number(named.slice(at + 1));
  if (text && line >= 1 && line <= text.lines.length) choose(text, line);
}

function start() {
  const wanted = { ...place };
  setTheme(place.theme || systemTheme());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (!place.theme) setTheme(systemTheme()); });
  startHeader();
  showView(viewNames.includes(wanted.view) ? wanted.view : "code");
  on("kernel", launchOfKernel);
  on("kernel", showMemory);
  startTimeline();
  startLayout();
  showHazards();
  openPanes();
  const kernel = firstKernel();
  if (kernel) chooseKernel(kernel);
  startSearch();
  if (wanted.line) showNamedLine(wanted.line);
  if (wanted.to && chart.launch) { Object.assign(chart, { from: Number(wanted.from), to: Math.min(chart.end, Number(wanted.to)) }); redraw(); }
  window.addEventListener("keydown", onKey, true);
  window.addEventListener("hashchange", () => location.reload());
}
start();
