#!/usr/bin/env python3
"""Takes the pictures of the explorer that the documents show, with a headless Chromium.

  docgen/explorer_images.py --build build          writes docs/images/explorer-*.png
  docgen/explorer_images.py --build build --out X  writes them into another folder, as a test does

Two pages are made: of examples/nvfp4_linear.mlir with fp4-runner, and of a kernel with a race with
fp4-sim. An error on the console of a page is an error here. A picture has a palette of 255 colours, which
makes it a third as large. Needs chromium, chromium-headless-shell or google-chrome on PATH.
"""
import argparse
import base64
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
BROWSERS = ("chromium-headless-shell", "chromium", "google-chrome")
EXAMPLE, SHAPE, KERNEL = "examples/nvfp4_linear.mlir", "128,128,256", "nvfp4_linear_matmul_0/kernel"
RACE = ("integration_test/sim/bugs/run.py", "union.ptx", "unordered")
WIDTH = 1280

# Name, page, height, and the place in the page: the part of its address behind '#'.
PICTURES = [
    ("explorer-code", "program", 600, f"view=code&panes=source,scheduled,ptx&line=source:32&kernel={KERNEL}"),
    ("explorer-timeline", "program", 700, f"view=time&theme=dark&kernel={KERNEL}"),
    ("explorer-hazards", "race", 210, "view=hazards"),
]


def browser():
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if not found:
        sys.exit("error: there is no Chromium on PATH\nnote: install Debian's package chromium")
    return found


def run_browser(page, place, *options):
    """Opens `page` at a place. Returns what Chromium prints, and the errors of the page's console."""
    with tempfile.TemporaryDirectory() as profile:
        command = [browser(), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                   f"--user-data-dir={profile}", "--enable-logging=stderr", "--v=0", "--virtual-time-budget=5000",
                   *options, f"{pathlib.Path(page).resolve().as_uri()}#{place}"]
        shown = subprocess.run(command, capture_output=True, text=True, timeout=240)
    return shown.stdout, re.findall(r":CONSOLE[:(]\d+\)?\] (.*)", shown.stderr)


def picture_of(page, place, height, file):
    """Writes a PNG of the page; returns the errors of its console."""
    _, errors = run_browser(page, place, f"--window-size={WIDTH},{height}", f"--screenshot={file}")
    return errors


# Reads a picture and leaves its width and height, 255 colours and the number of each pixel's colour.
QUANTIZE = """<img id="picture" src="data:image/png;base64,PICTURE"><pre id="result"></pre><script>
document.getElementById("picture").onload = event => {
  const image = event.target, canvas = document.createElement("canvas");
  const [width, height] = [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  const words = new Uint32Array(context.getImageData(0, 0, width, height).data.buffer), counts = new Map();
  for (const word of words) counts.set(word, (counts.get(word) || 0) + 1);
  const kept = [...counts].sort((a, b) => b[1] - a[1] || a[0] - b[0]).slice(0, 255).map(each => each[0]);
  const parts = word => [word & 255, word >> 8 & 255, word >> 16 & 255];
  const distance = (a, b) => parts(a).reduce((sum, part, i) => sum + (part - parts(b)[i]) ** 2, 0);
  const nearest = new Map([...counts.keys()].map(word =>
    [word, kept.reduce((best, each, i) => distance(word, each) < distance(word, kept[best]) ? i : best, 0)]));
  let bytes = "";
  for (const word of words) bytes += String.fromCharCode(nearest.get(word));
  const palette = String.fromCharCode(...kept.flatMap(parts));
  document.getElementById("result").textContent = [width, height, btoa(palette), btoa(bytes)].join(" ");
};
</script>"""


def reduce_colours(file):
    """Gives a PNG a palette of its 255 most frequent colours; other pixels get the nearest of them."""
    content = base64.b64encode(file.read_bytes()).decode()
    with tempfile.NamedTemporaryFile("w", suffix=".html") as page:
        page.write(QUANTIZE.replace("PICTURE", content))
        page.flush()
        shown, _ = run_browser(page.name, "", "--dump-dom")
    result = re.search(r'<pre id="result">(\d+) (\d+) (\S+) (\S+)</pre>', shown)
    width, height = int(result[1]), int(result[2])
    palette, pixels = base64.b64decode(result[3]), base64.b64decode(result[4])
    body = b"".join(b"\0" + pixels[at:at + width] for at in range(0, width * height, width))

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    file.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"PLTE", palette) +
                     chunk(b"IDAT", zlib.compress(body, 9)) + chunk(b"IEND", b""))


def make_pages(build, folder):
    """The two pages, by name."""
    pages = {name: folder / f"{name}.html" for name in ("program", "race")}
    runner = [build / "bin" / "fp4-runner", EXAMPLE, "--shape", SHAPE, "--explore", pages["program"]]
    script, *arguments = RACE
    race = [build / "bin" / "fp4-sim", "run", "--device", "h200", "--explore", pages["race"], "--", sys.executable,
            ROOT / script, *arguments]
    environment = {**os.environ, "PATH": f"{build / 'toolchain'}:{os.environ['PATH']}"}
    for command in (runner, race):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment)
        if not pages["race" if command is race else "program"].exists():
            sys.exit(f"error: no page was written: {done.stderr.strip()}")
    return pages


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="tree with fp4-runner and fp4-sim")
    parser.add_argument("--raw", action="store_true", help="leave the colours as they are")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "docs" / "images", help="folder of the pictures")
    options = parser.parse_args()
    browser()
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        pages = make_pages(options.build.resolve(), pathlib.Path(folder))
        for name, page, height, place in PICTURES:
            file = options.out / f"{name}.png"
            if errors := picture_of(pages[page], place, height, file):
                sys.exit(f"error: {name}: the page has errors: {'; '.join(errors)}")
            if not options.raw:
                reduce_colours(file)
            print(f"{file.name}: {file.stat().st_size} bytes")


if __name__ == "__main__":
    main()
