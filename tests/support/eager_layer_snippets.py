"""Small programs over layers of images, sequences and attention, by name: convolution, pooling, norms, recurrence."""

from __future__ import annotations

from tests.support.eager_training_snippets import _STATE, END

DATA = """
F, nn = torch.nn.functional, torch.nn
torch.manual_seed(0)
x = torch.randn(2, 4, 6, 6, requires_grad=True)
x3 = torch.randn(4, 6, 6, requires_grad=True)
x1 = torch.randn(2, 4, 9, requires_grad=True)
x5 = torch.randn(1, 2, 4, 4, 4, requires_grad=True)
w, b = torch.randn(6, 4, 3, 3, requires_grad=True), torch.randn(6, requires_grad=True)
w1 = torch.randn(6, 4, 3, requires_grad=True)
wg = torch.randn(8, 2, 3, 3, requires_grad=True)
w5 = torch.randn(3, 2, 2, 2, 2, requires_grad=True)
"""
_CALLS = [
    "F.conv2d(x,w,b)",
    "F.conv2d(x,w)",
    "F.conv2d(x3,w,b)",
    "F.conv1d(x1,w1,b)",
    "F.conv1d(x1[0],w1,b,stride=2,padding=1)",
    "F.conv2d(x,w,b,padding='same')",
    "F.conv2d(x,w,b,padding='valid')",
    "F.conv2d(x,w,b,padding='foo')",
    "F.conv2d(x,w,b,padding='same',stride=2)",
    "F.conv1d(x1,w1,b,padding='same',dilation=2)",
    "F.conv2d(x,wg,groups=2)",
    "F.conv2d(x,wg,groups=3)",
    "F.conv2d(x,wg)",
    "F.conv2d(x,wg,groups=0)",
    "F.conv2d(x,w,b,stride=(2,1),padding=(1,2),dilation=(1,2))",
    "F.conv2d(x,w,b,stride=0)",
    "F.conv2d(x,w,b,padding=-1)",
    "F.conv2d(x,w,b,dilation=0)",
    "F.conv2d(x,w,b,stride=(1,2,3))",
    "F.conv2d(x,w,b[:3])",
    "F.conv2d(x,w.double(),b)",
    "F.conv2d(x[0,0],w,b)",
    "F.conv2d(x.long(),w.long())",
    "F.conv2d(x,w1)",
    "F.conv2d(x,w,stride='a')",
    "F.conv2d(x[:,:,:2],w)",
    "F.conv2d(x,3)",
    "F.conv3d(x5,w5)",
    "F.max_pool2d(x,2)",
    "F.max_pool2d(x3,2)",
    "F.max_pool2d(x,3,2,1)",
    "F.max_pool2d(x,3,2,1,ceil_mode=True)",
    "F.max_pool2d(x,(2,3),stride=1,dilation=2)",
    "F.max_pool2d(x,3,2,2)",
    "F.max_pool2d(x,0)",
    "F.max_pool2d(x,7)",
    "F.max_pool2d(x.relu()*0,2)",
    "F.max_pool1d(x1,2)",
    "F.max_pool1d(x1[0],2)",
    "F.max_pool1d(x1,3,stride=2,padding=1)",
    "F.avg_pool2d(x,2)",
    "F.avg_pool2d(x3,2)",
    "F.avg_pool2d(x,3,2,1)",
    "F.avg_pool2d(x,3,2,1,count_include_pad=False)",
    "F.avg_pool2d(x,3,2,1,ceil_mode=True)",
    "F.avg_pool1d(x1,2)",
    "F.avg_pool1d(x1[0],2)",
    "F.avg_pool1d(x1,3,2,1)",
    "F.adaptive_avg_pool2d(x,1)",
    "F.adaptive_avg_pool2d(x,(2,3))",
    "F.adaptive_avg_pool2d(x,(None,4))",
    "F.adaptive_avg_pool2d(x,4)",
    "F.adaptive_avg_pool1d(x1,1)",
    "F.adaptive_avg_pool1d(x1,4)",
    "F.adaptive_avg_pool2d(x[0,0],1)",
    "F.group_norm(x,2)",
    "F.group_norm(x,2,torch.ones(4,requires_grad=True),torch.ones(4)*2)",
    "F.group_norm(x,3)",
    "F.group_norm(x[0,0,0],1)",
    "F.instance_norm(x)",
    "F.instance_norm(x,weight=x1[0,:,0],bias=x1[0,:,1])",
    "F.instance_norm(x[:,:,:1,:1])",
    "F.rms_norm(x,(6,))",
    "F.rms_norm(x,(6,),torch.ones(6,requires_grad=True)*2,eps=0.1)",
    "F.rms_norm(x,(5,))",
    "F.dropout2d(x)",
    "F.dropout2d(x,1.5)",
    "F.dropout2d(x,0.3,False)",
    "F.pairwise_distance(x1[0],x1[1])",
    "F.pairwise_distance(x1[0],x1[1],p=1,keepdim=True)",
    "F.triplet_margin_loss(x1[0],x1[1],x1[0]*2)",
    "F.triplet_margin_loss(x1[0],x1[1],x1[0]*2,swap=True,reduction='none')",
    "F.margin_ranking_loss(x1[0],x1[1],x1[0].sign())",
    "F.margin_ranking_loss(x1[0],x1[1],x1[0].sign(),0.5,reduction='none')",
    "F.cosine_embedding_loss(x1[0],x1[1],torch.tensor([1,-1,1,-1,1])[:len(x1[0])])",
    "nn.CosineEmbeddingLoss(0.2,reduction='none')(x1[0],x1[1],torch.tensor([-1,1,-1,-1,1])[:len(x1[0])])",
    "F.normalize(x1[0],p=1.0)",
    "nn.BatchNorm2d(4)(x)",
    "nn.BatchNorm2d(4)(x3)",
    "nn.GroupNorm(2,4)(x)",
    "nn.InstanceNorm2d(4)(x)",
    "nn.InstanceNorm1d(4,affine=True)(x1)",
    "nn.RMSNorm(6)(x)",
    "nn.Sequential(nn.Conv2d(4,3,3),nn.ReLU(),nn.MaxPool2d(2),nn.Flatten(),nn.Linear(12,2))(x)",
    "nn.Sequential(nn.Conv2d(4,3,3,bias=False),nn.BatchNorm2d(3),nn.ReLU(),nn.AdaptiveAvgPool2d(1),nn.Flatten(),nn.Linear(3,2))(x)",
    "nn.Dropout2d(.3)(x)",
    "nn.TripletMarginLoss(margin=2.)(x1[0],x1[1],x1[0]*.5)",
    "nn.MarginRankingLoss(2.,reduction='sum')(x1[0],x1[1],x1[0].sign())",
    "torch.column_stack([x3[0],x3[1]])",
    "torch.column_stack([x3[0,0],x3[0,1]])",
    "torch.broadcast_tensors(x3[0],x3)[0]",
    "torch.normal(0.0,1.0,(3,2))",
    "torch.normal(torch.zeros(3),2.0)",
    "torch.bitwise_and(torch.tensor([5,6]),3)",
    "torch.bitwise_not(x3[0]>0)",
    "torch.bitwise_xor(x3[0],1)",
    "torch.bernoulli(torch.full((3,),.5))",
    "torch.zeros(2).multiply_(3).subtract_(1)",
    "torch.broadcast_tensors(x3[0,:5],x3[1])",
    "torch.linalg.slogdet(x3[0])[1]",
    "torch.linalg.slogdet(x3[0])[0]*1",
    "torch.logdet(x3[0]@x3[0].T)",
    "torch.linalg.eigh(x3[0]+x3[0].T)[0]",
    "torch.linalg.eigvalsh(x3[0]+x3[0].T)",
    "torch.linalg.qr(x3[0])[1].abs()",
    "torch.linalg.svd(x3[0])[1]",
    "torch.linalg.svdvals(x3[0])",
]
# every layer is called, with options that are not the usual ones
_CALLS += [
    f"nn.{layer}(x)"
    for layer in (
        *("ReLU()", "ReLU6()", "LeakyReLU(.2)", "ELU(.5)", "SELU()", "CELU(.5)", "Tanh()", "Sigmoid()", "LogSigmoid()"),
        *("GELU()", "GELU(approximate='tanh')", "SiLU()", "Mish()", "Softplus(2,1)", "Softsign()", "Tanhshrink()"),
        *("Hardtanh(-.5,.5)", "Hardsigmoid()", "Hardswish()", "Softshrink(.2)", "Hardshrink(.2)", "Threshold(.1,7.)"),
        *("GLU(1)", "Softmax(1)", "LogSoftmax(-1)", "Softmin(1)", "PReLU(4)", "Identity(3)", "Flatten(1,2)"),
        *("Unflatten(1,(2,2))", "Conv2d(4,6,3,2,1,1,2)", "Conv2d(4,6,3,bias=False)"),
        *("MaxPool2d(3,2,1,1,ceil_mode=True)", "AvgPool2d(3,2,1,True,False)"),
        *("AdaptiveAvgPool2d((2,3))", "LayerNorm((6,6),1e-3)", "LayerNorm(6,bias=False)", "RMSNorm(6,1e-3)"),
        *(
            "GroupNorm(2,4,1e-3,False)",
            "BatchNorm2d(4,1e-3,.3,False)",
            "BatchNorm2d(4,track_running_stats=False).eval()",
        ),
        *(
            "InstanceNorm2d(4,1e-3,affine=True)",
            "Dropout(.4)",
            "Dropout(.4).eval()",
            "Dropout2d(.4)",
        ),
        *("Linear(6,3,bias=False)"),
    )
]
_CALLS += [
    f"nn.{layer}(x1)"
    for layer in (
        "Conv1d(4,6,3,2,1)",
        "MaxPool1d(3,2,1)",
        "AvgPool1d(3,2,1)",
        "BatchNorm1d(4)",
    )
]
_CALLS += [
    f"nn.{layer}(x.sigmoid(), x.detach().sigmoid())"
    for layer in (
        *(
            "MSELoss(reduction='sum')",
            "L1Loss()",
            "SmoothL1Loss(beta=.5)",
            "HuberLoss('sum',.5)",
            "BCELoss(reduction='none')",
        ),
        *(
            "BCEWithLogitsLoss(pos_weight=torch.full((6,),2.))",
            "KLDivLoss(reduction='batchmean')",
            "CosineSimilarity(2)",
        ),
        *(
            "PairwiseDistance(1,keepdim=True)",
            "CrossEntropyLoss(label_smoothing=.1)",
        ),
    )
]
_CALLS += [
    "nn.Embedding(5,3,padding_idx=1)(torch.tensor([1,4]))",
    "nn.NLLLoss(ignore_index=1)(x3[0].log_softmax(1),torch.arange(6))",
]
_CALLS += ["nn.CrossEntropyLoss(torch.arange(6.),reduction='none')(x3[0],torch.arange(6))", "nn.Conv3d(2,3,2)(x5)"]
LAYERS = {call: DATA + f"y = {call}" + END for call in _CALLS}

