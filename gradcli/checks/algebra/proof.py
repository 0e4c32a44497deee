"""Proves that a claim about nodes at a point is an identity, or says why it could not.

The program is evaluated in forms, with symbols for entries that move; branches are decided at the point, by balls, and
the signs that decided them are the region of a proof. A claimed derivative is compared with the derivation of the
value's form, an equality with the other side's form. A difference that is not zero refutes nothing. A proof names the
signs on which it rests, and the leaves that it took as constants at their values.
"""

from __future__ import annotations

from fractions import Fraction
from functools import reduce
from itertools import zip_longest
from operator import add, mul
from typing import TYPE_CHECKING, Any, NamedTuple

from flint import fmpq

from gradcli.checks.algebra.differential_field import (
    MOST_APART,
    MOST_BITS,
    MOST_WORK,
    SIZES,
    FieldGenerator,
    Form,
    Full,
    Spent,
    Tower,
    as_number,
)
from gradcli.checks.algebra.elementary_functions import (
    WRITTEN_OUT,
    TowerDerivation,
    equal_angles,
    function,
    general_power,
    power,
    released,
)
from gradcli.checks.algebra.real_forms import HALF, always_positive, relation, sign_of, text
from gradcli.checks.evaluate.evaluation import FieldEvaluation
from gradcli.checks.evaluate.interpretation import (
    Entries,
    Failure,
    SymbolicField,
    Undecided,
    Undefined,
    Unsupported,
)
from gradcli.graph.arrays import subscript
from gradcli.graph.exact import last_unit
from gradcli.graph.node import LEAF, Node, reachable

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from gradcli.checks.evaluate.balls import Point

    Answer = dict[str, Any]
    Pairs = Iterable[tuple[Any, Any]]
    Failed = dict[Hashable, tuple[type[Exception], str]]  # what ended the reading of a value


MOST_SYMBOLS = 24
MOST_OPERATIONS = 20_000
FAILED = (Failure, Unsupported, OverflowError)


# --- programs in forms ------------------------------------------------------------------------------------------------


class FormField(SymbolicField):
    """Arithmetic on forms; `hold` makes a script's detach a constant, whatever it is of."""

    def __init__(self, tower: Tower, *, hold: bool = False) -> None:
        super().__init__()
        self.tower = tower
        self.hold = hold
        self.zero = fmpq(0)
        self.ties: list[Form] = []  # what moves, and is zero at the point
        self.operations = 0
        self.namespace = Namespace(tower, self.sign)

    # --- entries ------------------------------------------------------------------------------------------

    def number(self, value: int | Fraction) -> Any:
        return fmpq(value.numerator, value.denominator)

    def constant(self, value: Any) -> Any:
        if isinstance(value, str):
            if value == "pi":
                return self.tower.pi
            if value == "e":
                return self.namespace.exp(1)
            return Undefined(f"the constant {value}")
        if last_unit(value) is not None:  # a rounded constant: what is proved holds whatever its last digits are
            return self.symbol(f"<{float(value)!r}>", self.number(value), kind="literal")
        return self.number(value)

    def symbol(self, name: str, value: fmpq | None, kind: str = "symbol") -> Form:
        """A symbol with its value at the point; without one, whatever would need its sign is left open."""
        return self.tower.gen(self.tower.index(FieldGenerator(kind, name=name, value=value)))

    def held(self, name: str, x: Any) -> Any:
        """A constant that has the value of an entry."""
        if isinstance(x, Failure):
            return x
        return self.tower.gen(self.tower.index(FieldGenerator("held", [self.tower.lift(x)], name=name)))

    def total(self, xs: Iterable[Any]) -> Any:
        """The sum of some entries, by halves, so that no long sum is written out more often than needed."""
        parts = list(xs)
        self.tower.spend(len(parts))
        while len(parts) > 1:
            parts = [a + b for a, b in zip_longest(parts[::2], parts[1::2], fillvalue=self.zero)]
        return parts[0] if parts else self.zero

    def sqrt(self, x: Any) -> Any:
        return x if isinstance(x, Failure) else power(self.tower.lift(x), HALF)

    def index(self, x: Any) -> int:
        number = None if isinstance(x, Failure) else self.tower.lift(x).rational()
        if number is None or number.q != 1:
            raise Undefined("an index that is not a whole number")
        return int(number.p)

    # --- decisions ------------------------------------------------------------------------------------------

    def sign(self, x: Any) -> int:
        """The sign of an entry at the point; raises Undecided where 1,024 bits do not decide."""
        if isinstance(x, Failure):
            raise x
        if not isinstance(x, Form):
            return int(x > 0) - int(x < 0)
        form = self.tower.renewed(x)
        side = sign_of(form)
        if self.tower.moves(form):
            self.tower.note(form, side)
            if side == 0:
                self.ties.append(form)
        return side

    # --- steps ------------------------------------------------------------------------------------------

    def accepted(self, node: Node, result: Any, operands: Sequence[Any]) -> Any:
        self.operations += 1
        if self.operations > MOST_OPERATIONS:
            raise Spent(f"more than {MOST_OPERATIONS:,} operations")
        if isinstance(result, fmpq) and max(result.p.bit_length(), result.q.bit_length()) > MOST_BITS:
            return Undecided("a number with too many digits", node)
        return super().accepted(node, result, operands)


