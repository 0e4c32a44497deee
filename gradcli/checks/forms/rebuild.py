"""A form goes in, the same form comes out with what was held as a constant, or named, written out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flint import fmpq

from gradcli.checks.forms.angles import angle
from gradcli.checks.forms.exponentials import exp, log, power
from gradcli.checks.forms.functions import RULES, function, polygamma
from gradcli.checks.forms.ring import Form

if TYPE_CHECKING:
    from gradcli.checks.forms.ring import Generator


WRITTEN_OUT = ("held", "named", "inverse")


def released(form: Form, known: dict[int, Form], naming: bool) -> Form:
    """A form without held or named generators, but for new names of long powers where there is `naming`.

    `known` keeps what became of each generator.
    """
    tower = form.tower
    before, tower.naming = tower.naming, naming
    apart, tower.inverting = tower.inverting, tower.inverting and naming
    try:
        form = tower.made(form.num, form.den)
        return _polynomial(form, form.num, known) / _polynomial(form, form.den, known)
    finally:
        tower.naming, tower.inverting = before, apart


def _polynomial(form: Form, poly: Any, known: dict[int, Form]) -> Form:
    tower = form.tower
    used = [i for i, n in enumerate(poly.degrees()) if n > 0]
    now = {i: _generator(form, i, known) for i in used}
    changed = [i for i in used if not now[i].same(tower.gen(i))]
    if not changed:
        return tower.poly(poly)
    parts: dict[tuple[int, ...], dict[Any, Any]] = {}
    for powers, coefficient in poly.terms():
        key = tuple(int(powers[i]) for i in changed)
        rest = tuple(0 if i in changed else n for i, n in enumerate(powers))
        parts.setdefault(key, {})[rest] = coefficient
    total = tower.zero
    for key, part in parts.items():
        term = tower.poly(tower.ring.from_dict(part))
        for i, n in zip(changed, key, strict=True):
            term = term * now[i] ** n
        total = total + term
    return total


def _generator(form: Form, index: int, known: dict[int, Form]) -> Form:
    found = known.get(index)
    if found is None:
        tower = form.tower
        one = tower.generators[index]
        args = [released(arg, known, form.tower.naming) for arg in one.args]
        same = all(new.same(old) for new, old in zip(args, one.args, strict=True))
        found = known[index] = tower.gen(index) if same and one.kind not in WRITTEN_OUT else _made(one, args)
    return found


def _made(one: Generator, args: list[Form]) -> Form:
    if one.kind in ("held", "named"):
        return args[0]
    if one.kind == "inverse":
        return args[0].inverse()
    if one.kind == "exp":
        return exp(args[0] * one.unit)
    if one.kind == "log":
        return log(args[0])
    if one.kind == "root":
        return power(args[0], fmpq(1, one.degree))
    if one.kind == "angle":
        return angle(*args)
    if one.name == "polygamma":
        number = args[0].rational()
        assert number is not None
        return polygamma(int(number.p), args[1])
    rule = RULES.get(one.name)
    return function(one.name, *args) if rule is None else rule(*args)
