// A page with one hazard and no machine code.
see("views", viewNames.join(" "));
see("findings", document.querySelectorAll(".finding").length);
const { first, second } = data.hazards[0];
document.querySelector(".finding button.place").click();
see("finding leads to its line", byId("code").classList.contains("on") && chosen.line.text.name === "ptx" && chosen.line.line === first.line);
see("signs", [first.line, second.line].filter(line => pane("ptx").cm.lineInfo(line - 1).gutterMarkers).length);
const sass = addPane("sass");
see("machine code", sass.missing.textContent.includes(data.no_sass) && data.no_sass);
see("verdict", byId("outcome").textContent);
