// Keys, and the table of them.
const KEYS = [
  ["1 … 7", "code, timeline, barriers, memory, layouts, hazards, verdict"], ["/", "search all panes; Enter and Shift+Enter step, Escape ends; /…/ is a regular expression"],
  ["j  k", "next and previous kernel"], ["[  ]", "previous and next linked line of the active pane"], ["Tab", "next pane"],
  ["+  -  0", "timeline: zoom in, out, whole launch"], ["← →  or  a d", "timeline: move"], ["o  c", "timeline: open and close all groups"], ["t", "light or dark"], ["?", "this table"],
];

function showHelp() {
  const dialog = byId("help");
  if (dialog.open) return dialog.close();
  dialog.replaceChildren();
  const table = make("table", {}, dialog);
  for (const [keys, text] of KEYS) {
    const row = make("tr", {}, table), cell = make("td", {}, row);
    for (const key of keys.split(/ {2}/)) cell.append(make("kbd", { textContent: key }), " ");
    make("td", { textContent: text }, row);
  }
  make("p", { className: "hint", textContent: "The address of the page names the view, the kernel, the panes and the line: send it to show a place." }, dialog);
  dialog.onclick = () => dialog.close();
  dialog.showModal();
}

function stepKernel(direction) {
  const at = kernels.indexOf(chosen.kernel);
  if (kernels.length) chooseKernel(kernels[(at + direction + kernels.length) % kernels.length]);
}

const timeKeys = {
  "+": () => zoom(.6), "=": () => zoom(.6), w: () => zoom(.6), "-": () => zoom(1.6), s: () => zoom(1.6), "0": fit, o: () => openAll(true), c: () => openAll(false),
  ArrowLeft: () => pan(-(chart.to - chart.from) / 5), ArrowRight: () => pan((chart.to - chart.from) / 5), a: () => pan(-(chart.to - chart.from) / 5), d: () => pan((chart.to - chart.from) / 5),
};
const codeKeys = {
  "[": () => stepLinked(-1), "]": () => stepLinked(1),
  Tab: () => activate(panes[(panes.indexOf(activePane) + 1) % panes.length]),
};
const allKeys = { "/": () => { showView("code"); byId("find").focus(); }, "?": showHelp, t: () => switchTheme(), j: () => stepKernel(1), k: () => stepKernel(-1) };

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT)$/.test(event.target.tagName)) return;
  const number = Number(event.key), view = viewNames[number - 1];
  const own = byId("time").classList.contains("on") ? timeKeys : byId("code").classList.contains("on") ? codeKeys : {};
  const action = own[event.key] || allKeys[event.key] || (view ? () => showView(view) : null);
  if (!action) return;
  event.preventDefault();
  event.stopPropagation();
  action();
}
