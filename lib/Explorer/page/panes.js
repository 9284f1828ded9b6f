// Texts side by side. Each pane shows one text of the chosen kernel; the lines that came from the same
// line as the chosen one are marked in all of them.
const panes = [];
let activePane = null;

function activate(pane) {
  activePane = pane;
  for (const each of panes) each.node.classList.toggle("active", each === pane);
}

/** Folds the parts of a text that belong to other kernels, and shows that of the chosen one. */
function showKernel(pane) {
  const kernel = chosen.kernel, text = pane.text;
  if (!kernel || !text) return;
  const own = regionOf(text, kernel);
  pane.cm.operation(() => {
    for (const mark of pane.cm.getAllMarks()) if (mark.__isFold) mark.clear();
    for (const region of regionsOf(text))
      if (region !== own && own) foldRegion(pane.cm, region);
  });
  if (own) return scrollTo(pane, own.first + 1, "top");
  const first = firstOfKernel(text, kernel);
  if (first) scrollTo(pane, first, "center");
}

function foldRegion(cm, region) {
  const from = CodeMirror.Pos(region.first, cm.getLine(region.first).length);
  const to = CodeMirror.Pos(region.last, 0);
  if (region.last > region.first + 1)
    cm.foldCode(CodeMirror.Pos(region.first, 0), { rangeFinder: () => ({ from, to }) }, "fold");
}

/** The line of `text` from which the first PTX of the kernel came, its head and not that of a function
    within it; 0 for none. */
function firstOfKernel(text, kernel) {
  const ptx = findText("ptx", kernel.module), region = ptx && regionOf(ptx, kernel);
  if (!region) return 0;
  for (let i = region.first; i <= region.last; ++i) {
    const lines = [...ancestorsOf(ptx)[i].get(text.index) || []];
    if (lines.length) return Math.min(...lines);
  }
  return 0;
}

function scrollTo(pane, line, where) {
  const box = pane.cm.charCoords({ line: line - 1, ch: 0 }, "local"), height = pane.cm.getScrollInfo().clientHeight;
  pane.cm.scrollTo(null, Math.max(0, box.top - (where === "top" ? 8 : height / 3)));
}

/** Shows the text that the pane's selector names, of the chosen kernel. */
function fill(pane) {
  const name = pane.select.value;
  const text = findText(name, chosen.kernel ? chosen.kernel.module : "");
  pane.missing.style.display = text ? "none" : "block";
  pane.missing.textContent = name === "sass" && data.no_sass ? `There is no machine code: ${data.no_sass}.` : "This kernel has no such text.";
  pane.cm.getWrapperElement().style.display = text ? "" : "none";
  if (text !== pane.text) {
    pane.text = text;
    pane.near = [];
    pane.cm.swapDoc(CodeMirror.Doc(text ? text.lines.join("\n") : "", text ? modeOf(text) : null));
    if (text) showHazardSigns(pane);
  }
  showKernel(pane);
  markPane(pane);
  markFound(pane);
}

function markPane(pane) {
  const { cm, text } = pane;
  cm.operation(() => {
    for (const handle of pane.near) cm.removeLineClass(handle, "background");
    pane.near = [];
    pane.lines = [];
    if (chosen.line && text) {
      const own = ancestorsOf(chosen.line.text)[chosen.line.line - 1], all = ancestorsOf(text);
      for (let i = 0; i < all.length; ++i) {
        const self = text === chosen.line.text && i === chosen.line.line - 1;
        if (!self && !areLinked(own, all[i])) continue;
        pane.near.push(cm.addLineClass(i, "background", self ? "mark" : "near"));
        pane.lines.push(i + 1);
      }
    }
  });
  pane.bar.update((pane.lines || []).map(line => ({ from: CodeMirror.Pos(line - 1, 0), to: CodeMirror.Pos(line, 0) })));
  const count = pane.lines.length;
  pane.linked.textContent = chosen.line && text ? `${count} linked line${count === 1 ? "" : "s"}` : "";
}

/** Chooses a line: marks what it is linked with, and shows that in the other panes. */
function choose(text, line, from = null) {
  chosen.line = { text, line };
  remember("line", `${text.name}:${line}`);
  for (const pane of panes) {
    markPane(pane);
    if (pane === from || !pane.lines.length) continue;
    const region = chosen.kernel && pane.text ? regionOf(pane.text, chosen.kernel) : null;
    const inside = region && pane.lines.find(each => each > region.first && each <= region.last + 1);
    scrollTo(pane, pane.text === text ? line : inside || pane.lines[0], "center");
  }
}

