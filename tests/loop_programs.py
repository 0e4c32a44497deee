"""A seed goes in, the text of a script whose loops read each other in odd ways comes out, and values for its leaves.

Loops are written out turn by turn, with a name for what each turn gives: so a turn may read any other one (some turns
before, the same place of another loop backwards, every second one, in no order), one turn may be another, and two loops
may take their turns alternately. Plans have to find the loops again in exactly such lists of steps.
"""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

import numpy as np

N = 3  # entries of a vector, rows and columns of a matrix
MOST = 24  # turns
VECTOR, NUMBER, MATRIX = "v", "s", "m"

FORMS: dict[str, tuple[str, ...]] = {
    VECTOR: (
        "tanh({v} + {v})", "{v}*{v}", "0.5*{v} + {s}*{v}", "where({v} > {v}, {v}, {v})", "maximum({v}, {v})",
        "minimum({v}, 0.3)", "abs({v})", "-abs({v})", "relu({v})", "W @ {v}", "{v} @ W", "{v} @ {m}", "{m} @ {v}",
        "{v}[::-1]", "concatenate(({v}[1:], {v}[:1]))", "softmax({v})", "{v} - mean({v})", "sin({v})*{v}",
        "exp(-{v}**2)", "sum({m}, axis=0)", "mean({m}*{m}, axis=1)", "cumsum({v})", "{v}/(1 + {v}**2)",
        "take({v}, [2, 0, 0])", "{s}*ones(3)", "sqrt(abs({v}) + 0.1)", "{m}[:, 1]", "{m}[2]", "where({v} > 0, {v}, 0)",
        "where({s} > 0, {v}, {v})", "{v} + {v} - 0.5*{v}", "{v}*{i}", "sigmoid({v})", "clamp({v}, -0.4, 0.6)", "{v}",
        "0.3*{v} + 0.3*{v}", "detach({v})*{v}", "sign({v})*{v}", "2*{v} - {v}", "sin({v}) + cos({v})",
        "log(1 + {v}**2)", "{v}*u + w", "tanh(W @ {v} + {v})", "cumprod(1 + 0.1*{v})", "norm({v} + 2)*{v}",
    ),
    NUMBER: (
        "sum({v}*{v})", "max({v})", "{v}[1]", "{s}*{s}", "tanh({s})", "{s} + {s}", "norm({v} + 2)", "mean({v})",
        "{m}[1, 2]", "where({s} > 0, {s}, 0.1)", "minimum({s}, {s})", "0.5*{s} + 0.2*{s}", "{i}*{s}", "sum({m})",
        "trace({m})", "logsumexp({v})", "{v} @ {v}", "abs({s})", "prod({v})", "sin({s})", "sum({v}[1:])", "{s}",
    ),
    MATRIX: (
        "0.5*{m}.T", "tanh({m})", "0.3*outer({v}, {v})", "{m} + 0.1*{m}", "0.3*({m} @ {m})", "{v}*{m}",
        "where({m} > 0, {m}, 0.2)", "{m} + 0.1*eye(3)", "W + {s}*{m}", "{m}*{v}[:, None]", "0.4*{m}[::-1]", "-{m}",
        "0.1*{m} + {s}", "maximum({m}, {m})", "cumsum({m}, axis=0)*0.3", "softmax({m})", "tril({m})", "stack(({v}, {v}, {v}))",
    ),
}  # fmt: skip
ENTRYWISE = (
    "{v}*{v}", "maximum({v}, {v})", "minimum({v}, 0.3)", "abs({v})", "-abs({v})", "where({v} > {v}, {v}, {v})", "{v}[::-1]",
    "{v}/(1 + {v}**2)", "sqrt(abs({v}) + 0.1)", "relu({v})", "{v} + {v} - 0.5*{v}", "{v}*{i}", "tanh({v} + {v})", "{v}",
    "0.3*{v} + 0.3*{v}", "where({v} > 0, {v}, 0)", "concatenate(({v}[1:], {v}[:1]))", "sign({v})*{v}", "{v}*u + w", "exp(-{v}**2)",
)  # fmt: skip
SMOOTH = (  # one function after the other, which recurrences may share rounds with
    "tanh({v} + {v})", "0.9*{v}*{v}", "0.5*{v} + 0.3*{v}", "{v}/(1 + {v}**2)", "sigmoid({v})*{v}", "{v}*u + 0.5*w",
    "sin({v})*{v}", "exp(-{v}**2)", "tanh({v}*w - {v})", "{v}*{i} - {v}*u", "-abs({v})*0.5", "sqrt({v}**2 + 0.1)",
)  # fmt: skip
OUTSIDE = {  # of loops; rows of leaves are read going up, down, by twos, or in no order
    VECTOR: ("u", "w", "x[{up}]", "x[{down}]", "x[{two}]", "x[{odd}]", "x[{up}:{up} + 2][1]", "X[:, {up}]", "0.3*w", "u", "x[{mod}]"),
    NUMBER: ("z[{up}]", "z[{down}]", "x[{up}, 1]", "u[0]", "0.7", "{i}", "z[{odd}]", "mean(x[{two}])"),
    MATRIX: ("W", "x[{up}:{up} + 3]", "W.T", "x[{two}:{two} + 3]", "X[:, {up}:{up} + 3]", "0.5*W"),
}  # fmt: skip
START = {VECTOR: ("u", "w", "0*u", "u*w", "x[0]", "tanh(w)"), NUMBER: ("z[0]", "u[1]", "sum(w)", "0.3"),
         MATRIX: ("W", "0.3*W", "x[1:4]", "outer(u, w)")}  # fmt: skip


