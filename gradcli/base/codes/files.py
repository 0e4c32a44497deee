"""The codes of files and data, as rows of the catalogue."""

from __future__ import annotations

from gradcli.base.codes.row import CodeDoc

FILES: dict[str, CodeDoc] = {
    "GC601": CodeDoc(
        "file cannot be read",
        "The file does not exist, is a folder, or may not be read.",
        "gradcli reads a script from one ordinary file, or from standard input for the name -.",
        "gradcli eval no-such-folder/missing.grad",
        "Check the path, and that you may read the file.",
    ),
    "GC611": CodeDoc(
        "data file cannot be read",
        "The file does not exist, may not be read, or is a folder, a pipe or a device.",
        "Only an ordinary file has an end, and a size that can be checked before reading.",
        'X = load("missing.csv")\nsum(X)',
        "Check the path, which is relative to the folder of the script.",
    ),
    "GC612": CodeDoc(
        "path outside the script's folder",
        "The path of load is absolute, or leads out of the script's folder, perhaps through a link.",
        "A script that you got from somebody else must not read your private files.",
        'X = load("../../etc/passwd.csv")\nsum(X)',
        "Move the data into the folder of the script, or pass it on the command line with --at X=@FILE.",
    ),
    "GC613": CodeDoc(
        "unknown data format",
        "The name of the file ends in none of .csv .tsv .npy .npz .json.",
        "The ending decides how gradcli reads the file; the content is never used to guess.",
        'X = load("data.xlsx")\nsum(X)',
        "Save the data as .csv or .npy.",
    ),
    "GC614": CodeDoc(
        "damaged data file",
        "The file is cut off, or does not have the format that its ending says.",
        "A part of the data would give wrong results.",
        'X = load("cut-off.npy")\nsum(X)',
        "Write the file again, or copy it again from its source.",
    ),
    "GC615": CodeDoc(
        "data is not numeric",
        "The array contains Python objects, text or dates.",
        "Only numbers and truth values are read. Objects would have to be unpickled, which can run code.",
        'X = load("objects.npy")\nsum(X)',
        "Save a numeric array: np.save(path, x.astype(float)).",
    ),
    "GC616": CodeDoc(
        "cell is not a number",
        "A cell of a table is empty or contains text.",
        "An empty cell that silently counted as 0 or NaN would change every result.",
        'X = load("text.csv")\nsum(X)',
        "Correct the cell, or choose other columns: load(path, columns=0:2).",
    ),
    "GC617": CodeDoc(
        "rows of different length",
        "The rows of a table, or the lists of a JSON array, differ in length.",
        "They become one array, and an array is rectangular.",
        'X = load("ragged.csv")\nsum(X)',
        "Correct the line that the message names.",
    ),
    "GC618": CodeDoc(
        "no such column or array",
        "The file has no column of that number, or contains several arrays where one is needed.",
        "Columns are numbered from 0. Of several arrays in a .npz file, load takes the one named like the variable.",
        'X = load("points.csv", column=9)\nsum(X)',
        "Choose a column that exists; save one array in each .npz file, or give it the name of the variable.",
    ),
    "GC619": CodeDoc(
        "missing values in the data",
        "A cell of the data is nan or inf. The note names its line and column.",
        "Such entries are allowed, but they make most results NaN.",
        'X = load("gaps.csv")\nx*sum(X)  # with --at x=2',
        "Replace or remove such entries before loading.",
    ),
    "GC640": CodeDoc(
        "outdated or invalid baseline",
        "The file of --baseline is not a baseline of failing checks; or, as a note, some of its checks no longer fail.",
        "A baseline permits exactly the failures that it lists.",
        '{"checks": {}}  # as a baseline',
        "Write the baseline anew with --write-baseline FILE.",
    ),
    "GC690": CodeDoc(
        "file cannot be written",
        "The file of --output, --json, --junit or another report cannot be created, or another run is writing to it.",
        "Results that you want in a file must not be lost.",
        "x  # with --at x=1 --output no-such-folder/result.json",
        "Check that the folder exists, is writable and has room; give each run its own file.",
    ),
    "GC691": CodeDoc(
        "journal cannot be used",
        "check cannot store its reports for the next run: its folder cannot be created or written to, others may write"
        " to it, another process has locked the file, or the file system lacks what SQLite needs. This is a warning.",
        "Stored reports that others could have written would prove nothing. The checks run all the same.",
        "gradcli check models/ --cache /proc/none",
        "Name a local folder that only you may write to (chmod 700) with --cache or GRADCLI_CACHE.",
    ),
    "GC692": CodeDoc(
        "no room on the disk",
        "The disk with the journal of `check` or with an output file is full, or your quota on it is used up.",
        "A run that went on would lose its reports. Stored reports are kept, and the next run continues from them.",
        "gradcli check models/ --cache /full/disk",
        "Free some space, or name a folder on another disk with --cache or GRADCLI_CACHE. The exit code is 4.",
    ),
    "GC693": CodeDoc(
        "journal was damaged",
        "The file of stored reports is damaged. gradcli renames it to journal.sqlite.bad. This is a note.",
        "A stored report counts only if its checksum is right; the other scripts are checked again.",
        "gradcli check models/  # after a part of journal.sqlite was overwritten",
        "You need not do anything. If it happens again, examine the disk.",
    ),
}
