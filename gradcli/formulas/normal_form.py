"""The normal form of sums in index notation, and whether two computations have the same one.

Everything is multiplied out, functions are written by few others, and no numerator contains the first term of its
denominator: `sigmoid(u)` is 1 - 1/(1 + exp(u)). A sum that has no term left then is 0 wherever it has a value.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any

from gradcli.formulas.index_positions import Index, Place, affine, difference, indices_in, is_dense, solution, span
from gradcli.formulas.index_reading import Reader
from gradcli.formulas.index_terms import (
    ONE,
    ONE_HOT,
    ZERO,
    Call,
    Delta,
    Group,
    NoFormula,
    Number,
    Term,
    Whole,
    add,
    base_key,
    denominators,
    free_of,
    key,
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

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gradcli.formulas.index_positions import Position
    from gradcli.formulas.index_reading import At
    from gradcli.formulas.index_terms import Factor, Names, Sum
    from gradcli.graph.node import Node

MOST_TERMS = 400  # of a sum that is multiplied out
MOST_ENTRIES = 9  # of an array that is compared entry by entry
MOST_POWER = 9  # of a bracket that is multiplied out
HALF = Fraction(1, 2)


def same_form(node: Node, other: Node, called: Mapping[Node, str] | None = None) -> bool:
    """Whether two nodes have the same normal form, and so are equal wherever both are smooth; builders must be open.

    `called` are nodes with names of their own, beside the leaves. `other` may be an array that broadcasts to `node`.
    False proves nothing.
    """
    reader = Reader(called)
    rank = len(other.shape)
    sizes = zip(other.shape[::-1], node.shape[::-1], strict=False)
    if rank > len(node.shape) or any(n not in (1, m) for n, m in sizes):
        return False

    def alike(axes: At) -> bool:
        last = axes[len(axes) - rank :]
        left = reader.entry(node, axes)
        right = reader.entry(other, tuple([0 if n == 1 else i for n, i in zip(other.shape, last, strict=True)]))
        return key(left) == key(right) or vanishes(add(left, scaled(right, -1)), reader.names)

    try:
        return alike(tuple([0 if n == 1 else reader.names.index(n) for n in node.shape]))
    except NoFormula:
        if not 0 < node.type.size <= MOST_ENTRIES:
            return False
    try:
        return all(map(alike, product(*map(range, node.shape))))
    except NoFormula:
        return False


# --- functions that are written by others ---------------------------------------------------------------------------


def exponential(x: Sum) -> Sum:
    """exp(x)."""
    return single(Call("exp", (), (x,)))


def function(name: str) -> Callable[[Sum], Sum]:
    """What makes the function of this name of a sum."""
    return lambda x: single(Call(name, (), (x,)))


def square(x: Sum) -> Sum:
    """x**2."""
    return times(x, x)


FORMS: dict[str, Callable[..., Sum]] = {
    "sigmoid": lambda x: power(add(ONE, exponential(scaled(x, -1))), -1),
    "tanh": lambda x: add(ONE, scaled(power(add(ONE, exponential(scaled(x, 2))), -1), -2)),
    "cosh": lambda x: scaled(add(exponential(x), exponential(scaled(x, -1))), HALF),
    "sinh": lambda x: scaled(add(exponential(x), scaled(exponential(scaled(x, -1)), -1)), HALF),
    "softplus": lambda x: single(Call("log", (), (add(ONE, exponential(x)),))),
    "expm1": lambda x: add(exponential(x), number(-1)),
    "log1p": lambda x: single(Call("log", (), (add(ONE, x),))),
    "logit": lambda x: add(function("log")(x), scaled(function("log")(add(ONE, scaled(x, -1))), -1)),
    "log2": lambda x: times(function("log")(x), power(function("log")(number(2)), -1)),
    "log10": lambda x: times(function("log")(x), power(function("log")(number(10)), -1)),
    "exp2": lambda x: exponential(times(x, function("log")(number(2)))),
    "reciprocal": lambda x: power(x, -1),
    "erfc": lambda x: add(ONE, scaled(function("erf")(x), -1)),
    "tan": lambda x: times(function("sin")(x), power(function("cos")(x), -1)),
    "silu": lambda x: times(x, power(add(ONE, exponential(scaled(x, -1))), -1)),
    "logaddexp": lambda x, y: single(Call("log", (), (add(exponential(x), exponential(y)),))),
    "hypot": lambda x, y: power(add(square(x), square(y)), HALF),
}


# --- multiplying out ------------------------------------------------------------------------------------------------


def expanded(total: Sum, names: Names) -> Sum:
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


def _settled(term: Term, names: Names) -> Sum:
    """A term without sums over deltas, and over indices that nothing reads."""
    deltas = [place for place, (base, _) in enumerate(term.factors) if isinstance(base, Delta)]
    if any(term.factors[place][1] < 0 for place in deltas):
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
        inner = _sign_in(base)
        if inner is not None:  # u is (1 + s)/2 times what it is where the sign s is 1, and (1 - s)/2 times the other
            cases = [(_replaced(term, _fixed(inner, side)), side) for side in (1, -1)]
            parts = [
                multiplied((part,), scaled(add(ONE, scaled(single(inner), side)), HALF), names) for part, side in cases
            ]
            return expanded(add(*parts), names)
        if exponent > 0 and lanes_of(base):
            chosen = _replaced(term._replace(factors=others), _choice(base))
            if chosen.factors != others:
                return expanded((merged(term.coefficient, (*chosen.factors, (base, exponent)), term.bound),), names)
            for lane in lanes_of(base):
                own = {i for axis, size in lane if isinstance(i := base.at[axis], Index) and i.size == size}
                fixed = [i for axis, i in enumerate(base.at) if axis not in dict(lane)]
                alone = own.isdisjoint(indices_in(fixed)) and len(own) == len([size for _, size in lane if size > 1])
                if alone and own.issubset(term.bound) and not any(own.intersection(free_of(x)) for x, _ in others):
                    bound = tuple([i for i in term.bound if i not in own])
                    return _settled(Term(term.coefficient, others, bound), names)
    reduced = merged(term.coefficient, [(base, _exponent(base, e)) for base, e in term.factors], term.bound)
    return (reduced,) if reduced.factors == term.factors else _settled(reduced, names)


def _flattened(term: Term, names: Names) -> Sum | None:
    """A term with one bound index for those that are read by one dense position only; None where there is none.

    A bound index may run in either direction.
    """
    positions = dict.fromkeys(position for base, _ in term.factors for position in _positions_in(base))
    places = [position for position in positions if isinstance(position, Place)]
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
    read = [position for base, _ in term.factors if not isinstance(base, Delta) for position in _positions_in(base)]
    return sum(n < 0 for place in read if isinstance(place, Place) for _, n in place.parts), term_key(term, {})


def _positions_in(base: Any) -> Iterator[Position]:
    yield from base if isinstance(base, Delta) else getattr(base, "at", ())
    for part in parts_of(base) if not isinstance(base, Whole) else ():
        for term in part:
            for inner, _ in term.factors:
                yield from _positions_in(inner)


def _exponent(base: Any, exponent: Fraction) -> Fraction:
    """The exponent of what is 1 or -1, or 1 or 0, is 0 or 1."""
    if _is_sign(base) and exponent.denominator == 1:
        return exponent % 2
    return Fraction(1) if isinstance(base, Delta) or (exponent > 0 and lanes_of(base)) else exponent


# --- signs, and arrays that choose entries --------------------------------------------------------------------------


def lanes_of(base: Any) -> tuple[tuple[tuple[int, int], ...], ...]:
    """The groups of axes, with their sizes, along which an array is 1 at one place and 0 at the others.

    A permutation matrix has two.
    """
    if isinstance(base, Whole) and base.name == ONE_HOT:
        return (((len(base.at) - 1, dict(base.params)["size"]),),)
    return dict(base.params).get("lanes", ()) if isinstance(base, Whole) else ()


def _is_sign(base: Any) -> bool:
    return isinstance(base, Call) and base.name == "sign"


def _sign_in(base: Any) -> Call | None:
    """A sign inside a base that reads no other indices than the base does."""
    if not isinstance(base, (Call, Group)) or "sign" not in base_key(base, {}):
        return None
    outside = free_of(base)
    inner = [factor for part in parts_of(base) for term in part for factor, _ in term.factors]
    for factor in inner:
        sign = _sign_in(factor) or (factor if _is_sign(factor) else None)
        if sign is not None and set(free_of(sign)).issubset(outside):
            return sign
    return None


def _fixed(sign: Call, side: int) -> Callable[[Any], Sequence[Factor] | None]:
    """What replaces a sign by the number that it is."""
    own = base_key(sign, {})
    value = () if side == 1 else ((Group(number(-1)), Fraction(1)),)
    return lambda base: value if _is_sign(base) and base_key(base, {}) == own else None


def _choice(base: Whole) -> Callable[[Any], Sequence[Factor] | None]:
    """What replaces the entries that are 0, or 1, where one entry of an array that chooses is 1."""
    own = base_key(base._replace(at=()), {})

    def change(entry: Any) -> Sequence[Factor] | None:
        if isinstance(entry, Whole) and base_key(entry._replace(at=()), {}) == own:
            other = {axis for axis, (i, j) in enumerate(zip(entry.at, base.at, strict=True)) if i != j}
            if any(other.issubset(dict(lane)) for lane in lanes_of(base)):
                return [(Delta(entry.at[axis], base.at[axis]), Fraction(1)) for axis in sorted(other)]
        return None

    return change


def _replaced(term: Term, change: Callable[[Any], Sequence[Factor] | None]) -> Term:
    """A term with other factors for some bases, inside functions and brackets as well."""
    factors: list[Factor] = []
    for base, exponent in term.factors:
        new = change(base)
        if new is not None:
            factors += [(inner, exponent) for inner, _ in new]
        elif isinstance(base, Group):
            factors.append((Group(tuple([_replaced(part, change) for part in base.inside])), exponent))
        elif isinstance(base, Call):
            args = tuple([tuple([_replaced(part, change) for part in arg]) for arg in base.args])
            factors.append((base._replace(args=args), exponent))
        else:
            factors.append((base, exponent))
    return term._replace(factors=tuple(factors))


def _factor(base: Any, exponent: Fraction, names: Names) -> Sum:
    """A power, multiplied out."""
    if isinstance(base, Group):
        return _raised(expanded(base.inside, names), exponent, names)
    if isinstance(base, Whole):
        arrays = tuple([(own, expanded(arg, names)) for own, arg in base.args])
        return single(base._replace(args=arrays), exponent)
    if not isinstance(base, Call):
        return single(base, exponent)
    args = tuple([expanded(arg, names) for arg in base.args])
    if base.name in FORMS and not base.params:
        return _raised(expanded(FORMS[base.name](*args), names), exponent, names)
    if base.name == "exp":
        return _product([(_exponential(term), term.coefficient * exponent) for term in args[0]])
    if base.name == "log" and len(args[0]) == 1 and (logarithm := _logarithm(args[0][0])) is not None:
        return _raised(logarithm, exponent, names)
    if base.name == "pow":
        return _power(args, exponent)
    if base.name == "sign" and not base.params:
        return _sign(args[0], exponent)
    if base.name == "sin" and exponent >= 2 and exponent.denominator == 1:
        square = add(ONE, scaled(single(Call("cos", (), args), 2), -1))
        return multiplied(square, _factor(base, exponent - 2, names), names)
    return single(base._replace(args=args), exponent) if exponent else ONE


def _sign(x: Sum, exponent: Fraction) -> Sum:
    """A sign, which is odd and does not depend on the size of a number."""
    first = min(x, key=lambda term: (not term.factors, term_key(term, {})), default=None)
    if first is None:
        raise NoFormula("it compares equal values")
    size = abs(first.coefficient)
    side = power(number(first.coefficient / size), exponent)
    if value_of(x) is not None:
        return side
    return times(side, single(Call("sign", (), (scaled(x, 1 / first.coefficient),)), exponent))


def _exponential(term: Term) -> Any:
    """The base of which the exponential of a term is a power."""
    unit = term._replace(coefficient=Fraction(1))
    return Call("exp", (), ((unit,),)) if term.factors else Number("e")


def _logarithm(term: Term) -> Sum | None:
    """The logarithm of a product of exponentials."""
    exponentials = all(isinstance(base, Call) and base.name == "exp" for base, _ in term.factors)
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
    raised = single(Call("pow", (), (x, rest)), exponent)
    return times(raised, power(x, whole[0].coefficient * exponent)) if whole else raised


def _product(factors: Sequence[Factor]) -> Sum:
    return (merged(Fraction(1), factors),)


def _raised(inside: Sum, exponent: Fraction, names: Names) -> Sum:
    """A power of a sum that is multiplied out: of a bracket the first coefficient is 1, and no exponent negative."""
    if exponent == 0:
        return ONE
    if not inside:
        if exponent < 0:
            raise NoFormula("it divides by 0")
        return ZERO
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
    return multiplied(before, single(Group(tuple(rest)), exponent), names)


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


def vanishes(total: Sum, names: Names) -> bool:
    """Whether a sum is 0 wherever it has a value; False proves nothing."""
    try:
        total = _divided(expanded(split_products(total, names), names), names)
        if not total:
            return True
        inverse = [(base, -exponent) for base, exponent in denominators(total)]
        whole = tuple([merged(term.coefficient, (*term.factors, *inverse), term.bound) for term in total])
        return not _divided(expanded(whole, names), names)
    except NoFormula:
        return False


def _divided(total: Sum, names: Names) -> Sum:
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


def _quotient(term: Term, names: Names) -> Sum | None:
    for base, exponent in term.factors:
        if not (isinstance(base, Group) and exponent <= -1):
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


def _sum_over_itself(term: Term, base: Group) -> Term | None:
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
