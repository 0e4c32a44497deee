"""The codes of files and data, as rows of the catalogue."""

from __future__ import annotations

from gradcli.codes.row import CodeDoc

FILES: dict[str, CodeDoc] = {
    "GC601": CodeDoc(
        "file cannot be read",
        "The file does not exist, is a folder, or may not be read.",
        "A script is read from one ordinary file.",
        "gradcli eval no-such-folder/missing.grad",
        "Check the path.",
    ),
    "GC611": CodeDoc(
        "data file cannot be read",
        "The file does not exist, may not be read, or is not an ordinary file but a folder, pipe or device.",
        "Only ordinary files have a size that can be checked before reading, and an end.",
        'X = load("missing.csv")\nsum(X)',
        "Check the path, which is relative to the script.",
    ),
    "GC612": CodeDoc(
        "path outside the script's folder",
        "load was given an absolute path, or one that leaves the script's folder, also through a link.",
        "A script from elsewhere must not read private files.",
        'X = load("../../etc/passwd.csv")\nsum(X)',
        "Move the data beside the script, or pass it from outside with --at X=@FILE.",
    ),
    "GC613": CodeDoc(
        "unknown data format",
        "The file's ending is none of .csv .tsv .npy .npz .json.",
        "The ending decides how the file is read; nothing is guessed from its content.",
        'X = load("data.xlsx")\nsum(X)',
        "Save the data as .csv or .npy.",
    ),
    "GC614": CodeDoc(
        "damaged data file",
        "The file is cut off, or is not of the format that its ending says.",
        "A wrong header must not decide how much memory is taken.",
        'X = load("cut-off.npy")\nsum(X)',
        "Write the file again.",
    ),
    "GC615": CodeDoc(
        "data is not numeric",
        "The array holds Python objects, text or dates; objects would be unpickled, which can run code.",
        "Only numbers and truth values are read; pickled data is never opened.",
        'X = load("objects.npy")\nsum(X)',
        "Save a numeric array: np.save(path, x.astype(float)).",
    ),
    "GC616": CodeDoc(
        "cell is not a number",
        "A cell of a table is empty or holds text.",
        "A gap silently read as 0 or NaN would change every result.",
        'X = load("text.csv")\nsum(X)',
        "Correct the cell, or choose other columns: load(path, columns=0:2).",
    ),
    "GC617": CodeDoc(
        "rows of different length",
        "The rows of a table, or the lists of a JSON array, are not equally long.",
        "An array is rectangular.",
        'X = load("ragged.csv")\nsum(X)',
        "Correct the line that the message names.",
    ),
    "GC618": CodeDoc(
        "no such column or array",
        "The file has no column of that number, or holds several arrays where one is wanted.",
        "Columns count from 0.",
        'X = load("points.csv", column=9)\nsum(X)',
        "Choose a column that exists; save one array per .npz file, or one named like the variable.",
    ),
    "GC619": CodeDoc(
        "missing values in the data",
        "A cell says nan or inf. This is a note with its line and column.",
        "Such entries are allowed, and make most results NaN.",
        'X = load("gaps.csv")\nx*sum(X)  # with --at x=2',
        "Fill or drop them before loading.",
    ),
    "GC640": CodeDoc(
        "baseline that does not fit",
        "The file is not a baseline of failing checks; or, as a note, entries of it no longer fail.",
        "A baseline lets exactly the failures pass that it names.",
        '{"checks": {}}  # as a baseline',
        "Write the baseline again.",
    ),
    "GC690": CodeDoc(
        "file cannot be written",
        "The file of --output, --json or --junit cannot be made, or another run is writing it.",
        "Results that belong in a file must not be lost.",
        "x  # with --at x=1 --output no-such-folder/result.json",
        "Check that the folder exists, may be written to and has room; give each run a file of its own.",
    ),
    "GC691": CodeDoc(
        "journal cannot be used",
        "Reports are not kept for the next run: the folder cannot be made or written to, others may write to it,"
        " another process holds the file for long, or the file system lacks what SQLite needs. This is a warning.",
        "Reports that others could have written would be worth nothing, and a check needs no journal: it goes on.",
        "gradcli check models/ --cache /proc/none",
        "Name a local folder that is yours alone to write to (chmod 700) with --cache or GRADCLI_CACHE.",
    ),
    "GC692": CodeDoc(
        "no room on the disk",
        "The disk with the journal of `check`, or with a file that is to be written, is full, or your share of it is.",
        "A long run would lose its reports silently. What was stored stays whole, and the next run goes on from there.",
        "gradcli check models/ --cache /full/disk",
        "Make room, or name a folder on another disk with --cache or GRADCLI_CACHE. The exit code is 4.",
    ),
    "GC693": CodeDoc(
        "journal was damaged",
        "The file of stored reports is not as gradcli wrote it. It is kept as journal.sqlite.bad. This is a note.",
        "A stored report is used only where its checksum fits; all others are checked anew.",
        "gradcli check models/  # after a part of journal.sqlite was overwritten",
        "Nothing needs to be done. Where it happens again, examine the disk.",
    ),
}
