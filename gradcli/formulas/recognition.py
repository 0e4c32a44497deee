"""Shorter forms of sums in index notation: softmax and sigmoid where a script wrote exponentials, and what cancels."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, permutations
from math import prod
from typing import TYPE_CHECKING, Any

from gradcli.formulas.index_terms import (
    ONE,
    TRUTHS,
    ZERO,
    BracketedSum,
    EntrywiseCall,
    FreshIndices,
    Irrational,
    Term,
    Whole,
    add,
    base_key,
    denominators,
    free,
    free_of,
    free_of_term,
    key,
    merged,
    number,
    parts_of,
    power,
    scaled,
    single,
    times,
    value_of,
)

if TYPE_CHECKING:
    from gradcli.formulas.index_positions import Index
    from gradcli.formulas.index_terms import Factor, Sum

MOST_EXPANDED = 24  # terms of a product of brackets that is multiplied out to see whether terms cancel


def shortened(total: Sum, names: FreshIndices) -> Sum:
    """The same sum in fewer or better known terms."""
    terms = [_term(term, names) for term in total]
    return _branches(circles(_fewer(_oriented(add(*terms)))))


def _oriented(total: Sum) -> Sum:
    """The sum with x - y in brackets wherever it has y - x as well."""
    known: set[str] = set()
    turned = False
    terms = []
    for term in total:
        coefficient, factors = term.coefficient, []
        for base, exponent in term.factors:
            if isinstance(base, BracketedSum) and exponent.denominator == 1:
                names = {index: f"<{place}>" for place, index in enumerate(free_of(base))}
                opposite = BracketedSum(scaled(base.inside, -1))
                if base_key(opposite, names) in known:
                    base, coefficient, turned = opposite, coefficient * (-1) ** int(exponent), True
                known.add(base_key(base, names))
            factors.append((base, exponent))
        terms.append(Term(coefficient, tuple(factors), term.bound))
    return add(tuple(terms)) if turned else total


def _term(term: Term, names: FreshIndices) -> Sum:
    """A term after its factors have been shortened, and what they make together."""
    factors: list[Factor] = []
    coefficient, bound = term.coefficient, term.bound
    for base, exponent in term.factors:
        inner = _base(base, names)
        if isinstance(inner, tuple) and not hasattr(inner, "_fields"):  # a sum in place of brackets
            powered = power(inner, exponent)
            if not powered:
                return ()
            if len(powered) == 1:
                coefficient *= powered[0].coefficient
                factors += powered[0].factors
                bound = (*bound, *powered[0].bound)
                continue
            inner = BracketedSum(powered)
            exponent = Fraction(1)
        if isinstance(inner, BracketedSum) and exponent < 0 and exponent.denominator == 1:
            below = denominators(inner.inside)  # 1/(1/x + 1/y) as x*y/(x + y)
            factors += [(own, e * exponent) for own, e in below]
            above = [merged(c, (*own, *[(b, -e) for b, e in below]), i) for c, own, i in inner.inside] if below else ()
            inner = BracketedSum(shortened(tuple(above), names)) if below else inner
        factors.append((inner, exponent))
    whole = merged(coefficient, factors, bound)
    for rule in (_softmax, _sigmoid, _masks, _signs, _tangents, _powers, _conjugates):
        whole = whole._replace(factors=rule(whole.factors, names))
    whole = _without_totals(merged(whole.coefficient, whole.factors, whole.bound))
    return ZERO if _is_centred(whole) else _cancelled(whole)


def _is_centred(term: Term) -> bool:
    """Whether a term is the mean, weighted with a softmax, of what that mean was subtracted from, which is 0."""
    weighted = any(isinstance(base, Whole) and base.name == "softmax" for base, _ in term.factors)
    for place, (base, exponent) in enumerate(term.factors if weighted and term.bound else ()):
        if isinstance(base, BracketedSum) and exponent == 1 and len(base.inside) <= MOST_EXPANDED:
            rest = term.factors[:place] + term.factors[place + 1 :]
            parts = [_flat(term._replace(factors=(*rest, (BracketedSum((own,)), exponent)))) for own in base.inside]
            if not add(*[(_without_totals(part),) for part in parts]):
                return True
    return False


def _flat(term: Term) -> Term:
    """A term without brackets around single terms."""
    for place, (base, exponent) in enumerate(term.factors):
        if isinstance(base, BracketedSum) and exponent == 1 and len(base.inside) == 1:
            coefficient, inside, bound = base.inside[0]
            if set(bound).isdisjoint(term.bound):
                factors = (*term.factors[:place], *inside, *term.factors[place + 1 :])
                return _flat(merged(term.coefficient * coefficient, factors, (*term.bound, *bound)))
    return term


def _without_totals(term: Term) -> Term:
    """A term without sums over all entries of a softmax, which are 1."""
    for place, (base, exponent) in enumerate(term.factors):
        if isinstance(base, Whole) and base.name == "softmax" and exponent == 1 and base.at[-1] in term.bound:
            rest = term.factors[:place] + term.factors[place + 1 :]
            if not any(base.at[-1] in free_of(other) for other, _ in rest) and base.at[-1] not in base.at[:-1]:
                left = {i for other, _ in rest for i in free_of(other)}
                gone = [i for i in term.bound if i not in left]  # rows of the softmax: each has the total 1
                count = prod([i.size for i in gone if i != base.at[-1]])
                bound = tuple([i for i in term.bound if i in left])
                return _without_totals(Term(term.coefficient * count, rest, bound))
    return term


def _base(base: Any, names: FreshIndices) -> Any:
    if isinstance(base, BracketedSum):
        inside = shortened(base.inside, names)
        stays = len(inside) > 1 or (inside and inside[0].bound)
        return base if stays and inside == base.inside else inside
    if isinstance(base, EntrywiseCall):
        base = base._replace(args=tuple([shortened(arg, names) for arg in base.args]))
        alike = base.name == "where" and key(base.args[1]) == key(base.args[2])
        return base.args[1] if alike else base
    if isinstance(base, Whole):
        return _unshifted(base._replace(args=tuple([(own, shortened(arg, names)) for own, arg in base.args])))
    return base


def _unshifted(whole: Whole) -> Whole:
    """softmax(x - c) as softmax(x), where c is the same along the axis, such as the largest entry."""
    if whole.name not in ("softmax", "log_softmax"):
        return whole
    own, inside = whole.args[0]
    varying = tuple([term for term in inside if own[-1] in free_of_term(term)])
    return whole._replace(args=((own, varying),)) if varying else whole


def _with(factors: tuple[Factor, ...], exponents: dict[Any, Fraction], *more: Factor) -> tuple[Factor, ...]:
    """Factors with these exponents in place of their own, and more factors."""
    changed = [(base, exponents.get(base, exponent)) for base, exponent in factors]
    return tuple([factor for factor in (*changed, *more) if factor[1]])


# --- softmax: exp(x[i]) over the sum of exp(x[k]) ------------------------------------------------------------------


def _softmax(factors: tuple[Factor, ...], names: FreshIndices) -> tuple[Factor, ...]:
    for (base, exponent), (top, raised) in permutations(factors, 2):
        exponentials = _sum_of_exponentials(base) if exponent <= -1 and exponent.denominator == 1 else None
        if exponentials is None:
            continue
        index, inside = exponentials
        if isinstance(top, BracketedSum) and len(top.inside) == 1 and raised == 1:  # sum(v[i]*exp(x[i])) over it
            term = top.inside[0]
            joined = _softmax((*term.factors, (base, Fraction(-1))), names)
            if all(factor is not base for factor, _ in joined):
                weighted = BracketedSum((term._replace(factors=joined),)), raised
                return _softmax(_with(factors, {base: exponent + 1, top: Fraction(0)}, weighted), names)
        if not (isinstance(top, EntrywiseCall) and top.name == "exp" and raised >= 1):
            continue
        axis = _index_in_place(inside, index, top.args[0], names)
        rows = [i for i in free(inside) if i != index]  # of a matrix
        if axis is None or len(rows) > 1:
            continue
        count = min(raised, -exponent)
        own = {i: names.index(i.size) for i in (*rows, index)}
        whole = Whole("softmax", (), ((tuple(own.values()), names.put(inside, own)),), (*rows, axis))
        new = _unshifted(whole), count
        return _softmax(_with(factors, {base: exponent + count, top: raised - count}, new), names)
    return factors


def _sum_of_exponentials(base: Any) -> tuple[Index, Sum] | None:
    """The index and what stands in the exponent, where a base is a sum of exponentials over one index."""
    if isinstance(base, BracketedSum) and len(base.inside) == 1:
        term = base.inside[0]
        if term.coefficient == 1 and len(term.bound) == 1 and len(term.factors) == 1:
            inner, exponent = term.factors[0]
            if isinstance(inner, EntrywiseCall) and inner.name == "exp" and exponent == 1:
                return term.bound[0], inner.args[0]
    return None


def _index_in_place(inside: Sum, index: Index, other: Sum, names: FreshIndices) -> Index | None:
    """The index i with which other = inside[index -> i]."""
    alike = (i for i in free(other) if i.size == index.size and key(names.put(inside, {index: i})) == key(other))
    return next(alike, None)


# --- the logistic function ------------------------------------------------------------------------------------------


def _sigmoid(factors: tuple[Factor, ...], names: FreshIndices) -> tuple[Factor, ...]:
    """exp(u)/(1 + exp(u)) as sigmoid(u), and 1 - sigmoid(u) in a denominator as sigmoid(-u)."""
    factors = tuple([(_opposite(base) or base, e) if e < 0 else (base, e) for base, e in factors])
    for (top, raised), (base, exponent) in permutations(factors, 2):
        inside = _one_and_exponential(base) if exponent <= -1 and exponent.denominator == 1 else None
        if inside is not None and raised >= -exponent:  # else it is the script's own way to write s(u)*s(-u)
            if key(single(top)) == key(single(EntrywiseCall("exp", (), (inside,)))):
                new = EntrywiseCall("sigmoid", (), (inside,)), -exponent
                return _sigmoid(_with(factors, {top: raised + exponent, base: Fraction(0)}, new), names)
    return factors


def _beside_one(base: Any) -> tuple[str, Sum, Fraction, Fraction] | None:
    """The function, its argument, c and e, where a base is 1 + c*f(u)**e."""
    if isinstance(base, BracketedSum) and len(base.inside) == 2:
        for term, other in (base.inside, base.inside[::-1]):
            if term == ONE[0] and len(other.factors) == 1 and not other.bound:
                inner, exponent = other.factors[0]
                if isinstance(inner, EntrywiseCall) and len(inner.args) == 1:
                    return inner.name, inner.args[0], other.coefficient, exponent
    return None


def _opposite(base: Any) -> EntrywiseCall | None:
    """sigmoid(-u), where a base is 1 - sigmoid(u)."""
    name, inside, coefficient, exponent = _beside_one(base) or ("", ZERO, 0, 0)
    known = (name, coefficient, exponent) == ("sigmoid", -1, 1)
    return EntrywiseCall("sigmoid", (), (scaled(inside, -1),)) if known else None


def _one_and_exponential(base: Any) -> Sum | None:
    """u, where a base is 1 + exp(u)."""
    name, inside, coefficient, exponent = _beside_one(base) or ("", ZERO, 0, 0)
    return scaled(inside, exponent) if name == "exp" and coefficient == 1 and abs(exponent) == 1 else None


def _masks(factors: tuple[Factor, ...], names: FreshIndices) -> tuple[Factor, ...]:
    """A condition once, and u > 0 not at all beside relu(u)."""
    positive = {
        key(base.args[0]) for base, e in factors if isinstance(base, EntrywiseCall) and base.name == "relu" and e > 0
    }
    changed: list[Factor] = []
    for base, exponent in factors:
        if isinstance(base, EntrywiseCall) and base.name in TRUTHS and exponent > 0:
            if base.name == "greater" and not base.args[1] and key(base.args[0]) in positive:
                continue
            changed.append((base, Fraction(1)))
        else:
            changed.append((base, exponent))
    return tuple(changed)


def _signs(factors: tuple[Factor, ...], names: FreshIndices) -> tuple[Factor, ...]:
    """sign(u)/abs(u) as 1/u, and sign(u)*abs(u) as u."""
    for (base, exponent), (sign, raised) in permutations(factors, 2):
        if raised >= 1 and abs(exponent) >= 1 and _are_beside(base, "abs", sign, "sign"):
            way = 1 if exponent > 0 else -1
            u = power(base.args[0], way)
            if len(u) > 1 and way > 0:
                u = (Term(Fraction(1), ((BracketedSum(u), Fraction(1)),), ()),)
            if len(u) == 1 and u[0].coefficient == 1 and not u[0].bound:
                return _signs(_with(factors, {base: exponent - way, sign: raised - 1}, *u[0].factors), names)
    return factors


def _tangents(factors: tuple[Factor, ...], names: FreshIndices) -> tuple[Factor, ...]:
    """sin(u)/cos(u) as tan(u), and sinh(u)/cosh(u) as tanh(u)."""
    for (top, raised), (base, exponent) in permutations(factors, 2):
        if raised == -exponent > 0 and any(_are_beside(top, f"sin{h}", base, f"cos{h}") for h in ("", "h")):
            new = top._replace(name=top.name.replace("sin", "tan")), raised
            return _tangents(_with(factors, {top: Fraction(0), base: Fraction(0)}, new), names)
    return factors


def _are_beside(base: Any, name: str, other: Any, name_there: str) -> bool:
    """Whether two factors are these functions of the same."""
    calls = isinstance(base, EntrywiseCall) and isinstance(other, EntrywiseCall)
    return calls and (base.name, other.name) == (name, name_there) and key(base.args[0]) == key(other.args[0])


def _powers(factors: tuple[Factor, ...], names: FreshIndices) -> tuple[Factor, ...]:
    """x*x**(y - 1) as x**y, and x**(y - 1)/(x**y)**2 as x**(-y - 1)."""
    for (base, exponent), (top, raised) in permutations(factors, 2):
        if not (isinstance(base, EntrywiseCall) and base.name == "pow"):
            continue
        alike = isinstance(top, EntrywiseCall) and top.name == "pow" and key(top.args[0]) == key(base.args[0])
        if alike or (exponent == 1 and key(single(top)) == key(base.args[0])):
            total = add(scaled(base.args[1], exponent), scaled(top.args[1], raised) if alike else number(raised))
            if _weight(total) < _weight(base.args[1]) + (_weight(top.args[1]) if alike else 0):
                way = -1 if all(term.coefficient < 0 for term in total) else 1
                whole, n = EntrywiseCall("pow", (), (base.args[0], scaled(total, way))), value_of(total)
                new = (whole, Fraction(way)) if n is None else (BracketedSum(base.args[0]), n)
                return _powers(_with(factors, {base: Fraction(0), top: Fraction(0)}, new), names)
    return factors


def _conjugates(factors: tuple[Factor, ...], names: FreshIndices) -> tuple[Factor, ...]:
    """(1 - x)*(1 + x) as 1 - x**2."""
    brackets = [f for f in factors if f[1].denominator == 1 and len(getattr(f[0], "inside", ())) == 2]
    for (left, exponent), (right, raised) in combinations(brackets, 2):
        product = _expanded(left.inside, right.inside) if exponent == raised else left.inside + right.inside
        if _weight(product) < _weight(left.inside + right.inside):
            new = BracketedSum(product), exponent
            return _conjugates(_with(factors, {left: Fraction(0), right: Fraction(0)}, new), names)
    return factors


def circles(total: Sum) -> Sum:
    """The sum with 1 in place of sin(x)**2 + cos(x)**2 and of cosh(x)**2 - sinh(x)**2."""
    for first, second in permutations(total, 2):
        for base, exponent in first.factors:
            name = base.name if isinstance(base, EntrywiseCall) and exponent == 2 else ""
            other, sign = {"cos": ("sin", 1), "cosh": ("sinh", -1)}.get(name, ("", 0))
            if other and second.coefficient == sign * first.coefficient:
                left, right = ((own, Fraction(-2)) for own in (base, base._replace(name=other)))
                both = merged(first.coefficient, (*first.factors, left), first.bound)
                if key((both,)) == key((merged(first.coefficient, (*second.factors, right), second.bound),)):
                    return circles(add(tuple([term for term in total if term not in (first, second)]), (both,)))
    return total


def _branches(total: Sum) -> Sum:
    """where(c, x, 0) + where(not c, y, 0) as where(c, x, y)."""
    branches = [_branch(term) for term in total]
    for place, branch in enumerate(branches):
        opposite = None if branch is None else key(single(EntrywiseCall("not", (), (branch[0],))))
        for other_place, other in enumerate(branches):
            if branch is not None and other is not None and key(other[0]) == opposite:
                rest = [part for at, part in enumerate(total) if at not in (place, other_place)]
                return _branches(add(tuple(rest), single(EntrywiseCall("where", (), (branch[0], branch[1], other[1])))))
    return total


def _branch(term: Term) -> tuple[Sum, Sum] | None:
    """The condition outside of which a term is 0, and what it is where that holds."""
    base = term.factors[0][0] if len(term.factors) == 1 and not term.bound and term.factors[0][1] == 1 else None
    if isinstance(base, EntrywiseCall) and base.name == "where" and not base.args[2]:
        return base.args[0], scaled(base.args[1], term.coefficient)
    if isinstance(base, EntrywiseCall) and base.name in TRUTHS:
        return single(base), number(term.coefficient)
    return None


# --- what cancels ---------------------------------------------------------------------------------------------------


def _cancelled(term: Term) -> Sum:
    """A term whose factors are multiplied into a bracket where that makes denominators in it go."""
    for place, (base, exponent) in enumerate(term.factors):
        if not (isinstance(base, BracketedSum) and exponent == 1):
            continue
        rest = term.factors[:place] + term.factors[place + 1 :]
        tops = {base_key(top, {}): (top, raised) for top, raised in rest if raised >= 1}
        below = {base_key(top, {}) for inner in base.inside for top, raised in inner.factors if raised <= -1}
        taken = [factor for own, factor in tops.items() if own in below]
        if taken:
            left = [factor for factor in rest if factor not in taken]
            inside = [(merged(inner.coefficient, (*inner.factors, *taken), inner.bound),) for inner in base.inside]
            total = _fewer(add(*inside))
            if not left and not term.bound:
                return scaled(total, term.coefficient)
            if len(total) == 1:
                c, inner, bound = total[0]
                return (merged(term.coefficient * c, (*left, *inner), (*term.bound, *bound)),)
            return (merged(term.coefficient, (*left, (BracketedSum(total), Fraction(1))), term.bound),)
    return (term,)


def _fewer(total: Sum) -> Sum:
    """The sum, multiplied out where that leaves fewer factors; sigmoid(-u) is 1 - sigmoid(u) then."""
    size = _weight(total)
    if not 1 < len(total) <= MOST_EXPANDED:
        return total
    parts = [(term,) if term.bound else multiplied_out(term, MOST_EXPANDED) for term in total]
    shorter = add(*[total if part is None else part for part in parts])
    return shorter if _weight(shorter) < size else total


def multiplied_out(term: Term, most: int) -> Sum | None:
    """A product without brackets; None where that makes too many terms."""
    product: Sum = number(term.coefficient)
    for base, exponent in term.factors:
        product = _expanded(product, _opened(base, exponent))
        if len(product) > most:
            return None
    return product


def _opened(base: Any, exponent: Fraction) -> Sum:
    """A factor that is multiplied out: a bracket as its terms, sigmoid(-u) as 1 - sigmoid(u)."""
    if isinstance(base, BracketedSum) and exponent == 1:
        return base.inside
    negative = isinstance(base, EntrywiseCall) and any(term.coefficient < 0 for term in base.args[0][:1])
    if negative and base.name == "sigmoid" and exponent == 1:
        return add(ONE, scaled(single(EntrywiseCall("sigmoid", (), (scaled(base.args[0], -1),))), -1))
    return single(base, exponent)


def _expanded(left: Sum, right: Sum) -> Sum:
    def both(x: Term, y: Term) -> Sum:
        plain = not (x.bound or y.bound)
        return (merged(x.coefficient * y.coefficient, (*x.factors, *y.factors)),) if plain else times((x,), (y,))

    return add(*[both(x, y) for x in left for y in right])


def _weight(total: Sum) -> int:
    """How much there is to read."""
    count = 0
    for term in total:
        count += 1
        for base, _ in term.factors:
            count += 1 if isinstance(base, Irrational) else 2
            count += 0 if isinstance(base, Whole) else sum(map(_weight, parts_of(base)))
    return count
