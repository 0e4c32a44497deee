"""The normal form of sums in index notation, and whether two computations have the same one.

Everything is multiplied out, functions are written by few others, and no numerator contains the first term of its
denominator: `sigmoid(u)` is 1 - 1/(1 + exp(u)). A sum that has no term left then is 0 wherever it has a value.

A comparison is written by p, which is 1 where a number x is positive, and n, which is 1 where it is negative: x > 0 is
p, x >= 0 is 1 - n, x == 0 is 1 - p - n, relu(x) is x*p. They are 1 or 0, p*n is 0, and at a tie both are 0. So what is
equal in this form is equal at ties too, even where a tie lasts: where every entry that a relu reads is negative, p is
0 and what comes after it is 0. What is equal only if p + n is 1 is equal wherever x is not 0 (`undecided`).
"""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

from gradcli.formulas.index_positions import (
    Index,
    IndexPosition,
    affine,
    difference,
    indices_in,
    is_dense,
    solution,
    span,
)
from gradcli.formulas.index_terms import (
    ABOVE,
    ONE,
    TRUTHS,
    ZERO,
    BracketedSum,
    Delta,
    EntrywiseCall,
    InputEntry,
    Irrational,
    Less,
    NoFormula,
    NoValue,
    Term,
    Whole,
    add,
    base_key,
    bases_in,
    denominators,
    free,
    free_of,
    is_truth,
    key,
    lanes_of,
    leaves_in,
    merged,
    multiplied,
    number,
    over,
    parts_of,
    power,
    scaled,
    single,
    solved,
    term_key,
    times,
    value_of,
)
from gradcli.formulas.matrix_rules import split_products
from gradcli.primitives import catalogue
from gradcli.primitives.elementary import expand

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from gradcli.formulas.index_positions import Position
    from gradcli.formulas.index_terms import Factor, FreshIndices, Sum

MOST_TERMS = 400  # of a sum that is multiplied out
MOST_POWER = 9  # of a bracket that is multiplied out
TIE = "tie"  # a symbol for x*(1 - p - n)
SINGULAR = ("log", "lgamma", "digamma", "pow", "inv", "logdet", "logabsdet")  # functions with poles
ANALYTIC = frozenset(["exp", "sin", "cos", "atan", "asin", "acos", "erf", *SINGULAR])
HALF = Fraction(1, 2)


# --- functions that are written by others ---------------------------------------------------------------------------


def function(name: str) -> Callable[[Sum], Sum]:
    """What makes the function of this name of a sum."""
    return lambda x: single(EntrywiseCall(name, (), (x,)))


exponential, log, above = map(function, ("exp", "log", ABOVE))


def below(x: Sum) -> Sum:
    """1 where x is negative, else 0."""
    return above(scaled(x, -1))


def opposite(truth: Sum) -> Sum:
    """1 where a truth value is 0, 0 where it is 1."""
    return add(ONE, scaled(truth, -1))


def chosen(truth: Sum, x: Sum, y: Sum) -> Sum:
    """The first number where a truth value is 1, else the second."""
    return add(times(truth, x), times(opposite(truth), y))


def sign(x: Sum) -> Sum:
    """1, -1 or 0."""
    return add(above(x), scaled(below(x), -1))


def larger(x: Sum, y: Sum) -> Sum:
    """The larger of two numbers; where they are equal, each has half of the derivative."""
    gap = add(x, scaled(y, -1))
    return scaled(add(x, y, times(gap, sign(gap))), HALF)


def between(x: Sum, low: Sum, high: Sum) -> Sum:
    """A number limited to an interval."""
    return scaled(larger(scaled(larger(x, low), -1), scaled(high, -1)), -1)


def compared(form: Callable[[Sum], Sum]) -> Callable[[Sum, Sum], Sum]:
    """A function of the difference of two numbers."""
    return lambda x, y: form(add(x, scaled(y, -1)))