/** The next or the last linked line of the active pane. */
function stepLinked(direction) {
  const pane = activePane;
  if (!pane || !pane.lines || !pane.lines.length) return;
  const count = pane.lines.length;
  pane.at = ((pane.at === undefined ? (direction > 0 ? -1 : 0) : pane.at) + direction + count) % count;
  scrollTo(pane, pane.lines[pane.at], "center");
}

function newEditor(node) {
  return CodeMirror(node, {
    readOnly: true, lineNumbers: true, foldGutter: { rangeFinder: CodeMirror.fold.brace },
    gutters: ["hazard-gutter", "CodeMirror-linenumbers", "CodeMirror-foldgutter"], cursorBlinkRate: -1, viewportMargin: 20,
  });
}

function addPane(name) {
  const node = make("div", { className: "column" }, byId("columns")), head = make("div", { className: "head" }, node);
  const pane = { node, select: make("select", {}, head), lines: [], near: [], text: undefined };
  for (const each of textNames) make("option", { value: each, textContent: shortName(each), title: each }, pane.select);
  if (!textNames.includes("sass")) make("option", { value: "sass", textContent: "sass" }, pane.select);
  pane.linked = make("span", { className: "linked" }, head);
  make("button", { textContent: "×", title: "close this pane", onclick: () => closePane(pane) }, head);
  pane.missing = make("div", { className: "missing" }, node);
  pane.cm = newEditor(node);
  pane.bar = pane.cm.annotateScrollbar("near-bar");
  pane.cm.on("mousedown", () => activate(pane));
  pane.cm.on("cursorActivity", cm => {
    if (cm.hasFocus() && !cm.somethingSelected()) choose(pane.text, cm.getCursor().line + 1, pane);
  });
  pane.cm.on("gutterClick", (cm, line, gutter) => { if (gutter !== "CodeMirror-foldgutter") choose(pane.text, line + 1, pane); });
  pane.select.value = name;
  pane.select.onchange = () => { fill(pane); rememberPanes(); };
  panes.push(pane);
  activate(pane);
  fill(pane);
  return pane;
}

function closePane(pane) {
  if (panes.length === 1) return;
  panes.splice(panes.indexOf(pane), 1);
  pane.node.remove();
  activate(panes[0]);
  rememberPanes();
}

function rememberPanes() { remember("panes", panes.map(pane => pane.select.value).join(",")); }

/** Panes of the address, else of the first text, of what is in front of PTX, and of PTX; with machine
    code where there is no text between. */
function openPanes() {
  const between = textNames.includes("scheduled") ? "scheduled" : null;
  const usual = [textNames[0], between, "ptx", between || !textNames.includes("sass") ? null : "sass"].filter((name, i, all) => name && all.indexOf(name) === i);
  for (const name of place.panes ? place.panes.split(",") : usual) addPane(name);
  const more = make("button", { textContent: "+", title: "one more pane", onclick: () => { addPane("ptx"); rememberPanes(); } });
  byId("code-hint").append("Click a line: what came from the same line is marked in every pane. ", more);
}

/** Opens a line of the PTX of a module, and what it came from. */
function showPtx(module, line) {
  const text = findText("ptx", module), kernel = kernels.find(each => each.module === module &&
    text && (region => region && line > region.first && line <= region.last + 1)(regionOf(text, each)));
  if (!text) return;
  showView("code");
  if (kernel && kernel !== chosen.kernel) chooseKernel(kernel);
  let pane = panes.find(each => each.select.value === "ptx");
  if (!pane) {
    pane = panes[panes.length - 1];
    pane.select.value = "ptx";
    fill(pane);
  }
  activate(pane);
  choose(text, line);
}

function chooseKernel(kernel) {
  chosen.kernel = kernel;
  byId("kernel").value = kernel.key;
  remember("kernel", kernel.key);
  if (chosen.line && chosen.line.text.module && chosen.line.text.module !== kernel.module) {
    chosen.line = null;
    remember("line", "");
  }
  for (const pane of panes) fill(pane);
  tell("kernel");
}
