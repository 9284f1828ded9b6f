// mbarriers of a launch: who arrives, who waits, and for how long.

function newBarrier(object) { return { object, lines: new Map(), counts: new Map(), waited: 0, phases: 0 }; }

/** By the address of the mbarrier. The wait of a mark is the last one of its warp before it. */
function barriersOf(launch) {
  const found = new Map();
  const barrier = object => found.get(object) || found.set(object, newBarrier(object)).get(object);
  for (const leaf of chart.tree.flatMap(leavesOf)) {
    let next = 0, wait = null;
    for (const mark of leaf.marks) {
      if (!mark.object) continue;
      const entry = barrier(mark.object), kind = mark.name.replace(/^mbarrier[. ]/, "");
      entry.counts.set(kind, (entry.counts.get(kind) || 0) + 1);
      entry.lines.set(kind, (entry.lines.get(kind) || new Set()).add(mark.line));
      for (; next < leaf.spans.length && leaf.spans[next].to <= mark.at + 1; ++next)
        if (leaf.spans[next].name === "mbarrier") wait = leaf.spans[next];
      if (kind === "wait passed" && wait && wait.line === mark.line) { entry.waited += wait.to - wait.from; wait = null; }
    }
    if (leaf.kind === "mbarrier phase") barrier(leaf.label.replace("mbarrier ", "")).phases += leaf.spans.length - 1;
  }
  return [...found.values()].sort((a, b) => Number(a.object) - Number(b.object));
}

/** "CTA 1 + 0x400" of an address of shared::cluster. */
const addressText = object => (Number(object) >>> 24 ? `CTA ${Number(object) >>> 24} + ` : "") + "0x" + (Number(object) & 0xffffff).toString(16);

function lineButtons(cell, launch, lines, count) {
  cell.append(count ? `${count} × ` : "");
  for (const line of [...lines].slice(0, 6))
    make("button", { className: "place", textContent: line, title: ptxLine(line), onclick: () => showPtx(launch.program, line) }, cell);
  if (lines.size > 6) cell.append(" …");
}

function showBarriers(launch) {
  const box = byId("barriers"), list = barriersOf(launch);
  box.replaceChildren();
  make("p", { className: "hint", textContent: list.length ? `mbarriers of ${launch.kernel === "kernel" ? launch.program : launch.label} in the tracks of the timeline. Numbers are lines of PTX.` : "The launch has no mbarrier in the tracks of the timeline." }, box);
  if (!list.length) return;
  const table = make("table", {}, box), head = make("tr", {}, table), kindsOf = ["init", "expect_tx", "arrive", "wait passed"];
  for (const name of ["mbarrier", ...kindsOf, "phases", "waited"]) make("th", { textContent: name }, head);
  for (const entry of list) {
    const row = make("tr", {}, table);
    const name = (launch.barriers || {})[entry.object];
    make("td", { textContent: name ? `${name} (${addressText(entry.object)})` : addressText(entry.object) }, row);
    for (const kind of kindsOf) lineButtons(make("td", {}, row), launch, entry.lines.get(kind) || new Set(), entry.counts.get(kind) || 0);
    make("td", { className: "n", textContent: Math.max(0, entry.phases) }, row);
    make("td", { className: "n", textContent: launch.unit === "ns" ? timeText(entry.waited) : "" }, row);
  }
}