FORMS: dict[str, Callable[..., Sum]] = {  # of what elementary texts of declarations are made of
    "add": add,
    "sub": lambda x, y: add(x, scaled(y, -1)),
    "mul": times,
    "div": lambda x, y: times(x, power(y, -1)),
    "neg": lambda x: scaled(x, -1),
    "power": power,
    "greater": compared(above),
    "greater_equal": compared(lambda gap: opposite(below(gap))),
    "less": compared(below),
    "less_equal": compared(lambda gap: opposite(above(gap))),
    "not_equal": compared(lambda gap: add(above(gap), below(gap))),
    "equal": compared(lambda gap: opposite(add(above(gap), below(gap)))),
    "tie_step": compared(lambda gap: scaled(add(ONE, sign(gap)), HALF)),
    "not": opposite,
    "and": times,
    "or": lambda x, y: opposite(times(opposite(x), opposite(y))),
    "where": chosen,
    "sign": sign,
    "maximum": larger,
    "minimum": lambda x, y: between(x, x, y),
}


def form(name: str) -> Callable[..., Sum] | None:
    """An operation written by others: by the text of its declaration, where it has no form here; None for a new one."""
    primitive = None if name in FORMS or name == ABOVE else catalogue().get(name)
    if primitive is None or not primitive.elementary:
        return FORMS.get(name)
    return lambda *xs: expand(primitive, xs, number, lambda inner, *ys: (form(inner) or function(inner))(*ys))


# --- multiplying out ------------------------------------------------------------------------------------------------


def expanded(total: Sum, names: FreshIndices) -> Sum:
    """A sum with nothing left in brackets that can be multiplied out, inside functions as well."""
    parts = []
    count = 0
    for term in total:
        product: Sum = (Term(term.coefficient, (), term.bound),)
        for base, exponent in term.factors:
            product = multiplied(product, _factor(base, exponent, names), names)
            count += len(product)
            if count > MOST_TERMS:
                raise NoFormula("it has too many terms")
        parts.append(product)
    return add(*[_settled(term, names) for term in add(*parts)])


def _settled(term: Term, names: FreshIndices) -> Sum:
    """A term without sums over deltas, and over indices that nothing reads."""
    deltas = [place for place, (base, _) in enumerate(term.factors) if isinstance(base, Delta)]
    if any(exponent < 0 for base, exponent in term.factors if isinstance(base, (Delta, Less))):
        raise NoFormula("it divides by entries of an identity matrix")
    for place in deltas:
        fewer = solved(term, place, names)
        if fewer is not None:
            return add(*[_settled(part, names) for part in fewer])
    for index in term.bound:
        if not any(index in free_of(base) for base, _ in term.factors):
            rest = term._replace(bound=tuple([i for i in term.bound if i != index]))
            return add(*[_settled(part, names) for part in over((rest,), index, names)])
    flat = _flattened(term, names)
    if flat is not None:
        return add(*[_settled(part, names) for part in flat])
    for place in deltas:  # everything else reads an index that stays by the others
        delta, _ = term.factors[place]
        others = (*term.factors[:place], *term.factors[place + 1 :])
        stays = sorted({i for i in free_of(delta) if i not in term.bound}, key=lambda i: -i.number)
        where = solution(difference(*delta), stays, names.index)
        for gone, kept in where.changes.items() if where is not None else ():
            if any(gone in free_of(base) for base, _ in others):
                moved = names.put((Term(term.coefficient, others, ()),), {gone: kept})
                again = [merged(part.coefficient, (*part.factors, (delta, Fraction(1))), term.bound) for part in moved]
                return add(*[_settled(part, names) for part in again])
    for place, (base, exponent) in enumerate(term.factors):
        others = (*term.factors[:place], *term.factors[place + 1 :])
        side = _side_in(base)
        if side is not None:
            return _by_cases(term, base, side, names)
        if exponent > 0 and lanes_of(base):
            (chosen,) = _replaced((term._replace(factors=others),), _choice(base))
            if chosen.factors != others:
                return expanded((merged(term.coefficient, (*chosen.factors, (base, exponent)), term.bound),), names)
            for lane in lanes_of(base):
                own = {i for axis, size in lane if isinstance(i := base.at[axis], Index) and i.size == size}
                fixed = [i for axis, i in enumerate(base.at) if axis not in dict(lane)]
                alone = own.isdisjoint(indices_in(fixed)) and len(own) == len([size for _, size in lane if size > 1])
                if alone and own.issubset(term.bound) and not any(own.intersection(free_of(x)) for x, _ in others):
                    bound = tuple([i for i in term.bound if i not in own])
                    return _settled(Term(term.coefficient, others, bound), names)
    sides = {base_key(base, {}): base for base, _ in term.factors if _is_side(base)}
    if any(base_key(_opposite(base), {}) in sides for base in sides.values()):
        return ZERO
    reduced = merged(term.coefficient, [(base, _exponent(base, e)) for base, e in term.factors], term.bound)
    return (reduced,) if reduced.factors == term.factors else _settled(reduced, names)


