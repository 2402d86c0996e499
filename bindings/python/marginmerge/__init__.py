"""MarginMerge: shrinks late-interaction indexes and keeps their ranking.

    import marginmerge

    model = marginmerge.fit(pages, queries, qrels)              # arrays, tensors, or files
    small = marginmerge.compress(pages, model, keep=0.05)       # twenty times fewer vectors
    marginmerge.evaluate(pages, small, test_queries, test_qrels)
    marginmerge.Index(small).search(query, k=10)

Vectors are NumPy arrays, torch tensors on the CPU, anything else with the buffer protocol or DLPack, or files; they are
not copied where their layout allows it. The GIL is released while the library works. Errors are `marginmerge.Error` with
a `code`; wrong usage is a `ValueError` as well.
"""

from ._core import Model, MultiVectorSet, __version__, kernel
from .errors import Error, UsageError
from .index import Hit, Index
from .jobs import compress, evaluate, fit, import_vectors, search, synthesise
from .pooling import MarginMergePooler, TokenPoolingOutput
from .vectors import read_qrels, vectors

__all__ = [
    "Error",
    "Hit",
    "Index",
    "MarginMergePooler",
    "Model",
    "MultiVectorSet",
    "TokenPoolingOutput",
    "UsageError",
    "__version__",
    "compress",
    "evaluate",
    "fit",
    "import_vectors",
    "kernel",
    "read_qrels",
    "search",
    "synthesise",
    "vectors",
]
