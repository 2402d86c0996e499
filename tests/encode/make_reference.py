"""Makes the reference values in tests/encode/data with PIL and NumPy, independently of our code:

    resample_*.npy       PIL's Image.resize of one random image with three filters, larger and smaller
    qwen_*.npy           the flattened patches of a small image, by reshape and transpose
    sizes.npy            smart_resize of a list of sizes, in Python's own arithmetic
    photo.png/.jpg/.webp/.tif  the same small picture in every format (TIFF: two pages)

Usage: make_reference.py; needs python3-pil and python3-numpy. The results are committed."""
import math
import pathlib

import numpy as np
from PIL import Image

OUT = pathlib.Path(__file__).resolve().parent / "data"


def save(name, array, kind=np.int32):
    np.save(OUT / f"{name}.npy", np.ascontiguousarray(array.astype(kind)))


def smart(height, width, factor, low, high):
    h, w = max(factor, round(height / factor) * factor), max(factor, round(width / factor) * factor)
    if h * w > high:
        beta = math.sqrt(height * width / high)
        h, w = max(factor, math.floor(height / beta / factor) * factor), max(factor, math.floor(width / beta / factor) * factor)
    elif h * w < low:
        beta = math.sqrt(low / (height * width))
        h, w = math.ceil(height * beta / factor) * factor, math.ceil(width * beta / factor) * factor
    return h, w


def main():
    OUT.mkdir(exist_ok=True)
    rng = np.random.RandomState(11)
    noise = rng.randint(0, 256, (23, 31, 3)).astype(np.uint8)
    noise[5:15, 8:20] = (255, 0, 0)  # sharp edges make bicubic and Lanczos overshoot
    save("resample_input", noise.reshape(23, -1))
    image = Image.fromarray(noise)
    for name, kind in (("bilinear", Image.BILINEAR), ("bicubic", Image.BICUBIC), ("lanczos", Image.LANCZOS)):
        for size in ((14, 9), (40, 52), (31, 10), (12, 23)):
            save(f"resample_{name}_{size[0]}x{size[1]}", np.asarray(image.resize(size, kind)).reshape(size[1], -1))

    picture = rng.randint(0, 256, (56, 84, 3)).astype(np.uint8)
    save("qwen_input", picture.reshape(56, -1))
    mean, std = np.array([0.48145466, 0.4578275, 0.40821073]), np.array([0.26862954, 0.26130258, 0.27577711])
    x = ((picture.astype(np.float64) / 255 - mean) / std).transpose(2, 0, 1)
    frames = np.stack([x, x])  # temporal 2
    p, m, gh, gw = 14, 2, 4, 6
    flat = frames.reshape(1, 2, 3, gh // m, m, p, gw // m, m, p).transpose(0, 3, 6, 4, 7, 2, 1, 5, 8).reshape(gh * gw, -1)
    save("qwen_patches", flat[[0, 1, 6, 23]], np.float32)

    sizes = [(1100, 850), (850, 1100), (20, 20), (3000, 4000), (448, 448), (14, 1000), (42, 70), (613, 613), (5000, 100)]
    save("sizes", np.array([[w, h, *smart(h, w, 28, 3136, 602112)[::-1]] for h, w in sizes]))

    small = Image.fromarray(np.dstack([np.tile(np.arange(0, 240, 10, dtype=np.uint8), (16, 1)),
                                       np.tile(np.arange(0, 160, 10, dtype=np.uint8)[:, None], (1, 24)),
                                       np.full((16, 24), 90, np.uint8)]))
    small.save(OUT / "photo.png")
    small.save(OUT / "photo.jpg", quality=95, subsampling=0)
    small.save(OUT / "photo.webp", lossless=True)
    small.save(OUT / "photo.tif", save_all=True, append_images=[small.rotate(180)], compression="tiff_lzw")
    small.convert("CMYK").save(OUT / "cmyk.jpg", quality=95)
    clear = small.convert("RGBA")
    clear.putalpha(Image.fromarray(np.tile(np.array([0] * 12 + [255] * 12, np.uint8), (16, 1))))
    clear.save(OUT / "clear.png")


main()