def _flattened(term: Term, names: FreshIndices) -> Sum | None:
    """A term with one bound index for those that are read by one dense position only; None where there is none.

    A bound index may run in either direction.
    """
    positions = dict.fromkeys(position for base, _ in term.factors for position in _positions_in(base))
    places = [position for position in positions if isinstance(position, IndexPosition)]
    for index in dict.fromkeys(i for place in places for i, n in place.parts if n == -1):
        if index in term.bound:
            reverse = {index: affine(index.size - 1, [(index, -1)])}
            (turned,) = names.put((term._replace(bound=()),), reverse)
            turned = turned._replace(bound=term.bound)
            if _backward(turned) < _backward(term):
                return (turned,)
    for place in places:
        if is_dense(place) and [step for _, step in place.parts] != [1]:
            own = indices_in([place])
            alone = not any(place != other and set(own) & set(indices_in([other])) for other in positions)
            if alone and set(own).issubset(term.bound):
                low, high = span(place)
                index = names.index(high - low + 1)
                moved = names.put((term._replace(bound=()),), {place: affine(low, [(index, 1)])})
                bound = (*[i for i in term.bound if i not in own], index)
                return tuple([part._replace(bound=bound) for part in moved])
    return None


def _backward(term: Term) -> tuple[int, str]:
    """How often a term reads an array backward, and its key."""
    read = [
        position for base, _ in term.factors if not isinstance(base, (Delta, Less)) for position in _positions_in(base)
    ]
    return sum(n < 0 for place in read if isinstance(place, IndexPosition) for _, n in place.parts), term_key(term, {})


def _positions_in(base: Any) -> Iterator[Position]:
    yield from base if isinstance(base, (Delta, Less)) else getattr(base, "at", ())
    for part in parts_of(base) if not isinstance(base, Whole) else ():
        for term in part:
            for inner, _ in term.factors:
                yield from _positions_in(inner)


def _exponent(base: Any, exponent: Fraction) -> Fraction:
    """The exponent of what is 1 or 0 is 0 or 1."""
    return Fraction(1) if isinstance(base, Delta) or is_truth(base) else exponent


# --- on which side of 0 a number is, and arrays that choose entries -------------------------------------------------


def _is_side(base: Any) -> bool:
    return isinstance(base, EntrywiseCall) and base.name == ABOVE


def _opposite(side: EntrywiseCall) -> EntrywiseCall:
    return EntrywiseCall(ABOVE, (), (scaled(side.args[0], -1),))


def _side(x: Sum) -> Sum:
    """Whether a number is positive, in a form that does not depend on its size."""
    if lower_bound(x) == 1:
        return ONE
    if not x or lower_bound(scaled(x, -1)) is not None:
        return ZERO
    if len(x) == 1 and not x[0].bound:  # x**3*exp(y) has the sign of x
        factors = [(base, Fraction(1) if e.numerator % 2 and e.denominator == 1 else e) for base, e in x[0].factors]
        x = (merged(x[0].coefficient, [(base, e) for base, e in factors if not _bound(base, e)]),)
    return above(scaled(x, 1 / max(abs(term.coefficient) for term in x)))


def lower_bound(total: Sum) -> int | None:
    """0 where a sum is never negative, 1 where it is always positive, by what it consists of; else None."""
    terms = [[_bound(base, exponent) for base, exponent in term.factors] for term in total]
    known = all(term.coefficient > 0 for term in total) and not any(None in bounds for bounds in terms)
    return int(any(map(all, terms))) if known else None


def _bound(base: Any, exponent: Fraction) -> int | None:
    """0 where a power is never negative, 1 where it is always positive; what divides by 0 has no value."""
    name = base.name if isinstance(base, EntrywiseCall) else ""
    if isinstance(base, Irrational) or name in ("exp", "exp2", "cosh", "sigmoid", "softplus"):
        return 1
    if is_truth(base) or isinstance(base, Delta) or name in TRUTHS or (name in ("abs", "relu") and exponent > 0):
        return 0
    if isinstance(base, BracketedSum) and (least := lower_bound(base.inside)) is not None:
        return int(least > 0 or exponent < 0)
    even = exponent.numerator % 2 == 0 or exponent.denominator % 2 == 0
    return int(exponent < 0) if even else None


