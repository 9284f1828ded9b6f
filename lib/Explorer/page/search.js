// Search in all panes at once.
let query = null;

function pattern(text) {
  if (!text) return null;
  const slashes = text.match(/^\/(.+)\/$/);
  try {
    return new RegExp(slashes ? slashes[1] : text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "i");
  } catch { return null; }
}

/** Paints the matches of a line. */
function overlayOf(regex) {
  const global = new RegExp(regex.source, "gi");
  return {
    token(stream) {
      global.lastIndex = stream.pos;
      const match = global.exec(stream.string);
      if (match && match.index === stream.pos) {
        stream.pos += match[0].length || 1;
        return "found";
      }
      if (match) stream.pos = match.index;
      else stream.skipToEnd();
      return null;
    },
  };
}

function markFound(pane) {
  if (pane.overlay) pane.cm.removeOverlay(pane.overlay);
  if (pane.matches) pane.matches.clear();
  pane.overlay = pane.matches = null;
  pane.hits = [];
  if (!query || !pane.text) return;
  pane.overlay = overlayOf(query);
  pane.cm.addOverlay(pane.overlay);
  pane.matches = pane.cm.showMatchesOnScrollbar(query, true);
  pane.text.lines.forEach((line, i) => { if (query.test(line)) pane.hits.push(i + 1); });
}

function search() {
  query = pattern(byId("find").value);
  for (const pane of panes) markFound(pane);
  const count = panes.reduce((sum, pane) => sum + pane.hits.length, 0);
  byId("found").textContent = query ? `${count} line${count === 1 ? "" : "s"}` : "";
  remember("find", byId("find").value);
}

/** Shows the next match of the active pane, or of the first one that has any. */
function nextFound(direction) {
  const pane = activePane && activePane.hits && activePane.hits.length ? activePane : panes.find(each => each.hits && each.hits.length);
  if (!pane) return;
  activate(pane);
  const last = pane.lastHit || 0, hits = pane.hits;
  const next = direction > 0 ? hits.find(line => line > last) || hits[0] : [...hits].reverse().find(line => line < last) || hits[hits.length - 1];
  pane.lastHit = next;
  pane.cm.getDoc().setCursor({ line: next - 1, ch: 0 });
  choose(pane.text, next, pane);
  scrollTo(pane, next, "center");
}

function startSearch() {
  byId("find").oninput = search;
  byId("find").onkeydown = event => {
    if (event.key === "Enter") nextFound(event.shiftKey ? -1 : 1);
    if (event.key === "Escape") {
      byId("find").value = "";
      search();
      byId("find").blur();
    }
  };
  if (place.find) {
    byId("find").value = place.find;
    search();
  }
}
