"""Programs of other frameworks: what they do is recorded as if they ran on our tensors.

`torch_recorder.py` watches a run of the installed PyTorch and feeds the record of `eager/running`; `torch_tensors.py`
reads its tensors; `attach.py` is for scripts and notebooks: `gradcli.watch` and `gradcli.draw`.
"""

from __future__ import annotations