def lowest(total: Sum, names: FreshIndices) -> int | None:
    """The lower bound of a sum, or of what it is as one fraction."""
    bound = lower_bound(total)
    whole = _without_denominators(total := expanded(total, names)) if bound is None else total
    below = denominators(total) if bound is None else []
    positive = below and all(_bound(base, exponent) == 1 for base, exponent in below)
    return lower_bound(expanded(whole, names)) if positive else bound


def _side_in(base: Any) -> EntrywiseCall | None:
    """A side of 0 inside a base that reads no other indices than the base does."""
    if not isinstance(base, (EntrywiseCall, BracketedSum)) or base_key(base, {}).count(f"{ABOVE}()") == _is_side(base):
        return None
    outside = free_of(base)
    for factor in [factor for part in parts_of(base) for term in part for factor, _ in term.factors]:
        side = _side_in(factor) or (factor if _is_side(factor) else None)
        if side is not None and set(free_of(side)).issubset(outside):
            return side
    return None


def _by_cases(term: Term, base: Any, side: EntrywiseCall, names: FreshIndices) -> Sum:
    """A term without a side of 0 inside one of its bases: what it is where that is 1, times the side, and the rest.

    Where a case divides by 0 it has no value, or is a branch that is not taken: it is left out.
    """
    inside = {base_key(inner, {}) for part in parts_of(base) for inner in bases_in(part) if _is_side(inner)}
    both = {base_key(side, {}): single(side), base_key(_opposite(side), {}): single(_opposite(side))}
    sides = {own: condition for own, condition in both.items() if own in inside}
    cases = [(condition, {**dict.fromkeys(both, ZERO), own: ONE}) for own, condition in sides.items()]
    cases.append((add(ONE, *[scaled(condition, -1) for condition in sides.values()]), dict.fromkeys(sides, ZERO)))
    total = ZERO
    for condition, values in cases:
        with suppress(NoValue):
            total = add(total, expanded(multiplied(_with((term,), values), condition, names), names))
    return total


def _with(total: Sum, values: Mapping[str, Sum]) -> Sum:
    """A sum in which some sides of 0 have values."""
    return _replaced(total, lambda base: values.get(base_key(base, {})) if _is_side(base) else None)


def _choice(base: Whole) -> Callable[[Any], Sum | None]:
    """What replaces the entries that are 0, or 1, where one entry of an array that chooses is 1."""
    own = base_key(base._replace(at=()), {})

    def change(entry: Any) -> Sum | None:
        if isinstance(entry, Whole) and base_key(entry._replace(at=()), {}) == own:
            other = {axis for axis, (i, j) in enumerate(zip(entry.at, base.at, strict=True)) if i != j}
            if any(other.issubset(dict(lane)) for lane in lanes_of(base)):
                return _product([(Delta(entry.at[axis], base.at[axis]), Fraction(1)) for axis in sorted(other)])
        return None

    return change


def _replaced(total: Sum, change: Callable[[Any], Sum | None]) -> Sum:
    """A sum with other sums for some bases that are 1 or 0, inside functions, arrays and brackets as well."""
    terms = []
    for term in total:
        factors: list[Factor] = []
        for base, exponent in term.factors:
            if isinstance(base, BracketedSum):
                base = BracketedSum(_replaced(base.inside, change))
            elif isinstance(base, EntrywiseCall):
                base = base._replace(args=tuple([_replaced(arg, change) for arg in base.args]))
            elif isinstance(base, Whole):
                base = base._replace(args=tuple([(own, _replaced(arg, change)) for own, arg in base.args]))
            new = change(base)
            one_term = new is not None and len(new) == 1 and new[0].coefficient == 1
            factors += (
                [(base, exponent)]
                if new is None
                else new[0].factors
                if one_term
                else [(BracketedSum(new), Fraction(1))]
            )
        terms.append(term._replace(factors=tuple(factors)))
    return tuple(terms)