EARLY = "c = (0.5*u + 0.3*w - 0.6*u + 0.9*w*x[0] + 0.2 + 0.1*W + 0.4*z[0] + 1*X[0, 0] + 2*u + 3*w)*0.7"


class Program(NamedTuple):
    """A script and the values of its leaves."""

    text: str
    values: dict[str, Any]


class Read(NamedTuple):
    """What a statement reads: another one's result by a rule of places, or text from outside."""

    rule: str
    family: int
    by: int
    text: str


class Statement(NamedTuple):
    """What a turn does: a form, and what stands in its holes."""

    family: int
    form: str
    reads: list[Read]


class Loop(NamedTuple):
    """Statements of a turn, and how many turns there are."""

    turns: int
    statements: list[Statement]
    odd: int  # a turn that is another one, or -1
    order: list[int]


class Writer:
    """Makes the loops of one script."""

    def __init__(self, seed: int, entrywise: bool = False) -> None:
        self.random = Random(seed)
        self.entrywise = entrywise
        self.kinds: list[str] = []  # of families: what all turns of one statement give
        self.turns: list[int] = []
        self.lines: list[str] = []
        self.known: set[str] = set()
        self.layered = False

    def script(self) -> str:
        random = self.random
        early = random.random() < 0.75  # numbers and leaves come before what turns read first: turns are more alike
        if early:
            self.lines.append(EARLY)
        pending: list[Loop] = []
        for _ in range(random.choice((1, 1, 2, 2, 3))):
            loop = self._loop()
            pending.append(loop)
            if random.random() < 0.75:
                self._emit(pending)
                pending = []
        self._emit(pending)
        terms = [self._term(len(self.kinds) - 1), *[self._term() for _ in range(random.randint(0, 3))]]
        tail = "0.01*(sum(x) + sum(z) + sum(W) + sum(X) + sum(u*w)" + (" + sum(c))" if early else ")")
        return "\n".join([*self.lines, " + ".join([*terms, tail])])

    # --- what loops are ---------------------------------------------------------------------------------

    def _loop(self) -> Loop:
        random = self.random
        turns = random.choice((8, 9, 9, 9, 10, 10, 11, 12, 12, 13, 16, 20, 24))
        entrywise = self.entrywise or random.random() < 0.25
        forms = (SMOOTH if random.random() < 0.5 else ENTRYWISE) if entrywise else ()
        first = len(self.kinds)
        before = list(range(first))
        count = random.choice((1, 2, 2, 3, 3, 4, 6))
        own = list(range(first, first + count))
        for _ in own:
            self.kinds.append(VECTOR if entrywise else random.choice((VECTOR, VECTOR, VECTOR, NUMBER, MATRIX)))
            self.turns.append(turns)
        statements = []
        self.layered = random.random() < 0.5  # nothing reads what stands behind it: recurrences may share rounds
        for family in own:
            form = random.choice(forms or FORMS[self.kinds[family]])
            layers = entrywise and self.layered and random.random() < 0.9
            reads = [
                self._layer(hole, at, family, own, before) if layers else self._read(hole, family, own, before)
                for at, hole in enumerate(_holes(form))
            ]
            form = random.choice(("{}", "{}", "0.6*({})", "tanh({})", "0.9*({})")).replace("{}", form)
            if random.random() < 0.2:  # what adds up
                form = f"{{{self.kinds[family]}}} + {form}"
                reads.insert(0, Read("back", family, 1, ""))
            statements.append(Statement(family, form, reads))
        order = list(range(turns))
        random.shuffle(order)
        return Loop(turns, statements, random.randrange(turns) if random.random() < 0.12 else -1, order)

    def _layer(self, kind: str, at: int, family: int, own: list[int], before: list[int]) -> Read:
        """What a layer of a network reads: itself a turn before, and then the layer in front of it."""
        dice = self.random.random()
        if kind == VECTOR and not at:
            return Read("back", family, 1 + (dice > 0.8), "")
        if kind == VECTOR and family > own[0] and dice < 0.7:
            return Read("same" if dice < 0.5 else "back", family - 1, 1, "")
        return self._read(kind, family, own, before)

    def _read(self, kind: str, family: int, own: list[int], before: list[int]) -> Read:
        random = self.random
        if kind == "i":
            return Read("number", -1, random.randint(0, 2), "")
        mine = [one for one in own if self.kinds[one] == kind and not (self.layered and one > family)]
        theirs = [one for one in before if self.kinds[one] == kind]
        dice = random.random()
        if mine and dice < 0.55:
            one = random.choice(mine)
            if one < family and random.random() < 0.6:
                return Read("same", one, 0, "")
            return Read("back", one, random.choice((1, 1, 1, 1, 2, 2, 3, 5, 7)), "")
        if theirs and dice < 0.85:
            rule = random.choice(("at", "at", "reversed", "reversed", "two", "half", "fixed", "odd", "shifted", "last"))
            return Read(rule, random.choice(theirs), random.randint(0, 4), "")
        return Read("outside", -1, 0, random.choice(OUTSIDE[kind]))

    # --- the text ---------------------------------------------------------------------------------------

    def _emit(self, loops: list[Loop]) -> None:
        """Loops one after the other, or, where there are several, turn about."""
        for loop in loops:
            for statement in loop.statements:
                for read in statement.reads:
                    if read.rule == "back":
                        for before in range(1, read.by + 1):
                            self._initial(read.family, before)
        if len(loops) == 1 and self.random.random() < 0.15:  # one statement for all turns, where that is possible
            (loop,) = loops
            own = {statement.family for statement in loop.statements}
            back = any(read.rule == "back" and read.family in own for one in loop.statements for read in one.reads)
            if not back:
                for statement in loop.statements:
                    for turn in range(loop.turns):
                        self._line(loop, statement, turn)
                return
        for turn in range(max([loop.turns for loop in loops], default=0)):
            for loop in loops:
                if turn < loop.turns:
                    for statement in loop.statements:
                        self._line(loop, statement, turn)

    def _initial(self, family: int, before: int) -> None:
        name = f"f{family}_m{before}"
        if name not in self.known:
            self.known.add(name)
            self.lines.append(f"{name} = {self.random.choice(START[self.kinds[family]])}")

    def _line(self, loop: Loop, statement: Statement, turn: int) -> None:
        form, family = statement.form, statement.family
        for read in statement.reads:
            kind = "i" if read.rule == "number" else self.kinds[read.family] if read.family >= 0 else _kind(form)
            form = form.replace(f"{{{kind}}}", self._word(loop, read, turn), 1)
        if turn == loop.odd:
            form = f"0.9*({form})"
        name = f"f{family}_{turn}"
        self.known.add(name)
        self.lines.append(f"{name} = {form}")

    def _word(self, loop: Loop, read: Read, turn: int) -> str:
        if read.rule == "number":
            return ("0.5", f"{(turn + 1) / 10}", f"{1 + turn % 3}")[read.by]
        if read.rule == "outside":
            last = loop.turns - 1
            places = {"up": turn, "down": last - turn, "two": 2*turn, "odd": loop.order[turn], "mod": turn % 3}  # fmt: skip
            word = read.text.format(i=f"{(turn + 1) / 10}", **places)
            return f"({word})" if "*" in word else word
        turns = self.turns[read.family]
        last = turns - 1
        if read.rule == "back":
            return f"f{read.family}_{turn - read.by}" if turn >= read.by else f"f{read.family}_m{read.by - turn}"
        place = {
            "same": turn, "at": turn % turns, "reversed": (last - turn) % turns, "two": 2*turn % turns, "half": turn//2 % turns,
            "fixed": read.by % turns, "odd": loop.order[turn] % turns, "shifted": (turn + read.by) % turns, "last": last,
        }[read.rule]  # fmt: skip
        name = f"f{read.family}_{place}"
        if name in self.known:
            return name
        self._late(read.family)  # its turn has not come yet: two loops take turns about
        return f"f{read.family}_m1"

    def _late(self, family: int) -> None:
        self._initial(family, 1)

    def _term(self, family: int = -1) -> str:
        random = self.random
        family = random.randrange(len(self.kinds)) if family < 0 else family
        turns = self.turns[family]
        kind = random.randint(0, 4)
        if kind == 0:
            return f"sum(f{family}_{turns - 1})"
        if kind == 1:
            return " + ".join([f"sum(f{family}_{turn})" for turn in range(turns)])
        if kind == 2:
            name = f"f{family}"
            return " + ".join([f"{at + 1}*sum({name}_{at}*{name}_{turns - 1 - at})" for at in range(turns)])
        if kind == 3:
            return f"sum(f{family}_{random.randrange(turns)}**2)"
        return f"sum(tanh(f{family}_{turns - 1}))*sum(f{family}_{turns // 2})"


