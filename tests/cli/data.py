"""Small data files of every format."""

import gzip
import json

HIERARCHY = "animal\tdog\nanimal\tcat\nplant\toak\nplant\telm\n"
DOCS = [
    ("barks at the cat", "dog"),
    ("a loyal friend that barks", "dog"),
    ("barks and fetches sticks", "dog"),
    ("purrs and sleeps all day", "cat"),
    ("chases mice and purrs", "cat"),
    ("purrs on a warm lap", "cat"),
    ("acorns and lobed leaves", "oak"),
    ("a tree with acorns", "oak"),
    ("acorns feed the squirrels", "oak"),
    ("winged seeds and toothed leaves", "elm"),
    ("a tree with winged seeds", "elm"),
    ("winged seeds fly far", "elm"),
]
ABOVE = {"dog": "animal", "cat": "animal", "oak": "plant", "elm": "plant"}
NUMBER = {"animal": 1, "plant": 2, "dog": 3, "cat": 4, "oak": 5, "elm": 6}
NUMBERS = "1\t3\n1\t4\n2\t5\n2\t6\n"
TERMS = sorted({word for text, _ in DOCS for word in text.split()})


def write_all(folder):
    """Files of the same samples in every format but Parquet; paths by name."""
    (folder / "tree.tsv").write_text(HIERARCHY)
    (folder / "numbers.tsv").write_text(NUMBERS)
    rows = [f"{k},{text},{label},{ABOVE[label]} > {label},{ABOVE[label]}\n" for k, (text, label) in enumerate(DOCS)]
    (folder / "docs.csv").write_text("id,text,label,path,top\n" + "".join(rows))
    lines = [
        json.dumps({"id": k, "text": text, "labels": label, "split": "train" if k % 3 else "test"}) + "\n"
        for k, (text, label) in enumerate(DOCS)
    ]
    (folder / "docs.jsonl").write_text("".join(lines))
    with gzip.open(folder / "docs.jsonl.gz", "wt") as stream:
        stream.writelines(lines)
    (folder / "sets.jsonl").write_text(
        "".join(
            json.dumps({"text": f"{a} {b}", "labels": sorted({x, y})}) + "\n"
            for (a, x), (b, y) in zip(DOCS, DOCS[3:] + DOCS[:3], strict=True)
        )
    )
    sparse = [f"{NUMBER[label]} {features(text)}\n" for text, label in DOCS]
    (folder / "docs.svm").write_text("".join(sparse))
    (folder / "docs.txt").write_text("".join(sparse))
    header = "".join(f"@ATTRIBUTE w{k} numeric\n" for k in range(len(TERMS)))
    header += "@ATTRIBUTE class hierarchical animal,animal/dog,animal/cat,plant,plant/oak,plant/elm\n@DATA\n"
    cells = [
        ",".join([*(str(text.split().count(term)) for term in TERMS), f"{ABOVE[label]}/{label}"]) + "\n"
        for text, label in DOCS
    ]
    (folder / "docs.arff").write_text("@RELATION x\n" + header + "".join(cells))


def features(text):
    words = text.split()
    return " ".join(f"{k + 1}:{words.count(term)}" for k, term in enumerate(TERMS) if term in words)
