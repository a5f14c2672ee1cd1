"""What the recorded programs ask of the allocator. Each takes a Machine (record.py) and
asks for bytes; nothing in it depends on what it gets, so that it asks for the same under
every setting. Only the sizes and the order are like training: nothing is computed.
"""
import random

MIB = 1 << 20
KIB = 1 << 10


def build(m, layers, width):
    """Parameters, as one tensor each."""
    return [m.empty(n * width) for _ in range(layers) for n in (4 * width, width, 2)]


def forward(m, layers, batch):
    kept = []
    x = m.empty(batch)
    for _ in range(layers):
        h = m.empty(4 * batch)
        kept.append(h)
        x = m.empty(batch)
        kept.append(x)
    return kept, m.empty(4)


def backward(m, kept, batch):
    grads = []
    while kept:
        kept.pop()
        scratch = m.empty(4 * batch)
        grads.append(m.empty(batch // 8))
        del scratch
    return grads


def optimizer_step(m, params):
    return [(m.empty(p.nbytes), m.empty(p.nbytes)) for p in params if p is not None]


def training(m, steps, layers=4, width=512, batch=lambda i: 3 * MIB, keep=False):
    params, state, outputs = build(m, layers, width), [], []
    for i in range(steps):
        with m.step(i):
            with m.region("forward"):
                kept, loss = forward(m, layers, batch(i))
            if keep:
                outputs.append(list(kept))
            with m.region("backward"):
                grads = backward(m, kept, batch(i))
            with m.region("optimizer"):
                if not state:
                    state = optimizer_step(m, params)
                del grads
            del loss
    m.keep(params, state, outputs)


def steady(m):
    """Growth in the first step only; nothing fails."""
    training(m, 6)


def outputs_kept(m):
    """Every step keeps what it made, until nothing is left."""
    training(m, 40, keep=True)


def lengths(m, seed=1, steps=24, low=1, high=40):
    """Sequences of varying length, each a little different from all before."""
    r = random.Random(seed)
    sizes = [r.randrange(low * MIB // 4, high * MIB // 4) for _ in range(steps)]
    training(m, steps, layers=3, batch=lambda i: sizes[i])


def pinned(m, blocks=12):
    """Large segments are cached, then small blocks that stay settle in each of them. Much is free
    when something larger is wanted, nowhere in one piece, and no segment can be given back."""
    big = [m.empty(50 * MIB) for _ in range(blocks)]
    del big
    pins, rest = [], []
    for _ in range(blocks):
        pins.append(m.empty(3 * MIB))
        rest.append(m.empty(46 * MIB))
    del rest
    activations = [m.empty(11 * MIB) for _ in range(blocks * 2)]
    more = [m.empty(60 * MIB) for _ in range(4)]
    m.keep(pins, activations, more)


def holes(m, blocks=40, size=12 * MIB, want=60 * MIB):
    """Large blocks with small ones between them, each a little more than what it asks for."""
    large, pins = [], []
    for i in range(blocks):
        large.append(m.empty(size + (i % 5) * MIB))
        pins.append(m.empty(1536 * KIB))
    for i in range(0, blocks, 2):
        large[i] = None
    more = [m.empty(want) for _ in range(4)]
    m.keep(more, pins)


def evaluation(m):
    """Training with a pass over other sizes in between; the cache is emptied after it."""
    params = build(m, 3, 512)
    for epoch in range(3):
        for i in range(4):
            with m.step(4 * epoch + i):
                kept, loss = forward(m, 3, 2 * MIB)
                backward(m, kept, 2 * MIB)
                del kept, loss
        for n in (5, 9, 23, 31):
            kept, loss = forward(m, 2, n * MIB + 1)
            del kept, loss
        m.empty_cache()
    m.keep(params)


def side_streams(m):
    """Copies on a stream of their own, used on the main one and the other way round."""
    copy, comm = m.stream(), m.stream()
    r = random.Random(7)
    params = build(m, 3, 512)
    for i in range(12):
        with m.step(i):
            with m.on(copy):
                batch = m.empty(r.randrange(1 * MIB, 6 * MIB))
            m.used_on(batch, None)
            kept, loss = forward(m, 3, 2 * MIB)
            m.tick()
            with m.on(comm):
                bucket = [m.empty(r.randrange(200 * KIB, 9 * MIB)) for _ in range(3)]
            for b in bucket:
                m.used_on(b, copy)
            for k in kept[::2]:
                m.used_on(k, comm)
            backward(m, kept, 2 * MIB)
            del batch, bucket, kept, loss, k, b
            m.tick()
    m.keep(params)


def private_pools(m):
    """Two captured graphs that share a pool, one with its own, and eager steps between."""
    params = build(m, 3, 512)
    static = m.empty(4 * MIB)
    first = m.capture(lambda: forward(m, 3, 3 * MIB))
    for i in range(3):
        with m.step(i):
            kept, loss = forward(m, 3, 2 * MIB)
            backward(m, kept, 2 * MIB)
            del kept, loss
    second = m.capture(lambda: forward(m, 2, 5 * MIB), share=first)
    third = m.capture(lambda: forward(m, 2, 7 * MIB))
    for i in range(3, 6):
        with m.step(i):
            kept, loss = forward(m, 3, (i + 4) * MIB)
            del kept, loss
    m.keep(static, params, first, second, third)


def pool_for_use(m):
    """A torch.cuda.MemPool for some of the requests."""
    pool = m.pool()
    params = build(m, 3, 512)
    held = []
    for i in range(8):
        with m.step(i):
            with m.within(pool):
                held.append(m.empty((3 + 2 * i) * MIB))
                scratch = m.empty(700 * KIB)
            kept, loss = forward(m, 2, (1 + i % 3) * MIB)
            del scratch, kept, loss
            if i % 3 == 2:
                held = held[1:]
    m.keep(pool, params, held)


def skipped_batches(m):
    """Batches that do not fit are skipped and the program goes on."""
    m.skips_failures = True
    r = random.Random(3)
    params = build(m, 3, 512)
    for i in range(30):
        with m.step(i):
            size = 30 * MIB if i % 7 == 6 else r.randrange(MIB, 5 * MIB)
            kept = [m.empty(size) for _ in range(8)]
            more = [m.empty(size // 3) for _ in range(6)]
            del kept, more
    m.keep(params)


def mixed(m, seed, count=400, streams=0, pools=0, empties=True, top=48, live=60):
    """Anything, by chance."""
    r = random.Random(seed)
    m.skips_failures = seed % 3 == 0
    all_streams = [None] + [m.stream() for _ in range(streams)]
    all_pools = [None] + [m.pool() for _ in range(pools)]
    held = []
    sizes = [r.randrange(1, top * MIB) for _ in range(12)] + [r.randrange(1, 2 * MIB) for _ in range(8)] + [512, 100, MIB, MIB + 1, 10 * MIB, 10 * MIB - 1, 20 * MIB]
    for i in range(count):
        what = r.random()
        if what < 0.52 or not held:
            n = r.choice(sizes)
            if r.random() < 0.4:
                n = max(1, int(n * r.uniform(0.4, 1.6)))
            with m.within(r.choice(all_pools)), m.on(r.choice(all_streams)):
                held.append(m.empty(n))
        elif what < 0.96:
            k = min(1 if r.random() < 0.8 else 5, len(held))
            for _ in range(k):
                held.pop(r.randrange(len(held)))
            while len(held) > live:
                held.pop(r.randrange(len(held)))
        elif what < 0.97 and empties:
            m.empty_cache()
        if streams and held and r.random() < 0.2:
            m.used_on(r.choice(held), r.choice(all_streams))
        if r.random() < 0.3:
            m.tick()
    m.keep(held, all_pools)