class Namespace:
    """`sp` for forms of one tower; `sign_at_point` decides branches."""

    def __init__(self, tower: Tower, sign_at_point: Callable[[Any], int]) -> None:
        self.tower = tower
        self.sign_at_point = sign_at_point
        self.nan = None

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *xs: function(name, *map(self.tower.lift, xs))

    def hyper(self, above: Sequence[Any], below: Sequence[Any], x: Any) -> Any:
        return function(f"hyper{len(above)}{len(below)}", *map(self.tower.lift, (*above, *below, x)))

    @property
    def pi(self) -> Form:
        return self.tower.pi

    def Integer(self, n: int) -> fmpq:
        return fmpq(n)

    def Rational(self, p: int, q: int) -> fmpq:
        return fmpq(p, q)

    def Add(self, *xs: Any) -> Any:
        return reduce(add, xs)

    def Mul(self, *xs: Any) -> Any:
        return reduce(mul, xs)

    def Pow(self, x: Any, n: Any) -> Any:
        number = as_number(n)
        if number is not None and number.q == 1:
            return x ** int(number.p)
        return general_power(self.tower.lift(x), self.tower.lift(n))

    def ff(self, x: Any, k: int) -> Any:
        """The falling factorial x*(x - 1)*...*(x - k + 1)."""
        return reduce(mul, [x - i for i in range(k)], fmpq(1))


# --- claims -----------------------------------------------------------------------------------------------------------


class ClaimOptions(NamedTuple):
    """How a claim is read: with symbols for `every` leaf, data too, or with denominators `apart`, as generators."""

    every: bool = False
    apart: bool = False


PLAIN = ClaimOptions()


class ClaimForms:
    """Forms of nodes in one tower, with symbols for the leaves that move."""

    def __init__(self, tower: Tower, point: Point, options: ClaimOptions) -> None:
        self.tower = tower
        self.values = point
        self.options = options
        tower.inverting = options.apart
        self.plain = FormField(tower)
        self.holding = FormField(tower, hold=True)
        self.point: dict[str, Entries] = {}
        self.frozen: list[str] = []

    def leaves(self, nodes: Sequence[Node], moving: Sequence[str], target: Node | None, entries: Sequence[int]) -> None:
        """Entries for the leaves among some nodes, with symbols for as many as there may be: the target's first."""
        self.frozen = []
        free = MOST_SYMBOLS - len(entries)
        for node in nodes:
            if node.primitive is not LEAF:
                continue
            name = node.params["name"]
            if node is target:
                self.point[name] = self.leaf(node, entries)
                continue
            moves = (self.options.every or name in moving) and node.type.size <= free
            free -= node.type.size if moves else 0
            if name in moving and not moves:
                self.frozen.append(name)
            self.point[name] = self.leaf(node, None if moves else ())

    def leaf(self, node: Node, chosen: Sequence[int] | None) -> Entries:
        """Symbols for the chosen entries of a leaf (None: all), exact constants for the others."""
        name = node.params["name"]
        flat, shape = self.values[name]
        entries = [self.plain.datum(value) for value in flat]
        for i, value in enumerate(entries):
            if (chosen is None or i in chosen) and not isinstance(value, Failure):
                entries[i] = self.plain.symbol(name + subscript(i, shape), value)
        return Entries(entries, shape)

    def unknown(self, name: str, node: Node) -> Entries:
        """Symbols without a value for all entries of a node: what holds for them holds for what the node is."""
        symbols = [self.plain.symbol(f"{name}[{i}]", None, "unknown") for i in range(node.type.size)]
        return Entries(symbols, node.type.shape)

    def assumed(self) -> list[tuple[str, str]]:
        """The signs that were used, in words, and the leaves that were taken as constants."""
        known: dict[int, Form] = {}
        signs = [(released(form, known, True), side) for form, side in list(self.tower.region.values())]
        telling = [(form, side) for form, side in signs if self.tower.moves(form) and not always_positive(form)]
        region = dict.fromkeys(relation(form, side) for form, side in telling)
        return [*(("sign", sign) for sign in region), *(("fixed", name) for name in self.frozen)]


