"""The page in headless Chromium: it draws, keys and buttons work, and nothing complains."""

import json
import re
import shutil
import subprocess

import numpy as np
import pytest

from nhsvm import Hierarchy
from nhsvm.report import evaluate, page
from report.saying import Says
from strategies import SPECIAL, random_hierarchy

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: apt-get install chromium")
QUIET = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
    "--disable-extensions",
    "--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr", "--virtual-time-budget=4000",
]  # fmt: skip

HELPERS = """
const log = [], tree = document.getElementById("tree");
const here = () => tree.querySelector('[aria-selected="true"]').getAttribute("aria-label").split(":")[0];
const focus = () => [...document.querySelectorAll("#crumbs button")].map((b) => b.textContent).join("/");
const active = () => document.activeElement;
const press = (key, on = active()) => on.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
const fills = () => new Set([...tree.querySelectorAll("g[role] rect")].map((r) => r.getAttribute("fill"))).size;
const choose = (id, value) => document.querySelector(`#${id} input[value="${value}"]`).click();
"""


def open_page(text, folder, *options, script=""):
    """The document after its scripts have run, and lines that the console got."""
    if script:  # the page's policy lets no other script run, which is its point
        text = re.sub(r'<meta http-equiv="Content-Security-Policy".*?>', "", text)
        steps = f"{HELPERS}\n{script}\ndocument.body.dataset.log = JSON.stringify(log);"
        text = text.replace("</body>", f"<script>{steps}</script></body>")
    file = folder / "page.html"
    file.write_text(text, encoding="utf-8")
    command = [CHROMIUM, *QUIET, f"--user-data-dir={folder / 'profile'}", *options, "--dump-dom", file.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=120, check=True)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def logged(dom):
    found = re.search(r'data-log="(.*?)"', dom)
    return json.loads(found[1].replace("&quot;", '"').replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))


def test_search_knows_whole_names(tmp_path):
    h = Hierarchy.from_edges([("1", "1/1"), ("1", "1/2"), ("2", "2/1")])
    text = page.render(evaluate(Says(list(h.leaves)), list(h.leaves), list(h.leaves), hierarchy=h))
    script = """
    const find = document.getElementById("find");
    find.value = "2/1"; press("Enter", find);
    log.push(document.getElementById("found").textContent, focus(), here());
    """
    dom, console = open_page(text, tmp_path, script=script)
    assert console == []
    assert logged(dom) == ["found: 2 › 1", "all/2", "1"]


@pytest.mark.parametrize("name", ["single", "sets", "nasty"])
def test_it_draws(name, request, tmp_path):
    found = request.getfixturevalue(name)
    dom, console = open_page(page.render(found), tmp_path)
    assert console == []
    cells = re.findall(r'<g role="treeitem"[^>]*data-node="(\d+)"', dom)
    drawn = {int(cell) for cell in cells}
    top = found.nodes.labels > 0
    assert {int(i) for i in np.flatnonzero(top & (found.nodes.depth <= 1))} <= drawn
    assert len(cells) == len(drawn)
    assert re.search(r'<rect x="[^"]*" y="[^"]*" width="[^"]*" height="[^"]*" fill="rgb\(', dom)
    assert "linear-gradient" in dom  # the legend
    assert dom.count('<circle class="solid"') + dom.count("<circle cx") >= len(found.history)
    assert 'type="radio"' in dom


def test_keys_move_and_zoom(single, tmp_path):
    script = """
    tree.querySelector('[tabindex="0"]').focus();
    const keys = ["ArrowRight", "ArrowDown", "ArrowDown", "ArrowUp", "Enter", "ArrowRight", "Enter"];
    for (const key of [...keys, "Escape", "ArrowLeft", "Home"]) {
      press(key);
      log.push([key, here(), focus(), active().getAttribute("role")]);
    }
    """
    dom, console = open_page(page.render(single), tmp_path, script=script)
    assert console == []
    names = single.nodes
    first, second = sorted((i for i in range(len(names)) if names.depth[i] == 1), key=lambda i: -names.labels[i])
    leaf = max((i for i in range(len(names)) if names.parent[i] == first), key=lambda i: names.labels[i])
    first, second, leaf = names.name[first], names.name[second], names.name[leaf]
    assert [step[1:3] for step in logged(dom)] == [
        [first, "life"],
        [second, "life"],
        [second, "life"],  # there is no third
        [first, "life"],
        [first, f"life/{first}"],
        [leaf, f"life/{first}"],
        [leaf, f"life/{first}"],  # a leaf has nothing to zoom into
        [first, "life"],
        ["life", "life"],
        ["life", "life"],
    ]
    assert {step[3] for step in logged(dom)} == {"treeitem"}


