# A scalar engine in thirty lines against the library, on one expression.
import torch


class Value:
    def __init__(self, data, parents=(), pull=None):
        self.data, self.parents, self.pull, self.grad = data, parents, pull, 0.0

    def __add__(self, other):
        return Value(self.data + other.data, (self, other), lambda g: (g, g))

    def __mul__(self, other):
        return Value(self.data * other.data, (self, other), lambda g: (g * other.data, g * self.data))

    def relu(self):
        return Value(max(self.data, 0.0), (self,), lambda g: (g if self.data > 0 else 0.0,))

    def backward(self):
        order, seen, stack = [], set(), [(self, False)]
        while stack:
            node, done = stack.pop()
            if done:
                order.append(node)
            elif node not in seen:
                seen.add(node)
                stack.append((node, True))
                stack.extend((parent, False) for parent in node.parents)
        self.grad = 1.0
        for node in reversed(order):
            if node.pull:
                for parent, g in zip(node.parents, node.pull(node.grad)):
                    parent.grad += g


def expression(a, b, relu):
    c = a * b + b * b
    return relu(c + a) * c


a, b = Value(-2.0), Value(3.0)
out = expression(a, b, Value.relu)
out.backward()
s, t = torch.tensor(-2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
ref = expression(s, t, torch.relu)
ref.backward()
print(out.data, ref.item())
print(a.grad, s.grad.item(), b.grad, t.grad.item())