def _factor(base: Any, exponent: Fraction, names: FreshIndices) -> Sum:
    """A power, multiplied out."""
    if isinstance(base, BracketedSum):
        return _raised(expanded(base.inside, names), exponent, names)
    if isinstance(base, Whole):
        arrays = tuple([(own, expanded(arg, names)) for own, arg in base.args])
        return single(base._replace(args=arrays), exponent)
    if not isinstance(base, EntrywiseCall):
        return single(base, exponent)
    args = tuple([expanded(arg, names) for arg in base.args])
    if not base.params and (written := form(base.name)) is not None:
        return _raised(expanded(written(*args), names), exponent, names)
    if base.name == "exp":
        return _product([(_exponential(term), term.coefficient * exponent) for term in args[0]])
    if base.name == "log" and not args[0]:
        raise NoValue("it takes the logarithm of 0")
    if base.name == "log" and len(args[0]) == 1 and (logarithm := _logarithm(args[0][0])) is not None:
        return _raised(logarithm, exponent, names)
    if base.name == "pow":
        return _power(args, exponent)
    if _is_side(base):
        return _side(args[0])
    if base.name == "sin" and exponent >= 2 and exponent.denominator == 1:
        square = add(ONE, scaled(single(EntrywiseCall("cos", (), args), 2), -1))
        return multiplied(square, _factor(base, exponent - 2, names), names)
    return single(base._replace(args=args), exponent) if exponent else ONE


def _exponential(term: Term) -> Any:
    """The base of which the exponential of a term is a power."""
    unit = term._replace(coefficient=Fraction(1))
    return EntrywiseCall("exp", (), ((unit,),)) if term.factors else Irrational("e")


def _logarithm(term: Term) -> Sum | None:
    """The logarithm of a product of exponentials."""
    exponentials = all(isinstance(base, EntrywiseCall) and base.name == "exp" for base, _ in term.factors)
    if term.coefficient != 1 or term.bound or not exponentials:
        return None
    return add(*[scaled(base.args[0], exponent) for base, exponent in term.factors])


def _power(args: tuple[Sum, ...], exponent: Fraction) -> Sum:
    """x**(n + 2) as x**n times x**2."""
    x, n = args
    whole = [term for term in n if not term.factors and term.coefficient.denominator == 1]
    rest = tuple([term for term in n if term not in whole])
    if not rest:
        return power(x, (value_of(n) or 0) * exponent)
    raised = single(EntrywiseCall("pow", (), (x, rest)), exponent)
    return times(raised, power(x, whole[0].coefficient * exponent)) if whole else raised


def _product(factors: Sequence[Factor]) -> Sum:
    return (merged(Fraction(1), factors),)


def _raised(inside: Sum, exponent: Fraction, names: FreshIndices) -> Sum:
    """A power of a sum that is multiplied out: of a bracket the first coefficient is 1, and no exponent negative."""
    if exponent < 0 and not inside:
        raise NoValue("it divides by 0")
    if exponent == 0 or not inside:
        return ZERO if exponent else ONE
    if len(inside) == 1 and not inside[0].bound:
        return power(inside, exponent)
    whole = exponent.denominator == 1
    if exponent >= 1:
        if exponent > MOST_POWER:
            raise NoFormula("its powers are too high")
        product = ONE
        for _ in range(int(exponent)):
            product = multiplied(product, inside, names)
            if len(product) > MOST_TERMS:
                raise NoFormula("it has too many terms")
        return product if whole else multiplied(product, _raised(inside, exponent - int(exponent), names), names)
    ordered = sorted(inside, key=lambda term: term_key(term, {}))
    first = ordered[0].coefficient
    number_before = first if whole else abs(first)
    common = _lowest(ordered) if whole else []
    inverse = [(base, -e) for base, e in common]
    rest = [merged(term.coefficient / number_before, (*term.factors, *inverse), term.bound) for term in ordered]
    before = multiplied(power(number(number_before), exponent), _product([(b, e * exponent) for b, e in common]), names)
    if len(rest) == 1 and not rest[0].bound:
        return multiplied(before, power(tuple(rest), exponent), names)
    return multiplied(before, single(BracketedSum(tuple(rest)), exponent), names)


