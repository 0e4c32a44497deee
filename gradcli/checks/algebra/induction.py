"""Proofs of gradients through loops, whatever the number of iterations: by induction over the iterations.

A reverse loop carries cotangents c of the state s and accumulators a of the fixed values p. The sum c*ds + a*dp is the
same before and after an iteration exactly if the loop transposes the derivative of one iteration. That is an identity
between normal forms in symbols for s, p and c, so one proof serves all iterations. Before and behind the loops the
chain rule is followed through the rest of the program. Which carry of the reverse loop belongs to which value is
guessed from their order; a wrong guess is an identity that fails. Masks of cotangents are settled iteration by
iteration until they repeat.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli.checks.algebra import proof
from gradcli.checks.algebra.differential_field import SIZES, Tower
from gradcli.checks.algebra.elementary_functions import TowerDerivation
from gradcli.checks.algebra.proof import ClaimForms, ClaimOptions, answered, form_of, in_rings
from gradcli.checks.evaluate.evaluation import FieldEvaluation
from gradcli.checks.evaluate.interpretation import Entries, Failure, Undecided, Unsupported
from gradcli.graph.loop import loop_key, loop_of, readers_by_loop
from gradcli.graph.node import LEAF, dependents, is_reader, reachable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gradcli.checks.algebra.differential_field import Form
    from gradcli.checks.algebra.proof import Answer
    from gradcli.checks.evaluate.balls import Point
    from gradcli.graph.loop import Body, Loop
    from gradcli.graph.node import Node

    Known = dict[Node, Entries]
    Slopes = Mapping[int, list[Form]]  # by carries
    Pairing = dict[int, int]
    Patterns = tuple[list[tuple[Known, list[Entries]]], Known]

MOST_GUESSES = 64  # at which carries belong to each other
MOST_ENTRIES = 64  # of a body that is read in symbols
MOST_PATTERNS = 8  # of masks


class DifferentialTerm(NamedTuple):
    """A part of the differential of the output: a weight times the differential of a form."""

    weight: Any
    form: Form


def prove_derivative(
    output: Node, target: Node, right: Node, moving: Sequence[str], point: Point, entries: Sequence[int], **about: Any
) -> Answer:
    """As `proof.prove_derivative`, and where loops grow too long in symbols, by induction over their iterations."""
    answer = proof.prove_derivative(output, target, right, moving, point, entries, **about)
    decided = answer["proved"] or not answer.get("budget", True)  # proved, or the two sides differ
    if decided or target.primitive is not LEAF or not readers_by_loop(reachable([output])):
        return answer

    def attempt(claim: ClaimForms) -> Answer:
        claim.leaves(reachable([output, target, right]), moving, target, entries)
        return {**_Proof(claim, output, target, right).answer(entries), "induction": True}

    return in_rings(attempt, point)[0]


class _Proof:
    """The chain rule through a program with loops, against a gradient with reverse loops."""

    def __init__(self, claim: ClaimForms, output: Node, target: Node, right: Node) -> None:
        self.claim = claim
        self.output, self.target, self.right = output, target, right
        order = reachable([output, target, right])
        forward = readers_by_loop(reachable([output]))
        keys = [loop_key(first) for first in forward]
        self.moved = dependents(order, {target})
        self.forward = [loop_of(first) for first, readers in forward.items() if not self.moved.isdisjoint(readers)]
        backward = readers_by_loop(order).items()
        self.backward = [readers for first, readers in backward if loop_key(first) not in keys]
        carries = [node for node in order if is_reader(node) and "carry" in node.params and node.type.kind == "float"]
        self.known: Known = {node: claim.unknown(f"v{node.serial}", node) for node in carries}
        self.ends = {(loop_key(node), node.params["carry"]): node for node in self.known}

    def answer(self, entries: Sequence[int]) -> dict[str, Any]:
        claim, target = self.claim, self.target
        terms = [DifferentialTerm(1, self.forms(self.output, held=True)[0])]
        pairs: list[tuple[Any, Any]] = []
        free = list(self.backward)
        for loop in reversed(self.forward):
            ends = self.slopes(terms, loop)
            if all(slope.is_zero for flat in ends.values() for slope in flat):
                continue
            for readers in free:
                iteration = _Iteration(self, loop, readers)
                transposed = iteration.transposed(ends)
                if transposed is not None:
                    break
            else:
                raise Unsupported("no backward loop that is the transpose of an iteration")
            free.remove(readers)
            pairs += transposed.pairs
            terms += transposed.terms
        claimed = self.read(claim.plain, self.right).flat
        variables = claim.point[target.params["name"]].flat
        for i in entries:
            pairs.append((self.slope(terms, form_of(claim.tower, variables[i])), claimed[i]))
        return answered(claim, pairs)

    def slopes(self, terms: Sequence[DifferentialTerm], loop: Loop) -> Slopes:
        """The derivative of the output by each carry after the last iteration, by entry; other loops stay."""
        key = (loop.args, loop.body, loop.count, loop.reverse)
        ends = {carry: self.known[node].flat for (owner, carry), node in self.ends.items() if owner == key}
        return {carry: [self.slope(terms, symbol) for symbol in flat] for carry, flat in ends.items()}

    def slope(self, terms: Sequence[DifferentialTerm], symbol: Form) -> Form:
        """The derivative by a symbol of what the terms are the differential of."""
        derivation = TowerDerivation(symbol)
        return self.total([term.weight * derivation.of(term.form) for term in terms])

    def total(self, forms: Sequence[Any]) -> Form:
        total: Form = form_of(self.claim.tower, self.claim.plain.total(forms))
        return total

    def forms(self, node: Node, held: bool = False) -> list[Form]:
        """The forms of the entries of a node outside the loops; `held` keeps what is detached constant."""
        claim = self.claim
        entries = self.read(claim.holding if held else claim.plain, node)
        return [form_of(claim.tower, entry) for entry in entries.flat]

    def read(self, field: Any, node: Node) -> Entries:
        for inner in needed([node], self.known):
            if is_reader(inner) and (inner in self.moved or inner.type.size > MOST_ENTRIES):
                raise Unsupported("the values of all iterations of a loop")
        return FieldEvaluation(field, self.claim.point, self.known)[node]


class Transposed(NamedTuple):
    """What a reverse loop does to the differential of the output, and what remains to be shown of its inputs."""

    terms: list[DifferentialTerm]
    pairs: list[tuple[Any, Any]]


class _Iteration:
    """One iteration of a loop and one of a reverse loop, in symbols; nothing is known of the values of the symbols."""

    def __init__(self, outside: _Proof, loop: Loop, readers: Sequence[Node]) -> None:
        self.outside = outside
        self.loop = loop
        self.back = loop_of(readers[0])
        self.key = loop_key(readers[0])
        self.claim = ClaimForms(Tower(SIZES[1]), {}, ClaimOptions())
        self.field = self.claim.plain

    def transposed(self, ends: Slopes) -> Transposed | None:
        """The terms that a reverse loop leaves, given the slopes after the last iteration; None if no transpose."""
        loop, back = self.loop, self.back
        if loop.count != back.count or loop.reverse == back.reverse:
            return None
        size = sum(leaf.type.size for leaf in (*loop.body.inputs, *back.body.carried))
        if size > MOST_ENTRIES or any(arg in self.outside.moved for arg in self.rows(loop)):
            return None
        if not self._give_symbols():
            return None
        self.floats = [q for q, leaf in enumerate(back.body.carried) if leaf.type.kind == "float"]
        carried = back.body.carried
        masks = [q for q, leaf in enumerate(carried) if leaf.type.kind == "bool" and q - 1 in self.floats]
        self.masks = {q - 1: q for q in masks if carried[q].shape == carried[q - 1].shape}
        self.moving = self._moving()
        patterns = self._patterns()
        for pairing in self._guesses():
            transposed = self._checked(pairing, patterns, ends)
            if transposed is not None:
                return transposed
        return None

    @staticmethod
    def rows(loop: Loop) -> tuple[Node, ...]:
        first = len(loop.body.carried)
        return loop.args[first : first + len(loop.body.rows)]

    @staticmethod
    def fixed(loop: Loop) -> tuple[Node, ...]:
        return loop.args[len(loop.body.carried) + len(loop.body.rows) :]

    # --- the iteration in symbols ---------------------------------------------------------------------------

    def _give_symbols(self) -> bool:
        """Give the leaves of both bodies their symbols; False where they read what cannot be named."""
        loop, back, field = self.loop, self.back, self.field
        body = loop.body
        leaves: Known = {}
        for k, leaf in enumerate((*body.carried, *body.rows, *([] if body.index is None else [body.index]))):
            leaves[leaf] = self.claim.unknown(f"state{k}", leaf)
        outer = self._outer()
        values: Known = {}
        for k, (leaf, arg) in enumerate(zip(body.fixed, self.fixed(loop), strict=True)):
            flat = [field.held(f"fixed{k}[{i}]", entry) for i, entry in enumerate(outer(arg).flat)]
            values[arg] = leaves[leaf] = Entries(flat, leaf.shape)
        self.leaves = leaves
        self.nexts = self._read(self.claim.holding, leaves, body.nexts)
        rows = {arg: leaves[leaf] for leaf, arg in zip(body.rows, self.rows(loop), strict=True)}
        own = (loop.args, body, loop.count, loop.reverse)
        steps = [arg for arg in self.rows(back) if is_reader(arg) and loop_key(arg) == own]
        plain = self._read(field, leaves, [body.steps[arg.params["at"]] for arg in steps])
        rows.update(zip(steps, plain, strict=True))
        if not rows.keys() >= {*self.rows(back)}:
            return False
        self.inner: Known = {leaf: rows[arg] for leaf, arg in zip(back.body.rows, self.rows(back), strict=True)}
        for leaf, arg in zip(back.body.fixed, self.fixed(back), strict=True):
            self.inner[leaf] = values.get(arg) or outer(arg)
        if back.body.index is not None:
            iteration = self.claim.unknown("iteration", back.body.index) if body.index is None else leaves[body.index]
            self.inner[back.body.index] = iteration
        floats = [(q, leaf) for q, leaf in enumerate(back.body.carried) if leaf.type.kind == "float"]
        self.cotangents = {leaf: self.claim.unknown(f"cotangent{q}", leaf) for q, leaf in floats}
        return True

    def _outer(self) -> Callable[[Node], Entries]:
        """What reads values outside the loops: leaves, arrays of data and loops are symbols, whatever they hold."""
        known: Known = {}

        def read(node: Node) -> Entries:
            for inner in needed([node], known):
                if inner.primitive is LEAF or is_reader(inner) or inner.type.size > MOST_ENTRIES:
                    if inner.type.size > MOST_ENTRIES:
                        raise Unsupported("a large array inside a loop")
                    known[inner] = self.claim.unknown(f"outer{inner.serial}", inner)
            return FieldEvaluation(self.field, {}, known)[node]

        return read

    def _read(self, field: Any, leaves: Known, nodes: Sequence[Node]) -> list[Entries]:
        return FieldEvaluation(field, {}, leaves).read(nodes) if nodes else []

    # --- masks ----------------------------------------------------------------------------------------------------

    def _patterns(self) -> Patterns:
        """The masks before each kind of iteration with the carries after it, and the masks after the last iteration."""
        back = self.back
        carried = zip(back.body.carried, back.args, strict=False)
        starts = {leaf: arg for leaf, arg in carried if leaf.type.kind == "bool"}
        masks: Known = {leaf: self.outside.read(self.outside.claim.plain, arg) for leaf, arg in starts.items()}
        seen: list[Any] = []
        iterations: list[tuple[Known, list[Entries]]] = []
        while (key := [x for mask in masks.values() for x in mask.flat]) not in seen:
            if not all(type(x) is bool for x in key):
                raise Undecided("a mask that depends on the iteration")
            if len(seen) == MOST_PATTERNS:
                raise Undecided("masks that keep changing from iteration to iteration")
            seen.append(key)
            after = self._read(self.field, {**self.inner, **self.cotangents, **masks}, back.body.nexts)
            iterations.append((masks, after))
            masks = {leaf: end for leaf, end in zip(back.body.carried, after, strict=True) if leaf in starts}
        again = seen.index(key)
        left = back.count if back.count < len(seen) else again + (back.count - again) % (len(seen) - again)
        return iterations[: min(len(iterations), back.count)], iterations[left][0] if left < len(iterations) else masks

    def _counted(self, entries: Sequence[Any], q: int, masks: Known) -> list[Any]:
        """Entries of a cotangent where its mask says that they count, else 0."""
        if q not in self.masks:
            return list(entries)
        mask = masks[self.back.body.carried[self.masks[q]]].flat
        return [x if counts else 0 for x, counts in zip(entries, mask, strict=True)]

    # --- which cotangent is whose -------------------------------------------------------------------------------------

    def _guesses(self) -> Iterator[Pairing]:
        """Which carry of the reverse loop is whose: cotangents come first there, in the order of the carries."""
        forward, backward = self.loop.body.carried, self.back.body.carried
        theirs = [k for k, leaf in enumerate(forward) if leaf.type.kind == "float"]
        left = MOST_GUESSES
        for count in range(min(len(theirs), len(self.floats)), -1, -1):
            for chosen in combinations(theirs, count):
                pairing = dict(zip(chosen, self.floats, strict=False))
                if all(forward[k].shape == backward[q].shape for k, q in pairing.items()):
                    left -= 1
                    if left < 0:
                        return
                    yield pairing

    def _checked(self, pairing: Pairing, patterns: Patterns, ends: Slopes) -> Transposed | None:
        """The terms that the reverse loop leaves under a guess; None where the guess, or the loop, is wrong."""
        loop, back, outside = self.loop, self.back, self.outside
        body, iterations, last = loop.body, *patterns
        still = self._still({k: flat for k, flat in ends.items() if k not in pairing})
        if still is None:
            return None
        accumulators: Pairing = {}
        for masks, after in iterations:
            arriving: dict[int, list[Any]] = dict(still)
            leaving: dict[int, list[Any]] = dict(still)
            now = {leaf: end for leaf, end in zip(back.body.carried, after, strict=True) if leaf.type.kind == "bool"}
            for k, q in pairing.items():
                arriving[k] = self._counted(self.cotangents[back.body.carried[q]].flat, q, masks)
                leaving[k] = self._counted(after[q].flat, q, now)
            for k, leaf in enumerate(body.carried):
                if (k in leaving or leaf in self.moving) and not self._equal(leaving.get(k), arriving, leaf):
                    return None
            for place, (leaf, arg) in enumerate(zip(body.fixed, self.fixed(loop), strict=True)):
                if arg not in outside.moved:
                    continue
                free = [q for q in self.floats if q not in (*pairing.values(), *accumulators.values())]
                for q in [accumulators[place]] if place in accumulators else free:
                    symbols = self.cotangents[back.body.carried[q]].flat
                    grown = [x - y for x, y in zip(after[q].flat, symbols, strict=True)]
                    if len(grown) == leaf.type.size and self._equal(grown, arriving, leaf):
                        accumulators[place] = q
                        break
                else:
                    if place in accumulators or not self._equal(None, arriving, leaf):
                        return None
        return self._sent(pairing, accumulators, ends, iterations[0][0], last)

    def _sent(self, pairing: Pairing, accumulators: Pairing, ends: Slopes, first: Known, last: Known) -> Transposed:
        loop, back, outside = self.loop, self.back, self.outside
        terms: list[DifferentialTerm] = []
        pairs: list[tuple[Any, Any]] = []
        for leaf, end in last.items():
            q = back.body.carried.index(leaf)
            for node in reachable([outside.right]):
                if is_reader(node) and loop_key(node) == self.key and node.params.get("carry") == q:
                    outside.known[node] = end
        for k, q in pairing.items():  # what arrives at the end of the loop is what the reverse loop begins with
            begins = self._counted(outside.forms(back.args[q]), q, first)
            pairs += zip(ends.get(k, [0] * loop.args[k].type.size), begins, strict=True)
        for k, arg in enumerate(loop.args[: len(loop.body.carried)]):
            if arg.type.kind == "float" and arg in outside.moved and (k in pairing or k in ends):
                weights = self._counted(self._end(pairing[k]), pairing[k], last) if k in pairing else ends[k]
                terms += map(DifferentialTerm, weights, outside.forms(arg, held=True))
        for place, q in accumulators.items():
            values = outside.forms(self.fixed(loop)[place], held=True)
            start = outside.forms(back.args[q])
            terms += [DifferentialTerm(x - y, form) for x, y, form in zip(self._end(q), start, values, strict=True)]
        return Transposed(terms, pairs)

    def _end(self, q: int) -> list[Any]:
        """The symbols of a carry of the reverse loop after its last iteration."""
        node = self.outside.ends.get((self.key, q))
        if node is not None:
            return self.outside.known[node].flat
        start = self.back.args[q]
        return self.outside.claim.unknown(f"end{start.serial}.{q}", start).flat

    def _still(self, ends: Slopes) -> dict[int, list[Any]] | None:
        """Cotangents that stay the same: numbers, or fixed values of the reverse loop. None if one is neither."""
        steady: dict[int, list[Any]] = {}
        outside, back = self.outside, self.back
        for k, forms in ends.items():
            if all(form.is_zero for form in forms):
                continue
            numbers = [form.rational() for form in forms]
            if None not in numbers:
                steady[k] = numbers
                continue
            for leaf, arg in zip(back.body.fixed, self.fixed(back), strict=True):
                if leaf.type.kind == "float" and arg.type.size == len(forms):
                    pairs = zip(forms, outside.forms(arg), strict=True)
                    if answered(outside.claim, pairs)["proved"]:
                        steady[k] = self.inner[leaf].flat
                        break
            else:
                return None
        return steady

    # --- identities ---------------------------------------------------------------------------------------------------

    def _pulled(self, arriving: Mapping[int, Sequence[Any]], leaf: Node) -> list[Form]:
        """The cotangents of a leaf before an iteration, derived from its forms and those of the carries after it."""
        tower = self.claim.tower
        pairs = [pair for k, flat in arriving.items() for pair in zip(flat, self.nexts[k].flat, strict=True)]
        pulled = []
        for symbol in self.leaves[leaf].flat:
            slope = TowerDerivation(form_of(tower, symbol))
            parts = [cotangent * slope.of(form_of(tower, entry)) for cotangent, entry in pairs]
            pulled.append(form_of(tower, self.field.total(parts)))
        return pulled

    def _equal(self, ours: Sequence[Any] | None, arriving: Mapping[int, Sequence[Any]], leaf: Node) -> bool:
        """Whether the cotangents of a leaf before an iteration are ours (None: all 0), without any sign being used."""
        theirs = self._pulled(arriving, leaf)
        expected = [0] * len(theirs) if ours is None else ours
        if any(isinstance(x, Failure) for x in expected):
            return False
        answer = answered(self.claim, zip(expected, theirs, strict=True))
        return bool(answer["proved"] and not answer["assumed"])

    def _moving(self) -> set[Node]:
        """The carries that move with the target in any iteration, and the other leaves that do."""
        body: Body = self.loop.body
        moving = {leaf for leaf, arg in zip(body.inputs, self.loop.args, strict=True) if arg in self.outside.moved}
        while True:
            reached = {*moving, *dependents(body.steps, moving)}
            more = {leaf for leaf, after in zip(body.carried, body.nexts, strict=True) if after in reached} - moving
            if not more:
                return moving
            moving |= more


def needed(nodes: Sequence[Node], known: Mapping[Node, Entries]) -> list[Node]:
    """What some nodes are computed from where others are known, in order, up to what reads loops."""
    inner: set[Node] = set()
    pending = list(nodes)
    while pending:
        node = pending.pop()
        if node not in inner and node not in known:
            inner.add(node)
            pending += () if is_reader(node) else node.args
    return sorted(inner, key=lambda node: node.serial)
