"""Makes the .pt files beside it; needs torch, which the tests do not.

Document i has i + 2 rows of 16 numbers ((7 i + 3 r + c) mod 11 - 5) / 8, which every float type holds exactly.
"""
import os

import torch


def document(i):
    return torch.tensor([[((7 * i + 3 * r + c) % 11 - 5) / 8 for c in range(16)] for r in range(i + 2)])


docs = [document(i) for i in range(3)]
padded = torch.zeros(3, 4, 16)
for i, d in enumerate(docs):
    padded[i, : len(d)] = d
flat = torch.cat(docs)
views = [flat[0:2], flat[2:5], flat[5:9]]


class Call:
    def __reduce__(self):
        return os.system, ("touch called",)


save = lambda value, name, **options: torch.save(value, name, **options)
save([d.half() for d in docs], "list_f16.pt")
save(tuple(d.double() for d in docs), "tuple_f64.pt")
save(padded, "padded_f32.pt")
save({"a": docs[0].bfloat16(), "b": docs[1].bfloat16(), "c": docs[2].bfloat16()}, "dict_bf16.pt")
save(views, "shared_storage.pt")
save([d.T.contiguous().T for d in docs], "strided.pt")
save([[docs[0]], (docs[1], [docs[2]])], "nested.pt")
save([d.unsqueeze(0) for d in docs], "batch_of_one.pt")
save({"embeddings": flat, "lengths": torch.tensor([2, 3, 4]), "ids": ["x", "y", "z"]}, "parts.pt")
save([torch.nn.Parameter(d) for d in docs], "parameters.pt")
save(docs[0], "single.pt")
save(docs, "protocol4.pt", pickle_protocol=4)
save(docs, "legacy.pt", _use_new_zipfile_serialization=False)
save([docs[0], Call()], "calls_system.pt")
save([docs[0], {1, 2}], "holds_a_set.pt")
save([docs[0], docs[1].long()], "integers.pt")
save([docs[0][0, 0].expand(1000, 16)], "expanded.pt")