def _lowest(terms: Sequence[Term]) -> list[Factor]:
    """What all terms have in common, with the lowest exponent that a base has; a term without it has exponent 0."""
    tables = [{base_key(base, {}): exponent for base, exponent in term.factors} for term in terms]
    bound = {index for term in terms for index in term.bound}
    bases = {base_key(base, {}): base for term in terms for base, _ in term.factors}
    lowest = []
    for own, base in bases.items():
        exponent = min(table.get(own, Fraction(0)) for table in tables)
        if exponent and bound.isdisjoint(free_of(base)):
            lowest.append((base, exponent))
    return lowest


# --- whether a sum is 0 ---------------------------------------------------------------------------------------------


def vanishes(total: Sum, names: FreshIndices) -> bool:
    """Whether a sum is 0 wherever it has a value; False proves nothing."""
    try:
        total = _divided(expanded(split_products(total, names), names), names)
        if not total:
            return True
        return not _divided(expanded(_without_denominators(total), names), names)
    except NoFormula:
        return False


def _without_denominators(total: Sum) -> Sum:
    """A sum times its denominators."""
    inverse = [(base, -exponent) for base, exponent in denominators(total)]
    return tuple([merged(term.coefficient, (*term.factors, *inverse), term.bound) for term in total])


# --- what is 0 except where two numbers that are compared are equal -------------------------------------------------


def undecided(total: Sum, names: FreshIndices) -> list[Sum] | None:
    """The compared numbers that must not be 0 for a sum to be 0; None where it may differ from 0 beside them as well.

    Where x is not 0, n is 1 - p, and p is 1 if x is never negative. That changes the sum by a multiple of 1 - p - n. If
    the multiple is 0 at x = 0, then x may be 0.
    """
    if vanishes(total, names):
        return []

    def blind(x: Sum) -> str:
        return key(x, dict.fromkeys(free(x), ""))

    def beside_ties(base: Any, bound: Collection[Index]) -> Sum | None:
        if not _is_side(base):
            return None
        x, below_zero = base.args[0], scaled(base.args[0], -1)
        if lower_bound(x) is not None:
            return add(ONE, scaled(_at_tie(x), -1))
        inner = dict.fromkeys(bound, "")
        if blind(below_zero) not in sides or key(x, inner) < key(below_zero, inner):
            return None
        return add(opposite(above(below_zero)), scaled(_at_tie(below_zero), -1))

    try:
        terms = expanded(total, names)
        sides = {blind(base.args[0]) for base in bases_in(terms) if _is_side(base)}
        parts = [_replaced((term,), partial(beside_ties, bound=term.bound)) for term in terms]
        needed, rest = _needed(tuple([term for part in parts for term in part]), terms, names)
    except NoFormula:
        return None
    return needed if vanishes(rest, names) else None


def continuous(total: Sum, names: FreshIndices) -> bool:
    """Whether a sum is seen to have no jump where two numbers that are compared are equal."""
    if any(map(lanes_of, bases_in(total))):
        return False
    try:
        tied = _replaced(total, lambda base: _at_tie(base.args[0]) if _is_side(base) else None)
        return not _needed(tied, total, names)[0]
    except NoFormula:
        return False


def _at_tie(x: Sum) -> Sum:
    """1 - p - n, as a symbol for x*(1 - p - n), which is 0, over x."""
    return times(single(EntrywiseCall(TIE, (), (x,))), power(x, -1))


def _needed(total: Sum, before: Sum, names: FreshIndices) -> tuple[list[Sum], Sum]:
    """The numbers x for which 1 - p - n is left in a sum, over x, and the sum without ties.

    Nothing divides by x where nothing divides that did not before, and no logarithm or power depends on x.
    """

    def singular(terms: Iterable[Term], x: Sum) -> set[str]:
        factors = [factor for term in terms for factor in term.factors if not isinstance(factor[0], Irrational)]
        poles = [base for base, _ in factors if isinstance(base, (EntrywiseCall, Whole)) and base.name in SINGULAR]
        below = [base for base, exponent in factors if exponent < 0]
        below += [base for base in poles if not leaves_in(single(base)).isdisjoint(leaves_in(x))]
        return {base_key(base, dict.fromkeys(free_of(base), "")) for base in below}

    needed: dict[str, Sum] = {}
    total, known = _divided(expanded(total, names), names), list(_terms_in(before))
    for term in _terms_in(total):
        for x in [base.args[0] for base, _ in term.factors if isinstance(base, EntrywiseCall) and base.name == TIE]:
            if singular(_terms_in((term,)), x) - (singular(known, ZERO) - singular(expanded(power(x, -1), names), x)):
                needed[pattern(x)] = x
    rest = _replaced(total, lambda base: ZERO if isinstance(base, EntrywiseCall) and base.name == TIE else None)
    return list(needed.values()), expanded(rest, names)


