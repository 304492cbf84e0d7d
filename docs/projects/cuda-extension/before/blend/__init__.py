import torch  # noqa: F401  (its libraries have to be loaded first)

from ._C import blend

__all__ = ["blend"]
