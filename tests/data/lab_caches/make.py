"""Makes two small folders in the layout of the paper's published program (ps.pt, qs.pt, meta.json); needs torch, which the tests do not.

Pages are noisy copies of a few directions, queries noisy views of some patches of their page.
"""
import json
import os

import torch

generator = torch.Generator().manual_seed(7)
directions = torch.nn.functional.normalize(torch.randn(60, 16, generator=generator), dim=1)


def near(rows, noise):
    return torch.nn.functional.normalize(rows + noise * torch.randn(rows.shape, generator=generator), dim=1)


for name, vectors in (("ArxivQA", 40), ("Flickr", 24)):
    pages, queries, gold = [], [], []
    for p in range(24):
        own = torch.randint(0, 60, (6,), generator=generator)
        size = vectors + p % 5
        pages.append(near(directions[own[torch.randint(0, 6, (size,), generator=generator)]], 0.12).half())
    for q in range(36):
        page = q % 24
        picked = torch.randint(0, len(pages[page]), (4,), generator=generator)
        queries.append(near(pages[page][picked].float(), 0.15).half())
        gold.append(page)
    os.makedirs(name, exist_ok=True)
    torch.save(pages, f"{name}/ps.pt")
    torch.save(queries, f"{name}/qs.pt")
    json.dump({"doc_ids": [f"{name}-{p}" for p in range(24)], "gold": gold}, open(f"{name}/meta.json", "w"))