def _holes(form: str) -> list[str]:
    return [form[at + 1] for at in range(len(form) - 2) if form[at] == "{" and form[at + 2] == "}"]


def _kind(form: str) -> str:
    """The kind of the first hole that is left, but for numbers of turns."""
    return next(one for one in _holes(form) if one != "i")


def values_of(seed: int) -> dict[str, Any]:
    random = np.random.default_rng([3, seed])
    return {
        "x": random.uniform(-1, 1, (2 * MOST + 4, N)), "X": random.uniform(-1, 1, (N, MOST + 4)),
        "z": random.uniform(-1, 1, MOST + 1), "u": random.uniform(-1, 1, N), "w": random.uniform(-1, 1, N),
        "W": random.uniform(-0.5, 0.5, (N, N)),
    }  # fmt: skip


def make(seed: int, entrywise: bool = False) -> Program:
    """The program of a seed; `entrywise` ones add up nothing within a turn."""
    return Program(Writer(seed, entrywise).script(), values_of(seed))


ODD = (np.nan, np.inf, -np.inf, -0.0, 0.0, 1e200, -1e-310)


def odd(seed: int, values: dict[str, Any]) -> dict[str, Any]:
    """The point with an odd number in some places."""
    random = np.random.default_rng([4, seed])
    found = {name: np.array(value) for name, value in values.items()}
    for name in random.choice(sorted(found), 2):
        found[name].flat[random.integers(found[name].size)] = random.choice(ODD)
    return found
