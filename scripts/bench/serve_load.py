"""Loads a running inquest serve with diagnoses of a small log, and prints what came of it.

    serve_load.py ADDRESS LOG ROUNDS

Each round measures, one after the other: single diagnoses, two at a time, fifty at a time, and
arrivals at random times at half the rate of fifty at a time, which do not wait for each other. The
medians of the rounds count. Every request has a connection of its own, as those of strangers have.
A refused diagnosis is an error. The client takes part of the processors, which is told.
"""
import http.client, os, random, statistics, sys, threading, time

SINGLE, MANY = 30, 200  # diagnoses of a measurement


def main(address, log, rounds):
    host = address.removeprefix("http://")
    body = open(log, "rb").read()

    def diagnose():
        c = http.client.HTTPConnection(host, timeout=120)
        try:
            c.request("POST", "/v1/diagnose?discard=true&name=train.log", body)
            answer = c.getresponse()
            data = answer.read()
        finally:
            c.close()
        if answer.status != 200:
            raise SystemExit(f"refused: {answer.status} {data[:300]!r}")

    def at_once(n):
        """The diagnoses per second of n clients, each with one after the other."""
        left, lock, failed = [MANY], threading.Lock(), []

        def client():
            while not failed:
                with lock:
                    if not left[0]:
                        return
                    left[0] -= 1
                try:
                    diagnose()
                except BaseException as e:  # it is told below
                    failed.append(e)

        begun = time.perf_counter()
        run([threading.Thread(target=client) for _ in range(n)], failed)
        return MANY / (time.perf_counter() - begun)

    def arriving(rate, seed):
        """How long each of MANY diagnoses takes from the time at which it should begin."""
        took, failed, due, rnd = [], [], 0.0, random.Random(seed)
        begun = time.perf_counter()

        def client(due):
            try:
                diagnose()
                took.append(time.perf_counter() - begun - due)
            except BaseException as e:
                failed.append(e)

        threads = []
        for _ in range(MANY):
            due += rnd.expovariate(rate)
            time.sleep(max(0, begun + due - time.perf_counter()))
            threads.append(threading.Thread(target=client, args=(due,)))
            threads[-1].start()
        for t in threads:
            t.join()
        if failed:
            raise failed[0]
        return sorted(took)

    def single():
        begun = time.perf_counter()
        diagnose()
        return time.perf_counter() - begun

    def run(threads, failed):
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        if failed:
            raise failed[0]

    at_once(2)  # what is made at the first request is there
    ratios, tails, peaks, ones = [], [], [], []
    begun, before = time.perf_counter(), os.times()
    for i in range(rounds):
        one = statistics.median(single() for _ in range(SINGLE))
        # Whichever is second finds another machine: their order changes.
        order = (2, 50) if i % 2 == 0 else (50, 2)
        rate = {n: at_once(n) for n in order}
        took = arriving(rate[50] / 2, i)
        ones.append(one)
        peaks.append(rate[50])
        ratios.append(rate[50] / rate[2])
        tails.append(took[int(0.99 * len(took))] / one)
    after = os.times()
    mine = (after.user + after.system - before.user - before.system) / (time.perf_counter() - begun)
    print(f"single {1000 * statistics.median(ones):.1f} ms; 50 at a time {statistics.median(peaks):.0f}/s, none refused, {statistics.median(ratios):.2f} times the rate of 2 at a time (at least 0.9 wanted)")
    print(f"p99 at half that rate {statistics.median(tails):.1f} times the single one (at most 5 wanted); medians of {rounds}; the client took {mine:.2f} processors")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
