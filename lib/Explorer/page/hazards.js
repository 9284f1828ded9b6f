// Findings of the checker and messages of kernels that failed, at their lines.
const moduleOf = program => (texts.find(text => text.name === "ptx" && program.startsWith(text.module)) || {}).module;

function accessLine(box, hazard, access) {
  const module = moduleOf(hazard.program) || moduleOf(hazard.kernel), line = make("p", {}, box);
  make("button", { className: "place", textContent: `PTX line ${access.line}`, onclick: () => showPtx(module, access.line) }, line);
  line.append(` ${access.what}${access.origin ? ` (${shortName(access.origin)})` : ""}: `);
  make("code", { textContent: access.source }, line);
}

function showHazards() {
  const box = byId("hazards");
  if (!data.hazards.length && !data.faults.length) make("p", { className: "hint", textContent: "The checker found no hazard, and no kernel failed." }, box);
  for (const hazard of data.hazards) {
    const card = make("div", { className: "finding" }, box);
    make("h2", { textContent: `${hazard.message} [${hazard.rule}]` }, card);
    make("p", { textContent: `${hazard.place}${hazard.count > 1 ? `, ${hazard.count} findings` : ""}` }, card);
    accessLine(card, hazard, hazard.first);
    accessLine(card, hazard, hazard.second);
    make("p", { textContent: "missing: " + hazard.missing }, card);
  }
  for (const fault of data.faults) faultCard(box, fault);
}

/** A message; places in it ("gemm.ptx:41:3") are links. */
function faultCard(box, fault) {
  const card = make("div", { className: "finding" }, box), lines = fault.split("\n");
  make("h2", { textContent: lines[0] }, card);
  make("p", { textContent: lines.slice(1).join("\n") }, card);
  for (const [at, program, line] of [...fault.matchAll(/(\S+\.ptx):(\d+):\d+/g)].slice(0, 8))
    if (moduleOf(program)) make("button", { className: "place", textContent: at, onclick: () => showPtx(moduleOf(program), Number(line)) }, card);
}

/** Signs in the gutter of a pane with PTX, at the lines of hazards. */
function showHazardSigns(pane) {
  if (pane.text.name !== "ptx") return;
  for (const hazard of data.hazards) {
    if ((moduleOf(hazard.program) || moduleOf(hazard.kernel)) !== pane.text.module) continue;
    for (const access of [hazard.first, hazard.second])
      if (access.line) pane.cm.setGutterMarker(access.line - 1, "hazard-gutter", make("span", { className: "hazard-sign", textContent: "▲", title: `${hazard.message} [${hazard.rule}]`, onclick: () => showView("hazards") }));
  }
}
