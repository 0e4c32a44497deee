"""The codes of options: data that `gradcli explain` prints; see the package for what a row says."""

from __future__ import annotations

from gradcli.codes.row import CodeDoc

OPTIONS: dict[str, CodeDoc] = {
    "GC701": CodeDoc(
        "malformed --at",
        "The text is not a list of NAME=VALUE, or a name is given twice.",
        "A point gives each leaf one value.",
        "x + y  # with --at x:1,y=2",
        "Write --at x=2,y=[1,2,3] or --at X=@data.npy.",
    ),
    "GC702": CodeDoc(
        "malformed --limit",
        "The text is not a list of NAME=NUMBER, or names a limit that does not exist.",
        "The limits are text, nodes, nesting, digits and elements.",
        "x  # with --limit nesting=deep",
        "Write --limit text=1MiB,nesting=1000.",
    ),
    "GC711": CodeDoc(
        "unknown backend",
        "The name after --backend is none that exists.",
        "Programs run on numpy, cupy or jax; auto chooses.",
        "x  # in Python: gradcli.evaluate(script, at={'x': 1}, backend='torch')",
        "Write auto, numpy, cupy or jax.",
    ),
    "GC712": CodeDoc(
        "unknown dtype",
        "The name after --dtype is none that exists.",
        "Floats are float64, float32 or complex128.",
        "x  # in Python: gradcli.evaluate(script, at={'x': 1}, dtype='float16')",
        "Write float64, float32 or complex128.",
    ),
    "GC713": CodeDoc(
        "backend is not installed",
        "The library of the backend cannot be imported here.",
        "cupy and jax are extras: most machines have no use for them.",
        "x  # with --backend cupy",
        "Install the extra that the help line names.",
    ),
    "GC714": CodeDoc(
        "operation missing on the backend",
        "The backend's library lacks an operation of this script.",
        "CuPy and JAX implement most of NumPy and SciPy, not all.",
        "x  # with --backend jax",
        "Use --backend numpy.",
    ),
    "GC721": CodeDoc(
        "command line cannot be read",
        "A command, an option or an operand is not what the command line knows.",
        "A slip in an option must not change what is computed.",
        "x**2  # with --fromat json",
        "gradcli --help lists the commands, gradcli COMMAND --help its options with examples.",
    ),
    "GC722": CodeDoc(
        "unknown setting",
        "A key of gradcli.toml or of [tool.gradcli] in pyproject.toml is none that exists.",
        "A misspelled setting that is ignored would look as if it held.",
        "digit = 3  # in gradcli.toml",
        "gradcli --show-settings lists all keys with their values.",
    ),
    "GC723": CodeDoc(
        "setting with a wrong value",
        "The value of a setting has the wrong kind, or is out of range.",
        "Settings take the values that the options of the same name take.",
        'digits = "many"  # in gradcli.toml',
        "The message says what is expected.",
    ),
    "GC724": CodeDoc(
        "configuration cannot be read",
        "A gradcli.toml or pyproject.toml is not TOML, or may not be read.",
        "Going on without it would silently use other settings.",
        "[tool.gradcli  # in gradcli.toml",
        "Mend the file at the place named.",
    ),
    "GC725": CodeDoc(
        "malformed --claim",
        "The text is not LEAF = SCRIPT, a leaf has two claims, or there is more than one script to claim for.",
        "A claim belongs to one leaf of one script.",
        "x**2  # with --claim 2*x",
        'Write --claim "x = 2*x", or an assert in each script.',
    ),
    "GC726": CodeDoc(
        "unknown code",
        "There is no diagnostic with this code.",
        "Codes are GC and three digits.",
        "gradcli explain GC000",
        "gradcli explain lists all codes.",
    ),
    "GC727": CodeDoc(
        "settings that one should know of",
        "A setting of the project permits `check` more than the defaults do, or a directive of a script more than "
        "--require alone; or a file of settings is not used.",
        "A verdict may rest on a setting; a file of another user must not choose it.",
        "check.lenient = true  # in gradcli.toml",
        "Nothing has to be done where it is meant. gradcli --show-settings lists what counts.",
    ),
    "GC731": CodeDoc(
        "Python target is not there",
        "The text is not TARGET:NAME, the file does not exist, or the module has no such name.",
        "TARGET is a path that ends in .py, or a dotted module; NAME is what it calls the function.",
        "x  # with --python losses.py:lost --at x=1",
        "Write --python losses.py:f, or --python package.module:f.",
    ),
    "GC732": CodeDoc(
        "function and point do not fit",
        "An argument has no value or does not exist, nothing can move, or there is no derivative to judge.",
        "A function is called with what the point holds, and floats are what moves.",
        "x  # in Python: gradcli.check_callable(script, at={'x': 2.0})",
        "Give every argument a value, floats for what moves, and one derivative.",
    ),
    "GC733": CodeDoc(
        "function could not be checked",
        "The function or its derivative raised, ended the process, or returned no numbers of the right shape.",
        "There is nothing to compare; the check is an ERROR, not a failure of the gradient.",
        "x  # with --python losses.py:broken --grad losses.py:slope --at x=1",
        "The message names the exception and the line in the file.",
    ),
    "GC734": CodeDoc(
        "what a function does besides",
        "The function prints, warns, changes its arguments, is random, or works in float32.",
        "It is no error, but a gradient check is the place where one may learn of it.",
        "x  # with --python losses.py:chatty --grad losses.py:slope --at x=1",
        "Nothing has to be done where it is meant.",
    ),
    "GC735": CodeDoc(
        "box that cannot be read",
        "--box is not LEAF=LO:HI with two numbers, the first one smaller, or a leaf comes twice or lies outside.",
        "A box is an interval of every entry of a leaf; the point of the check lies inside it.",
        "x**2 + 0*x  # with --box x=2:1",
        "Write --box x=0.5:2.",
    ),
    "GC738": CodeDoc(
        "script is not frozen",
        "`gradcli freeze` was given a script that does not pass its check.",
        "Recorded results are there to be relied on.",
        "gradcli freeze wrong.grad",
        "Correct what gradcli check reports, or add --force.",
    ),
}
