# needs_input_grad says which gradients are needed; arguments that are not tensors get None.
import torch


class ScaledProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b, scale):
        ctx.save_for_backward(a, b)
        ctx.scale = scale
        return a * b * scale

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        print("wanted:", ctx.needs_input_grad)
        return (
            g * b * ctx.scale if ctx.needs_input_grad[0] else None,
            g * a * ctx.scale if ctx.needs_input_grad[1] else None,
            None,
        )


a = torch.tensor(2.0, requires_grad=True)
b = torch.tensor(5.0)
ScaledProduct.apply(a, b, 10).backward()
print(a.grad, b.grad)