def test_switches_tables_and_search(single, tmp_path):
    script = """
    log.push(fills());
    choose("colour-by", "weight");
    log.push(document.getElementById("legend-low").textContent);
    choose("size-by", "classes");
    log.push([...tree.querySelectorAll("g[role] > rect")].map((r) => Number(r.getAttribute("height"))));
    const find = document.getElementById("find");
    find.value = "ROSE"; press("Enter", find);
    log.push(here(), document.getElementById("found").textContent, document.querySelector("#panel h3").textContent);
    find.value = "nowhere"; press("Enter", find);
    log.push(document.getElementById("found").textContent);
    const table = document.querySelector("table.sortable"), head = table.tHead.rows[0].cells[4];
    const column = () => [...table.tBodies[0].rows].map((row) => Number(row.cells[4].dataset.v));
    head.querySelector("button").click(); log.push(head.getAttribute("aria-sort"), column());
    head.querySelector("button").click(); log.push(head.getAttribute("aria-sort"), column());
    """
    dom, console = open_page(page.render(single), tmp_path, script=script)
    assert console == []
    fills, legend, heights, *search, missing, down, falling, up, rising = logged(dom)
    assert fills > 2
    assert legend == "weight α 0"
    assert max(heights) == pytest.approx(559)
    assert search == ["rose", "found: life › plant › rose", "life › plant › rose"]
    assert missing == "no node has this in its name"
    assert (down, up) == ("descending", "ascending")
    assert falling == sorted(falling, reverse=True)
    assert rising == sorted(rising)
    assert sorted(falling) == rising


def test_a_large_hierarchy_is_drawn_as_far_as_it_can_be_seen(tmp_path):
    h = random_hierarchy(6000, 0, roots=3)
    labels = np.array(h.leaves)
    rng = np.random.default_rng(0)
    y = labels[rng.integers(0, len(labels), 8000)]
    pred = np.where(rng.random(8000) < 0.7, y, labels[rng.integers(0, len(labels), 8000)])
    text = page.render(evaluate(Says(labels), pred, y, hierarchy=h))
    script = """
    log.push(tree.querySelectorAll("g").length, tree.querySelectorAll("g[data-thin]").length);
    tree.querySelector("g[data-thin]").dispatchEvent(new MouseEvent("click", { bubbles: true }));
    log.push(document.querySelectorAll("#crumbs button").length, here());
    """
    dom, console = open_page(text, tmp_path, script=script)
    assert console == []
    drawn, thin, depth, here = logged(dom)
    assert 50 < drawn < 3000
    assert thin > 0
    assert depth > 1
    assert here
    assert "nodes are too thin to draw at this zoom" in dom


def test_every_one_of_many_children_can_be_reached(tmp_path):
    h = SPECIAL["star"]
    leaves = np.array(h.leaves)
    text = page.render(evaluate(Says(leaves), leaves, leaves, hierarchy=h))
    script = """
    const crumbs = () => document.getElementById("crumbs").textContent;
    const number = (e) => Number(e.getAttribute("aria-label").split(":")[0]);
    const last = () => Math.max(...[...tree.querySelectorAll("g[role]")].map(number).filter((k) => k >= 0));
    log.push(tree.querySelectorAll("g[role]").length, last());
    tree.querySelector("g[data-thin]").dispatchEvent(new MouseEvent("click", { bubbles: true }));
    log.push(here(), crumbs());
    const find = document.getElementById("find");
    find.value = "9999"; press("Enter", find);
    log.push(here(), crumbs());
    tree.querySelector('[tabindex="0"]').focus();
    press("ArrowUp"); log.push(here());
    press("Escape"); log.push(here(), crumbs());
    """
    dom, console = open_page(text, tmp_path, script=script)
    assert console == []
    drawn, last, *rest = logged(dom)
    assert drawn == last + 2  # the hub, and leaves from 0
    assert 80 < drawn < 120
    following = last + 1
    assert rest == [
        str(following), f"hub from child {following + 1} of 10,000",
        "9999", "hub from child 10,000 of 10,000",
        "9998",
        "hub", "hub",
    ]  # fmt: skip


def test_it_prints(sets, tmp_path):
    file = tmp_path / "report.html"
    file.write_text(page.render(sets), encoding="utf-8")
    target = tmp_path / "report.pdf"
    command = [CHROMIUM, *QUIET, f"--user-data-dir={tmp_path / 'profile'}", f"--print-to-pdf={target}", file.as_uri()]
    subprocess.run(command, capture_output=True, timeout=120, check=True)
    assert target.read_bytes().startswith(b"%PDF")
