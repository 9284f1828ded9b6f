// Rows of the timeline: SM, CTA, role, warp; and the asynchronous operations of each cluster.
const SPAN = 8, MARK = 5, ASYNC = 7;
const nameOf = index => data.names[index];

/** Colours of activities: waits are warm where memory is waited for, blue where others are. */
const COLOURS = {
  running: "#2f9e6e", issue: "#2f9e6e", arithmetic: "#94b93a", "global load": "#d1495b", "shared memory": "#e08e2b",
  "busy unit": "#8d6cab", "other warps": "#b79ad1", barrier: "#5b8fc7", mbarrier: "#2f5f9e", "async work": "#17a2b8",
  fence: "#8a6253", branch: "#b5a36a", warp: "#7f93a8", "mbarrier phase": "#8d99ae", "does not end": "#ff3040",
};
const MORE = ["#c2569b", "#6f7fd8", "#3f9c9c", "#c08a3e", "#7a9a3f", "#a06060", "#5f8f6f", "#9a6fb0"];
const ACTIVITIES = ["issue", "arithmetic", "global load", "shared memory", "busy unit", "other warps", "barrier", "mbarrier", "async work", "fence", "branch"];
const kinds = [];

/** The colour of an activity or of a kind of asynchronous operation. */
function colourOf(name) {
  if (COLOURS[name]) return COLOURS[name];
  if (!kinds.includes(name)) kinds.push(name);
  return MORE[kinds.indexOf(name) % MORE.length];
}

/** The predicted time of a launch, which has its place and its kernel. */
const timeOf = launch => {
  const time = (data.times || [])[data.launches.indexOf(launch)];
  return time && time.kernel === launch.kernel ? time : undefined;
};

/** The role of a warp: of the compiler's memory map, else of what the time model saw it use. */
function roleOf(launch, warp) {
  const compiled = (data.memory || []).find(kernel => kernel.module === launch.program);
  const role = compiled && compiled.roles.find(each => each.first <= warp && warp < each.end);
  if (role) return role.name;
  const time = timeOf(launch), seen = time && (time.roles || []).find(each => each.first_warp <= warp && warp <= each.last_warp);
  return seen ? seen.name.replace(/: warps? .*/, "") : "warps";
}

function itemsOf(launch) {
  const byWarp = launch.warps.length / 4, spans = Array.from({ length: byWarp }, () => []), marks = spans.map(() => []);
  const { spans: all, marks: instants } = launch;
  for (let i = 0; i < all.length; i += SPAN)
    spans[all[i]].push({ from: all[i + 1], to: all[i + 1] + all[i + 2], name: nameOf(all[i + 3]), line: all[i + 4], issue: all[i + 5], most: nameOf(all[i + 6]), last: all[i + 7] });
  for (let i = 0; i < instants.length; i += MARK)
    marks[instants[i]].push({ at: instants[i + 1], name: nameOf(instants[i + 2]), line: instants[i + 3], object: nameOf(instants[i + 4]) });
  for (const list of spans) list.sort((a, b) => a.from - b.from);
  return { spans, marks };
}

/** Spreads spans that overlap over lanes of one row. */
function packed(spans) {
  const ends = [];
  spans.sort((a, b) => a.from - b.from);
  for (const span of spans) {
    let lane = ends.findIndex(end => end <= span.from);
    if (lane < 0) lane = ends.length < 6 ? ends.length : ends.indexOf(Math.min(...ends));
    ends[lane] = span.to;
    span.lane = lane;
  }
  return Math.max(1, ends.length);
}

function asyncRows(launch, cluster) {
  const rows = new Map();
  for (let i = 0; i < launch.async.length; i += ASYNC) {
    const a = launch.async;
    if (a[i] !== cluster) continue;
    const kind = nameOf(a[i + 1]), name = nameOf(a[i + 4]), label = kind === "mbarrier" ? name.replace(/ phase.*/, "") : kind;
    const shown = kind === "mbarrier" ? "mbarrier phase" : kind, row = rows.get(label) || rows.set(label, { label, kind: shown, spans: [] }).get(label);
    row.spans.push({ from: a[i + 2], to: a[i + 2] + a[i + 3], name, kind: shown, line: a[i + 5], warp: a[i + 6], odd: /[13579]$/.test(name) });
  }
  const leaves = [...rows.values()].map(row => ({ ...row, lanes: packed(row.spans), marks: [] }));
  leaves.sort((a, b) => a.label.localeCompare(b.label, "en", { numeric: true }));
  const barriers = leaves.filter(row => row.kind === "mbarrier phase"), others = leaves.filter(row => row.kind !== "mbarrier phase");
  return [...others, ...(barriers.length ? [{ label: `phases of ${barriers.length} mbarrier${barriers.length === 1 ? "" : "s"}`, children: barriers }] : [])];
}

const group = (list, keyOf) => {
  const groups = new Map();
  for (const each of list) groups.set(keyOf(each), [...(groups.get(keyOf(each)) || []), each]);
  return [...groups];
};

/** The tree of rows of a launch. A leaf has spans and marks, a group has children. */
function treeOf(launch) {
  const { spans, marks } = itemsOf(launch), warps = [];
  for (let i = 0; i < launch.warps.length; i += 4) {
    const [cluster, cta, warp, sm] = launch.warps.slice(i, i + 4);
    warps.push({ cluster, cta, warp, sm, role: roleOf(launch, warp), label: "warp " + warp, spans: spans[i / 4], marks: marks[i / 4], lanes: 1 });
  }
  warps.sort((a, b) => a.sm - b.sm || a.cluster - b.cluster || a.cta - b.cta || a.warp - b.warp);
  const ctaRow = ([key, list]) => {
    const roles = group(list, each => each.role).map(([role, members]) => ({ label: `${role} (${members.length})`, isRole: true, children: members }));
    const first = list[0].cta === Math.min(...warps.filter(each => each.cluster === list[0].cluster).map(each => each.cta));
    return { label: key, children: [...roles, ...(first ? asyncRows(launch, list[0].cluster) : [])] };
  };
  const alone = warps.every(each => each.cta === 0);
  const ctas = list => group(list, each => alone ? `CTA ${each.cluster}` : `cluster ${each.cluster}, CTA ${each.cta}`).map(ctaRow);
  if (warps.every(each => each.sm < 0)) return ctas(warps);
  return group(warps, each => "SM " + each.sm).map(([label, list]) => ({ label, children: ctas(list) }));
}
