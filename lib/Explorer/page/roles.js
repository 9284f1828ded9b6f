// The predicted time of a launch, and what its roles did.

const percent = part => `${(part * 100).toFixed(part < .1 ? 1 : 0)} %`;

/** Shares of a role's time as a bar, in the colours of the timeline. */
function stack(shares, parent) {
  const bar = make("div", { className: "stack" }, parent);
  for (const name of ACTIVITIES.filter(each => shares[each] > .002)) {
    const part = make("i", { title: `${LABELS[name] || name}: ${percent(shares[name])}` }, bar);
    part.style.width = shares[name] * 100 + "%";
    part.style.background = colourOf(name);
  }
}

function showRoles(launch) {
  const box = byId("roles"), time = timeOf(launch);
  box.replaceChildren();
  if (!time || !time.predicted) return;
  make("h2", { textContent: `Predicted: ${time.microseconds.toFixed(2)} us, bound by ${time.bound}` }, box);
  const busy = Object.entries(time.busy || {}).filter(each => each[1] >= .005).slice(0, 5).map(([name, part]) => `${name} ${percent(part)}`).join(", ");
  make("p", { className: "hint", textContent: `${Math.round(time.cycles)} cycles at ${time.gigahertz.toFixed(2)} GHz behind ${time.launch_microseconds.toFixed(2)} us of launch; ${time.ctas_per_sm} CTAs per SM, ${time.registers} registers. Busy: ${busy || "nothing"}.` }, box);
  const table = make("table", {}, box), head = make("tr", {}, table);
  for (const name of ["role", "issuing and waiting, all CTAs", "issues", "longest wait"]) make("th", { textContent: name }, head);
  for (const role of time.roles) {
    const row = make("tr", {}, table), waits = ACTIVITIES.slice(1).sort((a, b) => role.share[b] - role.share[a]);
    make("td", { textContent: role.name }, row);
    stack(role.share, make("td", {}, row));
    make("td", { className: "n", textContent: percent(role.share.issue) }, row);
    make("td", { textContent: `${waits[0]}, ${percent(role.share[waits[0]])}` }, row);
  }
}
