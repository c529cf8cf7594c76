"""Shardproof for Python: `reports` and `traces` read what the suite writes, `command` finds and runs it, `torch` judges PyTorch.

Only `shardproof.torch` needs torch.
"""