def prove_derivative(
    output: Node,
    target: Node,
    right: Node,
    moving: Sequence[str],
    point: Point,
    entries: Sequence[int],
    failed: Failed | None = None,
) -> Answer:
    """Whether entries of the right node are the derivatives of a scalar node by the same entries of the target.

    `failed` are the values that were not read at this point for other claims: they are not tried again.
    """
    known = {} if failed is None else failed
    nodes = reachable([output, target, right])

    def attempt(claim: ClaimForms) -> Answer:
        claim.leaves(nodes, moving, target, entries)
        return answered(claim, derivative_pairs(claim, output, target, right, entries, known))

    return attempted(attempt, moving, point)


def prove_equal(left: Node, right: Node, moving: Sequence[str], point: Point) -> Answer:
    """Whether two nodes are equal, entry by entry."""

    def attempt(claim: ClaimForms) -> Answer:
        claim.leaves(reachable([left, right]), moving, None, ())
        ours, theirs = FieldEvaluation(claim.plain, claim.point).read([left, right])
        return answered(claim, zip(ours.flat, theirs.flat, strict=True))

    return attempted(attempt, moving, point)


def attempted(attempt: Callable[[ClaimForms], Answer], moving: Sequence[str], point: Point) -> Answer:
    """The answer of an attempt with the first options that give a proof; else the plain one."""
    plain, problem = in_rings(attempt, point)
    others = []
    if problem is not None:  # over a budget
        others.append(ClaimOptions(apart=True))
    if not isinstance(problem, Spent) and not set(point) <= set(moving):
        others.append(ClaimOptions(every=True))
    answers = (in_rings(attempt, point, options)[0] for options in others if not plain["proved"])
    return next((answer for answer in answers if answer["proved"]), plain)


def in_rings(
    attempt: Callable[[ClaimForms], Answer], point: Point, options: ClaimOptions = PLAIN
) -> tuple[Answer, Exception | None]:
    """The answer of an attempt in the first ring that is large enough, and what ended it where it was over a budget."""
    problem: Exception | None = None
    for size in SIZES[1:] if options.apart else SIZES:
        try:
            return attempt(ClaimForms(Tower(size, MOST_APART if options.apart else MOST_WORK), point, options)), None
        except FAILED as reason:
            problem = reason
            if not isinstance(reason, Full):
                break
    return {"proved": False, "reason": str(problem)}, problem


def derivative_pairs(
    claim: ClaimForms, output: Node, target: Node, judged: Node, entries: Sequence[int], failed: Failed
) -> Pairs:
    """For each entry: the derivative of the form of a scalar node, and the form of what is judged."""
    fixed = {}
    if target.primitive is LEAF:
        variables = claim.point[target.params["name"]].flat
    else:
        own = FieldEvaluation(claim.plain, claim.point)[target]
        variables = [claim.holding.held(f"value{target.serial}[{i}]", x) for i, x in enumerate(own.flat)]
        fixed[target] = Entries(variables, own.shape)
    named = frozenset(generator.name for generator in claim.tower.generators)
    key = (output, *fixed, claim.options, claim.tower.size, named)
    if key in failed:
        kind, reason = failed[key]
        raise kind(reason)
    reading = FieldEvaluation(claim.holding, claim.point, fixed)
    try:
        value = form_of(claim.tower, reading[output].flat[0])
    except FAILED as problem:
        failed[key] = type(problem), str(problem)
        raise
    alike = not (fixed or claim.holding.held_any or claim.holding.ties or claim.tower.refined)
    claimed = FieldEvaluation(claim.plain, claim.point, reading.known if alike else None)[judged].flat
    for i in entries:
        yield TowerDerivation(form_of(claim.tower, variables[i])).of(value), claimed[i]


def answered(claim: ClaimForms, pairs: Pairs) -> Answer:
    """Whether all pairs are equal; the hardest step that one of them needed."""
    tower, hardest, local, reason = claim.tower, "structure", False, None
    known: dict[int, Form] = {}
    for left, right in pairs:
        exact, claimed = form_of(tower, left), form_of(tower, right)
        if exact.same(claimed):
            continue
        hardest = "normal form"
        difference = exact - claimed
        if not difference.is_zero and any(generator.kind in WRITTEN_OUT for generator in tower.generators):
            difference = released(exact, known, False) - released(claimed, known, False)
        if not difference.is_zero:
            local = equal_angles(difference)
            if not local:
                reason = f"the difference {text(difference)} is not identically zero"
                break
    if ties := [*claim.plain.ties, *claim.holding.ties]:
        reason = f"a branch depends on an exact zero at this point: {text(ties[0])}"
        return {"proved": False, "reason": reason, "tie": True}
    if reason is not None:
        return {"proved": False, "reason": reason, "budget": False}
    return {"proved": True, "how": hardest, "assumed": claim.assumed() + [("connected", "")] * local}


def form_of(tower: Tower, entry: Any) -> Form:
    """The form of an entry; raises the failure of one that has no value."""
    if isinstance(entry, Failure):
        raise entry
    form: Form = tower.lift(int(entry) if isinstance(entry, bool) else entry)
    return form