_MODULES = (
    "nn.Conv2d(1,6,5) nn.Conv2d(4,6,3,stride=2,padding=1,dilation=2,groups=2,bias=False) "
    "nn.Conv1d(3,4,3,padding='same') nn.Conv1d(3,4,3,padding='other') nn.Conv1d(3,4,3,padding='same',stride=2) "
    "nn.Conv2d(3,4,3,groups=2) nn.Conv3d(1,2,3) "
    "nn.MaxPool2d(2) nn.MaxPool2d(3,2,1) nn.MaxPool1d(2) nn.AvgPool2d(2) "
    "nn.AvgPool2d(2,2,1,True) nn.AvgPool1d(2) nn.AdaptiveAvgPool2d((1,1)) nn.AdaptiveAvgPool1d(2) "
    "nn.BatchNorm2d(3) nn.GroupNorm(2,4) nn.GroupNorm(3,4) nn.InstanceNorm2d(3) nn.InstanceNorm1d(3,affine=True) "
    "nn.RMSNorm(3) nn.Dropout2d(.2) "
    "nn.TripletMarginLoss() "
    "nn.MarginRankingLoss(0.1)"
).split()
LAYER_MODULES = {call: f"nn = torch.nn\ntorch.manual_seed(5)\nm = {call}\n" + _STATE for call in _MODULES}
# subclasses that call the constructor of a layer, or change what it calls
_SUBCLASSES = {
    "nn.Conv2d": "def __init__(self, *a, **k):\n        super().__init__(*a, **k)\n        self.extra = nn.Parameter(torch.ones(1))\nm = One(1, 2, 3, padding=1)",
    "nn.Linear": "def __init__(self, n):\n        super().__init__(n, n, bias=False)\n    def reset_parameters(self):\n        nn.init.ones_(self.weight)\nm = One(3)",
    "nn.BatchNorm1d": "def __init__(self, n):\n        super().__init__(n, affine=False)\nm = One(3)",
    "nn.CrossEntropyLoss": "def __init__(self):\n        super().__init__(weight=torch.tensor([1.0, 2.0]))\nm = One()",
    "nn.Embedding": "def __init__(self, n):\n        super().__init__(n, 4, padding_idx=0)\nm = One(3)",
    "nn.ReLU": "def __init__(self):\n        super().__init__(inplace=True)\nm = One()",
}  # fmt: skip
LAYER_MODULES |= {
    f"a subclass of {base}": f"nn = torch.nn\ntorch.manual_seed(5)\nclass One({base}):\n    {body}\n"
    + _STATE
    + "del One\n"
    for base, body in _SUBCLASSES.items()
}