def _terms_in(total: Sum) -> Iterator[Term]:
    """The terms of a sum, and of the sums inside it."""
    for term in total:
        yield term
        for base, _ in term.factors:
            for part in parts_of(base):
                yield from _terms_in(part)


def pattern(total: Sum) -> str:
    """A key that is the same for sums that differ in the names of their indices."""
    return key(total, {index: f"{place}:{index.size}" for place, index in enumerate(free(total))})


def passes(x: Sum, names: FreshIndices) -> bool:
    """Whether a number that inputs decide is 0 on a set of measure 0 only, for all of its indices.

    It is so where it is analytic and not 0 everywhere, in each part in which no compared number changes its sign.
    """
    pairs = [(i, j) for i, j in combinations(free(x), 2) if i.size == j.size]
    return differs(x, names) and all(passes(names.put(x, {j: i}), names) for i, j in pairs)


def differs(x: Sum, names: FreshIndices, most: int = 4) -> bool:
    """Whether a number is 0 on a set of measure 0 only, for indices that differ."""
    side = next(filter(is_truth, bases_in(x)), None)
    if side is None:
        bases = list(bases_in(x))
        analytic = all(base.name in ANALYTIC for base in bases if isinstance(base, EntrywiseCall))
        return analytic and any(isinstance(base, InputEntry) for base in bases) and not vanishes(x, names)
    if not (most and _is_side(side) and set(free_of(side)).issubset(free(x)) and passes(side.args[0], names)):
        return False
    ours, theirs = base_key(side, {}), base_key(_opposite(side), {})
    parts = [expanded(_with(x, values), names) for values in ({ours: ONE, theirs: ZERO}, {ours: ZERO, theirs: ONE})]
    return all(differs(part, names, most - 1) for part in parts)


def _divided(total: Sum, names: FreshIndices) -> Sum:
    """A sum in which no numerator contains the first term of its denominator."""
    for _ in range(MOST_TERMS):
        for place, term in enumerate(total):
            quotient = _quotient(term, names)
            if quotient is not None:
                total = add(total[:place], total[place + 1 :], *[_settled(part, names) for part in quotient])
                break
        else:
            return total
    raise NoFormula("it has too many terms")


def _quotient(term: Term, names: FreshIndices) -> Sum | None:
    for base, exponent in term.factors:
        if not (isinstance(base, BracketedSum) and exponent <= -1):
            continue
        if len(base.inside) == 1:
            reduced = _sum_over_itself(term, base)
            if reduced is not None:
                return (reduced,)
            continue
        lead = max(base.inside, key=lambda top: (len(top.factors), sum(e for _, e in top.factors), term_key(top, {})))
        if lead.bound or not lead.factors:
            continue
        known = {base_key(b, {}): e for b, e in term.factors}
        if not all(e > 0 and known.get(base_key(b, {}), Fraction(0)) >= e for b, e in lead.factors):
            continue
        inverse = [(b, -e) for b, e in lead.factors]
        left = merged(term.coefficient / lead.coefficient, (*term.factors, *inverse), term.bound)
        rest = tuple([part for part in base.inside if part is not lead])
        raised = merged(left.coefficient, (*left.factors, (base, Fraction(1))), left.bound)
        return add((raised,), multiplied((left,), scaled(rest, -1), names))
    return None


def _sum_over_itself(term: Term, base: BracketedSum) -> Term | None:
    """sum(x)/sum(x) as 1, where the first sum is part of a longer product."""
    (inside,) = base.inside
    if len(inside.bound) != 1:
        return None
    for index in term.bound:
        own = [factor for factor in term.factors if index in free_of(factor[0])]
        if key((Term(inside.coefficient, tuple(own), (index,)),)) == key(base.inside):
            left = [factor for factor in term.factors if index not in free_of(factor[0])]
            bound = tuple([i for i in term.bound if i != index])
            return merged(term.coefficient / inside.coefficient, (*left, (base, Fraction(1))), bound)
    return None
