"""Opens a page of --explore in a headless Chromium and clicks it: explore_click.py PAGE

Needs Chromium (chromium-headless-shell, chromium or google-chrome on PATH). A script is put behind that
of the page, clicks, and writes what it sees into the document, which Chromium prints (--dump-dom)."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

CLICKS = """<script>
const report = [], see = (name, value) => report.push(name + ": " + value);
window.onerror = message => report.push("error: " + message);
const rowsOf = column => [...document.querySelectorAll(".column")[column].querySelectorAll(".code div")];
const marked = column => rowsOf(column).filter(row => row.classList.contains("near") || row.classList.contains("mark"));
see("columns", [...document.querySelectorAll(".column select")].map(select => select.value).join(", "));
rowsOf(0).find(row => row.textContent.includes("fp4.matmul")).click();
see("source marks pipe.mma", marked(1).some(row => row.textContent.includes("pipe.mma")));
see("source marks tcgen05.mma", marked(2).some(row => row.textContent.includes("tcgen05.mma")));
rowsOf(1).find(row => row.textContent.includes("pipe.mma")).click();
see("pipe.mma marks tcgen05.mma", marked(2).some(row => row.textContent.includes("tcgen05.mma")));
see("pipe.mma marks TMA", marked(2).some(row => row.textContent.includes("cp.async.bulk.tensor")));
document.getElementById("tab-time").click();
see("time is open", document.getElementById("time").classList.contains("on") && !document.getElementById("program").classList.contains("on"));
see("roles", [...document.querySelectorAll("#timeline text")].filter(text => / (load|mma|epilogue)$/.test(text.textContent)).length);
document.querySelector("#timeline line").dispatchEvent(new MouseEvent("click"));
document.querySelector("#event button").click();
see("event leads to the program", document.getElementById("program").classList.contains("on") && document.querySelectorAll(".code .mark").length);
see("maps", document.querySelectorAll("#memory svg").length);
document.getElementById("tab-layout").click();
const cells = () => [...document.querySelectorAll("#answer td")].map(cell => cell.textContent);
see("scale", cells()[4]);
document.getElementById("row").value = 38;
document.getElementById("row").oninput();
see("other scale", cells()[4]);
document.querySelector("#maps canvas").dispatchEvent(new MouseEvent("click", { clientX: 0, clientY: 0 }));
see("verdict", document.getElementById("outcome").textContent);
document.body.insertAdjacentHTML("beforeend", "<pre id='report'></pre>");
document.getElementById("report").textContent = report.join("\\n");
</script></body>"""


def main():
    browser = next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "google-chrome"))), None)
    if not browser:
        sys.exit("error: there is no Chromium on PATH")
    with open(sys.argv[1], encoding="utf-8") as file:
        page = file.read()
    with tempfile.TemporaryDirectory() as folder:
        clicked = os.path.join(folder, "page.html")
        with open(clicked, "w", encoding="utf-8") as file:
            file.write(page.replace("</body>", CLICKS))
        command = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile",
                   "--dump-dom", "file://" + clicked]
        shown = subprocess.run(command, capture_output=True, text=True, timeout=120)
    report = re.search(r'<pre id="report">(.*?)</pre>', shown.stdout, re.S)
    print(report.group(1) if report else "error: the script did not end\n" + shown.stderr[-2000:])


main()
