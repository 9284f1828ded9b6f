"""Opens a page of --explore in a headless Chromium and clicks it: explore_click.py PAGE PLACE SCRIPT

PLACE is the part of the address behind '#'. SCRIPT is a file of JavaScript, which runs behind that of
the page, and calls see(name, value). The program prints these, and every error of the page's console."""
import html
import pathlib
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "docgen"))
import explorer_images  # noqa: E402

CLICKS = """<script>
const report = [], see = (name, value) => report.push(name + ": " + value);
const pane = name => panes.find(each => each.select.value === name);
const lineOf = (name, word) => pane(name).text.lines.findIndex(line => line.includes(word)) + 1;
const marked = (name, word) => pane(name).lines.some(line => pane(name).text.lines[line - 1].includes(word));
const press = key => document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
const click = id => document.getElementById(id).click();
try {
SCRIPT
} catch (error) { report.push("error: " + error.stack); }
const shown = document.createElement("pre");
shown.id = "report";
shown.textContent = report.join("\\n");
document.body.append(shown);
</script></body>"""


def main():
    page, place, script = sys.argv[1:]
    text = pathlib.Path(page).read_text(encoding="utf-8")
    clicks = CLICKS.replace("SCRIPT", pathlib.Path(script).read_text(encoding="utf-8"))
    head, end = text.rsplit("</body>", 1)
    with tempfile.TemporaryDirectory() as folder:
        clicked = pathlib.Path(folder) / "page.html"
        clicked.write_text(head + clicks + end, encoding="utf-8")
        shown, errors = explorer_images.run_browser(clicked, place, "--dump-dom")
    report = re.search(r'<pre id="report">(.*?)</pre>', shown, re.S)
    print(html.unescape(report.group(1)) if report else "error: the script did not end")
    for error in errors:
        print("error:", error)


main()
